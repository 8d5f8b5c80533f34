//! Reading files while another program writes them.

use std::{fs::File, io::Read as _, path::PathBuf};

use beforehand::{
    error::Result,
    model::{ContentId, Root, RootKind, SkipReason},
    store::{
        objects::{Taken, id_of},
        reading::{self, Sink},
    },
};

use crate::support::{
    temp::{TempDir, write},
    walk::walk,
};

/// Reads a file, and changes it every time, as often as it is told to.
struct Meddler {
    path: PathBuf,
    changes: usize,
    looks: usize,
}

impl Sink for Meddler {
    fn file(&mut self, mut file: &File, _: u64) -> Result<Taken> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        self.looks += 1;
        if self.looks <= self.changes {
            write(&self.path, vec![b'x'; self.looks + 1]);
        }
        Ok(Ok((id_of(&bytes), bytes.len() as u64)))
    }

    fn link(&mut self, text: &[u8]) -> Result<ContentId> {
        Ok(id_of(text))
    }
}

#[test]
fn a_file_that_changes_is_read_again_and_at_last_held_as_it_was() {
    for (changes, looks, is_steady) in [(0, 1, true), (1, 2, true), (3, 4, true), (100, 4, false)] {
        let dir = TempDir::new();
        let root = Root::new(dir.path().to_owned(), RootKind::Plain { why: None });
        let path = dir.path().join("log");
        write(&path, "x");
        let mut scan = walk(&root);
        let mut meddler = Meddler { path, changes, looks: 0 };
        let changing =
            reading::read_all(root.path(), &mut scan, None, std::slice::from_mut(&mut meddler))
                .unwrap();
        assert_eq!(meddler.looks, looks, "{changes} changes");
        let found = &scan.fresh.values().next().unwrap().found[0];
        assert_eq!(found.content, Some(id_of(&vec![b'x'; looks])));
        assert_eq!((found.stamp.size, found.skipped), (looks as u64, None));
        assert!(found.marks.racy);
        let told = reading::skipped(&scan, changing);
        let reasons: Vec<_> = told.iter().map(|skipped| skipped.reason).collect();
        let expected: &[_] = if is_steady { &[] } else { &[SkipReason::KeptChanging] };
        assert_eq!(reasons, expected);
    }
}
