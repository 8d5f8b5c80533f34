//! A store, and beside it the bytes of files that no checkpoint holds: those that a step of a turn found.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read},
    rc::Rc,
};

use crate::{
    error::Result,
    model::{CheckpointId, Content, ContentId, Directory, Root, Storage, Tree},
    scan::Scan,
    store::{Damage, Draft, GitStore, Saved, Store, Survey},
};

/// The store of a project, with contents that are only in memory, by their SHA-256.
struct WithContents {
    store: Box<dyn Store>,
    contents: BTreeMap<ContentId, Rc<[u8]>>,
}

/// Puts contents beside a store, which are opened as those of its private part are.
pub(super) fn beside(
    store: Box<dyn Store>,
    contents: BTreeMap<ContentId, Vec<u8>>,
) -> Box<dyn Store> {
    let contents = contents.into_iter().map(|(id, bytes)| (id, bytes.into())).collect();
    Box::new(WithContents { store, contents })
}

impl WithContents {
    fn find(&self, content: &Content) -> Option<Rc<[u8]>> {
        self.contents.get(&content.id).filter(|_| content.place == Storage::Private).cloned()
    }
}

impl Store for WithContents {
    fn root(&self) -> &Root {
        self.store.root()
    }

    fn git(&self) -> Option<&GitStore> {
        self.store.git()
    }

    fn anchor(&self) -> Option<ContentId> {
        self.store.anchor()
    }

    fn save(&self, draft: Draft) -> Result<Saved> {
        self.store.save(draft)
    }

    fn survey(&self) -> Result<Survey> {
        self.store.survey()
    }

    fn tree(&self, id: CheckpointId) -> Result<Tree> {
        self.store.tree(id)
    }

    fn identify(&self, scan: &mut Scan) -> Result<Tree> {
        self.store.identify(scan)
    }

    fn directory(&self, id: &ContentId) -> Result<Directory> {
        self.store.directory(id)
    }

    fn has(&self, content: &Content) -> bool {
        self.find(content).is_some() || self.store.has(content)
    }

    fn open(&self, content: &Content) -> Result<Box<dyn Read>> {
        match self.find(content) {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes))),
            None => self.store.open(content),
        }
    }

    fn forget(&self, ids: &[CheckpointId]) -> Result<usize> {
        self.store.forget(ids)
    }

    fn remove(&self, ids: &[CheckpointId]) -> Result<u64> {
        self.store.remove(ids)
    }

    fn is_untidy(&self) -> bool {
        self.store.is_untidy()
    }

    fn check(&self, read_data: bool) -> Result<Vec<Damage>> {
        self.store.check(read_data)
    }

    fn repair(&self) -> Result<Vec<String>> {
        self.store.repair()
    }

    fn by_hand(&self, id: CheckpointId) -> String {
        self.store.by_hand(id)
    }
}
