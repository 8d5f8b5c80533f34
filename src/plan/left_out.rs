//! What a scan left out, found by path: there can be millions of each.

use std::collections::BTreeMap;

use crate::model::{RelPath, SkipReason, Skipped};

/// A list of what was left out, by path.
#[derive(Clone, Debug, Default)]
pub struct ByPath<'a>(BTreeMap<&'a [u8], &'a Skipped>);

impl<'a> ByPath<'a> {
    /// Of the whole list.
    pub fn of(all: &'a [Skipped]) -> Self {
        Self(all.iter().map(|skipped| (skipped.path.as_slice(), skipped)).collect())
    }

    /// What was left out at `path`, or at the outermost directory that it lies in.
    pub fn covering(&self, path: &RelPath) -> Option<&'a Skipped> {
        let bytes = path.as_bytes();
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let dirs = slashes.map(|(at, _)| &bytes[..at]);
        dirs.chain([bytes]).find_map(|dir| self.0.get(dir)).copied()
    }

    /// Why nothing can be said of `path`. A file that kept changing was seen, and can be compared.
    pub(super) fn over(&self, path: &RelPath) -> Option<SkipReason> {
        let reason = self.covering(path)?.reason;
        (reason != SkipReason::KeptChanging).then_some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_covers_itself_and_what_lies_in_it() {
        let skipped = |path: &str| Skipped {
            path: path.as_bytes().to_vec(),
            reason: SkipReason::Unreadable,
            size: 0,
        };
        let all = ["a/b", "c", "c/d/e"].map(skipped);
        let by_path = ByPath::of(&all);
        let covering = |path: &str| {
            let path = RelPath::from_bytes(path.as_bytes()).unwrap();
            by_path.covering(&path).map(|it| String::from_utf8(it.path.clone()).unwrap())
        };
        let found = ["a", "a/b", "a/b/x/y", "a/bc", "a/b-", "c/d", "c/d/e", "d"].map(covering);
        let found = found.each_ref().map(Option::as_deref);
        let expected = [None, Some("a/b"), Some("a/b"), None, None, Some("c"), Some("c"), None];
        assert_eq!(found, expected);
    }
}
