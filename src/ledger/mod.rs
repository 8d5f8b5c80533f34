//! Which turns already have a checkpoint. Hides the state file of a session and its lock.
//!
//! A turn is covered only by a checkpoint that exists: the slot is taken after the save, never
//! before. The lock is held from looking to taking, so of two calls that start together the
//! second waits and then finds the first one's checkpoint. A ledger that is lost or damaged costs
//! a snapshot more and nothing else.

mod open;

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::Instant,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    error::Result,
    fs::{Lock, create_private_dirs, is_lost, read_small, replace, stat_path},
    model::{By, CheckpointId, Context, Kind, Stamp, TurnId},
    scan::is_racy,
    state::{State, hash_name},
};

pub use open::Open;
use open::WireOpen;

/// The newest format; see `docs/FORMAT.md`.
const VERSION: u32 = 1;
/// Longer than any session; an older one names checkpoints that retention has dropped.
const TURNS_MAX: usize = 200;
/// One line of a prompt, for the list.
const PROMPT_CHARS_MAX: usize = 120;
/// The paths an agent edits in a turn; beyond it the oldest are looked at again.
const WRITTEN_MAX: usize = 500;
/// A file beyond it is not hashed to prove that it is the agent's own: it is looked at again.
const DIGEST_MAX_BYTES: u64 = 4 << 20;
/// A ledger never comes near it.
const SIZE_MAX_BYTES: u64 = 8 << 20;

/// The state of one session, locked while it is open.
pub struct Ledger {
    path: PathBuf,
    wire: Wire,
    changed: bool,
    /// Whether it may be written: one of a newer format never is, and then every call is saved.
    is_ours: bool,
    _lock: Lock,
}

/// One use of a checkpoint by a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The checkpoint.
    pub checkpoint: CheckpointId,
    /// The root it is of.
    pub root: PathBuf,
    /// Whose turn.
    pub by: By,
    /// When it was used.
    pub at: DateTime<Utc>,
    /// The tool of the call.
    pub tool: Option<String>,
    /// What the call was about.
    pub summary: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Wire {
    version: u32,
    agent: String,
    session: String,
    /// The directory the session was first seen in.
    home: Option<Bytes>,
    turn: Option<WireTurn>,
    #[serde(default)]
    uses: Vec<WireUse>,
    /// What the agent itself left last, by path.
    #[serde(default)]
    written: BTreeMap<String, WireWritten>,
    /// What the user was told already.
    #[serde(default)]
    said: Vec<String>,
    #[serde(default)]
    transcript: Option<Bytes>,
    /// Where the agent's own server listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// Commands whose end nobody saw yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<WireOpen>,
    /// Whether this agent ever said that a call of this session was done.
    #[serde(default)]
    tells_ends: bool,
    /// What the model is to be told with the next prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tell: Option<String>,
    /// What the user was told a turn's commands did, by the checkpoint it was counted from.
    #[serde(default)]
    told: Option<(String, [u64; 3])>,
}

/// A path: as text where it is text, else in hex.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Hex { hex: String },
}

#[derive(Clone, Serialize, Deserialize)]
struct WireTurn {
    id: String,
    prompt: Option<String>,
    /// How long the conversation was when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

#[derive(Clone, Serialize, Deserialize)]
struct WireUse {
    turn: String,
    root: Bytes,
    checkpoint: String,
    at: DateTime<Utc>,
    tool: Option<String>,
    summary: Option<String>,
    prompt: Option<String>,
    subagent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct WireWritten {
    mtime: i64,
    ctime: i64,
    inode: u64,
    size: u64,
    mode: u32,
    /// Of the content, where the stamp alone proves nothing.
    digest: Option<String>,
}

impl Ledger {
    /// Opens and locks the ledger of a session, waiting for other calls of it until `deadline`.
    ///
    /// # Errors
    ///
    /// Fails if another call holds it for too long, or if it cannot be made.
    pub fn open(state: &State, agent: &str, session: &str, deadline: Instant) -> Result<Self> {
        let dir = state.sessions();
        create_private_dirs(&dir)?;
        let name = hash_name(&[agent.as_bytes(), session.as_bytes()]);
        let lock = Lock::acquire(&dir.join(format!("{name}.lock")), deadline)?;
        let path = dir.join(format!("{name}.json"));
        let empty = || Wire {
            version: VERSION,
            agent: agent.to_owned(),
            session: session.to_owned(),
            ..Wire::default()
        };
        let (wire, is_ours) = match look(&path) {
            Found::Ours(wire) => (*wire, true),
            Found::Nothing | Found::Damaged => (empty(), true),
            Found::Newer => (empty(), false),
        };
        Ok(Self { path, wire, changed: false, is_ours, _lock: lock })
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
        self.wire.turn = Some(WireTurn { id, prompt, position: None });
        self.changed = true;
    }

    /// The turn a call belongs to. A call of a sub-agent belongs to the turn that started it.
    pub fn turn_of(&mut self, context: &Context, last_prompt: Option<&str>) -> TurnId {
        let runs = self.wire.turn.is_some();
        match (&context.turn, &context.subagent) {
            // Codex names the sub-agent's own transcript, whose last prompt is no user's.
            (_, Some(_)) if runs => (),
            (Some(id), _) => self.begin_turn(Some(id), None),
            (None, _) => match last_prompt {
                Some(last) => {
                    let id = hash_name(&[b"prompt", last.as_bytes()]);
                    self.begin_turn(Some(&TurnId(id)), Some(last));
                }
                None if !runs => self.begin_turn(None, None),
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
        self.wire.transcript.as_ref().and_then(Bytes::to_path)
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
        self.wire.transcript = Some(Bytes::of(transcript));
        self.changed = true;
    }

    /// The directory the session was first seen in.
    pub fn home(&mut self, cwd: &Path) -> PathBuf {
        if let Some(home) = self.wire.home.as_ref().and_then(Bytes::to_path) {
            return home;
        }
        self.wire.home = Some(Bytes::of(cwd));
        self.changed = true;
        cwd.to_owned()
    }

    /// The checkpoint that this turn has of `root`.
    pub fn covering(&self, root: &Path) -> Option<CheckpointId> {
        let turn = self.wire.turn.as_ref()?;
        let mut uses = self.wire.uses.iter().rev();
        let found = uses.find(|used| used.turn == turn.id && used.root.is(root))?;
        CheckpointId::parse(&found.checkpoint)
    }

    /// Every root that this turn has a checkpoint of, with the newest of each.
    pub fn covered(&self) -> Vec<(PathBuf, CheckpointId)> {
        let Some(turn) = &self.wire.turn else { return Vec::new() };
        let ours = self.wire.uses.iter().filter(|used| used.turn == turn.id);
        let roots: BTreeMap<PathBuf, CheckpointId> = ours
            .filter_map(|used| Some((used.root.to_path()?, CheckpointId::parse(&used.checkpoint)?)))
            .collect();
        roots.into_iter().collect()
    }

    /// Notes that `used.checkpoint` holds what this turn may change.
    pub fn cover(&mut self, used: &Use) {
        let turn = self.wire.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default();
        let checkpoint = used.checkpoint.to_string();
        let is_known = self.wire.uses.iter().any(|known| {
            known.turn == turn && known.checkpoint == checkpoint && known.root.is(&used.root)
        });
        if is_known {
            return;
        }
        self.wire.uses.push(WireUse {
            turn,
            root: Bytes::of(&used.root),
            checkpoint,
            at: used.at,
            tool: used.tool.clone(),
            summary: used.summary.clone(),
            prompt: used.by.prompt.clone(),
            subagent: used.by.subagent.clone(),
            position: used.by.position,
        });
        let surplus = self.wire.uses.len().saturating_sub(TURNS_MAX);
        self.wire.uses.drain(..surplus);
        self.wire.transcript = used.by.transcript.as_deref().map(Bytes::of);
        self.changed = true;
    }

    /// Notes what the agent itself has just left at `path`.
    pub fn wrote(&mut self, path: &Path, now_ns: i64) {
        let Some(key) = path.to_str() else { return };
        match stat_path(path) {
            Ok(stamp) if stamp.kind() == Some(Kind::File) => {
                let digest = if is_racy(&stamp, now_ns) { digest(path, &stamp) } else { None };
                let Stamp { mtime_ns: mtime, ctime_ns: ctime, inode, size, mode } = stamp;
                let written = WireWritten { mtime, ctime, inode, size, mode, digest };
                self.wire.written.insert(key.to_owned(), written);
            }
            Ok(_) | Err(_) => drop(self.wire.written.remove(key)),
        }
        while self.wire.written.len() > WRITTEN_MAX {
            self.wire.written.pop_first();
        }
        self.changed = true;
    }

    /// Whether what lies at `path` is what the agent itself left there.
    pub fn is_own(&self, path: &Path, stamp: &Stamp) -> bool {
        let Some(written) = path.to_str().and_then(|path| self.wire.written.get(path)) else {
            return false;
        };
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

    /// Whether the user has not been told of `reason` in this session; from now on they have.
    pub fn is_news(&mut self, reason: &str) -> bool {
        let reason = hash_name(&[reason.as_bytes()]);
        if self.wire.said.contains(&reason) {
            return false;
        }
        self.wire.said.push(reason);
        self.changed = true;
        true
    }

    /// Writes what has changed, and unlocks.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be written; it is then as it was.
    pub fn close(self) -> Result<()> {
        if !self.changed || !self.is_ours {
            return Ok(());
        }
        let bytes = serde_json::to_vec(&self.wire).expect("strings and numbers always serialize");
        replace(&self.path, &bytes)
    }
}

/// Every use of a checkpoint that any session's ledger knows of, newest first.
pub fn uses(state: &State) -> Vec<Use> {
    let Ok(entries) = std::fs::read_dir(state.sessions()) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let ledgers = paths.filter(|path| path.extension() == Some(OsStr::new("json")));
    let mut uses: Vec<Use> =
        ledgers.filter_map(|path| read(&path)).flat_map(Wire::into_uses).collect();
    uses.sort_by_key(|used| std::cmp::Reverse(used.at));
    uses
}

/// Where the server of the agent of a session listened when it was last heard of.
pub fn server(state: &State, agent: &str, session: &str) -> Option<String> {
    let name = hash_name(&[agent.as_bytes(), session.as_bytes()]);
    read(&state.sessions().join(format!("{name}.json")))?.server
}

/// Whether the turn that runs in a session has had a checkpoint of `root` since then. Reads the
/// ledger without its lock: whoever asks can live with yesterday's answer.
pub fn covered_since(
    state: &State,
    agent: &str,
    session: &str,
    root: &Path,
    since: DateTime<Utc>,
) -> bool {
    let name = hash_name(&[agent.as_bytes(), session.as_bytes()]);
    let Some(wire) = read(&state.sessions().join(format!("{name}.json"))) else { return false };
    let Some(turn) = &wire.turn else { return false };
    let mut uses = wire.uses.iter();
    uses.any(|used| used.turn == turn.id && used.at >= since && used.root.is(root))
}

/// The ledgers that nobody can read. A newer turnback's is none of them.
pub fn damaged(state: &State) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(state.sessions()) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let ledgers = paths.filter(|path| path.extension() == Some(OsStr::new("json")));
    let is_lost = |path: &PathBuf| {
        let bytes = read_small(path, SIZE_MAX_BYTES).ok().flatten();
        bytes.is_some_and(|bytes| is_lost(&bytes))
    };
    ledgers.filter(|path| matches!(look(path), Found::Damaged) && !is_lost(path)).collect()
}

impl Wire {
    fn into_uses(self) -> Vec<Use> {
        let Some(dialect) = crate::agent::by_name(&self.agent) else { return Vec::new() };
        let transcript = self.transcript.as_ref().and_then(Bytes::to_path);
        let session = crate::model::SessionId(self.session);
        let to_use = |used: WireUse| {
            Some(Use {
                checkpoint: CheckpointId::parse(&used.checkpoint)?,
                root: used.root.to_path()?,
                by: By {
                    agent: dialect.agent(),
                    session: session.clone(),
                    turn: Some(TurnId(used.turn)),
                    subagent: used.subagent,
                    prompt: used.prompt,
                    transcript: transcript.clone(),
                    position: used.position,
                },
                at: used.at,
                tool: used.tool,
                summary: used.summary,
            })
        };
        self.uses.into_iter().filter_map(to_use).collect()
    }
}

/// What is at the place of a ledger.
enum Found {
    Nothing,
    Ours(Box<Wire>),
    /// A newer turnback's.
    Newer,
    Damaged,
}

/// A ledger that cannot be read, or that a newer turnback wrote, says nothing.
fn read(path: &Path) -> Option<Wire> {
    match look(path) {
        Found::Ours(wire) => Some(*wire),
        Found::Nothing | Found::Newer | Found::Damaged => None,
    }
}

fn look(path: &Path) -> Found {
    let bytes = match read_small(path, SIZE_MAX_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Found::Nothing,
        Err(_) => return Found::Damaged,
    };
    parse(&bytes)
}

/// Reads bytes as a ledger and everything in it; for fuzz/.
pub(crate) fn parse_any(bytes: &[u8]) {
    if let Found::Ours(wire) = parse(bytes) {
        wire.into_uses();
    }
}

fn parse(bytes: &[u8]) -> Found {
    #[derive(Deserialize)]
    struct VersionOnly {
        version: u32,
    }
    match serde_json::from_slice::<Wire>(bytes) {
        Ok(wire) if wire.version == VERSION => Found::Ours(Box::new(wire)),
        Ok(_) | Err(_) => match serde_json::from_slice::<VersionOnly>(bytes) {
            Ok(VersionOnly { version }) if version > VERSION => Found::Newer,
            Ok(_) | Err(_) => Found::Damaged,
        },
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

impl Bytes {
    fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Hex { hex: hex(path.as_os_str().as_bytes()) },
        }
    }

    fn to_path(&self) -> Option<PathBuf> {
        match self {
            Self::Text(text) => Some(PathBuf::from(text)),
            Self::Hex { hex } => {
                let digits = hex.as_bytes().chunks(2);
                let bytes: Option<Vec<u8>> = digits
                    .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
                    .collect();
                Some(PathBuf::from(OsStr::from_bytes(&bytes?)))
            }
        }
    }

    fn is(&self, path: &Path) -> bool {
        self.to_path().is_some_and(|own| own == path)
    }
}
