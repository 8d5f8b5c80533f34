//! What was ignored at a checkpoint: a file that was ignored then is nobody's to delete now, even
//! if the ignore file has been changed meanwhile.

use std::collections::HashMap;

use super::{
    rules::{IGNORE_FILE, Rules},
    sources::{Sources, UserDirs},
};
use crate::model::{RelPath, Root};

/// The rules of a root at a checkpoint.
pub struct PastRules<'a> {
    top: Rules,
    /// Reads a file of the checkpoint; `None` if it has none there.
    read: &'a mut dyn FnMut(&RelPath) -> Option<Vec<u8>>,
    /// The rules inside each directory met so far.
    inside: HashMap<RelPath, Rules>,
}

impl<'a> PastRules<'a> {
    /// Takes git's configuration as it is now, and ignore files as `read` has them.
    pub fn new(
        root: &Root,
        user: &UserDirs,
        read: &'a mut dyn FnMut(&RelPath) -> Option<Vec<u8>>,
    ) -> Self {
        let said = Sources::of(root, user).read();
        let top = Rules::new(&said.global, &[], &[], said.case);
        let file = RelPath::from_bytes(IGNORE_FILE).ok().and_then(|path| read(&path));
        let top = file.map_or(top.clone(), |bytes| top.inside(b"", &bytes));
        Self { top, read, inside: HashMap::new() }
    }

    /// Whether `path`, untracked, was ignored, by itself or with a directory it lies in.
    pub fn ignores(&mut self, path: &RelPath, is_dir: bool) -> bool {
        match path.parent() {
            Some(above) if self.ignores(&above, true) => true,
            Some(above) => self.within(&above).skips(path.as_bytes(), is_dir).is_some(),
            None => self.top.skips(path.as_bytes(), is_dir).is_some(),
        }
    }

    fn within(&mut self, dir: &RelPath) -> Rules {
        if let Some(rules) = self.inside.get(dir) {
            return rules.clone();
        }
        let outer = match dir.parent() {
            Some(above) => self.within(&above),
            None => self.top.clone(),
        };
        let file = [dir.as_bytes(), b"/", IGNORE_FILE].concat();
        let bytes = RelPath::from_bytes(&file).ok().and_then(|path| (self.read)(&path));
        let rules = bytes.map_or(outer.clone(), |bytes| outer.inside(dir.as_bytes(), &bytes));
        self.inside.insert(dir.clone(), rules.clone());
        rules
    }
}
