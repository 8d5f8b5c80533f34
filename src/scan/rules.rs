//! What the ignore files of a root, and our own settings, say about an untracked path.
//!
//! Ignore files are read by the walk itself, from the listing of a directory, so that a pipe or a
//! gigabyte under that name is never opened. Patterns are git's, matched by git's rules.

use std::{ffi::CStr, io::Read, sync::Arc};

use gix::{
    bstr::ByteSlice,
    glob::pattern::Case,
    ignore::{Search, search::Ignore},
};

use crate::{fs::Dir, model::SkipReason};

/// The names an ignore file goes by. Only the first is git's own.
pub(super) const IGNORE_FILE: &[u8] = b".gitignore";
/// Larger than any ignore file a person wrote (the kernel's is 3 KiB); beyond it, no rule is read.
const IGNORE_FILE_MAX_BYTES: u64 = 4 << 20;

/// The rules that hold in one directory.
#[derive(Clone)]
pub(super) struct Rules {
    settings: Arc<Settings>,
    level: Option<Arc<Level>>,
    /// Whether the root has no ignore file, so that what is made again goes without one.
    pub(super) is_bare: bool,
}

/// Rules that are the same everywhere in a root.
struct Settings {
    exclude: Search,
    private: Search,
    case: Case,
}

/// The rules that begin at one directory.
struct Level {
    above: Option<Arc<Self>>,
    /// How many bytes of a path below the root come before the part these patterns see.
    skip: usize,
    search: Search,
}

impl Rules {
    /// Makes the rules of a root: `global` are whole ignore files that hold everywhere, the
    /// weakest first; `exclude` and `private` are the user's patterns.
    pub(super) fn new(
        global: &[Vec<u8>],
        exclude: &[String],
        private: &[String],
        case: Case,
    ) -> Self {
        let settings = Settings {
            exclude: search(&[exclude.join("\n").as_bytes()]),
            private: search(&[private.join("\n").as_bytes()]),
            case,
        };
        let level = level(None, 0, &global.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Self { settings: Arc::new(settings), level, is_bare: false }
    }

    /// Says whether the root has an ignore file.
    pub(super) fn with_bare(mut self, is_bare: bool) -> Self {
        self.is_bare = is_bare;
        self
    }

    /// The rules of a repository nested at `path`, where those of the outer one do not count.
    pub(super) fn nested(&self, path: &[u8], exclude_file: Option<&[u8]>) -> Self {
        let level = exclude_file.and_then(|bytes| level(None, below(path), &[bytes]));
        Self { settings: Arc::clone(&self.settings), level, is_bare: self.is_bare }
    }

    /// The rules inside the directory at `path`, whose ignore file has these bytes.
    pub(super) fn inside(&self, path: &[u8], ignore_file: &[u8]) -> Self {
        let level = level(self.level.clone(), below(path), &[ignore_file]);
        Self { level: level.or_else(|| self.level.clone()), ..self.clone() }
    }

    /// Whether, and why, an untracked path is left out.
    pub(super) fn skips(&self, path: &[u8], is_dir: bool) -> Option<SkipReason> {
        let settings = &*self.settings;
        if matches(&settings.exclude, path, is_dir, settings.case) == Some(true) {
            return Some(SkipReason::Excluded);
        }
        let mut level = self.level.as_deref();
        while let Some(here) = level {
            match path
                .get(here.skip..)
                .and_then(|path| matches(&here.search, path, is_dir, settings.case))
            {
                Some(true) => return Some(SkipReason::Ignored),
                Some(false) => return None,
                None => level = here.above.as_deref(),
            }
        }
        None
    }

    /// Whether the user's settings call the file at `path` private.
    pub(super) fn is_private(&self, path: &[u8]) -> bool {
        matches(&self.settings.private, path, false, self.settings.case) == Some(true)
    }
}

/// How many bytes come before what lies below the directory at `path`.
fn below(path: &[u8]) -> usize {
    if path.is_empty() { 0 } else { path.len() + 1 }
}

fn level(above: Option<Arc<Level>>, skip: usize, files: &[&[u8]]) -> Option<Arc<Level>> {
    let search = search(files);
    let is_empty = search.patterns.iter().all(|list| list.patterns.is_empty());
    if is_empty { above } else { Some(Arc::new(Level { above, skip, search })) }
}

fn search(files: &[&[u8]]) -> Search {
    let mut search = Search::default();
    for bytes in files {
        // It fails only on a source path that is no path, and there is none here.
        let _added = search.add_patterns_buffer(bytes, "", None, Ignore::default());
    }
    search
}

/// Whether the last pattern that matches says "ignore" (`true`) or "do not" (`false`).
fn matches(search: &Search, path: &[u8], is_dir: bool, case: Case) -> Option<bool> {
    if search.patterns.is_empty() {
        return None;
    }
    let found = search.pattern_matching_relative_path(path.as_bstr(), Some(is_dir), case)?;
    Some(!found.pattern.is_negative())
}

/// Reads the ignore file `name` in `dir`; empty if it is none that can be believed.
pub(super) fn read_ignore_file(dir: &Dir, name: &CStr) -> Vec<u8> {
    let mut bytes = Vec::new();
    match dir.open_file(name) {
        Ok((file, stamp)) if stamp.size <= IGNORE_FILE_MAX_BYTES => {
            match file.take(IGNORE_FILE_MAX_BYTES).read_to_end(&mut bytes) {
                Ok(_) => bytes,
                Err(_) => Vec::new(),
            }
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(global: &str) -> Rules {
        Rules::new(&[global.into()], &["*.iso".to_owned()], &[".env*".to_owned()], Case::Sensitive)
    }

    #[test]
    fn the_deepest_word_wins() {
        let top = rules("*.log\n").inside(b"", b"build/\n!keep.log\n");
        let deep = top.inside(b"a/b", b"/x\n!*.log\n");
        assert_eq!(top.skips(b"a.log", false), Some(SkipReason::Ignored));
        assert_eq!(top.skips(b"keep.log", false), None);
        assert_eq!(top.skips(b"a/build", true), Some(SkipReason::Ignored));
        assert_eq!(top.skips(b"a/build", false), None);
        assert_eq!(deep.skips(b"a/b/x", false), Some(SkipReason::Ignored));
        assert_eq!(deep.skips(b"a/b/c/x", false), None);
        assert_eq!(deep.skips(b"a/b/c/y.log", false), None);
    }

    #[test]
    fn a_nested_repository_has_rules_of_its_own() {
        let nested = rules("*.log\n").nested(b"sub", Some(b"*.tmp\n"));
        assert_eq!(nested.skips(b"sub/a.log", false), None);
        assert_eq!(nested.skips(b"sub/a.tmp", false), Some(SkipReason::Ignored));
    }

    #[test]
    fn settings_have_their_own_reasons() {
        let rules = rules("");
        assert_eq!(rules.skips(b"a/b.iso", false), Some(SkipReason::Excluded));
        assert_eq!(rules.skips(b"a/node_modules", true), None);
        assert!(rules.is_private(b"a/.env.local") && !rules.is_private(b"a/env"));
    }
}
