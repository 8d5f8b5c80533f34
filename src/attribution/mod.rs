//! Attributes the current content of each path to the agent, a restore or the user.
//!
//! Each root has one log, which is only appended to: a line for each call that begins or ends, for each path that
//! a call changed, and for each path that a restore wrote, merged or moved. If a line cannot be read,
//! the author of a change is unknown, never wrong. If a line of a restore is lost, undoing that restore leaves the
//! branch, or a merged file, as it is.

mod authors;
mod call;
mod change_summary;
mod cut_off;
mod left_out;
mod log;
mod look;
mod moved;
mod outside;
mod texts;
mod turn_log;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Read},
    path::{Path, PathBuf},
};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    error::Result,
    fs::now_ns,
    model::{
        Agent, Checkpoint, CheckpointId, ContentId, Entry, Kind, RelPath, Root, SessionId,
        Settings, hex, unhex,
    },
    process::Process,
    state::{RootState, StateDir, hash_name},
    store::HeadMove,
};

pub use authors::{AgentHistory, CurrentState, tag};
pub use call::{Begins, call_key, ended, note_reports_ends};
pub use change_summary::ChangeSummary;
pub use cut_off::cut_off;
pub use left_out::{has_changed, is_gone};
pub(crate) use log::parse;
pub use log::{append, damaged, drop_before, last_calls, log_size, read, read_since, repair};
use log::{append_again, append_to, recent, recent_bytes};
use look::{after_edit, state_before};
pub use look::{after_shell, count_between};
pub use moved::moved;
pub use outside::{Outside, outside_changes};
pub use texts::{
    LeftContents, damaged_contents, drop_contents, files as content_files, keep_merged,
    repair_contents, text,
};
pub use turn_log::{AtPath, Doer, LoggedCall, SessionUses, Sight, TurnLog};

/// A root in which something was done since a checkpoint, and its author.
#[derive(Clone, Copy)]
pub struct SinceCheckpoint<'a, 'p> {
    /// The process that looks.
    pub process: &'a Process<'p>,
    /// Where our own files are.
    pub state: &'a StateDir,
    /// The settings for the root.
    pub settings: &'a Settings,
    /// The root.
    pub root: &'a Root,
    /// The checkpoint that covers what was done.
    pub of: CheckpointId,
    /// The session, by its name in the log.
    pub by: &'a str,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When, in nanoseconds since 1970.
    pub at: i64,
    /// The session, by its name in the log: see [`session_name`].
    pub by: String,
    /// What happened.
    #[serde(flatten)]
    pub what: LogEvent,
}

impl LogLine {
    /// Whether it shows that the agent of its session says when a call ends.
    fn shows_ends(&self) -> bool {
        matches!(self.what, LogEvent::Ended { .. } | LogEvent::Began { tells: true, .. })
    }

    /// Something that a restore did just now. It has no session.
    pub fn of_restore(what: LogEvent) -> Self {
        Self { at: now_ns(), by: String::new(), what }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogEvent {
    /// A call began.
    Began {
        /// The checkpoint that covers it.
        of: String,
        /// The call, as in [`LogEvent::Done`].
        call: String,
        /// What it can change; `None` for anything.
        paths: Option<Vec<String>>,
        /// What a command that can change anything names, path by path.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// Whether it is known to change nothing else.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        names_all: bool,
        /// The directories on the way to them that are not there yet.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        makes: Vec<String>,
        /// What it names outside the root, and the directories on the way there, where nothing is; and
        /// what an edit names below it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        absent: Vec<String>,
        /// Whether the agent is known to say when it is done.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tells: bool,
        /// Whether the whole root was compared with the checkpoint right before it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        compared: bool,
        /// The tool.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tool: String,
        /// The beginning of the command line of a call that has one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
    },
    /// A call left this at a path.
    Left {
        /// Where; see [`path_text`].
        path: String,
        /// What; `None` if nothing is there any more.
        state: Option<PathState>,
    },
    /// The agent says that a call is done.
    Ended {
        /// The call.
        call: String,
        /// What goes on of it in the background.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        background: Option<InBackground>,
    },
    /// Everything a call left has been noted.
    Done {
        /// The call.
        call: String,
        /// The commit of HEAD after it, if HEAD stood elsewhere at the checkpoint that covers it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_head: Option<String>,
    },
    /// The turn of a call is over that was not seen to end: it was refused or cut off, and runs no more. Of one
    /// that still ran, its own end comes later.
    CutOff {
        /// The call.
        call: String,
        /// Whether everything it could change is as it was last noted.
        left_nothing: bool,
    },
    /// A restore put this back as it was at some time.
    Back {
        /// Where; see [`path_text`].
        path: String,
        /// What; `None` if nothing was there.
        state: Option<PathState>,
        /// When the checkpoint was taken that it went to, in nanoseconds since 1970.
        then: i64,
        /// The before-restore checkpoint.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<String>,
    },
    /// A restore moved the branch HEAD is on.
    Head {
        /// The before-restore checkpoint.
        held: String,
        /// The branch, as in `refs/heads/main`.
        branch: String,
        /// Where it stood, in hex.
        from: String,
        /// Where it stands since.
        to: String,
    },
    /// A restore makes and removes branches, tags and stashes of a repository. Noted before it does.
    Refs {
        /// The before-restore checkpoint.
        held: String,
        /// The git directory; see [`PathSide::text`].
        place: String,
        /// The names and objects of the refs that it makes.
        made: Vec<(String, String)>,
        /// The names and objects of the refs that it removes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<(String, String)>,
        /// The commits of stashes that it makes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stashes: Vec<String>,
    },
    /// A restore was taken back before it was done: it is no step that could be undone.
    Void {
        /// The before-restore checkpoint.
        held: String,
    },
    /// Something that was noted before a time cannot be read any more.
    Lost {
        /// The time, in nanoseconds since 1970.
        until: i64,
    },
    /// A restore left a merge of both sides at a path.
    Merged {
        /// Where.
        path: String,
        /// The before-restore checkpoint.
        held: String,
        /// The SHA-256 of the bytes.
        sha: String,
    },
}

/// What goes on when a call has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InBackground {
    /// A task of the agent's, which may say at the end of a turn that none runs.
    Task,
    /// A process that a command line does not wait for. No event tells when it ends.
    Process,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathState {
    /// The bits of its type, as in `st_mode`.
    pub kind: u32,
    /// Its permission bits.
    pub permissions: u32,
    /// How its store names its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The SHA-256 of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha: Option<String>,
}

impl PathState {
    /// A file that was not read.
    pub fn unread(permissions: u32) -> Self {
        Self { kind: Kind::File.mode_bits(), permissions, id: None, sha: None }
    }

    /// Whether it is a file that was not read.
    pub fn is_unread(&self) -> bool {
        let is_file = self.kind() == Some(Kind::File);
        is_file && self.id.is_none() && self.sha.is_none()
    }

    /// What a tree has at a path.
    pub fn of(entry: &Entry) -> Self {
        let id = entry.content.filter(|_| entry.kind.has_content());
        Self {
            kind: entry.kind.mode_bits(),
            permissions: entry.permissions,
            id: id.map(|content| content.id.to_string()),
            sha: None,
        }
    }

    /// What sort of file it is.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of_mode(self.kind)
    }

    /// Whether it is known to be the same as another one.
    pub fn is_known_as(&self, other: &Self) -> bool {
        let is_same = |a: &Option<String>, b: &Option<String>| a.is_some() && a == b;
        let has_content = self.kind().is_none_or(Kind::has_content);
        let is_same_content = is_same(&self.id, &other.id) || is_same(&self.sha, &other.sha);
        (self.kind, self.permissions) == (other.kind, other.permissions)
            && (!has_content || is_same_content)
    }

    /// How its store names its bytes.
    pub fn id(&self) -> Option<ContentId> {
        ContentId::parse(self.id.as_deref()?)
    }
}

/// The name a session has in the log.
pub fn session_name(agent: Agent, session: &SessionId) -> String {
    hash_name(&[format!("{agent:?}").as_bytes(), session.0.as_bytes()])
}

/// Where a path of the log lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathSide {
    /// Below the root, and relative to it.
    #[default]
    Root,
    /// Outside it, and relative to the top of the file system.
    Outside,
}

impl PathSide {
    /// A path as text: outside the root it begins with a slash.
    pub fn text(self, path: &RelPath) -> String {
        match self {
            Self::Root => path_text(path),
            Self::Outside => format!("/{}", path_text(path)),
        }
    }

    /// Reads what [`PathSide::text`] writes; `None` for a path of the other side.
    pub fn path(self, text: &str) -> Option<RelPath> {
        match self {
            Self::Root => path_of(text),
            Self::Outside => path_of(text.strip_prefix('/')?),
        }
    }

    /// The text of an absolute path, below the root or outside it.
    fn text_of(root: &Root, path: &Path) -> Option<String> {
        match root.relative(path) {
            Ok(below) => Some(Self::Root.text(&below)),
            Err(_) => Some(Self::Outside.text(&RelPath::from_top(path).ok()?)),
        }
    }
}

/// A path as text: itself, or a NUL and hex digits where it is none.
pub fn path_text(path: &RelPath) -> String {
    match str::from_utf8(path.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("\0{}", hex(path.as_bytes())),
    }
}

/// Reads what [`path_text`] writes.
pub fn path_of(text: &str) -> Option<RelPath> {
    let Some(digits) = text.strip_prefix('\0') else {
        return RelPath::from_bytes(text.as_bytes()).ok();
    };
    RelPath::from_bytes(&unhex(digits)?).ok()
}

/// Whether calls that a checkpoint covers left something outside the root. Of calls long ago nothing
/// is known.
pub fn is_left_outside(place: &RootState, of: CheckpointId) -> bool {
    let bytes = recent_bytes(place);
    let began = format!("\"of\":\"{of}\"");
    let since = memmem::find(&bytes, began.as_bytes()).map_or(&[][..], |at| &bytes[at..]);
    // The hook waits for this: of a log of calls below the root no line is parsed.
    let is_outside = |line: &&[u8]| memmem::find(line, br#""path":"/"#).is_some();
    since.split(|&byte| byte == b'\n').filter(is_outside).flat_map(parse).any(|line| {
        matches!(line.what, LogEvent::Left { path, .. }
            if !line.by.is_empty() && PathSide::Outside.path(&path).is_some())
    })
}

/// The lines from before a checkpoint was taken, without the call that it was taken for.
pub fn before(lines: &[LogLine], checkpoint: &Checkpoint) -> Vec<LogLine> {
    let id = checkpoint.id.to_string();
    let at = checkpoint.taken_at.timestamp_nanos_opt().unwrap_or(i64::MAX);
    let is_its = |line: &LogLine| matches!(&line.what, LogEvent::Began { of, .. } if *of == id);
    lines.iter().filter(|line| line.at <= at && !is_its(line)).cloned().collect()
}

/// The digests of what the restore that made `held` merged, by path.
pub fn merged(place: &RootState, held: CheckpointId) -> Vec<(RelPath, String)> {
    let held = held.to_string();
    let merged = |line: LogLine| match line.what {
        LogEvent::Merged { path, held: by, sha } if by == held => Some((path_of(&path)?, sha)),
        _ => None,
    };
    read(place).into_iter().filter_map(merged).collect()
}

/// What the restore that made `held` put back outside the root, by path; `None` where it left nothing.
pub fn put_back_outside(
    place: &RootState,
    held: CheckpointId,
) -> BTreeMap<RelPath, Option<PathState>> {
    let id = held.to_string();
    let back = |line: LogLine| match line.what {
        LogEvent::Back { path, state, held: Some(held), .. } if held == id => {
            Some((PathSide::Outside.path(&path)?, state))
        }
        _ => None,
    };
    read(place).into_iter().filter_map(back).collect()
}

/// How the restore that made `held` moved the branch HEAD is on, if it did.
pub fn head_moved(place: &RootState, held: CheckpointId) -> Option<HeadMove> {
    let id = held.to_string();
    read(place).into_iter().rev().find_map(|line| match line.what {
        LogEvent::Head { held, branch, from, to } if held == id => {
            Some(HeadMove { branch, from, to, count: 0 })
        }
        _ => None,
    })
}

/// The refs that a restore made and removed in a repository.
pub struct RefsChange {
    /// The git directory. Absolute.
    pub place: PathBuf,
    /// The names and objects of the refs that it made.
    pub made: Vec<(String, String)>,
    /// The names and objects of the refs that it removed.
    pub removed: Vec<(String, String)>,
    /// The commits of stashes that it made.
    pub stashes: Vec<String>,
}

/// The refs that the restore with the before-restore checkpoint `held` made and removed, by repository.
pub fn refs_changed(place: &RootState, held: CheckpointId) -> Vec<RefsChange> {
    let id = held.to_string();
    let mut changes = Vec::new();
    for line in read(place) {
        if let LogEvent::Refs { held, place, made, removed, stashes } = line.what
            && held == id
            && let Some(place) = PathSide::Outside.path(&place)
        {
            changes.push(RefsChange { place: place.at_top(), made, removed, stashes });
        }
    }
    changes
}

/// The commit that HEAD stood at after the last call of a session that moved it, of those calls that the checkpoints
/// cover. `session` is its name in the log.
pub fn head_moved_by(
    place: &RootState,
    session: &str,
    checkpoints: &BTreeSet<CheckpointId>,
) -> Option<String> {
    let mut running = BTreeSet::new();
    let mut moved = None;
    for line in read(place).into_iter().filter(|line| line.by == session) {
        match line.what {
            LogEvent::Began { of, call, .. } => {
                let of = CheckpointId::parse(&of).filter(|of| checkpoints.contains(of));
                running.extend(of.map(|_| call));
            }
            LogEvent::Done { call, moved_head } => {
                let is_its = running.remove(&call);
                moved = moved_head.filter(|_| is_its).or(moved);
            }
            _ => (),
        }
    }
    moved
}

/// Notes that the restore that made `held` was taken back.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub fn void(place: &RootState, held: CheckpointId) -> Result<()> {
    let what = LogEvent::Void { held: held.to_string() };
    append(place, &[LogLine::of_restore(what)])
}

/// The before-restore checkpoints of restores that were taken back.
pub fn voided(place: &RootState) -> BTreeSet<CheckpointId> {
    let held = |line: LogLine| match line.what {
        LogEvent::Void { held } => CheckpointId::parse(&held),
        _ => None,
    };
    read(place).into_iter().filter_map(held).collect()
}

/// The SHA-256 of bytes, in hex.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The same of all that can be read from somewhere.
///
/// # Errors
///
/// Fails if it cannot be read.
pub fn digest_of(mut from: impl Read) -> io::Result<String> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// The same of what has no bytes: it is no more than its kind.
pub fn digest_of_kind(kind: Kind) -> String {
    match kind {
        Kind::Directory => digest(b"/"),
        kind => digest(format!("{:o}", kind.mode_bits()).as_bytes()),
    }
}

/// When we are called, as checkpoints have it.
fn at(process: &Process<'_>) -> i64 {
    process.now.timestamp_nanos_opt().unwrap_or(i64::MAX)
}
