//! Which turns already have a checkpoint. Hides the state file of a session and its lock.
//!
//! A turn is covered only by a checkpoint that exists: the slot is taken after the save, never
//! before. The lock is held from looking to taking, so of two calls that start together the
//! second waits and then finds the first one's checkpoint. Who only looks whether there is one
//! already needs no lock. A ledger that is lost or damaged costs a snapshot more and nothing else.

mod all;
mod announced;
mod refused;
mod unfinished;
mod wire;

pub(crate) use all::parse_any;
pub use all::{
    adopt, covered_since, damaged, is_used_elsewhere, names_any, newest_uses, remove, running,
    server, transcript, uses,
};
pub use announced::Announcement;
pub use refused::{RefusedIn, has_called, refused};
pub use unfinished::UnfinishedCommand;
pub use wire::Refused;

use std::{
    collections::BTreeMap,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::{
    error::Result,
    fs::{Lock, PathResolver, create_private_dirs, replace, stat_path},
    model::{By, CallContext, CheckpointId, Kind, Stamp, TurnId, hex},
    scan::is_racy,
    state::{StateDir, hash_name},
    transcript::UserMessage,
};

use wire::{
    Lazily, LedgerFile, LedgerHead, LedgerWire, PathBytes, WireTurn, WireUse, WireWritten, look,
    look_by,
};

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// The file of a session is written anew by every call that changes it, so it has no more uses than
/// this; see [`wire::move_older`].
const USES_MAX: usize = 200;
/// One line of a prompt, for the list.
const PROMPT_CHARS_MAX: usize = 120;

/// The state of one session, locked while it is open.
pub struct Ledger {
    path: PathBuf,
    wire: LedgerWire,
    changed: bool,
    /// Whether it may be written: one of a newer format never is, and then every call is saved.
    is_ours: bool,
    /// `None` for one that is only looked at.
    _lock: Option<Lock>,
}

/// Reasons not to believe the judgement of a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Doubts {
    /// Whether an earlier line may have changed the meaning of later ones in the session's shell.
    pub shell_changed: bool,
    /// Whether a call may run with another input than the hook judges; `None` if that was not looked up.
    pub may_be_rewritten: Option<bool>,
}

/// The file of a session's ledger.
fn file_of(state: &StateDir, agent: &str, session: &str) -> PathBuf {
    let name = hash_name(&[agent.as_bytes(), session.as_bytes()]);
    state.sessions().join(name + ".json")
}

/// Forgets the oldest of a list that has become longer than `max`.
fn keep_last<T>(list: &mut Vec<T>, max: usize) {
    let surplus = list.len().saturating_sub(max);
    list.drain(..surplus);
}

/// One use of a checkpoint by a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The root it is of.
    pub root: PathBuf,
    /// The author of the turn.
    pub by: By,
    /// When it was used.
    pub at: DateTime<Utc>,
    /// The tool of the call.
    pub tool: Option<String>,
    /// What the call was about.
    pub summary: Option<String>,
}

impl Ledger {
    /// Opens and locks the ledger of a session, waiting for other calls of it until `deadline`.
    ///
    /// # Errors
    ///
    /// Fails if another call holds it for too long, or if it cannot be made.
    pub fn open(state: &StateDir, agent: &str, session: &str, deadline: Instant) -> Result<Self> {
        Self::open_by(&PathResolver::default(), state, agent, session, deadline)
    }

    /// The same with a resolver that the caller shares.
    ///
    /// # Errors
    ///
    /// As [`Ledger::open`].
    pub fn open_by(
        real: &PathResolver,
        state: &StateDir,
        agent: &str,
        session: &str,
        deadline: Instant,
    ) -> Result<Self> {
        let path = file_of(state, agent, session);
        let place = path.with_extension("lock");
        let lock = match Lock::acquire_by(real, &place, deadline) {
            Err(err) if err.is_missing() => {
                create_private_dirs(&state.sessions())?;
                Lock::acquire_by(real, &place, deadline)?
            }
            lock => lock?,
        };
        let empty = || LedgerWire {
            agent: agent.to_owned(),
            session: session.to_owned(),
            ..LedgerWire::default()
        };
        let (wire, is_ours) = match look(&path) {
            LedgerFile::Ours(wire) => (*wire, true),
            LedgerFile::Nothing => (empty(), true),
            // It may have said that a line changed the session's shell.
            LedgerFile::Damaged => {
                let head = LedgerHead { shell_changed: true, ..LedgerHead::default() };
                (LedgerWire { head, ..empty() }, true)
            }
            LedgerFile::Newer => (empty(), false),
        };
        Ok(Self { path, wire, changed: false, is_ours, _lock: Some(lock) })
    }

    /// Looks at the ledger of a session without its lock, for a call that may find all it needs
    /// there: a use is noted when its checkpoint exists, and never before. It is never written.
    pub fn peek(real: &PathResolver, state: &StateDir, agent: &str, session: &str) -> Option<Self> {
        let path = file_of(state, agent, session);
        let LedgerFile::Ours(wire) = look_by(real, &path) else { return None };
        Some(Self { path, wire: *wire, changed: false, is_ours: false, _lock: None })
    }

    /// Whether it knows something now that it did not when it was opened.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Notes that the user asked for something: unless it is the turn that runs already, a new one
    /// begins.
    pub fn begin_turn(&mut self, id: Option<&TurnId>, prompt: Option<&str>) {
        let id = match id {
            Some(TurnId(id)) => id.clone(),
            None => format!("#{}", self.counter() + 1),
        };
        if self.wire.turn.as_ref().is_some_and(|turn| turn.id == id) {
            return;
        }
        let prompt = prompt.map(|prompt| prompt.chars().take(PROMPT_CHARS_MAX).collect());
        let turn = WireTurn { id, prompt, position: None, is_over: false };
        let before = self.wire.turn.replace(turn);
        self.wire.take_over(before.as_ref().map(|before| before.id.as_str()));
        self.changed = true;
    }

    /// Notes that a turn has ended, for an agent that will not report the next prompt.
    pub fn end_turn(&mut self) {
        if let Some(turn) = &mut self.wire.turn {
            self.changed |= !turn.is_over;
            turn.is_over = true;
        }
    }

    /// The turn a call belongs to. A call of a sub-agent belongs to the turn that started it.
    pub fn turn_of(&mut self, context: &CallContext, last_prompt: Option<&UserMessage>) -> TurnId {
        let runs = self.wire.turn.is_some();
        let is_over = self.wire.turn.as_ref().is_some_and(|turn| turn.is_over);
        match (&context.turn, &context.subagent) {
            // Codex names the sub-agent's own transcript, and its last prompt is no user's.
            (_, Some(_)) if runs => (),
            (Some(id), _) => self.begin_turn(Some(id), None),
            (None, _) => match last_prompt {
                Some(last) => {
                    let id = hash_name(&[b"prompt", last.id.as_bytes()]);
                    self.begin_turn(Some(&TurnId(id)), Some(&last.words));
                }
                None if !runs || is_over => self.begin_turn(None, None),
                None => (),
            },
        }
        TurnId(self.wire.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default())
    }

    /// Whether a prompt event, rather than the agent's own ids, tells the turns of this session.
    pub fn counts_turns(&self) -> bool {
        self.wire.turn.as_ref().is_some_and(|turn| turn.id.starts_with('#'))
    }

    fn counter(&self) -> u64 {
        let turn = self.wire.turn.as_ref();
        turn.and_then(|turn| turn.id.strip_prefix('#')?.parse().ok()).unwrap_or(0)
    }

    /// The turn that runs.
    pub fn turn(&self) -> Option<TurnId> {
        self.wire.turn.as_ref().map(|turn| TurnId(turn.id.clone()))
    }

    /// What the user asked for in this turn.
    pub fn prompt(&self) -> Option<&str> {
        self.wire.turn.as_ref()?.prompt.as_deref()
    }

    /// How long the conversation was when this turn began, in bytes.
    pub fn position(&self) -> Option<u64> {
        self.wire.turn.as_ref()?.position
    }

    /// Where the agent keeps the conversation.
    pub fn transcript(&self) -> Option<PathBuf> {
        self.wire.transcript.as_ref().and_then(PathBytes::to_path)
    }

    /// Notes where the agent keeps the conversation, at the beginning of a turn, and how long it
    /// is then.
    pub fn converses(&mut self, transcript: &Path) {
        let length = match stat_path(transcript) {
            Ok(stamp) => Some(stamp.size),
            // The first words are not written yet.
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Some(0),
            Err(_) => None,
        };
        if let Some(turn) = self.wire.turn.as_mut().filter(|turn| turn.position.is_none()) {
            turn.position = length;
        }
        self.wire.transcript = Some(PathBytes::of(transcript));
        self.changed = true;
    }

    /// Notes that a command may change what later lines mean to the session's shell.
    pub fn changes_shell(&mut self) {
        self.changed |= !self.wire.head.shell_changed;
        self.wire.head.shell_changed = true;
    }

    /// The reasons not to believe the judgement of a line. A ledger that cannot be read is no proof that
    /// no line has changed the shell.
    pub fn doubts(state: &StateDir, agent: &str, session: &str) -> Doubts {
        wire::doubts(&file_of(state, agent, session))
    }

    /// The directory the session was first seen in.
    pub fn home(&mut self, cwd: &Path) -> PathBuf {
        if let Some(home) = self.wire.home.as_ref().and_then(PathBytes::to_path) {
            return home;
        }
        self.wire.home = Some(PathBytes::of(cwd));
        self.changed = true;
        cwd.to_owned()
    }

    /// The checkpoint that this turn has of `root`.
    pub fn covering(&self, root: &Path) -> Option<CheckpointId> {
        CheckpointId::parse(&self.wire.newest_use(root)?.checkpoint)
    }

    /// Whether any turn of this session, as far as they are still noted, has a checkpoint of `root`.
    pub fn knows(&self, root: &Path) -> bool {
        let mut uses = self.wire.uses.iter().rev().filter_map(Lazily::read);
        uses.any(|used| used.root.is(root))
    }

    /// Every root that this turn has a checkpoint of, with the newest of each.
    pub fn covered(&self) -> BTreeMap<PathBuf, CheckpointId> {
        let Some(turn) = &self.wire.turn else { return BTreeMap::new() };
        self.roots(|used| used.turn == turn.id)
    }

    /// When this turn first used a checkpoint, if it has.
    pub fn turn_began(&self) -> Option<DateTime<Utc>> {
        let turn = &self.wire.turn.as_ref()?.id;
        let uses = self.wire.uses.iter().filter_map(Lazily::read);
        uses.filter(|used| used.turn == *turn).map(|used| used.at).min()
    }

    /// Every root that this session has a checkpoint of, with the newest of each.
    pub fn known(&self) -> BTreeMap<PathBuf, CheckpointId> {
        self.roots(|_| true)
    }

    fn roots(&self, counts: impl Fn(&WireUse) -> bool) -> BTreeMap<PathBuf, CheckpointId> {
        let uses = self.wire.uses.iter().filter_map(Lazily::read).filter(|used| counts(used));
        let roots = uses.filter_map(|used| {
            Some((used.root.to_path()?, CheckpointId::parse(&used.checkpoint)?))
        });
        roots.collect()
    }

    /// Notes that `used.checkpoint` holds what this turn may change.
    pub fn cover(&mut self, used: &Use) {
        let turn = self.wire.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default();
        let checkpoint = used.checkpoint.to_string();
        let is_known = self.wire.uses.iter().filter_map(Lazily::read).any(|known| {
            known.turn == turn && known.checkpoint == checkpoint && known.root.is(&used.root)
        });
        if is_known {
            return;
        }
        let new = WireUse {
            turn,
            root: PathBytes::of(&used.root),
            checkpoint,
            at: used.at,
            tool: used.tool.clone(),
            summary: used.summary.clone(),
            prompt: used.by.prompt.clone(),
            subagent: used.by.subagent.clone(),
            position: used.by.position,
        };
        self.wire.uses.push(new.into());
        self.wire.transcript = used.by.transcript.as_deref().map(PathBytes::of);
        self.changed = true;
    }

    /// Whether the user has not been told of `reason` in this session; from now on they have.
    pub fn is_news(&mut self, reason: &str) -> bool {
        if self.has_said(reason) {
            return false;
        }
        self.wire.said.push(hash_name(&[reason.as_bytes()]));
        self.changed = true;
        true
    }

    /// Whether the user has been told of `reason` in this session.
    pub fn has_said(&self, reason: &str) -> bool {
        self.wire.said.contains(&hash_name(&[reason.as_bytes()]))
    }

    /// Writes what has changed, and unlocks.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be written; it is then as it was.
    pub fn close(mut self) -> Result<()> {
        if !self.changed || !self.is_ours {
            return Ok(());
        }
        self.wire.mend();
        if self.wire.uses.len() > USES_MAX {
            wire::move_older(&self.path, &mut self.wire.uses, USES_MAX / 2)?;
        }
        let bytes = self.wire.to_bytes().expect("strings and numbers always serialize");
        replace(&self.path, &bytes)
    }
}

/// The paths an agent edits in a turn; beyond it the oldest are looked at again.
const WRITTEN_MAX: usize = 500;
/// A file beyond it is not hashed to prove that it is the agent's own.
const DIGEST_MAX_BYTES: u64 = 4 << 20;

/// A file that a call left. It is held for the steps of its turn, unless it is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnWrite {
    /// Of the file that was read.
    pub stamp: Stamp,
    /// SHA-256 of its bytes in hex. `None` for a file that is too large to be known again.
    pub sha: Option<String>,
}

impl Ledger {
    /// Notes what the agent itself has just left at `path`, if that is among `held`. Anything else is
    /// looked at before the next edit.
    pub fn wrote(&mut self, path: &Path, held: &[OwnWrite], now_ns: i64) {
        let Some(key) = path.to_str() else { return };
        let found = stat_path(path).ok().filter(|stamp| stamp.kind() == Some(Kind::File));
        match found.and_then(|stamp| held.iter().find(|held| held.stamp == stamp)) {
            Some(OwnWrite { stamp, sha }) => {
                let stamp = *stamp;
                let digest = sha.clone().filter(|_| is_racy(&stamp, now_ns));
                let Stamp { mtime_ns: mtime, ctime_ns: ctime, inode, size, mode } = stamp;
                let turn = self.wire.turn.as_ref().map(|turn| turn.id.clone());
                let written = WireWritten { mtime, ctime, inode, size, mode, digest, turn };
                self.wire.written.insert(key.to_owned(), written.into());
            }
            None => {
                self.wire.written.remove(key);
            }
        }
        while self.wire.written.len() > WRITTEN_MAX {
            self.wire.written.pop_first();
        }
        self.changed = true;
    }

    /// Whether what lies at `path` is what the agent itself left there in the turn that runs. What
    /// it left in an earlier one is what this turn has to give back.
    pub fn is_own(&self, path: &Path, stamp: &Stamp) -> bool {
        let written = path.to_str().and_then(|path| self.wire.written.get(path)?.read());
        let Some(written) = written else { return false };
        let runs = self.wire.turn.as_ref().map(|turn| &turn.id);
        if runs.is_none() || written.turn.as_ref() != runs {
            return false;
        }
        let same = written.mtime == stamp.mtime_ns
            && written.ctime == stamp.ctime_ns
            && written.inode == stamp.inode
            && written.size == stamp.size
            && written.mode == stamp.mode;
        // A stamp taken right after the write may hide a second one; then the bytes decide.
        same && match &written.digest {
            Some(known) => digest(path, stamp).as_ref() == Some(known),
            None => true,
        }
    }
}

fn digest(path: &Path, stamp: &Stamp) -> Option<String> {
    if stamp.size > DIGEST_MAX_BYTES {
        return None;
    }
    let dir = crate::fs::Dir::open(path.parent()?).ok()?;
    let name = crate::fs::c_name(path.file_name()?.as_bytes()).ok()?;
    let (file, _) = dir.open_file(&name).ok()?;
    let mut bytes = Vec::new();
    file.take(DIGEST_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(hex(&Sha256::digest(&bytes)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Agent, SessionId};

    #[test]
    fn every_use_of_a_long_session_stays_known() {
        const USES: u64 = 450;
        let dir = std::env::temp_dir().join(format!("beforehand-ledger-{}", std::process::id()));
        let state = StateDir::new(dir.clone());
        let by = |turn: &TurnId| By {
            agent: Agent::ClaudeCode,
            session: SessionId("s".to_owned()),
            turn: Some(turn.clone()),
            subagent: None,
            prompt: None,
            transcript: None,
            position: None,
        };
        for n in 0..USES {
            let deadline = Instant::now() + Duration::from_secs(60);
            let mut ledger = Ledger::open(&state, "claude-code", "s", deadline).unwrap();
            let turn = TurnId(n.to_string());
            ledger.begin_turn(Some(&turn), None);
            ledger.cover(&Use {
                checkpoint: CheckpointId::from_bits(n),
                root: PathBuf::from("/project"),
                by: by(&turn),
                at: DateTime::from_timestamp(i64::try_from(n).unwrap(), 0).unwrap(),
                tool: None,
                summary: None,
            });
            ledger.close().unwrap();
        }
        let known: Vec<CheckpointId> = uses(&state).iter().map(|used| used.checkpoint).collect();
        let all: Vec<CheckpointId> = (0..USES).rev().map(CheckpointId::from_bits).collect();
        assert_eq!(known, all);
        let LedgerFile::Ours(wire) = look(&file_of(&state, "claude-code", "s")) else {
            panic!("it cannot be read")
        };
        assert!(wire.uses.len() <= USES_MAX, "{}", wire.uses.len());
        crate::fs::remove_tree(&dir).unwrap();
    }
}
