//! What of a root may leave it in a commit or a patch: not what is private, not what `git add` would leave
//! out, and not what git would store as something other than what is on the disk.

use std::{collections::BTreeSet, path::PathBuf};

use super::{
    dir_rules::DirRules,
    rule_sources::{RuleSources, UserDirs},
    rules::{IGNORE_FILE, Rules, read_ignore_file},
};
use crate::{
    fs::{Dir, c_name, read_small, stat_path},
    model::{RelPath, Root, RootKind, Settings},
};

/// Larger than any handwritten attributes file.
const ATTRIBUTES_MAX_BYTES: u64 = 1 << 20;
const ATTRIBUTES_FILE: &[u8] = b".gitattributes";
/// With these, what git stores is not what is on the disk.
const CONVERTS: [&[u8]; 2] = [b"filter", b"working-tree-encoding"];

/// Why a file stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotExported {
    /// The setting `private` names it.
    Private,
    /// It is ignored, or left out by the settings, and git does not track it.
    Ignored,
    /// It is in a repository of its own, or git's own.
    OtherRepository,
    /// Attributes say that git stores it in another form.
    Converted,
}

impl NotExported {
    /// In words, as in "left out: it is private".
    pub fn words(self) -> &'static str {
        match self {
            Self::Private => "it is private",
            Self::Ignored => "it is ignored",
            Self::OtherRepository => "it is in another repository",
            Self::Converted => "a filter converts it for git",
        }
    }

    /// A word for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Ignored => "ignored",
            Self::OtherRepository => "other-repository",
            Self::Converted => "converted",
        }
    }
}

/// The rules of a root as they are now, also for files that are gone.
pub struct ExportRules {
    root: Root,
    whole: DirRules,
    /// Attributes as if they were ignore rules: a file that is "ignored" by them is converted.
    attributes: Rules,
    /// Directories in which there was a repository of its own.
    nested: BTreeSet<RelPath>,
    hint: usize,
}

impl ExportRules {
    /// Reads the rules that apply everywhere in a root. In the `nested` directories there was a repository of its own.
    pub fn of(
        root: &Root,
        user: &UserDirs,
        settings: &Settings,
        nested: BTreeSet<RelPath>,
    ) -> Self {
        let sources = RuleSources::of(root, user);
        let whole = DirRules::read(root, &sources, settings);
        let read = |path: PathBuf| read_small(&path, ATTRIBUTES_MAX_BYTES).ok().flatten();
        let own = match root.kind() {
            RootKind::Git { common_dir, .. } => read(common_dir.join("info/attributes")),
            RootKind::Plain { .. } => None,
        };
        let users = sources.user_attributes().and_then(read);
        // The weakest first: those of the repository itself come before the work tree's here, where git has
        // them after. A file that either converts is converted.
        let global: Vec<Vec<u8>> = users.iter().chain(&own).map(|text| as_rules(text)).collect();
        let attributes = Rules::new(&global, &[], &[], sources.read().case);
        Self { root: root.clone(), whole, attributes, nested, hint: 0 }
    }

    /// Why a file is not exported; `None` if it is.
    pub fn keeps(&mut self, path: &RelPath) -> Option<NotExported> {
        let bytes = path.as_bytes();
        if self.whole.rules.is_private(bytes) {
            return Some(NotExported::Private);
        }
        if path.names().any(|name| name.eq_ignore_ascii_case(b".git")) {
            return Some(NotExported::OtherRepository);
        }
        let is_plain = matches!(self.root.kind(), RootKind::Plain { .. });
        let mut rules = self.inside(&self.whole.rules, None, IGNORE_FILE, <[u8]>::to_vec);
        let mut attributes = self.inside(&self.attributes, None, ATTRIBUTES_FILE, as_rules);
        let mut is_ignored = false;
        for dir in above(path) {
            if self.nested.contains(&dir) || stat_path(&self.root.join(&dir).join(".git")).is_ok() {
                return Some(NotExported::OtherRepository);
            }
            is_ignored |= rules.skips(dir.as_bytes(), true).is_some();
            rules = self.inside(&rules, Some(&dir), IGNORE_FILE, <[u8]>::to_vec);
            attributes = self.inside(&attributes, Some(&dir), ATTRIBUTES_FILE, as_rules);
        }
        is_ignored |= rules.skips(bytes, false).is_some();
        if is_ignored && !self.whole.tracked.has(bytes, &mut self.hint) {
            return Some(NotExported::Ignored);
        }
        let is_converted = !is_plain && attributes.skips(bytes, false).is_some();
        is_converted.then_some(NotExported::Converted)
    }

    /// The rules in a directory, with those of a file in it.
    fn inside(
        &self,
        rules: &Rules,
        dir: Option<&RelPath>,
        file: &[u8],
        read: impl Fn(&[u8]) -> Vec<u8>,
    ) -> Rules {
        let place = dir.map_or_else(|| self.root.path().to_owned(), |dir| self.root.join(dir));
        let (Ok(open), Ok(name)) = (Dir::open(&place), c_name(file)) else { return rules.clone() };
        let text = read(&read_ignore_file(&open, &name));
        rules.inside(dir.map_or(b"", RelPath::as_bytes), &text)
    }
}

/// The directories above a path, the outermost first.
fn above(path: &RelPath) -> Vec<RelPath> {
    let mut dirs: Vec<RelPath> = std::iter::successors(path.parent(), RelPath::parent).collect();
    dirs.reverse();
    dirs
}

/// Attributes as ignore rules: a pattern with a filter is ignored, and one that takes it away is not.
fn as_rules(attributes: &[u8]) -> Vec<u8> {
    let mut macros: Vec<&[u8]> = Vec::new();
    let mut rules = Vec::new();
    for line in attributes.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        let Some((pattern, words)) = pattern_of(line) else { continue };
        let words: Vec<&[u8]> =
            words.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let converts = |word: &&[u8]| {
            let key = word.split(|byte| *byte == b'=').next().unwrap_or_default();
            CONVERTS.contains(&key) || macros.contains(word)
        };
        let clears = |word: &&[u8]| {
            word.strip_prefix(b"-")
                .or(word.strip_prefix(b"!"))
                .is_some_and(|key| CONVERTS.contains(&key) || macros.contains(&key))
        };
        if let Some(name) = pattern.strip_prefix(b"[attr]") {
            if words.iter().any(converts) {
                macros.push(name);
            }
        } else if words.iter().any(converts) {
            rules.extend([pattern, b"\n"].concat());
        } else if words.iter().any(clears) {
            rules.extend([b"!", pattern, b"\n"].concat());
        }
    }
    rules
}

/// The pattern of a line of attributes, and the rest; `None` for a comment.
fn pattern_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    match line.first()? {
        b'#' | b'!' => None,
        b'"' => {
            let end = line.iter().skip(1).position(|byte| *byte == b'"')? + 1;
            Some((&line[1..end], &line[end + 1..]))
        }
        _ => {
            let end = line.iter().position(u8::is_ascii_whitespace)?;
            Some((&line[..end], &line[end..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_convert_are_read_as_rules() {
        let text = b"# filter\n*.bin filter=lfs diff=lfs -text\n*.txt text\nx.bin -filter\n\
                     [attr]crypt filter=git-crypt\nsecrets/** crypt\n\"a b\" working-tree-encoding=UTF-16\n\
                     secrets/open !crypt\n";
        let expected = b"*.bin\n!x.bin\nsecrets/**\na b\n!secrets/open\n";
        assert_eq!(String::from_utf8_lossy(&as_rules(text)), String::from_utf8_lossy(expected));
    }
}
