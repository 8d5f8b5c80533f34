//! An in-memory store: the contract and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::File,
    io::{Cursor, Read},
    sync::{Arc, Mutex},
    time::Instant,
};

use beforehand::{
    error::{Error, Result},
    model::{
        Checkpoint, CheckpointId, Completeness, Content, ContentId, Directory, Entry, Kind, Root,
        ScanEntry, Skipped, Storage, Tree,
    },
    scan::{Scan, VictimPath},
    store::{
        Damage, Draft, GitStore, Saved, Store, Survey,
        objects::Taken,
        reading::{self, Sink},
    },
};
use sha2::{Digest, Sha256};

/// What several [`MemoryStore`]s share, as several processes share a disk.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    checkpoints: Vec<(Checkpoint, Tree)>,
    objects: HashMap<ContentId, Vec<u8>>,
    directories: HashMap<ContentId, Directory>,
    sequence: u64,
}

impl Memory {
    pub(crate) fn object_count(&self) -> usize {
        self.objects.len() + self.directories.len()
    }
}

/// Keeps checkpoints in memory.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    pub(crate) root: Root,
    pub(crate) memory: Arc<Mutex<Memory>>,
}

/// What was read and named, before any of it is stored.
#[derive(Default)]
struct Named {
    objects: HashMap<ContentId, Vec<u8>>,
    tree: Tree,
}

impl Sink for Named {
    fn file(&mut self, mut file: &File, _: u64) -> Result<Taken> {
        let mut bytes = Vec::new();
        let size = match file.read_to_end(&mut bytes) {
            Ok(size) => size as u64,
            Err(err) => return Ok(Err(err)),
        };
        Ok(Ok((self.link(&bytes)?, size)))
    }

    fn link(&mut self, text: &[u8]) -> Result<ContentId> {
        let id = ContentId::new(&Sha256::digest(text));
        self.objects.insert(id, text.to_vec());
        Ok(id)
    }
}

impl Named {
    fn of(
        root: &Root,
        draft: &mut Scan,
        deadline: Option<Instant>,
    ) -> Result<(Self, Vec<Skipped>)> {
        let mut read = Self::default();
        let changing =
            reading::read_all(root.path(), draft, deadline, std::slice::from_mut(&mut read))?;
        let paths: Vec<_> = draft.fresh.keys().rev().cloned().collect();
        for path in paths {
            let directory = entries(&draft.fresh[&path].found);
            let id = ContentId::new(&Sha256::digest(format!("{directory:?}")));
            read.tree.unsaved.insert(id, directory);
            draft.fresh.get_mut(&path).unwrap().id = Some(id);
            if let Some((parent, name)) = path.split() {
                let above = &mut draft.fresh.get_mut(&parent).unwrap().found;
                above.iter_mut().find(|found| found.name == name).unwrap().content = Some(id);
            }
        }
        read.tree.top = draft.top();
        for victim in draft.victims.iter().filter(|victim| victim.found.is_held()) {
            let entry = entry_of(&victim.found, Storage::Files);
            match victim.path.clone() {
                VictimPath::Below(path) => {
                    read.tree.listed.insert(path.clone());
                    read.tree.overlay.insert(path, entry);
                }
                VictimPath::Outside(path) => drop(read.tree.outside.insert(path, entry)),
            }
        }
        Ok((read, changing))
    }
}

fn entries(found: &[ScanEntry]) -> Directory {
    let held = found.iter().filter(|found| found.is_held());
    held.map(|found| (found.name.clone(), entry_of(found, Storage::Git))).collect()
}

fn entry_of(found: &ScanEntry, place: Storage) -> Entry {
    Entry {
        kind: found.kind().unwrap(),
        permissions: found.stamp.permissions(),
        content: found.content.map(|id| Content { id, place }),
        device: 0,
    }
}

impl MemoryStore {
    fn with<T>(&self, then: impl FnOnce(&mut Memory) -> T) -> T {
        then(&mut self.memory.lock().unwrap())
    }
}

impl Store for MemoryStore {
    fn root(&self) -> &Root {
        &self.root
    }

    fn git(&self) -> Option<&GitStore> {
        None
    }

    fn anchor(&self) -> Option<ContentId> {
        None
    }

    fn save(&self, mut draft: Draft) -> Result<Saved> {
        let (Named { objects, mut tree }, changing) =
            Named::of(&self.root, &mut draft.scan, draft.deadline)?;
        self.with(|memory| {
            let newest = memory.checkpoints.last().map(|(newest, _)| newest);
            if let Some(first) = draft.gives_way(newest) {
                return Ok(first);
            }
            let newest = memory.checkpoints.last().filter(|_| !draft.always);
            if let Some((newest, held)) = newest
                && (held.top, &held.overlay) == (tree.top, &tree.overlay)
                && held.outside == tree.outside
            {
                return Ok(Saved { checkpoint: newest.clone(), is_new: false });
            }
            memory.sequence += 1;
            let checkpoint = Checkpoint {
                id: CheckpointId::from_bits(memory.sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                sequence: memory.sequence,
                taken_at: draft.taken_at,
                reading_ns: None,
                cause: draft.cause,
                top: tree.top,
                files: draft.scan.file_count(),
                completeness: Completeness::of_record(draft.scan.partial),
                skipped: reading::skipped(&draft.scan, changing),
                outside: tree.outside.keys().cloned().collect(),
                head: None,
                staged: None,
            };
            memory.objects.extend(objects);
            memory.directories.extend(std::mem::take(&mut tree.unsaved));
            memory.checkpoints.push((checkpoint.clone(), tree));
            Ok(Saved { checkpoint, is_new: true })
        })
    }

    fn survey(&self) -> Result<Survey> {
        self.with(|memory| {
            let checkpoints = memory.checkpoints.iter().rev();
            let checkpoints = checkpoints.map(|(checkpoint, _)| checkpoint.clone()).collect();
            Ok(Survey { checkpoints, ..Survey::default() })
        })
    }

    fn tree(&self, id: CheckpointId) -> Result<Tree> {
        self.with(|memory| {
            let held = memory.checkpoints.iter().find(|(checkpoint, _)| checkpoint.id == id);
            held.map(|(_, tree)| tree.clone())
                .ok_or_else(|| Error::NoSuchCheckpoint { given: id.to_string() })
        })
    }

    fn identify(&self, scan: &mut Scan) -> Result<Tree> {
        Ok(Named::of(&self.root, scan, None)?.0.tree)
    }

    fn directory(&self, id: &ContentId) -> Result<Directory> {
        let missing = || Error::damaged(id.to_string(), "it is missing");
        self.with(|memory| memory.directories.get(id).cloned().ok_or_else(missing))
    }

    fn has(&self, content: &Content) -> bool {
        self.with(|memory| memory.objects.contains_key(&content.id))
    }

    fn open(&self, content: &Content) -> Result<Box<dyn Read>> {
        let missing = || Error::damaged(content.id.to_string(), "it is missing");
        let bytes = self.with(|memory| memory.objects.get(&content.id).cloned());
        Ok(Box::new(Cursor::new(bytes.ok_or_else(missing)?)))
    }

    fn put_beside(&mut self, contents: BTreeMap<ContentId, Vec<u8>>) {
        self.with(|memory| memory.objects.extend(contents));
    }

    fn remove(&self, ids: &[CheckpointId]) -> Result<u64> {
        self.with(|memory| {
            memory.checkpoints.retain(|(checkpoint, _)| !ids.contains(&checkpoint.id));
            let mut needed = BTreeSet::new();
            for (_, tree) in &memory.checkpoints {
                let listed = tree.overlay.values().chain(tree.outside.values());
                needed.extend(listed.filter_map(|entry| entry.content).map(|held| held.id));
                let mut unread: Vec<_> = tree.top.into_iter().collect();
                while let Some(id) = unread.pop() {
                    needed.insert(id);
                    for entry in memory.directories[&id].values() {
                        needed.extend(entry.content.map(|held| held.id));
                        if entry.kind == Kind::Directory {
                            unread.extend(entry.content.map(|held| held.id));
                        }
                    }
                }
            }
            let size = |memory: &Memory| memory.objects.values().map(Vec::len).sum::<usize>();
            let before = size(memory);
            memory.objects.retain(|id, _| needed.contains(id));
            memory.directories.retain(|id, _| needed.contains(id));
            Ok((before - size(memory)) as u64)
        })
    }

    fn forget(&self, ids: &[CheckpointId]) -> Result<usize> {
        self.with(|memory| {
            let before = memory.checkpoints.len();
            memory.checkpoints.retain(|(checkpoint, _)| !ids.contains(&checkpoint.id));
            Ok(before - memory.checkpoints.len())
        })
    }

    fn is_untidy(&self) -> bool {
        false
    }

    fn check(&self, _: bool) -> Result<Vec<Damage>> {
        Ok(Vec::new())
    }

    fn repair(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn by_hand(&self, _: CheckpointId) -> String {
        "nowhere but here".to_owned()
    }
}
