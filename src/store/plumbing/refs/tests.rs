//! A large list of refs, and the files beside it.

use std::{fs, iter};

use gix::hash::Kind as HashKind;

use super::*;
use crate::fs::{remove_tree, replace};

/// A repository with a list of refs of another worktree, in a directory of its own that is removed afterwards.
struct LargeList(PathBuf);

impl LargeList {
    fn new(name: &str, count: u64) -> Self {
        let name = format!("beforehand-refs-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(dir.join("checkpoints")).unwrap();
        let lines = (0..count).map(|number| {
            let id = CheckpointId::new(number << 24, number);
            format!("{} refs/checkpoints/other/{id}\n", tree(number))
        });
        replace(&dir.join("packed-refs"), lines.collect::<String>().as_bytes()).unwrap();
        Self(dir)
    }

    fn repo(&self) -> Repo {
        Repo::at(&self.0, HashKind::Sha1)
    }

    /// Saves the refs of a checkpoint as a save does, and returns whether the list was written.
    fn create(&self, number: u64) -> bool {
        let before = fs::read(self.0.join("packed-refs")).unwrap();
        let (tree, private) = (tree(number), tree(number + 1000));
        let new =
            NewRefs { id: id(number), tree, private, anchor: Some(tree), administration: None };
        let dir = self.0.join("checkpoints");
        let record = PendingFile::write(&dir.join(number.to_string()), b"").unwrap();
        Refs::of_main().create(&self.repo(), &new, (record, &dir), &[]).unwrap();
        fs::read(self.0.join("packed-refs")).unwrap() != before
    }

    fn loose(&self) -> usize {
        Refs::of_main().loose(&self.repo()).unwrap().len()
    }
}

impl Drop for LargeList {
    fn drop(&mut self) {
        remove_tree(&self.0).unwrap();
    }
}

fn id(number: u64) -> CheckpointId {
    CheckpointId::new(0, number)
}

fn tree(number: u64) -> ObjectId {
    ObjectId::from_hex(format!("{number:040x}").as_bytes()).unwrap()
}

#[test]
fn a_large_list_is_written_for_every_64th_checkpoint() {
    let listed = LargeList::new("large", 1000);
    let written: Vec<u64> = (1..=200).filter(|number| listed.create(*number)).collect();
    assert_eq!(written, [65, 130, 195]);
    assert_eq!(listed.loose(), 2 * 5);
    let refs = Refs::of_main();
    let all = refs.of_checkpoints(&listed.repo()).unwrap();
    assert_eq!(all.own().collect::<BTreeSet<_>>(), (1..=200).map(id).collect());
    for number in 1..=200 {
        let pair = all.of(id(number));
        assert_eq!(pair, refs.pair(&listed.repo(), id(number)), "{number}");
        assert_eq!(pair.public, Some(Some(tree(number))));
        assert_eq!(pair.private, Some(Some(tree(number + 1000))));
    }
    assert_eq!(refs.anchor(&listed.repo()).unwrap(), Some(tree(200)));
    let other = CheckpointId::new(7 << 24, 7);
    assert_eq!(all.of(other).public, Some(Some(tree(7))), "of another worktree");
}

#[test]
fn a_small_list_is_written_for_every_checkpoint() {
    let listed = LargeList::new("small", 10);
    assert!((1..=20).all(|number| listed.create(number)));
    assert_eq!(listed.loose(), 0);
}

#[test]
fn a_ref_that_goes_into_the_list_keeps_its_last_value() {
    let listed = LargeList::new("last", 1000);
    assert!((1..=64).all(|number| !listed.create(number)));
    let name = Refs::of_main().private_name(id(3));
    set(&listed.repo(), &name, tree(77)).unwrap();
    assert!(listed.create(65));
    assert_eq!(read(&listed.repo(), &name).unwrap(), Some(tree(77)));
    // What was in the list meanwhile is not what counts.
    let repo = listed.repo();
    assert!(packed(&repo).unwrap().contains_str(format!("{} {name}\n", tree(77))));
    set(&repo, &name, tree(78)).unwrap();
    assert_eq!(read(&repo, &name).unwrap(), Some(tree(78)));
}

#[test]
fn removed_refs_are_neither_files_nor_in_the_list() {
    let listed = LargeList::new("removed", 1000);
    let written = (1..=70).filter(|number| listed.create(*number)).count();
    assert_eq!(written, 1);
    let gone: Vec<CheckpointId> = iter::once(3).chain([69]).map(id).collect();
    Refs::of_main().remove(&listed.repo(), &gone, false).unwrap();
    let left = Refs::of_main().list(&listed.repo()).unwrap();
    assert_eq!(left.len(), 68);
    assert!(gone.iter().all(|id| !left.contains(id)));
}
