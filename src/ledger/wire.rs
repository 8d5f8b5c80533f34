//! The state file of a session, as it lies on the disk.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    io::{self, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error as _, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Doubts, Use, VERSION};
use crate::{
    error::{Error, Result},
    fs::{PathResolver, Small, hand_over, open_to_append, read_small, read_start},
    model::{By, CheckpointId, SessionId, TurnId, hex, unhex},
    process::Ancestor,
};

/// A ledger never comes near it.
pub(super) const SIZE_MAX_BYTES: u64 = 8 << 20;

/// Longer than the first line of a ledger.
const HEAD_MAX_BYTES: usize = 256;

/// The first line of a ledger: all that a call which only reads asks for. The rest grows with the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LedgerHead {
    pub(super) version: u32,
    /// Whether a command may have changed what later lines mean to the session's shell.
    #[serde(default)]
    pub(super) shell_changed: bool,
    /// Whether calls run as they are announced, if that was looked up.
    #[serde(default)]
    pub(super) rewrites: Option<Rewrites>,
}

impl Default for LedgerHead {
    fn default() -> Self {
        Self { version: VERSION, shell_changed: false, rewrites: None }
    }
}

/// A ledger: its first line, and the fields of the second.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct LedgerWire {
    #[serde(skip)]
    pub(super) head: LedgerHead,
    pub(super) agent: String,
    pub(super) session: String,
    /// The directory the session was first seen in.
    pub(super) home: Option<PathBytes>,
    pub(super) turn: Option<WireTurn>,
    #[serde(default)]
    pub(super) uses: Vec<Lazily<WireUse>>,
    /// What the agent itself left last, by path.
    #[serde(default)]
    pub(super) written: BTreeMap<String, Lazily<WireWritten>>,
    /// What the user was told already.
    #[serde(default)]
    pub(super) said: Vec<String>,
    #[serde(default)]
    pub(super) transcript: Option<PathBytes>,
    /// Where the agent's own server listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    /// Commands that were not seen to end yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) open: Vec<WireOpen>,
    /// Checkpoints before the command lines of the turn that begins with the next prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) next: Vec<WireNext>,
    /// Whether this agent says when a call of this session is done.
    #[serde(default)]
    pub(super) tells_ends: bool,
    /// Whether something was started that may go on in the background.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) background: bool,
    /// What the model is to be told with the next prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tell: Option<String>,
    /// What the user was told a turn's commands did, by the checkpoint it was counted from.
    #[serde(default)]
    pub(super) told: Option<(String, [u64; 3])>,
    /// Calls that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) refused: Vec<Refused>,
    /// Refused calls that a person has allowed once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) allowed: Vec<WireAllowed>,
    /// Calls that were announced, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) announced: Vec<WireAnnounced>,
    /// The session that started this one, which is a sub-agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_by: Option<String>,
    /// The processes of the agent that called our hook.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) logged_calls: Vec<WireCaller>,
}

/// A call that was announced, by digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WireAnnounced {
    /// The name of the call, as `attribution` logs it.
    pub(super) call: String,
    /// The tool's input.
    pub(super) input: String,
}

/// Whether the calls of a session run as they are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Rewrites {
    /// No other program's hook runs before a call.
    None,
    /// One does, and may rewrite it.
    Possible,
    /// A call ran with another input than the announced one.
    Seen,
}

/// A command that was not seen to end.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WireOpen {
    pub(super) call: String,
    pub(super) root: PathBytes,
    pub(super) of: String,
    /// Whether what it did so far was looked at.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) seen: bool,
}

/// A checkpoint that the next turn takes over.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WireNext {
    pub(super) root: PathBytes,
    pub(super) of: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(it: &bool) -> bool {
    !it
}

/// A call that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The digest of the call and the directory it was made in.
    pub code: String,
    /// The command line; the tool and its paths, if it is none.
    pub call: String,
    /// Why it was refused.
    pub why: String,
    /// When.
    pub at: DateTime<Utc>,
}

/// A refused call that a person has allowed once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WireAllowed {
    pub(super) code: String,
    /// The call that has used it up. Two hook entries may ask about the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used_by: Option<String>,
}

/// A process that called our hook. Its number is used again some day, so its start counts as well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WireCaller {
    pub(super) pid: u32,
    pub(super) start: String,
}

impl WireCaller {
    pub(super) fn is(&self, process: &Ancestor) -> bool {
        self.pid == process.pid && self.start == process.start
    }
}

/// A path: as text where it is text, else in hex.
#[derive(Clone, Serialize)]
#[serde(untagged)]
pub(super) enum PathBytes {
    Text(String),
    Hex { hex: String },
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WireTurn {
    pub(super) id: String,
    pub(super) prompt: Option<String>,
    /// How long the conversation was when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<u64>,
    /// True if it has ended and no prompt will tell that the next one begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_over: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireUse {
    pub(super) turn: String,
    pub(super) root: PathBytes,
    pub(super) checkpoint: String,
    pub(super) at: DateTime<Utc>,
    pub(super) tool: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) prompt: Option<String>,
    pub(super) subagent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WireWritten {
    pub(super) mtime: i64,
    pub(super) ctime: i64,
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    /// Of the content, where the stamp alone proves nothing.
    pub(super) digest: Option<String>,
    /// In which turn.
    #[serde(default)]
    pub(super) turn: Option<String>,
}

/// A part that is read when it is asked for. A session of a hundred turns has a hundred uses,
/// and a call is about one.
pub(super) struct Lazily<T> {
    /// As it was found; `None` for what is new.
    text: Option<Box<RawValue>>,
    value: OnceCell<Option<T>>,
}

impl<T> From<T> for Lazily<T> {
    fn from(value: T) -> Self {
        Self { text: None, value: OnceCell::from(Some(value)) }
    }
}

impl<T: DeserializeOwned> Lazily<T> {
    /// What it says; `None` if it makes no sense.
    pub(super) fn read(&self) -> Option<&T> {
        let parse = || serde_json::from_str(self.text.as_deref()?.get()).ok();
        self.value.get_or_init(parse).as_ref()
    }

    fn take(self) -> Option<T> {
        let _read = self.read();
        self.value.into_inner().flatten()
    }
}

impl<'de, T> Deserialize<'de> for Lazily<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Some(Box::<RawValue>::deserialize(deserializer)?);
        Ok(Self { text, value: OnceCell::new() })
    }
}

impl<T: Serialize> Serialize for Lazily<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => text.serialize(serializer),
            None => self.value.get().serialize(serializer),
        }
    }
}

impl LedgerWire {
    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(&self.head)?;
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, self)?;
        Ok(bytes)
    }

    /// Whether every part of it makes sense.
    pub(super) fn is_whole(&self) -> bool {
        self.uses.iter().all(|used| used.read().is_some())
            && self.written.values().all(|written| written.read().is_some())
    }

    /// Leaves out what makes no sense, so that it is not found again.
    pub(super) fn mend(&mut self) {
        self.uses.retain(|used| used.read().is_some());
        self.written.retain(|_, written| written.read().is_some());
    }

    /// Gives the checkpoints of [`Self::next`] to the turn that has begun. Each was used by the turn
    /// before, in which its command lines ran.
    pub(super) fn take_over(&mut self, before: Option<&str>) {
        let Some(turn) = &self.turn else { return };
        for next in std::mem::take(&mut self.next) {
            let Some(root) = next.root.to_path() else { continue };
            let at = self.uses.iter().rposition(|used| {
                used.read().is_some_and(|used| {
                    Some(used.turn.as_str()) == before
                        && used.checkpoint == next.of
                        && used.root.is(&root)
                })
            });
            if let Some(used) = at.and_then(|at| self.uses.remove(at).take()) {
                let taken = WireUse {
                    turn: turn.id.clone(),
                    prompt: turn.prompt.clone(),
                    position: turn.position,
                    ..used
                };
                self.uses.push(taken.into());
            }
        }
    }

    /// The newest use of a checkpoint of `root` in the turn that runs.
    pub(super) fn newest_use(&self, root: &Path) -> Option<&WireUse> {
        let turn = self.turn.as_ref()?;
        let mut uses = self.uses.iter().rev().filter_map(Lazily::read);
        uses.find(|used| used.turn == turn.id && used.root.is(root))
    }

    pub(super) fn into_uses(self) -> Vec<Use> {
        let Some(dialect) = crate::agent::by_name(&self.agent) else { return Vec::new() };
        let transcript = self.transcript.as_ref().and_then(PathBytes::to_path);
        let session = SessionId(self.session);
        let to_use = |used: WireUse| {
            Some(Use {
                checkpoint: CheckpointId::parse(&used.checkpoint)?,
                root: used.root.to_path()?,
                by: By {
                    agent: dialect.agent,
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
        self.uses.into_iter().filter_map(Lazily::take).filter_map(to_use).collect()
    }
}

/// Moves all but the `keep` newest uses to the end of the file beside the ledger at `path`. Nothing but
/// the list of turns needs them. If the ledger is not written after that, they are in both files.
///
/// # Errors
///
/// Fails if the file cannot be written.
pub(super) fn move_older(path: &Path, uses: &mut Vec<Lazily<WireUse>>, keep: usize) -> Result<()> {
    let older_path = path.with_extension(OLDER);
    // A line that a killed process left unfinished must not swallow the next one.
    let mut bytes = vec![b'\n'];
    for older in uses.drain(..uses.len().saturating_sub(keep)) {
        serde_json::to_writer(&mut bytes, &older).expect("strings and numbers always serialize");
        bytes.push(b'\n');
    }
    let file = open_to_append(&older_path, true).map_err(Error::io("write", &older_path))?;
    hand_over(&file, &older_path);
    let mut file = file;
    file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(Error::io("write", &older_path))
}

/// Reads a ledger with the uses that are in the file beside it, the oldest first.
pub(super) fn read_all(path: &Path) -> Option<LedgerWire> {
    let mut wire = read(path)?;
    // A file that cannot be read costs the turns in it their rows, and no checkpoint.
    let older = read_small(&path.with_extension(OLDER), SIZE_MAX_BYTES).ok().flatten();
    let older = older.unwrap_or_default();
    let lines = older.split(|byte| *byte == b'\n');
    let mut uses: Vec<Lazily<WireUse>> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    uses.append(&mut wire.uses);
    wire.uses = uses;
    Some(wire)
}

/// The extension of the file with the older uses of a session.
pub(super) const OLDER: &str = "uses";

/// The outcome of reading the file of a ledger.
pub(super) enum LedgerFile {
    Nothing,
    Ours(Box<LedgerWire>),
    /// A newer beforehand's.
    Newer,
    Damaged,
}

/// A ledger that cannot be read, or that a newer beforehand wrote, says nothing.
pub(super) fn read(path: &Path) -> Option<LedgerWire> {
    match look(path) {
        LedgerFile::Ours(wire) => Some(*wire),
        LedgerFile::Nothing | LedgerFile::Newer | LedgerFile::Damaged => None,
    }
}

pub(super) fn look(path: &Path) -> LedgerFile {
    to_found(read_small(path, SIZE_MAX_BYTES))
}

/// Reads a ledger with a resolver that the caller shares.
pub(super) fn look_by(real: &PathResolver, path: &Path) -> LedgerFile {
    match Small::open(path, real) {
        Some(found) => to_found(found.read(path, SIZE_MAX_BYTES)),
        None => LedgerFile::Nothing,
    }
}

fn to_found(read: Result<Option<Vec<u8>>>) -> LedgerFile {
    match read {
        Ok(Some(bytes)) => parse(&bytes),
        Ok(None) => LedgerFile::Nothing,
        Err(_) => LedgerFile::Damaged,
    }
}

pub(super) fn parse(bytes: &[u8]) -> LedgerFile {
    let Some((head, rest)) = parse_head(bytes) else { return LedgerFile::Damaged };
    if head.version > VERSION {
        return LedgerFile::Newer;
    }
    // An older beforehand wrote one line with all fields.
    let fields = if rest.trim_ascii().is_empty() { bytes } else { rest };
    match serde_json::from_slice::<LedgerWire>(fields) {
        Ok(wire) if head.version == VERSION => {
            LedgerFile::Ours(Box::new(LedgerWire { head, ..wire }))
        }
        Ok(_) | Err(_) => LedgerFile::Damaged,
    }
}

/// Parses the first line. Returns the rest as it is.
fn parse_head(bytes: &[u8]) -> Option<(LedgerHead, &[u8])> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
    let head = values.next()?.ok()?;
    Some((head, &bytes[values.byte_offset()..]))
}

/// The doubts that a ledger records. One that cannot be read, and a newer beforehand's, are no proof that there
/// are none.
pub(super) fn doubts(path: &Path) -> Doubts {
    let head = match read_start(path, HEAD_MAX_BYTES) {
        Ok(bytes) => parse_head(&bytes).map(|(head, _)| head),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Some(LedgerHead::default()),
        Err(_) => None,
    };
    match head.filter(|head| head.version == VERSION) {
        Some(LedgerHead { shell_changed, rewrites, .. }) => {
            Doubts { shell_changed, may_be_rewritten: rewrites.map(Rewrites::may_happen) }
        }
        None => Doubts { shell_changed: true, may_be_rewritten: None },
    }
}

impl Rewrites {
    /// Whether a call may run with another input than the announced one.
    pub(super) fn may_happen(self) -> bool {
        self != Self::None
    }
}

impl PathBytes {
    pub(super) fn of(path: &Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Hex { hex: hex(path.as_os_str().as_bytes()) },
        }
    }

    pub(super) fn to_path(&self) -> Option<PathBuf> {
        match self {
            Self::Text(text) => Some(PathBuf::from(text)),
            Self::Hex { hex } => Some(PathBuf::from(OsString::from_vec(unhex(hex)?))),
        }
    }

    pub(super) fn is(&self, path: &Path) -> bool {
        match self {
            Self::Text(text) if text.as_bytes() == path.as_os_str().as_bytes() => true,
            Self::Text(_) | Self::Hex { .. } => self.to_path().is_some_and(|own| own == path),
        }
    }
}

/// Reads either spelling without a copy of it in between, as `untagged` would make.
impl<'de> Deserialize<'de> for PathBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = PathBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path")
            }

            fn visit_str<E>(self, text: &str) -> Result<PathBytes, E> {
                Ok(PathBytes::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PathBytes, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "hex" => found = Some(map.next_value()?),
                        _ => drop(map.next_value::<serde::de::IgnoredAny>()?),
                    }
                }
                found
                    .map(|hex| PathBytes::Hex { hex })
                    .ok_or_else(|| A::Error::missing_field("hex"))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(uses: &str) -> LedgerFile {
        parse(
            format!(
                r#"{{"version":1,"agent":"codex","session":"s","turn":{{"id":"t"}},"uses":{uses}}}"#
            )
            .as_bytes(),
        )
    }

    fn used(turn: &str, root: &str, checkpoint: &str) -> String {
        format!(
            r#"{{"turn":"{turn}","root":{root},"checkpoint":"{checkpoint}","at":"2026-01-01T00:00:00Z"}}"#
        )
    }

    #[test]
    fn a_use_is_found_behind_one_that_makes_no_sense() {
        let [first, other] = ["a000000000000001", "b000000000000001"];
        let uses = [
            used("t", r#""/r""#, first),
            used("t", r#"{"hex":"2f73"}"#, other),
            "[7]".to_owned(),
            used("u", r#""/r""#, other),
        ];
        let LedgerFile::Ours(mut wire) = wire(&format!("[{}]", uses.join(","))) else { panic!() };
        assert_eq!(wire.newest_use(Path::new("/r")).unwrap().checkpoint, first);
        assert_eq!(wire.newest_use(Path::new("/s")).unwrap().checkpoint, other);
        assert!(wire.newest_use(Path::new("/t")).is_none());
        assert!(!wire.is_whole());
        wire.mend();
        assert!(wire.is_whole() && wire.uses.len() == 3);
        let text = String::from_utf8(wire.to_bytes().unwrap()).unwrap();
        assert!(text.contains(&uses[1]), "what was not touched is written as it was: {text}");
        let LedgerFile::Ours(again) = parse(text.as_bytes()) else { panic!() };
        assert_eq!(again.into_uses().len(), 3);
    }

    #[test]
    fn the_first_line_is_enough_for_the_doubts() {
        let head = LedgerHead {
            shell_changed: true,
            rewrites: Some(Rewrites::Seen),
            ..LedgerHead::default()
        };
        let said = vec!["digest".to_owned(); 100];
        let bytes = LedgerWire { head, said, ..LedgerWire::default() }.to_bytes().unwrap();
        let LedgerFile::Ours(wire) = parse(&bytes) else { panic!() };
        assert_eq!((wire.head, wire.said.len()), (head, 100));
        let (start, _) = parse_head(&bytes[..HEAD_MAX_BYTES]).unwrap();
        assert_eq!(start, head);
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        assert!(matches!(parse(&bytes[..end]), LedgerFile::Damaged), "the second line is lost");
        assert!(matches!(parse(&bytes[..bytes.len() - 1]), LedgerFile::Damaged));
        assert!(parse_head(&bytes[..end - 1]).is_none());
    }

    #[test]
    fn what_is_no_list_of_uses_is_damage() {
        for uses in ["7", "[1,", "{}", "[\u{1}]"] {
            assert!(matches!(wire(uses), LedgerFile::Damaged), "{uses}");
        }
        assert!(matches!(parse(br#"{"version":2}"#), LedgerFile::Newer));
    }
}
