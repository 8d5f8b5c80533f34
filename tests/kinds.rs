//! Holes, owners, attributes and hard links, before and after a restore.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt, lchown},
};

use beforehand::fs::{Dir, own_bytes};
use rustix::fs::{XattrFlags, getxattr, setxattr};

use crate::support::{
    real::skip,
    temp::write,
    world::{Output, World},
};

const SIZE: u64 = 24 << 20;

fn restore(world: &mut World) -> Output {
    let done = world.run(&["restore", "1", "--yes"]);
    assert_eq!(done.exit.code(), 0, "{}", done.stderr);
    done
}

#[test]
fn a_sparse_file_counts_with_its_room_and_comes_back_with_its_holes() {
    for mut world in [World::new(), World::with_git()] {
        write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
        world.write("disk.img", "head");
        let path = world.root().join("disk.img");
        let file = File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"middle", SIZE / 2).unwrap();
        file.set_len(SIZE).unwrap();
        let before = fs::read(&path).unwrap();
        let created = world.run(&["create"]);
        assert_eq!(created.exit.code(), 0, "{}", created.stderr);
        Dir::open(&world.state()).and_then(|dir| dir.sync_below()).unwrap();
        let stored = own_bytes(&world.state());
        assert!(stored < 2 << 20, "{stored} bytes in the store");
        fs::remove_file(&path).unwrap();
        restore(&mut world);
        assert!(fs::read(&path).unwrap() == before, "the same bytes");
        File::open(&path).unwrap().sync_all().unwrap();
        let room = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(room < 1 << 20, "{room} bytes on the disk");
    }
}

#[test]
fn a_large_file_without_holes_is_still_too_large() {
    let mut world = World::new();
    write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
    world.write("disk.img", vec![1; 3 << 20]);
    world.run(&["create"]);
    let shown = world.run(&["show", "1"]);
    assert!(shown.stdout.contains("disk.img"), "it is named: {}", shown.stdout);
    fs::remove_file(world.root().join("disk.img")).unwrap();
    world.run(&["restore", "1", "--yes"]);
    assert!(!world.root().join("disk.img").exists());
}

#[test]
fn what_is_noted_on_a_file_stays_on_it() {
    let mut world = World::new();
    world.write("a", "then");
    let path = world.root().join("a");
    world.run(&["create"]);
    world.write("a", "now");
    if setxattr(&path, "user.note", b"mine", XattrFlags::empty()).is_err() {
        skip("the file system has no extended attributes");
        return;
    }
    restore(&mut world);
    assert_eq!(world.read("a"), "then");
    let mut note = [0; 16];
    let length = getxattr(&path, "user.note", &mut note[..]).unwrap();
    assert_eq!(&note[..length], b"mine");
}

#[test]
fn attributes_that_a_restored_file_cannot_get_are_named() {
    let mut world = World::new();
    world.write("a", "then");
    world.write("plain", "then");
    world.run(&["create"]);
    world.write("a", "now");
    world.write("plain", "now");
    if setxattr(world.root().join("a"), "trusted.note", b"1", XattrFlags::empty()).is_err() {
        skip("only root can set an attribute of the system");
        return;
    }
    let done = restore(&mut world);
    let told = "note: lost extended attributes that are not kept: a\n";
    assert!(done.stderr.contains(told), "{}", done.stderr);
}

#[test]
fn what_root_restores_still_belongs_to_its_owner() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can act for another user");
        return;
    }
    let mut world = World::new();
    for path in ["kept", "gone", "d/new"] {
        world.write(path, "then");
        lchown(world.root().join(path), Some(1234), Some(1235)).unwrap();
    }
    lchown(world.root(), Some(1234), Some(1235)).unwrap();
    world.run(&["create"]);
    world.write("kept", "now");
    fs::remove_file(world.root().join("gone")).unwrap();
    fs::remove_file(world.root().join("d/new")).unwrap();
    fs::remove_dir(world.root().join("d")).unwrap();
    restore(&mut world);
    for path in ["kept", "gone", "d", "d/new"] {
        let found = fs::metadata(world.root().join(path)).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 1235), "{path}");
    }
}

#[test]
fn what_root_leaves_in_another_home_belongs_to_its_owner() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can act for another user");
        return;
    }
    for mut world in [World::new(), World::with_git()] {
        // However slow the machine is: qemu is.
        world.set("BEFOREHAND_DEADLINE", "10m");
        let home = world.settings().ancestors().nth(3).unwrap().to_owned();
        lchown(&home, Some(1234), Some(1235)).unwrap();
        for turn in 0..3 {
            for file in 0..80 {
                world.write(&format!("d/{file}"), format!("{turn} {file}"));
            }
            world.agent_writes(&format!("t{turn}"), ".env", "secret");
            world.before_bash(&format!("t{turn}"), "rm -rf .git d");
            world.run_started();
        }
        for args in [
            &["create", "-m", "x"][..],
            &["list"],
            &["restore", "2", "--yes", "--force"],
            &["undo", "--yes"],
            &["check", "--repair"],
            &["prune", "--keep", "1"],
            &["install", "claude-code", "--yes"],
        ] {
            let done = world.run(args);
            assert_eq!(done.exit.code(), 0, "{args:?}: {}", done.stderr);
        }
        world.run_in(&world.root(), &["maintain"], "");
        let (mut open, mut seen) = (vec![home], 0);
        while let Some(path) = open.pop() {
            let found = fs::symlink_metadata(&path).unwrap();
            // What is linked is the repository's own, by another name.
            if found.is_dir() || found.nlink() == 1 {
                assert_eq!((found.uid(), found.gid()), (1234, 1235), "{}", path.display());
                seen += 1;
            }
            if found.is_dir() {
                open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        assert!(seen > 20, "{seen}");
    }
}

#[test]
fn a_hard_link_that_becomes_a_file_of_its_own_is_named() {
    let mut world = World::new();
    world.write("a", "then");
    world.write("alone", "then");
    world.run(&["create"]);
    world.write("alone", "now");
    world.write("a", "now");
    fs::hard_link(world.root().join("a"), world.root().parent().unwrap().join("other")).unwrap();
    let done = restore(&mut world);
    assert!(done.stderr.contains("hard links), which keep what was in it: a\n"), "{}", done.stderr);
    assert_eq!(fs::read(world.root().parent().unwrap().join("other")).unwrap(), b"now");
}

/// To remove one name of a file changes the time of its other name.
#[test]
fn a_file_outside_that_got_a_second_name_in_the_project_comes_back() {
    let mut world = World::new();
    let file = world.root().join("../lib/x");
    write(&file, "mine");
    let command = "ln ../lib/x hard; echo theirs > hard";
    let call = serde_json::json!({ "command": command });
    world.hook("t1", "Bash", &call);
    fs::hard_link(&file, world.root().join("hard")).unwrap();
    write(&file, "theirs");
    let done = world.run(&["restore", "latest", "--outside", "--exact", "--yes"]);
    assert_eq!((done.exit.code(), done.stderr.as_str()), (0, ""), "{}", done.stdout);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(!world.root().join("hard").exists());
}
