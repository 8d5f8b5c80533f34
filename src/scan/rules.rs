//! Decides whether an untracked path is left out, from ignore files and our settings.
//!
//! The walk itself reads ignore files when it lists their directory, so a pipe or a huge file of
//! that name is never opened. Patterns are matched by git's rules.

use std::{ffi::CStr, io::Read, sync::Arc};

use gix::{
    bstr::ByteSlice,
    glob::pattern::Case,
    ignore::{Search, search::Ignore},
};

use crate::{fs::Dir, model::SkipReason};

/// The name of an ignore file.
pub(super) const IGNORE_FILE: &[u8] = b".gitignore";
/// Larger than any handwritten ignore file (the kernel's is 3 KiB); a larger one is not read.
const IGNORE_FILE_MAX_BYTES: u64 = 4 << 20;

/// The rules that apply in one directory.
#[derive(Clone)]
pub(super) struct Rules {
    settings: Arc<RootRules>,
    level: Option<Arc<RuleLevel>>,
    /// Whether the root has no ignore file; regenerable directories are then left out without one.
    pub(super) is_bare: bool,
}

/// Rules that apply everywhere in a root.
struct RootRules {
    exclude: Search,
    private: Search,
    case: Case,
}

/// Rules that start at one directory.
struct RuleLevel {
    above: Option<Arc<Self>>,
    /// How many leading bytes of a path below the root these patterns do not see.
    skip: usize,
    search: Search,
}

impl Rules {
    /// Creates the rules of a root: `global` are contents of ignore files that apply everywhere,
    /// the weakest first; `exclude` and `private` are the user's patterns.
    pub(super) fn new(
        global: &[Vec<u8>],
        exclude: &[String],
        private: &[String],
        case: Case,
    ) -> Self {
        let settings = RootRules {
            exclude: search(&[exclude.join("\n").as_bytes()]),
            private: search(&[private.join("\n").as_bytes()]),
            case,
        };
        let level = level(None, 0, &global.iter().map(Vec::as_slice).collect::<Vec<_>>());
        Self { settings: Arc::new(settings), level, is_bare: false }
    }

    /// Notes whether the root has no ignore file.
    pub(super) fn with_bare(mut self, is_bare: bool) -> Self {
        self.is_bare = is_bare;
        self
    }

    /// The rules of a repository nested at `path`; those of the outer repository do not apply in
    /// it.
    pub(super) fn nested(&self, path: &[u8], exclude_file: Option<&[u8]>) -> Self {
        let level = exclude_file.and_then(|bytes| level(None, below(path), &[bytes]));
        Self { settings: Arc::clone(&self.settings), level, is_bare: self.is_bare }
    }

    /// The rules inside the directory at `path` with this ignore file.
    pub(super) fn inside(&self, path: &[u8], ignore_file: &[u8]) -> Self {
        let level = level(self.level.clone(), below(path), &[ignore_file]);
        Self { level: level.or_else(|| self.level.clone()), ..self.clone() }
    }

    /// Why an untracked path is left out; `None` if it is not.
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

/// The length of the prefix that paths below the directory at `path` share.
fn below(path: &[u8]) -> usize {
    if path.is_empty() { 0 } else { path.len() + 1 }
}

fn level(above: Option<Arc<RuleLevel>>, skip: usize, files: &[&[u8]]) -> Option<Arc<RuleLevel>> {
    let search = search(files);
    let is_empty = search.patterns.iter().all(|list| list.patterns.is_empty());
    if is_empty { above } else { Some(Arc::new(RuleLevel { above, skip, search })) }
}

fn search(files: &[&[u8]]) -> Search {
    let mut search = Search::default();
    for bytes in files {
        // It can fail only because of a bad source path, and there is none here.
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

/// Reads the ignore file `name` in `dir`; empty if it is not a small regular file.
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
