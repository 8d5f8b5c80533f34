//! What is written down about a checkpoint besides its files: one private JSON file each, in
//! either store, and one for each root. Hides their format.

use std::{
    cmp::Ordering,
    ffi::OsString,
    fs, io,
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    escape::{escape, unescape},
    objects::names_in,
    vault::{Vault, VaultFile},
};
use crate::{
    error::{Error, Result},
    fs::{create_new_synced, create_private_dirs, now_ns, read_small, replace_synced, sync_dir},
    model::{
        Agent, By, Cause, Checkpoint, CheckpointId, ContentId, Head, Reason, Root, RootKind,
        SessionId, SkipReason, Skipped, TurnId,
    },
    state::{RootState, State},
};

/// The newest version of our files that we can read, and the one we write.
const VERSION: u32 = 1;
/// A hundred thousand skipped paths; a damaged length must not make us ask for more.
const SIZE_MAX_BYTES: u64 = 64 << 20;

/// A checkpoint, and the private listings that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Who holds the directory that [`Checkpoint::top`] names.
    pub keeper: Keeper,
    /// The listing of private and special entries below the root.
    pub besides: Option<ContentId>,
    /// The listing of entries outside the root.
    pub outside: Option<ContentId>,
    /// What its ref points at, should the ref be gone.
    pub tree: Option<ContentId>,
    /// What brings the repository itself back.
    pub vault: Option<Vault>,
}

/// The kind of store that holds a checkpoint's files. A directory can become a repository and
/// cease to be one; its records stay together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// The repository.
    Git,
    /// The private objects.
    Copy,
}

impl Keeper {
    const ALL: [Self; 2] = [Self::Git, Self::Copy];

    fn name(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Copy => "copy",
        }
    }
}

/// A record that is there, whether or not it can be read.
#[derive(Debug)]
pub struct Kept {
    /// The name it has.
    pub id: CheckpointId,
    /// What it says.
    pub record: Result<Record>,
    /// When it was made, as far as can be told.
    order: (u64, DateTime<Utc>),
}

impl Kept {
    /// Its sequence number; 0 if it cannot be told.
    pub fn sequence(&self) -> u64 {
        self.order.0
    }

    /// The checkpoint; for one that cannot be read, something to show in a list.
    pub fn into_checkpoint(self) -> Checkpoint {
        match self.record {
            Ok(record) => record.checkpoint,
            Err(err) => placeholder(self.id, self.order, err.to_string()),
        }
    }
}

fn placeholder(id: CheckpointId, order: (u64, DateTime<Utc>), why: String) -> Checkpoint {
    Checkpoint {
        id,
        sequence: order.0,
        taken_at: order.1,
        cause: Cause::asked(Some(why)),
        top: None,
        files: 0,
        partial: true,
        skipped: Vec::new(),
        outside: Vec::new(),
        head: None,
        staged: None,
    }
}

/// Writes the record of a new checkpoint. On the disk when it returns.
///
/// # Errors
///
/// Fails if there is one of that name, which is left as it is.
pub fn write(state: &RootState, record: &Record) -> Result<()> {
    let dir = state.checkpoints();
    create_private_dirs(&dir)?;
    let bytes = to_json(&RecordFile::of(record))?;
    create_new_synced(&path_of(state, record.checkpoint.id), &bytes)
}

/// Reads the record of a checkpoint.
///
/// # Errors
///
/// [`Error::NoSuchCheckpoint`], [`Error::FormatTooNew`] or [`Error::Damaged`].
pub fn read(state: &RootState, id: CheckpointId) -> Result<Record> {
    match read_kept(state, id)? {
        Some(kept) => kept.record,
        None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
    }
}

/// Reads every record, the newest first by sequence, then by id.
///
/// # Errors
///
/// Fails if the directory cannot be listed. A record that cannot be read is still in the result.
pub fn read_all(state: &RootState) -> Result<Vec<Kept>> {
    let mut kept = Vec::new();
    for id in ids(state)? {
        kept.extend(read_kept(state, id)?);
    }
    kept.sort_by_key(|kept| std::cmp::Reverse((kept.sequence(), kept.id)));
    Ok(kept)
}

/// The names of all records, read or not, in no order.
///
/// # Errors
///
/// Fails if the directory cannot be listed.
pub fn ids(state: &RootState) -> Result<Vec<CheckpointId>> {
    let id_of = |name: &OsString| CheckpointId::parse(name.to_str()?.strip_suffix(".json")?);
    Ok(names_in(&state.checkpoints())?.iter().filter_map(id_of).collect())
}

/// Removes the record of a checkpoint, and tells whether there was one.
pub fn remove(state: &RootState, id: CheckpointId) -> Result<bool> {
    let path = path_of(state, id);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(err) => Err(Error::io("remove", &path)(err)),
    }
}

/// Removes the records of several checkpoints, and tells how many there were. On the disk when it
/// returns: a record that came back after a power cut must not miss what is freed afterwards.
pub fn forget(state: &RootState, ids: impl Iterator<Item = CheckpointId>) -> Result<usize> {
    let mut gone = 0;
    for id in ids {
        crate::crash::point("forget-record");
        gone += usize::from(remove(state, id)?);
    }
    if gone > 0 {
        sync_dir(&state.checkpoints())?;
    }
    Ok(gone)
}

/// Whether a checkpoint of turnback's own store follows one of the repository: that one could not
/// take it, and will not list it.
pub fn has_moved(state: &RootState, id: CheckpointId) -> bool {
    let keeper = |id| read(state, id).ok().map(|record| record.keeper);
    keeper(id) == Some(Keeper::Copy)
        && ids(state).is_ok_and(|ids| ids.into_iter().any(|id| keeper(id) == Some(Keeper::Git)))
}

/// The sequence number and the name of the next checkpoint, given all there are.
pub fn next(state: &RootState, kept: &[Kept], taken_at: DateTime<Utc>) -> (u64, CheckpointId) {
    next_after(state, kept.iter().map(Kept::sequence).max().unwrap_or(0), taken_at)
}

/// The same, given the greatest sequence number there is.
pub fn next_after(
    state: &RootState,
    greatest: u64,
    taken_at: DateTime<Utc>,
) -> (u64, CheckpointId) {
    let sequence = greatest.saturating_add(1);
    let mut salt = 0u64;
    loop {
        let id = new_id(state.dir(), sequence, taken_at, salt);
        if !path_of(state, id).exists() {
            return (sequence, id);
        }
        salt += 1;
    }
}

/// Where the record of a checkpoint is.
pub fn path_of(state: &RootState, id: CheckpointId) -> PathBuf {
    state.checkpoints().join(format!("{id}.json"))
}

fn new_id(dir: &Path, sequence: u64, taken_at: DateTime<Utc>, salt: u64) -> CheckpointId {
    let mut hash = Sha256::new();
    hash.update(dir.as_os_str().as_encoded_bytes());
    hash.update(sequence.to_le_bytes());
    hash.update(taken_at.timestamp_micros().to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    hash.update(now_ns().to_le_bytes());
    hash.update(salt.to_le_bytes());
    let bits: [u8; 8] = hash.finalize()[..8].try_into().expect("a SHA-256 has more than 8 bytes");
    CheckpointId::from_bits(u64::from_be_bytes(bits))
}

fn read_kept(state: &RootState, id: CheckpointId) -> Result<Option<Kept>> {
    let what = format!("checkpoints/{id}.json");
    let bytes = match read_small(&path_of(state, id), SIZE_MAX_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // One pipe among the records must not hide the others.
        Err(Error::Io { source, .. }) if is_no_record(source.kind()) => {
            let record = Err(Error::damaged(what, source.to_string()));
            return Ok(Some(Kept { id, record, order: Default::default() }));
        }
        Err(err) => return Err(err),
    };
    let record = from_json::<RecordFile>(&what, &bytes).and_then(|file| {
        let record = file.into_record().map_err(|why| Error::damaged(&what, why))?;
        let is_it = record.checkpoint.id == id;
        if is_it { Ok(record) } else { Err(Error::damaged(&what, "it names another checkpoint")) }
    });
    let order = match &record {
        Ok(record) => (record.checkpoint.sequence, record.checkpoint.taken_at),
        Err(_) => guess_order(&bytes),
    };
    Ok(Some(Kept { id, record, order }))
}

/// Whether an error says that what is there is no record, whenever it is read.
fn is_no_record(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied
    )
}

/// Every version of the format has these two, so that a list is in order.
fn guess_order(bytes: &[u8]) -> (u64, DateTime<Utc>) {
    let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let sequence = value["sequence"].as_u64().unwrap_or(0);
    let taken_at = value["taken_at"].as_str().and_then(|text| text.parse().ok());
    (sequence, taken_at.unwrap_or_default())
}

/// Where a root was when it was first seen, to tell an orphan from an unplugged disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootPlace {
    /// Its path.
    pub path: PathBuf,
    /// Its device and inode.
    pub root: (u64, u64),
    /// Those of the directory it is in.
    pub parent: (u64, u64),
    /// Its git directory, if it was a repository.
    pub git_dir: Option<PathBuf>,
    /// When it was first seen.
    pub first_seen: DateTime<Utc>,
}

/// Writes down where a root is, unless that is known. What is there and too new is left alone.
pub fn write_place(state: &RootState, root: &Root, now: DateTime<Utc>) -> Result<()> {
    let known = read_place(state);
    if matches!(known, Err(Error::FormatTooNew { .. })) {
        return Ok(());
    }
    let stat = |path: &Path| {
        let data = fs::metadata(path).map_err(Error::io("look at", path))?;
        Ok::<_, Error>((data.dev(), data.ino()))
    };
    let known = known.ok().flatten();
    let place = RootPlace {
        path: root.path().to_owned(),
        root: stat(root.path())?,
        parent: stat(root.path().parent().unwrap_or(root.path()))?,
        git_dir: match root.kind() {
            RootKind::Git { git_dir, .. } => Some(git_dir.clone()),
            RootKind::Plain { .. } => None,
        },
        first_seen: known.as_ref().map_or(now, |known| known.first_seen),
    };
    if known.as_ref() == Some(&place) {
        return Ok(());
    }
    create_private_dirs(state.dir())?;
    replace_synced(&state.place(), &to_json(&PlaceFile::of(&place))?)
}

/// Reads where a root was; `None` if nobody wrote it down.
pub fn read_place(state: &RootState) -> Result<Option<RootPlace>> {
    let Some(bytes) = read_small(&state.place(), SIZE_MAX_BYTES)? else { return Ok(None) };
    let file: PlaceFile = from_json("root.json", &bytes)?;
    let place = file.into_place().ok_or_else(|| Error::damaged("root.json", "not a path"))?;
    Ok(Some(place))
}

/// The state of every root there is anything of.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub fn all_roots(state: &State) -> Result<Vec<RootState>> {
    let names = names_in(&state.roots())?;
    Ok(names.iter().map(|name| state.root_named(name)).collect())
}

/// Reads bytes as each kind of record; for fuzz/.
pub(crate) fn parse_any(bytes: &[u8]) {
    let _damaged = from_json::<RecordFile>("x", bytes).map(RecordFile::into_record);
    let _damaged = from_json::<PlaceFile>("x", bytes).map(PlaceFile::into_place);
    let _order = guess_order(bytes);
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

fn to_json(file: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(file).map_err(|err| Error::Other {
        message: format!("cannot write a record: {err}"),
        hint: None,
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A file that says of which version it is.
trait Versioned: DeserializeOwned {
    fn version(&self) -> u32;
}

impl Versioned for RecordFile {
    fn version(&self) -> u32 {
        self.version
    }
}

impl Versioned for PlaceFile {
    fn version(&self) -> u32 {
        self.version
    }
}

fn from_json<T: Versioned>(what: &str, bytes: &[u8]) -> Result<T> {
    let damaged = |err: serde_json::Error| Error::damaged(what, err.to_string());
    // Read as the newest first, which it nearly always is: parsing it is what a list costs.
    let read = serde_json::from_slice::<T>(bytes);
    if let Ok(file) = read
        && file.version() == VERSION
    {
        return Ok(file);
    }
    let found = serde_json::from_slice::<VersionOnly>(bytes).map_err(damaged)?.version;
    match found.cmp(&VERSION) {
        Ordering::Greater => {
            Err(Error::FormatTooNew { what: what.to_owned(), found, known: VERSION })
        }
        Ordering::Equal => serde_json::from_slice(bytes).map_err(damaged),
        Ordering::Less => {
            let old = serde_json::from_slice(bytes).map_err(damaged)?;
            serde_json::from_value(migrated(what, old, found)?).map_err(damaged)
        }
    }
}

/// A record of an older `version` as one of the newest, step by step; what is on the disk stays as
/// it was written. Each new version adds the step that leads to it, and a frozen sample of what it
/// leads from in `fixtures/formats`. The first is 1: nothing leads there yet.
fn migrated(what: &str, record: Value, version: u32) -> Result<Value> {
    match version {
        // 1 => migrated(what, from_1_to_2(record), 2),
        VERSION => Ok(record),
        _ => Err(Error::damaged(what, format!("there was no version {version}"))),
    }
}

/// Moments as RFC 3339, in UTC, to the nanosecond where there is one.
mod moment {
    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(at: &DateTime<Utc>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<DateTime<Utc>, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// `checkpoints/<id>.json`. Paths are escaped, because JSON has no bytes; texts are as they are.
#[derive(Serialize, Deserialize)]
struct RecordFile {
    version: u32,
    id: String,
    keeper: String,
    sequence: u64,
    #[serde(with = "moment")]
    taken_at: DateTime<Utc>,
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
    besides: Option<String>,
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
    vault: Option<VaultFile>,
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

/// `root.json`.
#[derive(Serialize, Deserialize)]
struct PlaceFile {
    version: u32,
    path: String,
    device: u64,
    inode: u64,
    parent_device: u64,
    parent_inode: u64,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git_dir: Option<String>,
    #[serde(with = "moment")]
    first_seen: DateTime<Utc>,
}

impl RecordFile {
    fn of(record: &Record) -> Self {
        let Record { checkpoint, keeper, besides, outside, tree, vault } = record;
        let cause = &checkpoint.cause;
        let hex = |id: &Option<ContentId>| id.map(|id| id.to_string());
        Self {
            version: VERSION,
            id: checkpoint.id.to_string(),
            keeper: keeper.name().to_owned(),
            sequence: checkpoint.sequence,
            taken_at: checkpoint.taken_at,
            reason: cause.reason.name().to_owned(),
            agent: cause.by.as_ref().map(ByFile::of),
            tool: cause.tool.clone(),
            summary: cause.summary.clone(),
            of: cause.of.map(|id| id.to_string()),
            top: hex(&checkpoint.top),
            besides: hex(besides),
            outside: hex(outside),
            files: checkpoint.files,
            partial: checkpoint.partial,
            skipped: checkpoint.skipped.iter().map(SkippedFile::of).collect(),
            outside_paths: checkpoint.outside.iter().map(|path| escape_path(path)).collect(),
            head: checkpoint.head.as_ref().map(HeadFile::of),
            staged: checkpoint.staged,
            tree: hex(tree),
            vault: vault.as_ref().map(VaultFile::of),
        }
    }

    fn into_record(self) -> Result<Record, &'static str> {
        let checkpoint = CheckpointId::parse(&self.id).ok_or("`id` is not an id")?;
        let keeper = Keeper::ALL.into_iter().find(|keeper| keeper.name() == self.keeper);
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
            cause,
            top: parse_id(self.top)?,
            files: self.files,
            partial: self.partial,
            skipped: self.skipped.iter().map(SkippedFile::to_skipped).collect::<Result<_, _>>()?,
            outside: self
                .outside_paths
                .iter()
                .map(|path| parse_path(path))
                .collect::<Result<_, _>>()?,
            head: self.head.map(HeadFile::into_head),
            staged: self.staged,
        };
        let (besides, outside) = (parse_id(self.besides)?, parse_id(self.outside)?);
        let keeper = keeper.ok_or("an unknown keeper")?;
        let tree = parse_id(self.tree)?;
        let vault = self.vault.map(VaultFile::into_vault).transpose()?;
        Ok(Record { checkpoint, keeper, besides, outside, tree, vault })
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

    /// `None` for an agent that only a newer turnback knows: no reason to lose the checkpoint.
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

impl PlaceFile {
    fn of(place: &RootPlace) -> Self {
        Self {
            version: VERSION,
            path: escape_path(&place.path),
            device: place.root.0,
            inode: place.root.1,
            parent_device: place.parent.0,
            parent_inode: place.parent.1,
            kind: if place.git_dir.is_some() { "git" } else { "plain" }.to_owned(),
            git_dir: place.git_dir.as_deref().map(escape_path),
            first_seen: place.first_seen,
        }
    }

    fn into_place(self) -> Option<RootPlace> {
        Some(RootPlace {
            path: parse_path(&self.path).ok()?,
            root: (self.device, self.inode),
            parent: (self.parent_device, self.parent_inode),
            git_dir: self.git_dir.as_deref().map(parse_path).transpose().ok()?,
            first_seen: self.first_seen,
        })
    }
}

fn parse_id(text: Option<String>) -> Result<Option<ContentId>, &'static str> {
    text.map(|text| ContentId::parse(&text).ok_or("a content id is not one")).transpose()
}

fn escape_path(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes())
}

fn parse_path(text: &str) -> Result<PathBuf, &'static str> {
    let bytes = unescape(text).ok_or("a path is not escaped as it should be")?;
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.is_absolute() { Ok(path) } else { Err("a path is not absolute") }
}

/// The agents by their names on disk; never renamed.
const AGENTS: [(Agent, &str); 19] = [
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
];

pub(super) fn agent_name(agent: Agent) -> &'static str {
    let named = AGENTS.iter().find(|(known, _)| *known == agent);
    named.expect("every agent is in the table").1
}

pub(super) fn agent_named(name: &str) -> Option<Agent> {
    AGENTS.iter().find(|(_, known)| *known == name).map(|(agent, _)| *agent)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn sample() -> Record {
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
            cause: Cause {
                by: Some(by),
                summary: Some("x".to_owned()),
                ..Cause::before_restore(id)
            },
            top: Some(ContentId::new(&[9; 20])),
            files: 2,
            partial: true,
            skipped: vec![Skipped {
                path: b"a\xff".to_vec(),
                reason: SkipReason::TooLarge,
                size: 1,
            }],
            outside: vec![odd],
            head: Some(Head { branch: None, commit: Some("c".to_owned()), in_progress: None }),
            staged: Some(4),
        };
        let besides = Some(ContentId::new(&[8; 32]));
        let tree = Some(ContentId::new(&[6; 20]));
        let packs = vec![b".git/objects/pack/pack-1 ".to_vec()];
        let vault = Some(Vault { state: ContentId::new(&[7; 32]), packs });
        Record { checkpoint, keeper: Keeper::Git, besides, outside: None, tree, vault }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = to_json(&RecordFile::of(&sample())).unwrap();
        let read = from_json::<RecordFile>("x", &bytes).unwrap().into_record();
        assert_eq!(read, Ok(sample()));
    }

    #[test]
    fn a_newer_or_tampered_record_is_an_error() {
        let text = String::from_utf8(to_json(&RecordFile::of(&sample())).unwrap()).unwrap();
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
        let text = String::from_utf8(to_json(&RecordFile::of(&sample())).unwrap()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(migrated("x", value.clone(), VERSION).unwrap(), value);
        // There was none before the first: such a number is damage, not an old friend.
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
