//! Undo where something cannot be read: nothing stays without a message, and nothing is reported as
//! done that was not.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::support::{real::bound_by_permissions, temp::write, world::World};

/// A restore brought `a` back as it was, and made `b` again.
fn restored() -> World {
    let mut world = World::new();
    world.write("a", "then");
    world.write("d/b", "then b");
    world.run(&["create"]);
    world.write("a", "now");
    fs::remove_file(world.root().join("d/b")).unwrap();
    let done = world.run(&["restore", "1", "--yes"]);
    assert_eq!(done.exit.code(), 0, "{}", done.stderr);
    world
}

#[test]
fn what_would_go_and_may_not_be_read_stays_and_is_named() {
    let world = restored();
    let mut command = bound_by_permissions();
    let secret = world.root().join("d/b");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    command.arg(env!("CARGO_BIN_EXE_beforehand")).args(["undo", "--yes"]);
    command.current_dir(world.root()).env("BEFOREHAND_AUTO_PRUNE", "off").envs(&world.env);
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("not restored: d/b: its present content cannot be read"), "{told}");
    assert!(secret.exists());
    assert_eq!(world.read("a"), "now", "the rest is undone: waiting would not help");
}

/// Beforehand's own file whose bytes have `part` in them, of those that `fits`.
fn own_file(world: &World, part: &str, fits: impl Fn(&Path) -> bool) -> PathBuf {
    let mut open = vec![world.state()];
    while let Some(dir) = open.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if fits(&path) {
                let bytes = fs::read(&path).unwrap();
                if bytes.windows(part.len()).any(|it| it == part.as_bytes()) {
                    return path;
                }
            }
        }
    }
    panic!("nothing has it");
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_no_reason_to_leave_what_it_made() {
    let id: Vec<String> =
        Sha256::digest("then b").iter().map(|byte| format!("{byte:02x}")).collect();
    let directory = |world: &World| {
        own_file(world, &id.concat(), |path| {
            path.extension().is_none() && !path.ends_with("attribution/log")
        })
    };
    let is_record = |path: &Path| path.extension().is_some_and(|it| it == "json");
    let record = |world: &World| own_file(world, "\"asked\"", is_record);
    for (what, find) in
        [("directory", &directory as &dyn Fn(&World) -> PathBuf), ("record", &record)]
    {
        let mut world = restored();
        let path = find(&world);
        let whole = fs::read(&path).unwrap();
        replace(&path, b"not what it was");
        let refused = world.run(&["undo", "--yes"]);
        assert_eq!(refused.exit.code(), 1, "{what}: {}", refused.stdout);
        assert!(refused.stderr.contains("is damaged"), "{what}: {}", refused.stderr);
        assert_eq!([world.read("a"), world.read("d/b")], ["then", "then b"], "{what}");
        replace(&path, &whole);
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit.code(), 0, "{what}: {}", undone.stderr);
        assert_eq!(world.read("a"), "now", "{what}");
        assert!(!world.root().join("d/b").exists(), "{what}");
    }
}

/// Replaces a file that must not be written in place.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    write(path, bytes);
}
