//! The hook's log: one line for each event, limited in size. It is the only record when a hook
//! fails.

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    fs::{create_private_dirs, hand_over, open_options, read_small},
    state::StateDir,
};

/// Some 5,000 lines; one older file of that size is kept beside it.
const SIZE_MAX_BYTES: u64 = 1 << 20;
/// A longer text is cut, because a message can quote a whole payload.
const TEXT_CHARS_MAX: usize = 400;

/// How far back trouble is worth a word.
pub const TROUBLE_DAYS: i64 = 7;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    /// When.
    pub at: DateTime<Utc>,
    /// The kind of line.
    pub kind: LineKind,
    /// The agent whose hook wrote it, as in `--agent NAME`; `None` for other lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The directory, if known.
    pub root: Option<String>,
    /// What happened.
    pub text: String,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// A checkpoint was taken.
    Deed,
    /// Something went wrong.
    Trouble,
    /// A payload could not be read. The project is held as a whole then.
    Unread,
    /// Nothing could be held for a call that can change files.
    Unheld,
}

/// Appends a line that is of no agent. If the journal cannot be written, there is no other place to
/// report it.
pub fn write(state: &StateDir, at: DateTime<Utc>, kind: LineKind, root: Option<&Path>, text: &str) {
    let root = root.map(|root| root.to_string_lossy().into_owned());
    append(state, JournalLine { at, kind, agent: None, root, text: text.to_owned() });
}

/// Appends a line, its text cut to a sensible length. Failure is ignored, as in [`write()`].
pub fn append(state: &StateDir, line: JournalLine) {
    let path = state.journal();
    if create_private_dirs(state.dir()).is_err() {
        return;
    }
    if fs::metadata(&path).is_ok_and(|found| found.len() > SIZE_MAX_BYTES) {
        // A process that loses this race appends to either file; both are read.
        let _moved = fs::rename(&path, path.with_extension("old"));
    }
    let text = line.text.chars().take(TEXT_CHARS_MAX).collect();
    let Ok(mut bytes) = serde_json::to_vec(&JournalLine { text, ..line }) else { return };
    bytes.push(b'\n');
    let file = open_options().append(true).create(true).mode(0o600).open(&path);
    if let Ok(mut file) = file {
        hand_over(&file, &path);
        let _written = file.write_all(&bytes);
    }
}

/// The trouble that is still worth a word, the oldest first.
pub fn recent_trouble(state: &StateDir, now: DateTime<Utc>) -> Vec<JournalLine> {
    let since = now - TimeDelta::days(TROUBLE_DAYS);
    let mut lines = read(state);
    lines.retain(|line| line.at > since && line.kind != LineKind::Deed);
    lines
}

/// Every readable line, oldest first.
fn read(state: &StateDir) -> Vec<JournalLine> {
    let path = state.journal();
    // A line may have been added after the size was checked.
    let bytes = |path: &PathBuf| read_small(path, 2 * SIZE_MAX_BYTES).ok().flatten();
    let lines = |bytes: Vec<u8>| -> Vec<JournalLine> {
        let lines = bytes.split(|&byte| byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    };
    [path.with_extension("old"), path].iter().filter_map(bytes).flat_map(lines).collect()
}
