//! The `meta` blob of a checkpoint: agent, time and root, for readers that have only the
//! repository.
//!
//! It contains no prompt, command line or summary; those are in the private record.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Error, Result},
    model::{
        By, Cause, Checkpoint, CheckpointId, Completeness, ContentId, DefaultModes, Head, Reason,
        SessionId, SkipReason, Skipped, TurnId,
    },
    store::{
        escape::{escape, unescape},
        record::{agent_name, agent_named},
    },
};

/// The newest version, which is the one we write.
const VERSION: u32 = 1;

/// The content of `meta`.
#[derive(Debug)]
pub(super) struct Meta {
    pub(super) checkpoint: Checkpoint,
    pub(super) default_modes: DefaultModes,
}

#[derive(Serialize, Deserialize)]
struct MetaFile {
    version: u32,
    id: String,
    sequence: u64,
    taken_at: String,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    files: u64,
    #[serde(default)]
    partial: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_progress: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    staged: Option<u64>,
    /// Usual permission bits of files, executables and directories, in octal.
    #[serde(rename = "usual")]
    default_modes: [String; 3],
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<(String, String, u64)>,
}

#[derive(Deserialize)]
struct Header {
    version: u32,
    #[serde(default)]
    sequence: u64,
    #[serde(default)]
    taken_at: String,
}

/// The text for a checkpoint.
pub(super) fn to_json(checkpoint: &Checkpoint, default_modes: &DefaultModes) -> Vec<u8> {
    let Checkpoint { cause, head, .. } = checkpoint;
    let by = cause.by.as_ref();
    let inside = |skipped: &&Skipped| !skipped.path.starts_with(b"/");
    let skip = |it: &Skipped| (escape(&it.path), it.reason.name().to_owned(), it.size);
    let file = MetaFile {
        version: VERSION,
        id: checkpoint.id.to_string(),
        sequence: checkpoint.sequence,
        taken_at: checkpoint.taken_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        reason: cause.reason.name().to_owned(),
        agent: by.map(|by| agent_name(by.agent).to_owned()),
        session: by.map(|by| by.session.0.clone()),
        turn: by.and_then(|by| by.turn.as_ref()).map(|turn| turn.0.clone()),
        subagent: by.and_then(|by| by.subagent.clone()),
        tool: cause.tool.clone(),
        of: cause.of.map(|id| id.to_string()),
        files: checkpoint.files,
        partial: !checkpoint.completeness.is_whole(),
        branch: head.as_ref().and_then(|head| head.branch.clone()),
        commit: head.as_ref().and_then(|head| head.commit.clone()),
        in_progress: head.as_ref().and_then(|head| head.in_progress.clone()),
        staged: checkpoint.staged,
        default_modes: [default_modes.file, default_modes.executable, default_modes.directory]
            .map(|mode| format!("{mode:o}")),
        skipped: checkpoint.skipped.iter().filter(inside).map(skip).collect(),
    };
    let mut json = serde_json::to_vec_pretty(&file).expect("strings and numbers are always JSON");
    json.push(b'\n');
    json
}

/// Parses the blob.
///
/// # Errors
///
/// [`Error::FormatTooNew`] or [`Error::Damaged`].
pub(super) fn parse(what: &str, json: &[u8]) -> Result<Meta> {
    let damaged = |err: serde_json::Error| Error::damaged(what, err.to_string());
    let found = serde_json::from_slice::<Header>(json).map_err(damaged)?.version;
    if found > VERSION {
        return Err(Error::FormatTooNew { what: what.to_owned(), found, known: VERSION });
    }
    let file: MetaFile = serde_json::from_slice(json).map_err(damaged)?;
    file.into_meta().ok_or_else(|| Error::damaged(what, "a value makes no sense"))
}

/// What every version has: sequence number and time.
pub(super) fn order(json: &[u8]) -> (u64, DateTime<Utc>) {
    match serde_json::from_slice::<Header>(json) {
        Ok(header) => (header.sequence, header.taken_at.parse().unwrap_or_default()),
        Err(_) => (0, DateTime::default()),
    }
}

impl MetaFile {
    fn into_meta(self) -> Option<Meta> {
        let mode = |text: &String| u32::from_str_radix(text, 8).ok().filter(|&bits| bits <= 0o7777);
        let [file, executable, directory] = &self.default_modes;
        let default_modes = DefaultModes {
            file: mode(file)?,
            executable: mode(executable)?,
            directory: mode(directory)?,
        };
        let skipped = self.skipped.iter().map(|(path, reason, size)| {
            let (path, reason) = (unescape(path)?, SkipReason::from_name(reason)?);
            Some(Skipped { path, reason, size: *size })
        });
        let skipped = skipped.collect::<Option<_>>()?;
        let of = match &self.of {
            Some(id) => Some(CheckpointId::parse(id)?),
            None => None,
        };
        let checkpoint = Checkpoint {
            id: CheckpointId::parse(&self.id)?,
            sequence: self.sequence,
            taken_at: self.taken_at.parse().ok()?,
            reading_ns: None,
            cause: Cause {
                reason: Reason::from_name(&self.reason)?,
                by: self.by(),
                tool: self.tool,
                summary: None,
                of,
            },
            top: None::<ContentId>,
            files: self.files,
            completeness: Completeness::of_record(self.partial),
            skipped,
            outside: Vec::new(),
            head: Some(Head {
                branch: self.branch,
                commit: self.commit,
                in_progress: self.in_progress,
            }),
            staged: self.staged,
        };
        Some(Meta { checkpoint, default_modes })
    }

    /// An unknown agent must not make the checkpoint unreadable; it counts as taken without a
    /// session.
    fn by(&self) -> Option<By> {
        Some(By {
            agent: agent_named(self.agent.as_deref()?)?,
            session: SessionId(self.session.clone()?),
            turn: self.turn.clone().map(TurnId),
            subagent: self.subagent.clone(),
            prompt: None,
            transcript: None,
            position: None,
        })
    }
}
