//! Searches the contents of held files for a text. Reads equal contents once, reports how many binary and large
//! files it has skipped, and on Ctrl-C returns what it has found so far.

use std::{
    collections::HashMap,
    io::Read,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use memchr::memmem::Finder;

use super::versions::{FileVersion, Versions};
use crate::{
    commands::Project,
    model::{Content, Kind},
};

/// Larger files are passed over: what people write is smaller.
const FILE_MAX_BYTES: u64 = 32 << 20;
/// Where a NUL makes a file binary, as git has it.
const LOOKED_AT: usize = 8000;
/// More of a line is not shown.
const LINE_MAX_BYTES: usize = 300;

/// Where a text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextMatch {
    /// The line, from 1.
    pub(super) line: usize,
    /// What it says, not escaped, perhaps not all of it.
    pub(super) text: Vec<u8>,
}

/// What was passed over, and whether it was all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Contents with a NUL in them.
    pub(super) binary: u64,
    /// Contents that are too large.
    pub(super) large: u64,
    /// Contents that could not be read.
    pub(super) unread: u64,
    /// Whether the user ended it.
    pub(super) is_cut: bool,
}

/// Looks for a text.
pub(super) struct TextSearch<'a> {
    finder: Finder<'a>,
    interrupted: &'a AtomicBool,
    pub(super) passed: Passed,
}

impl<'a> TextSearch<'a> {
    /// Looks for `text` until `interrupted` says so.
    pub(super) fn new(text: &'a [u8], interrupted: &'a AtomicBool) -> Self {
        Self { finder: Finder::new(text), interrupted, passed: Passed::default() }
    }

    /// Keeps only versions that have the text; where each has it first.
    pub(super) fn narrow(&mut self, project: &Project, versions: &mut Versions) -> FirstMatches {
        let mut places = FirstMatches(HashMap::new());
        versions.of.retain(|_, versions| {
            versions.retain(|version| self.has(project, version, &mut places));
            !versions.is_empty()
        });
        places
    }

    fn has(&mut self, project: &Project, version: &FileVersion, places: &mut FirstMatches) -> bool {
        let Some(content) = version.content.filter(|_| version.kind == Kind::File) else {
            return false;
        };
        if let Some(known) = places.0.get(&content) {
            return known.is_some();
        }
        if self.interrupted.load(Relaxed) {
            self.passed.is_cut = true;
            return false;
        }
        let found = self.search(project, &content);
        let has = found.is_some();
        places.0.insert(content, found);
        has
    }

    fn search(&mut self, project: &Project, content: &Content) -> Option<TextMatch> {
        let mut bytes = Vec::new();
        let read = project.store.open(content).ok().map(|from| from.take(FILE_MAX_BYTES + 1));
        if read.and_then(|mut read| read.read_to_end(&mut bytes).ok()).is_none() {
            self.passed.unread += 1;
            return None;
        }
        if bytes.len() as u64 > FILE_MAX_BYTES {
            self.passed.large += 1;
            return None;
        }
        if bytes.iter().take(LOOKED_AT).any(|byte| *byte == 0) {
            self.passed.binary += 1;
            return None;
        }
        let at = self.finder.find(&bytes)?;
        let start = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |n| n + 1);
        let end =
            bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |n| at + n);
        // In a very long line, from where it stands.
        let start = if at - start > LINE_MAX_BYTES / 2 { at } else { start };
        Some(TextMatch {
            line: memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1,
            text: bytes[start..end.min(start + LINE_MAX_BYTES)].to_owned(),
        })
    }
}

/// Where contents have the text first; none where they do not.
pub(super) struct FirstMatches(HashMap<Content, Option<TextMatch>>);

impl FirstMatches {
    /// Where this version has it.
    pub(super) fn of(&self, version: &FileVersion) -> Option<&TextMatch> {
        self.0.get(&version.content?)?.as_ref()
    }
}
