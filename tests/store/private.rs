//! Private files, victims and prompts: held, and not reachable from any ref of a checkpoint.

use beforehand::store::Draft;

use super::{
    Fixture, draft,
    git::{GitFixture, save_new},
    held,
};
use crate::support::{
    temp::{on_disk, write},
    walk::{walk, walk_but},
};

/// Every object that refs with a prefix reach, trees with the names in them.
fn reachable(fixture: &GitFixture, prefix: &str) -> Vec<Vec<u8>> {
    let repo = fixture.repo();
    let names = fixture.packed_refs();
    let names = names.iter().filter_map(|line| line.split_once(' '));
    let names = names.filter(|(_, name)| name.starts_with(prefix));
    let mut open: Vec<gix::ObjectId> =
        names.map(|(id, _)| gix::ObjectId::from_hex(id.as_bytes()).unwrap()).collect();
    assert!(!open.is_empty(), "{prefix}");
    let mut objects = Vec::new();
    while let Some(id) = open.pop() {
        let object = repo.find_object(id).unwrap();
        if object.kind == gix::objs::Kind::Tree {
            let tree = object.clone().into_tree();
            open.extend(tree.decode().unwrap().entries.iter().map(|entry| entry.oid.to_owned()));
        }
        objects.push(object.data.clone());
    }
    objects
}

#[test]
fn nothing_private_is_reachable_from_the_refs_of_checkpoints() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("a"), "plain");
    write(&root.join(".env"), "TOKEN");
    write(&root.join("id_rsa"), "KEY");
    let mut scan = walk_but(fixture.root(), &[".env"], &[root.join(".env")]);
    for found in scan.fresh.values_mut().flat_map(|fresh| &mut fresh.found) {
        found.marks.private = found.name == b"id_rsa";
    }
    let mut cause = beforehand::model::Cause::asked(Some("a secret message".to_owned()));
    cause.tool = Some("Bash".to_owned());
    let id = fixture.open().save(Draft { cause, ..draft(scan) }).unwrap().checkpoint.id;
    assert_eq!(held(&*fixture.open(), id), on_disk(root));
    for object in reachable(&fixture, "refs/checkpoints") {
        for secret in ["TOKEN", "KEY", "a secret message", "id_rsa", ".env"] {
            assert!(!String::from_utf8_lossy(&object).contains(secret), "{secret}");
        }
    }
    let private = reachable(&fixture, "refs/private");
    assert!(private.iter().any(|object| object == b"TOKEN"), "git keeps it");
    fixture.fsck();
    // What was read before is believed, and held again.
    write(&root.join("a"), "changed");
    let mut scan = fixture.unchanged();
    let top = walk(fixture.root()).fresh.remove(&beforehand::model::DirPath::default()).unwrap();
    let base = scan.base.take().unwrap();
    let mut top = top;
    for found in &mut top.found {
        let known = base.dir(0).row(&found.name).unwrap();
        (found.marks, found.skipped) = (known.marks, known.skipped);
        found.content = known.content.filter(|_| found.name != b"a");
    }
    scan.base = Some(base);
    scan.fresh.insert(beforehand::model::DirPath::default(), top);
    let second = fixture.open().save(draft(scan)).unwrap().checkpoint.id;
    let mut expected = on_disk(root);
    expected.remove(&b".env"[..]);
    assert_eq!(held(&*fixture.open(), second), expected);
}

#[test]
fn a_file_that_becomes_private_is_not_reachable_from_earlier_checkpoints_either() {
    let fixture = GitFixture::new();
    let root = fixture.root().path();
    write(&root.join("a"), "plain");
    let before = save_new(&fixture);
    write(&root.join("d/key"), "SECRET");
    let public = save_new(&fixture);
    let mut scan = walk(fixture.root());
    for found in scan.fresh.values_mut().flat_map(|fresh| &mut fresh.found) {
        found.marks.private = found.name == b"key";
    }
    let private = fixture.open().save(draft(scan)).unwrap().checkpoint.id;
    let secret = |object: &Vec<u8>| String::from_utf8_lossy(object).contains("SECRET");
    assert!(!reachable(&fixture, "refs/checkpoints").iter().any(secret));
    assert!(reachable(&fixture, "refs/private").iter().any(secret));
    for id in [public, private] {
        assert_eq!(held(&*fixture.open(), id), on_disk(root), "it is held all the same");
    }
    fixture.open().repair().unwrap();
    assert!(!reachable(&fixture, "refs/checkpoints").iter().any(secret), "nor after a repair");
    assert_eq!(fixture.open().check(true).unwrap(), []);
    let names = fixture.packed_refs().join("\n");
    assert!(names.contains(&format!("refs/checkpoints/main/{before}")), "{names}");
    fixture.fsck();
    fixture.open().remove(&[public]).unwrap();
    assert_eq!(held(&*fixture.open(), private), on_disk(root));
}
