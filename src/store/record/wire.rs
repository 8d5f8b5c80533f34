//! The JSON format of a record. Any file yields a record or a reason why not.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    Record, StoreKind,
    held::{HeldFile, PointerFile, is_store_name, parse_pointer, pointer_file},
    version::{VERSION, Versioned, moment},
};
use crate::{
    model::{
        Agent, By, Cause, Checkpoint, CheckpointId, Completeness, ContentId, Head, Reason,
        SessionId, SkipReason, Skipped, TurnId,
    },
    store::escape::{escape, escape_path, parse_path, unescape},
};

/// Every key that a record can have.
pub(super) const KEYS: &[&str] = &[
    "version", "id", "keeper", "sequence", "taken_at", "reading_ns", "reason", "agent", "tool",
    "summary", "of", "top", "besides", "outside", "files", "partial", "skipped", "outside_paths",
    "head", "staged", "tree", "store", "repositories", "dangling",
];

/// `checkpoints/<id>.json`. Paths are escaped, because JSON strings cannot hold arbitrary bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordFile {
    version: u32,
    id: String,
    keeper: String,
    sequence: u64,
    #[serde(with = "moment")]
    taken_at: DateTime<Utc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reading_ns: Option<u64>,
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<ByFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    top: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "besides")]
    overlay: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outside: Option<String>,
    files: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<SkippedFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outside_paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<HeadFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    staged: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<HeldFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dangling: Vec<PointerFile>,
}

#[derive(Serialize, Deserialize)]
struct ByFile {
    name: String,
    session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subagent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transcript: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct SkippedFile {
    path: String,
    reason: String,
    size: u64,
}

#[derive(Serialize, Deserialize)]
struct HeadFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_progress: Option<String>,
}

impl Versioned for RecordFile {
    fn version(&self) -> u32 {
        self.version
    }
}

impl RecordFile {
    pub(super) fn of(record: &Record) -> Self {
        let Record { checkpoint, keeper, overlay, outside, tree, store, repositories, dangling } =
            record;
        let cause = &checkpoint.cause;
        let hex = |id: &Option<ContentId>| id.map(|id| id.to_string());
        Self {
            version: VERSION,
            id: checkpoint.id.to_string(),
            keeper: keeper.name().to_owned(),
            sequence: checkpoint.sequence,
            taken_at: checkpoint.taken_at,
            reading_ns: checkpoint.reading_ns,
            reason: cause.reason.name().to_owned(),
            agent: cause.by.as_ref().map(ByFile::of),
            tool: cause.tool.clone(),
            summary: cause.summary.clone(),
            of: cause.of.map(|id| id.to_string()),
            top: hex(&checkpoint.top),
            overlay: hex(overlay),
            outside: hex(outside),
            files: checkpoint.files,
            partial: !checkpoint.completeness.is_whole(),
            skipped: checkpoint.skipped.iter().map(SkippedFile::of).collect(),
            outside_paths: checkpoint.outside.iter().map(|path| escape_path(path)).collect(),
            head: checkpoint.head.as_ref().map(HeadFile::of),
            staged: checkpoint.staged,
            tree: hex(tree),
            store: store.clone(),
            repositories: repositories.iter().map(HeldFile::of).collect(),
            dangling: dangling.iter().map(pointer_file).collect(),
        }
    }

    pub(super) fn into_record(self) -> Result<Record, &'static str> {
        let checkpoint = CheckpointId::parse(&self.id).ok_or("`id` is not an id")?;
        let keeper = StoreKind::named(&self.keeper);
        let of = self.of.map(|of| CheckpointId::parse(&of).ok_or("`of` is not an id"));
        let cause = Cause {
            reason: Reason::from_name(&self.reason).ok_or("an unknown reason")?,
            by: self.agent.map(ByFile::into_by).transpose()?.flatten(),
            tool: self.tool,
            summary: self.summary,
            of: of.transpose()?,
        };
        let checkpoint = Checkpoint {
            id: checkpoint,
            sequence: self.sequence,
            taken_at: self.taken_at,
            reading_ns: self.reading_ns,
            cause,
            top: parse_id(self.top)?,
            files: self.files,
            completeness: Completeness::of_record(self.partial),
            skipped: self.skipped.iter().map(SkippedFile::to_skipped).collect::<Result<_, _>>()?,
            outside: self
                .outside_paths
                .iter()
                .map(|path| parse_path(path))
                .collect::<Result<_, _>>()?,
            head: self.head.map(HeadFile::into_head),
            staged: self.staged,
        };
        let (overlay, outside) = (parse_id(self.overlay)?, parse_id(self.outside)?);
        let keeper = keeper.ok_or("an unknown keeper")?;
        let tree = parse_id(self.tree)?;
        let store = self.store.map(|name| store_name(name).ok_or("`store` is not a name"));
        let store = store.transpose()?;
        let held = self.repositories.into_iter().map(HeldFile::into_held);
        let repositories = held.collect::<Result<_, _>>()?;
        let dangling = self.dangling.iter().map(parse_pointer).collect::<Option<_>>();
        let dangling = dangling.ok_or("a pointer is not one")?;
        Ok(Record { checkpoint, keeper, overlay, outside, tree, store, repositories, dangling })
    }
}

impl ByFile {
    fn of(by: &By) -> Self {
        Self {
            name: agent_name(by.agent).to_owned(),
            session: by.session.0.clone(),
            turn: by.turn.as_ref().map(|turn| turn.0.clone()),
            subagent: by.subagent.clone(),
            prompt: by.prompt.clone(),
            transcript: by.transcript.as_deref().map(escape_path),
            position: by.position,
        }
    }

    /// `None` for an agent that only a newer beforehand knows, which is no reason to lose the
    /// checkpoint.
    fn into_by(self) -> Result<Option<By>, &'static str> {
        let Some(agent) = agent_named(&self.name) else { return Ok(None) };
        Ok(Some(By {
            agent,
            session: SessionId(self.session),
            turn: self.turn.map(TurnId),
            subagent: self.subagent,
            prompt: self.prompt,
            transcript: self.transcript.as_deref().map(parse_path).transpose()?,
            position: self.position,
        }))
    }
}

impl SkippedFile {
    fn of(skipped: &Skipped) -> Self {
        let reason = skipped.reason.name().to_owned();
        Self { path: escape(&skipped.path), reason, size: skipped.size }
    }

    fn to_skipped(&self) -> Result<Skipped, &'static str> {
        Ok(Skipped {
            path: unescape(&self.path).ok_or("a skipped path is not escaped as it should be")?,
            reason: SkipReason::from_name(&self.reason).ok_or("an unknown reason to skip")?,
            size: self.size,
        })
    }
}

impl HeadFile {
    fn of(head: &Head) -> Self {
        let Head { branch, commit, in_progress } = head.clone();
        Self { branch, commit, in_progress }
    }

    fn into_head(self) -> Head {
        Head { branch: self.branch, commit: self.commit, in_progress: self.in_progress }
    }
}

/// Accepts only a valid name of a private repository, because it becomes part of a path.
pub(super) fn store_name(name: String) -> Option<String> {
    Some(name).filter(|name| is_store_name(name))
}

pub(super) fn parse_id(text: Option<String>) -> Result<Option<ContentId>, &'static str> {
    text.map(|text| ContentId::parse(&text).ok_or("a content id is not one")).transpose()
}

/// The names of agents on disk. They never change.
const AGENTS: [(Agent, &str); 30] = [
    (Agent::ClaudeCode, "claude-code"),
    (Agent::Codex, "codex"),
    (Agent::GeminiCli, "gemini-cli"),
    (Agent::QwenCode, "qwen-code"),
    (Agent::CopilotCli, "copilot-cli"),
    (Agent::OpenCode, "opencode"),
    (Agent::Cline, "cline"),
    (Agent::Hermes, "hermes"),
    (Agent::Cursor, "cursor"),
    (Agent::Windsurf, "windsurf"),
    (Agent::Kiro, "kiro"),
    (Agent::FactoryDroid, "factory-droid"),
    (Agent::Crush, "crush"),
    (Agent::Goose, "goose"),
    (Agent::Antigravity, "antigravity"),
    (Agent::GrokBuild, "grok-build"),
    (Agent::Devin, "devin-cli"),
    (Agent::VsCodeAgent, "vscode-agent"),
    (Agent::Amplifier, "amplifier"),
    (Agent::Pi, "pi"),
    (Agent::OpenClaw, "openclaw"),
    (Agent::Kilo, "kilo"),
    (Agent::Vibe, "vibe"),
    (Agent::Auggie, "auggie"),
    (Agent::OpenHands, "openhands"),
    (Agent::Kimi, "kimi"),
    (Agent::Qoder, "qoder"),
    (Agent::Letta, "letta"),
    (Agent::CommandCode, "command-code"),
    (Agent::Program, "program"),
];

pub(in crate::store) fn agent_name(agent: Agent) -> &'static str {
    let named = AGENTS.iter().find(|(known, _)| *known == agent);
    named.expect("every agent is in the table").1
}

pub(in crate::store) fn agent_named(name: &str) -> Option<Agent> {
    AGENTS.iter().find(|(_, known)| *known == name).map(|(agent, _)| *agent)
}

#[cfg(test)]
pub(super) use self::tests::sample;

#[cfg(test)]
mod tests {
    use std::{os::unix::ffi::OsStrExt, path::Path};

    use super::super::identity::Identity;
    use super::{
        super::version::{from_json, migrated, to_json},
        *,
    };
    use crate::{error::Error, store::Held};

    /// A record with something in every field.
    pub(in super::super) fn sample() -> Record {
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff \n\\")).to_owned();
        let by = By {
            agent: Agent::Devin,
            session: SessionId("../../x".to_owned()),
            turn: Some(TurnId("t\u{1b}".to_owned())),
            subagent: None,
            prompt: Some("say \"hi\"\n".to_owned()),
            transcript: Some(odd.clone()),
            position: Some(9),
        };
        let id = CheckpointId::from_bits(7);
        let checkpoint = Checkpoint {
            id,
            sequence: 3,
            taken_at: DateTime::from_timestamp_nanos(1_700_000_000_123_456_789),
            reading_ns: Some(2_000_000),
            cause: Cause {
                by: Some(by),
                summary: Some("x".to_owned()),
                ..Cause::before_restore(id)
            },
            top: Some(ContentId::new(&[9; 20])),
            files: 2,
            completeness: Completeness::OutOfTime,
            skipped: vec![Skipped {
                path: b"a\xff".to_vec(),
                reason: SkipReason::TooLarge,
                size: 1,
            }],
            outside: vec![odd],
            head: Some(Head { branch: None, commit: Some("c".to_owned()), in_progress: None }),
            staged: Some(4),
        };
        let overlay = Some(ContentId::new(&[8; 32]));
        let tree = Some(ContentId::new(&[6; 20]));
        let held = Held {
            path: b".git".to_vec(),
            store: "ab12-sha256".to_owned(),
            tree: ContentId::new(&[7; 20]),
            digest: ContentId::new(&[5; 32]),
            identity: Some(Identity { device: 1, inode: 2, birth: Some(3) }),
            permissions: 0o2755,
            is_usable: true,
            pointers: vec![(b"sub/.git".to_vec(), b"gitdir: ../x\n".to_vec())],
        };
        let (store, repositories) = (Some("ab12".to_owned()), vec![held]);
        let keeper = StoreKind::Git;
        let (outside, dangling) = (None, vec![(b"l/.git".to_vec(), b"gitdir: ../gone\n".to_vec())]);
        Record { checkpoint, keeper, overlay, outside, tree, store, repositories, dangling }
    }

    #[test]
    fn every_agent_has_a_name_on_disk() {
        for agent in crate::agent::DIALECTS.iter().map(|dialect| dialect.agent) {
            assert_eq!(agent_named(agent_name(agent)), Some(agent));
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = to_json(&RecordFile::of(&sample()));
        let read = from_json::<RecordFile>("x", &bytes).unwrap().into_record();
        assert_eq!(read, Ok(sample()));
    }

    #[test]
    fn a_newer_or_tampered_record_is_an_error() {
        let text = String::from_utf8(to_json(&RecordFile::of(&sample()))).unwrap();
        let read = |text: &str| {
            let file = from_json::<RecordFile>("x", text.as_bytes())?;
            file.into_record().map_err(|why| Error::damaged("x", why))
        };
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert!(matches!(read(&newer), Err(Error::FormatTooNew { found: 2, known: 1, .. })));
        for (from, to) in [
            ("a000000000000007", "zz"),
            ("/tmp/", "tmp/"),
            ("\\\\0377", "\u{ff}"),
            ("before-restore", "other"),
            ("too-large", "other"),
            ("\"git\"", "\"tape\""),
            ("0808", "08"),
        ] {
            assert!(text.contains(from), "{from} in {text}");
            let read = read(&text.replace(from, to));
            assert!(matches!(read, Err(Error::Damaged { .. })), "{from}");
        }
    }

    #[test]
    fn an_older_record_is_brought_forward_step_by_step() {
        let text = String::from_utf8(to_json(&RecordFile::of(&sample()))).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(migrated("x", value.clone(), VERSION).unwrap(), value);
        // There was no version before 1, so this number is damage.
        let older = text.replace("\"version\": 1", "\"version\": 0");
        let read = from_json::<RecordFile>("x", older.as_bytes());
        assert!(matches!(read, Err(Error::Damaged { .. })));
    }

    #[test]
    fn every_agent_has_a_name_of_its_own() {
        for (agent, name) in AGENTS {
            assert_eq!((agent_name(agent), agent_named(name)), (name, Some(agent)));
        }
    }
}
