//! Checks what is held of a repository for damage: whether its files and objects exist and, in a
//! full check, whether every byte is right.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
};

use gix::{ObjectId, objs::Kind as ObjectKind, objs::tree::EntryKind};

use super::{
    Held, PrivateRepository, borrowed_dirs,
    history::{self, MissingObject},
    intact::{loose_fits, trailer_fits},
    names_of,
};
use crate::{
    model::CheckpointId,
    state::StateDir,
    store::{
        Damage,
        plumbing::{refs, repo::Repo, tree},
        record::Record,
    },
};

/// Name, kind and object of each entry of a tree.
type TreeEntries = Vec<(Vec<u8>, EntryKind, ObjectId)>;

/// What is damaged, and how.
type FaultText = (String, String);

/// What was checked already: checkpoints share most of it.
#[derive(Default)]
pub(in crate::store) struct CheckedObjects {
    repositories: HashMap<HeldState, (Vec<FaultText>, Vec<MissingObject>)>,
    stores: HashMap<String, CheckedStore>,
    history: history::WalkedHistory,
    lost: Vec<MissingHistory>,
}

/// A repository as a checkpoint holds it.
#[derive(PartialEq, Eq, Hash)]
struct HeldState {
    store: String,
    path: Vec<u8>,
    /// The entries for its git directory in the tree that holds it.
    entries: Vec<(Vec<u8>, ObjectId)>,
    /// The commit that HEAD was at, if it is known.
    commit: Option<String>,
}

/// A private repository, opened once.
struct CheckedStore {
    private: PrivateRepository,
    repo: Repo,
    /// The trees that its refs point at.
    kept: HashSet<ObjectId>,
    /// The files of git directories that were read.
    read: HashSet<ObjectId>,
    /// The entries of the trees that hold git directories: those that were read.
    entries: HashMap<ObjectId, TreeEntries>,
    borrowed: BorrowDamage,
}

/// What is damaged of the objects that a private repository borrows. It belongs to every checkpoint
/// that needs it.
#[derive(Default)]
struct BorrowDamage {
    faults: Vec<FaultText>,
    /// The damaged objects, as far as they are known by name.
    objects: BTreeSet<ObjectId>,
    /// Whether a file with many objects is damaged: which of them is not known.
    is_pack: bool,
}

/// A missing part of a checkpoint's history.
struct MissingHistory {
    checkpoint: CheckpointId,
    sequence: u64,
    store: String,
    object: ObjectId,
    fault: FaultText,
    /// Why it could not be held when the checkpoint was taken, if that is known.
    excuse: Option<&'static str>,
}

impl CheckedObjects {
    /// The missing history, after what is damaged of borrowed objects. What the oldest affected
    /// checkpoint could not hold is not blamed on later ones either.
    pub(in crate::store) fn lost(mut self) -> Vec<Damage> {
        self.lost.sort_by_key(|told| told.sequence);
        let mut first = HashMap::new();
        for MissingHistory { store, object, excuse, .. } in &mut self.lost {
            let was_excused = *first.entry((store.clone(), *object)).or_insert(excuse.is_some());
            if was_excused && excuse.is_none() {
                *excuse = Some("an earlier checkpoint could not have it either");
            }
        }
        let damage = |MissingHistory { checkpoint, fault: (what, why), excuse, .. }| match excuse {
            Some(excuse) => Damage::note(Some(checkpoint), what, format!("{why}; {excuse}")),
            None => Damage::new(Some(checkpoint), what, why),
        };
        let mut stores: Vec<(String, CheckedStore)> = self.stores.into_iter().collect();
        stores.sort_by(|a, b| a.0.cmp(&b.0));
        let borrowed = stores.into_iter().flat_map(|(_, store)| store.borrowed.faults);
        let borrowed = borrowed.map(|(what, why)| Damage::new(None, what, why));
        borrowed.chain(self.lost.into_iter().rev().map(damage)).collect()
    }
}

/// A check of the repositories in one checkpoint.
pub(in crate::store) struct RepositoryCheck<'a> {
    pub(in crate::store) state: &'a StateDir,
    /// Where the root is, or was.
    pub(in crate::store) root: &'a Path,
    pub(in crate::store) record: &'a Record,
    /// Whether to read every byte.
    pub(in crate::store) read_data: bool,
}

impl RepositoryCheck<'_> {
    /// Everything wrong with the repositories in the checkpoint, except missing history, which
    /// [`CheckedObjects::lost`] returns. What several checkpoints share is reported once.
    pub(in crate::store) fn check(&self, checked: &mut CheckedObjects) -> Vec<FaultText> {
        let mut faults = Vec::new();
        for held in &self.record.repositories {
            let store = checked.stores.entry(held.store.clone());
            let store = store.or_insert_with(|| self.open(&held.store, &mut faults));
            // The checkpoint's own ref keeps the root's repository.
            let is_own = self.record.private == Some(held.tree);
            let tree = store.repo.object_id(&held.tree);
            if !is_own && !store.kept.contains(&tree) {
                let name = format!("refs/repository/{}", held.tree);
                faults.push((name, "the ref is gone, or leads elsewhere".to_owned()));
            }
            if !store.entries.contains_key(&tree) {
                match administration(&store.repo, &tree) {
                    Ok(entries) => drop(store.entries.insert(tree, entries)),
                    Err(err) => {
                        faults.push((format!("{}/", shown(&held.path)), err));
                        continue;
                    }
                }
            }
            let entries = &store.entries[&tree];
            let commit = self.record.checkpoint.head.as_ref().filter(|_| is_own);
            let state = HeldState {
                store: held.store.clone(),
                path: held.path.clone(),
                entries: entries.iter().map(|(name, _, id)| (name.clone(), *id)).collect(),
                commit: commit.and_then(|head| head.commit.clone()),
            };
            let commit = state.commit.clone();
            let entries = entries.clone();
            let found = checked.repositories.entry(state).or_insert_with(|| {
                self.held(store, held, entries, commit.as_deref(), &mut checked.history)
            });
            faults.extend(found.0.iter().cloned());
            checked.lost.extend(found.1.iter().map(|lost| MissingHistory {
                checkpoint: self.record.checkpoint.id,
                sequence: self.record.checkpoint.sequence,
                store: held.store.clone(),
                object: lost.object,
                fault: lost.words(held),
                excuse: self.excuse(&store.private, held, lost),
            }));
        }
        faults
    }

    /// Checks one held git directory: its files, and the objects that its refs lead to.
    fn held(
        &self,
        store: &mut CheckedStore,
        held: &Held,
        entries: TreeEntries,
        commit: Option<&str>,
        seen: &mut history::WalkedHistory,
    ) -> (Vec<FaultText>, Vec<MissingObject>) {
        let CheckedStore { private, repo, read, borrowed, .. } = store;
        let mut faults = Vec::new();
        if borrowed.is_pack {
            let name = format!("{}/objects", shown(&held.path));
            faults.push((name, "one of its packs is damaged".to_owned()));
        }
        let looked = files(repo, entries, read).and_then(|()| {
            let deep = self.read_data.then_some(&borrowed.objects);
            let lost = history::lost(private, repo, held, commit, deep, seen);
            lost.map_err(|err| err.to_string())
        });
        let lost = looked.unwrap_or_else(|err| {
            faults.push((format!("{}/", shown(&held.path)), err));
            Vec::new()
        });
        (faults, lost)
    }

    /// Why part of the history could not be held when the checkpoint was taken.
    fn excuse(
        &self,
        private: &PrivateRepository,
        held: &Held,
        lost: &MissingObject,
    ) -> Option<&'static str> {
        if lost.is_damaged {
            return None;
        }
        let objects = [&held.path[..], b"/objects"].concat();
        if self.record.checkpoint.skipped.iter().any(|skipped| skipped.path == objects) {
            return Some("not all of the repository's objects could be held");
        }
        if !held.is_usable {
            return Some("git could not work with the repository then");
        }
        let is_lost_there = lost.is_lost_there(self.root, held, private);
        is_lost_there.then_some("the repository itself does not have it either")
    }

    /// Opens a private repository, and checks the part that all checkpoints in it share.
    fn open(&self, name: &str, faults: &mut Vec<FaultText>) -> CheckedStore {
        let private = PrivateRepository::named(self.state, name);
        let mut borrowed = BorrowDamage::default();
        let odd = private.odd_files().into_iter();
        faults.extend(odd.map(|(name, why)| {
            (format!("repositories/{}/{name}", private.name()), why.to_owned())
        }));
        if self.read_data {
            for dir in borrowed_dirs(&private.linked()) {
                borrowed.check(&dir);
            }
        }
        let repo = private.repo();
        let kept = kept(&repo);
        let read = HashSet::new();
        CheckedStore { private, repo, kept, read, entries: HashMap::new(), borrowed }
    }
}

/// The trees that the refs of a private repository keep.
pub(super) fn kept(repo: &Repo) -> HashSet<ObjectId> {
    refs::read_all(repo).unwrap_or_default().into_values().flatten().collect()
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).escape_debug().to_string()
}

/// The entries of a tree that hold a git directory.
///
/// # Errors
///
/// Fails if there is none, or if the tree cannot be read.
fn administration(repo: &Repo, tree: &ObjectId) -> Result<TreeEntries, String> {
    let mut entries: Vec<_> = tree::entries(repo, tree).map_err(|err| err.to_string())?;
    entries.retain(|(name, _, _)| name.starts_with(b"repository"));
    if entries.is_empty() { Err("nothing is held of it".to_owned()) } else { Ok(entries) }
}

/// Reads every file of a git directory that is held, but for those in `known`.
fn files(
    repo: &Repo,
    mut open: Vec<(Vec<u8>, EntryKind, ObjectId)>,
    known: &mut HashSet<ObjectId>,
) -> Result<(), String> {
    let told = |err: crate::error::Error| err.to_string();
    while let Some((_, kind, id)) = open.pop() {
        if known.contains(&id) {
            continue;
        }
        match kind {
            EntryKind::Tree => open.extend(tree::entries(repo, &id).map_err(told)?),
            EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link => {
                repo.read_checked(&id, ObjectKind::Blob).map_err(told)?;
                known.insert(id);
            }
            EntryKind::Commit => (),
        }
    }
    Ok(())
}

impl BorrowDamage {
    /// Verifies the packs and loose objects in one borrowed object directory.
    fn check(&mut self, objects: &Path) {
        let packs = objects.join("pack");
        for name in names_of(&packs).unwrap_or_default() {
            let why = match trailer_fits(&packs.join(&name)) {
                Ok(true) => continue,
                Ok(false) => "it is not what it was".to_owned(),
                Err(err) => err.to_string(),
            };
            self.is_pack = true;
            self.add(&name.to_string_lossy(), why);
        }
        for fan in names_of(objects).unwrap_or_default() {
            let Some(fan) = fan.to_str().filter(|fan| fan.len() == 2) else { continue };
            for rest in names_of(&objects.join(fan)).unwrap_or_default() {
                let Some(name) = rest.to_str().map(|rest| format!("{fan}{rest}")) else { continue };
                let why = match loose_fits(&objects.join(fan).join(&rest), &name) {
                    Ok(true) => continue,
                    Ok(false) => "it is not what its name says".to_owned(),
                    Err(err) => err.to_string(),
                };
                self.objects.extend(ObjectId::from_hex(name.as_bytes()).ok());
                self.add(&name, why);
            }
        }
    }

    fn add(&mut self, name: &str, why: String) {
        self.faults.push((format!("{name}, borrowed from the user's repository"), why));
    }
}
