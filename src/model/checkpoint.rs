//! Checkpoints: their names, and why they were taken.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{Agent, ContentId, SessionId, Skipped, TurnId, escape::escaped};

/// The name of a checkpoint: 16 lowercase hex digits, the first of them a letter, so that no prefix
/// of one is ever taken for a number from `list`. The last six are its sequence number, so that names alone
/// have the order of checkpoints: finding the newest of thousands reads one record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckpointId(u64);

impl CheckpointId {
    /// How many digits one has.
    pub const DIGITS: usize = 16;

    /// The greatest sequence number: a checkpoint each minute for thirty years.
    pub const SEQUENCE_MAX: u64 = (1 << Self::SEQUENCE_BITS) - 1;
    /// The bits of the last six digits.
    const SEQUENCE_BITS: u32 = 24;

    /// Makes the id of the checkpoint with a sequence number from hash bits. A greater number than
    /// [`CheckpointId::SEQUENCE_MAX`] becomes that.
    pub fn new(bits: u64, sequence: u64) -> Self {
        let name = bits & !Self::SEQUENCE_MAX;
        Self::from_bits(name | sequence.min(Self::SEQUENCE_MAX))
    }

    /// The place of the checkpoint in the order of its root's. Clocks run backwards; this does not.
    pub fn sequence(self) -> u64 {
        self.0 & Self::SEQUENCE_MAX
    }

    /// Makes an id from hash bits, whatever they are.
    pub fn from_bits(bits: u64) -> Self {
        let letter = 0xa + (bits >> 60) % 6;
        Self((bits & (u64::MAX >> 4)) | (letter << 60))
    }

    /// The number that its name spells.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The id of that number; `None` if there is none.
    pub fn from_number(number: u64) -> Option<Self> {
        (number >> 60 >= 0xa).then_some(Self(number))
    }

    /// Reads the full name; `None` if it is not one.
    pub fn parse(name: &str) -> Option<Self> {
        let lowercase = name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if name.len() != Self::DIGITS
            || !lowercase
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            return None;
        }
        u64::from_str_radix(name, 16).ok().map(Self)
    }

    /// With how many digits both begin.
    pub fn digits_shared(self, other: Self) -> usize {
        ((self.0 ^ other.0).leading_zeros() / 4) as usize
    }

    /// The first four digits, for people.
    pub fn short(self) -> String {
        self.to_string()[..4].to_owned()
    }
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointId({self})")
    }
}

text_form!(CheckpointId: to_string, parse);

/// How a person names a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The row with this number in `list`; 1 is the newest. The second number is the step within
    /// the turn, from 1.
    Number(u32, u32),
    /// `latest~n`, the nth newest by sequence; 0 is the newest.
    Latest(u32),
    /// Every id that begins so, or a name. Between 4 and 16 hex digits.
    Prefix(String),
    /// A message that `create` was given, or a time.
    Words(String),
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        if given == "latest" {
            return Ok(Self::Latest(0));
        }
        if let Some(n) = given.strip_prefix("latest~") {
            return n.parse().map(Self::Latest).map_err(|_| format!("`{n}` is not a number"));
        }
        if let Some(number) = number(given) {
            return Ok(number);
        }
        let lower = given.to_ascii_lowercase();
        let is_prefix = (4..=CheckpointId::DIGITS).contains(&lower.len())
            && lower.starts_with(|c| matches!(c, 'a'..='f'))
            && lower.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        Ok(if is_prefix { Self::Prefix(lower) } else { Self::Words(given.to_owned()) })
    }
}

/// Reads `3` or `3.2`; zero is no row.
fn number(given: &str) -> Option<Selector> {
    let (row, step) = given.split_once('.').unwrap_or((given, "1"));
    match (row.parse().ok()?, step.parse().ok()?) {
        (0, _) | (_, 0) => None,
        (row, step) => Some(Selector::Number(row, step)),
    }
}

/// Why a checkpoint was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A tool call was about to change files.
    Call,
    /// A session began, a turn began or ended: the net under what fires no hook.
    Net,
    /// The user asked for one.
    Asked,
    /// A restore was about to overwrite files; this makes the restore itself undoable.
    BeforeRestore,
}

impl Reason {
    /// A word for scripts and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Net => "net",
            Self::Asked => "asked",
            Self::BeforeRestore => "before-restore",
        }
    }

    /// Finds a reason by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Call, Self::Net, Self::Asked, Self::BeforeRestore]
            .into_iter()
            .find(|reason| reason.name() == name)
    }
}

text_form!(Reason: name, from_name);

/// What led to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// In one word.
    pub reason: Reason,
    /// The call it was taken for, if it was a call.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_agents")]
    pub by: Option<By>,
    /// The tool, as its agent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The command line, the file, or the user's message, in one line. Private: it is never kept
    /// in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The checkpoint that was about to be restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<CheckpointId>,
}

impl Cause {
    /// The user asked, with or without a word why.
    pub fn asked(message: Option<String>) -> Self {
        Self { reason: Reason::Asked, by: None, tool: None, summary: message, of: None }
    }

    /// A restore of `id` is about to begin.
    pub fn before_restore(id: CheckpointId) -> Self {
        let reason = Reason::BeforeRestore;
        Self { reason, by: None, tool: None, summary: None, of: Some(id) }
    }
}

/// The agent, session and turn a checkpoint belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct By {
    /// Which agent.
    pub agent: Agent,
    /// In which session.
    pub session: SessionId,
    /// In which turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Which sub-agent, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The user's words that began the turn, shortened. Private, like [`Cause::summary`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Where the agent keeps the conversation. Private.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "escaped")]
    pub transcript: Option<std::path::PathBuf>,
    /// How long the conversation was when the turn began, in bytes, where we were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// Drops an agent that only a newer beforehand knows, which is no reason to lose the checkpoint.
fn known_agents<'de, D: Deserializer<'de>>(from: D) -> Result<Option<By>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum MaybeKnown {
        Known(Box<By>),
        Other { agent: String },
    }
    match Option::<MaybeKnown>::deserialize(from)? {
        Some(MaybeKnown::Known(by)) => Ok(Some(*by)),
        Some(MaybeKnown::Other { agent }) if Agent::is_named(&agent) => {
            Err(D::Error::custom("the agent's session is damaged"))
        }
        Some(MaybeKnown::Other { .. }) | None => Ok(None),
    }
}

/// What tells one turn from all others.
pub type TurnKey = (Agent, SessionId, TurnId);

impl By {
    /// What tells the turn from all others; `None` for an agent that tells no turns apart.
    pub fn turn_key(&self) -> Option<TurnKey> {
        Some((self.agent, self.session.clone(), self.turn.clone()?))
    }
}

impl Checkpoint {
    /// What tells the turn it belongs to from all others.
    pub fn turn_key(&self) -> Option<TurnKey> {
        self.cause.by.as_ref()?.turn_key()
    }

    /// When it was taken, in nanoseconds since 1970.
    pub fn taken_ns(&self) -> i64 {
        self.taken_at.timestamp_nanos_opt().unwrap_or(0)
    }

    /// Whether both were taken in one turn.
    pub fn is_same_turn(&self, other: &Self) -> bool {
        let (Some(by), Some(others)) = (&self.cause.by, &other.cause.by) else { return false };
        by.turn.is_some()
            && by.turn == others.turn
            && by.session == others.session
            && by.agent == others.agent
    }
}

/// Where HEAD stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The branch, as in `refs/heads/main`; `None` if HEAD was detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit, in hex; `None` on a branch without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// A merge, rebase, cherry-pick, revert or bisect in progress, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
}

/// How much of a root's state a checkpoint holds, apart from the paths that it names as skipped.
///
/// A record only has whether it is partial: that it is lost, no record can say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Completeness {
    /// Everything.
    #[default]
    Whole,
    /// The deadline ended the walk before everything was seen.
    OutOfTime,
    /// Its record is lost or cannot be read. Only the record names the private files, the files
    /// outside the root and the repositories that are held.
    RecordLost,
}

impl Completeness {
    /// The completeness of a checkpoint whose record says that it is partial, or is not.
    pub fn of_record(is_partial: bool) -> Self {
        if is_partial { Self::OutOfTime } else { Self::Whole }
    }

    /// Whether a path that the checkpoint does not have, and does not name as skipped, was absent.
    pub fn is_whole(self) -> bool {
        self == Self::Whole
    }

    /// The missing part, in the words of a report; `None` if there is none.
    pub fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::OutOfTime => Some("the deadline came before everything was seen"),
            Self::RecordLost => Some(
                "its record is lost: private files, files outside the root and repositories are \
                 unknown",
            ),
        }
    }
}

impl From<bool> for Completeness {
    fn from(is_partial: bool) -> Self {
        Self::of_record(is_partial)
    }
}

impl From<Completeness> for bool {
    fn from(completeness: Completeness) -> Self {
        !completeness.is_whole()
    }
}

/// [`Completeness::is_whole`] in the form that serde calls.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_whole(completeness: &Completeness) -> bool {
    completeness.is_whole()
}

/// A saved checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Its name.
    pub id: CheckpointId,
    /// Its place in the order of the root's checkpoints, which its name has.
    #[serde(skip)]
    pub sequence: u64,
    /// When it was taken: its files were read from then on.
    pub taken_at: DateTime<Utc>,
    /// After how many nanoseconds all of them had been read; `None` if that was not noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading_ns: Option<u64>,
    /// Why it was taken.
    pub cause: Cause,
    /// The top directory of its files, in the naming of its store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<ContentId>,
    /// How many files it holds, links and special files included.
    pub files: u64,
    /// How much of the root's state it holds, as far as is known.
    #[serde(rename = "partial", default, skip_serializing_if = "is_whole")]
    pub completeness: Completeness,
    /// What could not be saved, or was not to be. Shown to the user, never dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// Paths outside the root that it holds. Absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "escaped")]
    pub outside: Vec<std::path::PathBuf>,
    /// Where HEAD stood, in a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// How many paths of the index differed from HEAD, if it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<u64>,
}

#[cfg(test)]
impl By {
    /// The author of a call in a turn of the session `s`, for a test.
    pub fn sample(agent: Agent, turn: &str) -> Self {
        Self {
            agent,
            session: SessionId("s".to_owned()),
            turn: Some(TurnId(turn.to_owned())),
            subagent: None,
            prompt: None,
            transcript: None,
            position: None,
        }
    }
}

#[cfg(test)]
impl Checkpoint {
    /// One that holds nothing, for a test.
    pub fn sample(bits: u64, sequence: u64, taken_at: DateTime<Utc>) -> Self {
        Self {
            id: CheckpointId::from_bits(bits),
            sequence,
            taken_at,
            reading_ns: None,
            cause: Cause::asked(None),
            top: None,
            files: 0,
            completeness: Completeness::Whole,
            skipped: Vec::new(),
            outside: Vec::new(),
            head: None,
            staged: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_of_latest_is_not_a_prefix() {
        assert_eq!("latest~2".parse(), Ok(Selector::Latest(2)));
        assert_eq!("a3f1".parse(), Ok(Selector::Prefix("a3f1".to_owned())));
        for other in ["latets", "", "0", "a3f", "1.0", "12ab34", "-1", "a3f1a3f1a3f1a3f1a", "12:00"]
        {
            assert_eq!(other.parse(), Ok(Selector::Words(other.to_owned())));
        }
        assert!("latest~x".parse::<Selector>().is_err());
    }

    #[test]
    fn four_digits_are_a_number_never_an_id() {
        assert_eq!("1234".parse(), Ok(Selector::Number(1234, 1)));
        assert_eq!("3.2".parse(), Ok(Selector::Number(3, 2)));
    }

    #[test]
    fn an_id_has_its_sequence_number_and_a_letter() {
        for sequence in [0, 1, 77, CheckpointId::SEQUENCE_MAX] {
            let id = CheckpointId::new(0x1234_5678_9abc_def0, sequence);
            assert_eq!(id.sequence(), sequence);
            assert_eq!(CheckpointId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(CheckpointId::new(0, u64::MAX).sequence(), CheckpointId::SEQUENCE_MAX);
        assert_ne!(CheckpointId::new(1 << 24, 5), CheckpointId::new(2 << 24, 5));
    }

    #[test]
    fn an_id_begins_with_a_letter() {
        for bits in [0, u64::MAX, 0x1234_5678_9abc_def0, 0x9fff_ffff_ffff_ffff] {
            let id = CheckpointId::from_bits(bits);
            assert!(id.to_string().starts_with(|c| matches!(c, 'a'..='f')), "{id}");
            assert_eq!(CheckpointId::parse(&id.to_string()), Some(id));
        }
        for bad in ["", "a", "1234567890123456", "A234567890123456", "a23456789012345g"] {
            assert_eq!(CheckpointId::parse(bad), None, "{bad}");
        }
    }
}
