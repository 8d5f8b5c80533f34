//! Checks the git store for damage: whether every checkpoint can be read, down to its objects or
//! their bytes.

use std::collections::{HashMap, HashSet};

use gix::{
    ObjectId,
    objs::{Kind as ObjectKind, tree::EntryKind},
};

use super::{
    GitStore, LoadedCheckpoint, modes,
    refs::{self, RefPair},
    repo::Repo,
    repository, tree,
};
use crate::{
    error::{Error, Result},
    model::CheckpointId,
    store::{
        Damage,
        record::{self, Record},
    },
};

/// Everything wrong with the checkpoints of a root, in all its private repositories.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub(super) fn check(store: &GitStore, read_data: bool) -> Result<Vec<Damage>> {
    let (mut found, mut repositories) = (Vec::new(), repository::CheckedObjects::default());
    let earlier = store.earlier()?;
    for (n, store) in std::iter::once(store).chain(&earlier).enumerate() {
        let repo = store.repo.refreshed();
        let mut known = store.loaded(&repo)?;
        let is_own = n == 0;
        // Other checkpoints in an earlier repository now belong to another root.
        known.retain(|(known, _)| is_own || known.record.is_some());
        let mut checker = Checker {
            store,
            repo: &repo,
            read_data,
            seen: HashMap::new(),
            whole: HashSet::new(),
            repositories,
            found,
        };
        for (known, pair) in &known {
            checker.checkpoint(known, pair);
        }
        if is_own {
            checker.anchor();
        }
        Checker { repositories, found, .. } = checker;
    }
    found.extend(repositories.lost());
    Ok(found)
}

/// Creates missing refs again if their trees exist, and drops refs to missing objects. Returns what
/// was done. The caller holds the root's lock.
///
/// # Errors
///
/// Fails if something cannot be read or written.
pub(super) fn repair(store: &GitStore) -> Result<Vec<String>> {
    let repo = store.repo.refreshed();
    let mut done = Vec::new();
    for id in store.refs.list(&repo)? {
        let is_lost = !record::path_of(&store.state, id).exists();
        if let Some(copy) = is_lost.then(|| store.copy_of(&repo, id)).and_then(Result::ok) {
            record::rewrite(&store.state, &copy)?;
            done.push(format!("made checkpoints/{id}.json again from its copy"));
        }
    }
    let recorded = record::ids(&store.state)?.into_iter().collect();
    for copy in store.copies_elsewhere(&recorded)? {
        record::rewrite(&store.state, &copy)?;
        done.push(format!("made checkpoints/{}.json again from its copy", copy.checkpoint.id));
    }
    done.extend(repository::repair_repository_refs(&store.state)?);
    done.extend(record::salvage_all(&store.state, |id| store.any_copy_of(id))?);
    for name in store.refs.dangling(&repo)? {
        refs::delete(&repo, std::slice::from_ref(&name))?;
        done.push(format!("dropped {name}, which led nowhere"));
    }
    let mut made = 0;
    for store in std::iter::once(store).chain(&store.earlier()?) {
        if store.private.dir().is_dir() {
            done.extend(store.private.mend()?);
        }
        made += store.repair_refs()?;
    }
    if made > 0 {
        done.push(format!("made {} again", crate::ui::count(made as u64, "ref")));
    }
    Ok(done)
}

struct Checker<'a> {
    store: &'a GitStore,
    repo: &'a Repo,
    read_data: bool,
    /// What was checked, and what is wrong with it. Shared objects are checked once.
    seen: HashMap<ObjectId, Option<String>>,
    /// Trees with nothing wrong in them or below them, and whether they were read as an index: that may have more.
    whole: HashSet<(ObjectId, bool)>,
    /// Repositories that were checked already.
    repositories: repository::CheckedObjects,
    found: Vec<Damage>,
}

impl Checker<'_> {
    fn checkpoint(&mut self, known: &LoadedCheckpoint, pair: &RefPair) {
        let id = known.checkpoint.id;
        self.record(id, known, pair);
        // A save killed just before it created the ref leaves a record and everything it names.
        let by_record = || self.store.tree_id(self.repo, id, known.record.as_deref());
        let top = known.tree.map_or_else(by_record, Ok);
        let top = match top {
            Ok(top) => top,
            Err(err) => {
                self.note(id, self.store.refs.name(id), bare(err));
                return;
            }
        };
        if known.tree.is_none() && !self.store.is_retracted(self.repo, id) {
            let why = "the ref is gone; the checkpoint restores all the same, and `--repair` makes \
                       the ref again";
            self.found.push(Damage::note(Some(id), self.store.refs.name(id), why.to_owned()));
        }
        let before = self.found.len();
        let read = known.parts.clone().map_or_else(|| tree::read_parts(self.repo, top), Ok);
        match read {
            Ok((parts, meta)) => {
                self.meta(id, meta, known.record.is_none());
                if let Some(files) = parts.files {
                    self.walk(id, files, false);
                }
                if let Some(index) = parts.index {
                    self.walk(id, index, true);
                }
                if let Some(why) = self.tree_damage(top) {
                    self.note(id, self.store.refs.name(id), why);
                }
                for blob in [Some(meta), parts.modes, parts.extra].into_iter().flatten() {
                    self.blob(id, &blob.to_string(), blob);
                }
                let parsed = parts.modes.map(|modes| {
                    self.repo.read(&modes, ObjectKind::Blob).and_then(|blob| modes::parse(&blob))
                });
                if let Some(Err(err)) = parsed {
                    self.note(id, "modes".to_owned(), err.to_string());
                }
            }
            Err(err) if self.found.len() == before => {
                self.note(id, self.store.refs.name(id), err.to_string());
            }
            Err(_) => (),
        }
    }

    /// Checks the anchor, which belongs to no checkpoint.
    fn anchor(&mut self) {
        let leads_nowhere = match self.store.refs.anchor(self.repo) {
            Ok(anchor) => anchor.is_some_and(|tree| !self.repo.has(&tree)),
            Err(_) => true,
        };
        if leads_nowhere {
            let why = "it leads nowhere; the next scan is slower for it".to_owned();
            self.found.push(Damage::note(None, self.store.refs.anchor_name(), why));
        }
    }

    /// Checks the public part of a record. While there is a record, only a full check reads it.
    fn meta(&mut self, id: CheckpointId, meta: ObjectId, is_needed: bool) {
        if !is_needed && !self.read_data {
            return;
        }
        let read = self.repo.read(&meta, ObjectKind::Blob);
        if let Err(err) = read.and_then(|json| Record::from_json("meta", &json)) {
            self.note(id, "meta".to_owned(), err.to_string());
        }
    }

    /// Checks the private part of a checkpoint.
    fn record(&mut self, id: CheckpointId, known: &LoadedCheckpoint, pair: &RefPair) {
        let what = format!("checkpoints/{id}.json");
        let Some(record) = &known.record else {
            let why = "the record and its copy are missing or cannot be read";
            self.note(id, what, why.to_owned());
            return;
        };
        if !record::path_of(&self.store.state, id).exists() {
            let why = "it is missing; its copy is used, and `--repair` makes it again";
            self.found.push(Damage::note(Some(id), what, why.to_owned()));
        }
        let private_name = self.store.refs.private_name(id);
        match pair.private {
            Some(Some(private)) => {
                if let Err(err) = tree::private_part(self.repo, private) {
                    self.note(id, private_name, err.to_string());
                }
            }
            Some(None) => self.note(id, private_name, "not the name of an object".to_owned()),
            None => {
                let why = "the ref is gone; `--repair` makes it again".to_owned();
                self.found.push(Damage::note(Some(id), private_name, why));
            }
        }
        for list in [record.overlay, record.outside].into_iter().flatten() {
            match super::read_listing(self.repo, &list) {
                Ok(listing) => {
                    for (path, line) in listing {
                        if let Some(content) = line.entry.content {
                            let path = String::from_utf8_lossy(&path).into_owned();
                            self.blob(id, &path, self.repo.object_id(&content.id));
                        }
                    }
                }
                Err(err) => self.note(id, list.to_string(), err.to_string()),
            }
        }
        let look = repository::RepositoryCheck {
            state: self.store.state.state(),
            root: self.store.root.path(),
            record,
            read_data: self.read_data,
        };
        let faults = look.check(&mut self.repositories);
        for (what, why) in faults {
            self.note(id, what, why);
        }
    }

    /// Checks every tree and blob below a tree, unless nothing was wrong with it in an earlier checkpoint.
    fn walk(&mut self, id: CheckpointId, top: ObjectId, is_index: bool) {
        let before = self.found.len();
        let mut dirs = vec![(String::new(), top)];
        let mut walked = Vec::new();
        while let Some((path, dir)) = dirs.pop() {
            if self.whole.contains(&(dir, false)) || is_index && self.whole.contains(&(dir, true)) {
                continue;
            }
            walked.push((dir, is_index));
            let is_new = !self.seen.contains_key(&dir);
            let entries = match self.entries(dir, is_index) {
                Ok(entries) => entries,
                Err(err) => {
                    let why = err.to_string();
                    self.seen.insert(dir, Some(why.clone()));
                    self.note(id, format!("{path}/"), why);
                    continue;
                }
            };
            let why = if is_new { self.tree_damage(dir) } else { None };
            self.seen.insert(dir, why.clone());
            if let Some(why) = why {
                self.note(id, format!("{path}/"), why);
            }
            for (name, kind, child) in entries {
                let path = format!("{path}/{}", String::from_utf8_lossy(&name).escape_debug());
                match kind {
                    EntryKind::Tree => dirs.push((path, child)),
                    EntryKind::Commit => (),
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link
                        // The index of a partial clone may name objects that were never fetched.
                        if !is_index || self.repo.has(&child) =>
                    {
                        self.blob(id, &path, child);
                    }
                    EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => (),
                }
            }
        }
        if self.found.len() == before {
            self.whole.extend(walked);
        }
    }

    /// The entries of a tree. Those of a directory are read as a restore reads them, which validates every name.
    fn entries(
        &self,
        dir: ObjectId,
        is_index: bool,
    ) -> Result<Vec<(Vec<u8>, EntryKind, ObjectId)>> {
        if is_index {
            return tree::entries(self.repo, &dir);
        }
        let body = self.repo.read_checked(&dir, ObjectKind::Tree)?;
        tree::directory(self.repo.hash, &dir, &body)?;
        tree::parse(self.repo.hash, &dir, &body)
    }

    /// Whether the bytes of a tree match its id; verified only in a full check.
    fn tree_damage(&self, tree: ObjectId) -> Option<String> {
        if !self.read_data || tree.is_empty_tree() {
            return None;
        }
        let body = match self.repo.read(&tree, ObjectKind::Tree) {
            Ok(body) => body,
            Err(err) => return Some(err.to_string()),
        };
        let named = gix::objs::compute_hash(self.repo.hash, ObjectKind::Tree, &body);
        let is_right = named.is_ok_and(|named| named == tree);
        (!is_right).then(|| format!("object {tree} is not what its name says"))
    }

    fn blob(&mut self, id: CheckpointId, path: &str, blob: ObjectId) {
        if !self.seen.contains_key(&blob) {
            let why = self.blob_damage(blob);
            self.seen.insert(blob, why);
        }
        if let Some(Some(why)) = self.seen.get(&blob) {
            let why = why.clone();
            self.note(id, path.to_owned(), why);
        }
    }

    fn blob_damage(&self, blob: ObjectId) -> Option<String> {
        if !self.read_data {
            let missing = !self.repo.has(&blob);
            return missing.then(|| format!("the repository no longer has object {blob}"));
        }
        let opened = super::stream::open(self.repo, &super::content_id(&blob));
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(err) => return Some(err.to_string()),
        };
        match self.name_of(&mut *reader) {
            Ok(name) if name == blob => None,
            Ok(_) => Some(format!("object {blob} is not what its name says")),
            Err(err) => Some(format!("object {blob} cannot be read: {err}")),
        }
    }

    fn name_of(&self, reader: &mut dyn std::io::Read) -> std::io::Result<ObjectId> {
        // The size is hashed first. Large blobs are verified while they are read.
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        gix::objs::compute_hash(self.repo.hash, ObjectKind::Blob, &bytes)
            .map_err(|err| std::io::Error::other(err.to_string()))
    }

    fn note(&mut self, id: CheckpointId, what: String, why: String) {
        self.found.push(Damage::new(Some(id), what, why));
    }
}

/// Only the reason of an error, where the name is given separately.
fn bare(err: Error) -> String {
    match err {
        Error::Damaged { why, .. } => why,
        other => other.to_string(),
    }
}
