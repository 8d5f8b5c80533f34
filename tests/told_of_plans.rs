//! What plans and reports say of restores that cannot be done in full: what is damaged, what stays,
//! and what may be done about it.

use std::{fs, path::PathBuf};

use crate::{
    evidence::{ours, project, run, writes},
    support::{
        temp::{noise, on_disk},
        world::World,
    },
};

/// The only file of ours in `objects` of which `is_it` is true.
fn object(world: &World, is_it: impl Fn(&[u8]) -> bool) -> PathBuf {
    let paths = on_disk(&world.state().join("objects")).into_keys();
    let paths = paths.map(|path| String::from_utf8(path).unwrap());
    let paths = paths.map(|path| world.state().join("objects").join(path));
    let mut fitting =
        paths.filter(|path| path.is_file() && fs::read(path).is_ok_and(|bytes| is_it(&bytes)));
    let found = fitting.next().unwrap();
    assert!(fitting.next().is_none());
    found
}

fn remove(world: &World, path: &str) {
    fs::remove_file(world.root().join(path)).unwrap();
}

/// The directory in which only a later step of the turn has something cannot be read.
#[test]
fn a_restore_does_what_it_can_where_a_later_step_is_damaged() {
    for args in [&["undo"][..], &["restore", "1"]] {
        let mut world = project();
        world.write("large", noise(1, 20 << 20));
        world.write("d/x", "x");
        writes(&mut world, "one", "a", "the agent's");
        world.write("d/mine", "mine");
        run(&mut world, "one", "rm large d/mine", |world| {
            remove(world, "large");
            remove(world, "d/mine");
        });
        let is_d = |bytes: &[u8]| bytes.starts_with(b"f ") && bytes.ends_with(b" x\n");
        let has_mine = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(" mine\n");
        fs::remove_file(object(&world, |bytes| is_d(bytes) && has_mine(bytes))).unwrap();
        let plan = ours(&mut world, &[args, &["--dry-run"]].concat(), 0).stdout;
        let damaged = "not restored: what only checkpoint ";
        assert!(plan.contains("recreate  large") && plan.contains(damaged), "{plan}");
        let done = ours(&mut world, &[args, &["--yes"]].concat(), 3).stdout;
        assert!(done.contains(damaged) && done.contains(", which is damaged; "), "{done}");
        assert_eq!(world.read("a"), "first");
        assert!(world.root().join("large").exists() && !world.root().join("d/mine").exists());
        assert!(!done.contains("was not held"), "{done}");
    }
}

/// What the user wants kept is not advised to be removed.
#[test]
fn nothing_is_advised_that_contradicts_the_command() {
    let mut world = project();
    writes(&mut world, "one", "a", "the agent's");
    run(&mut world, "one", "make", |world| world.write("new", "the agent's"));
    world.write("mine", "mine");
    for (args, is_advised) in
        [(&["restore", "1", "--keep-new"][..], false), (&["restore", "1"], true)]
    {
        let plan = ours(&mut world, &[args, &["--dry-run"]].concat(), 0).stdout;
        let done = ours(&mut world, &[args, &["--yes"]].concat(), 0).stdout;
        for told in [plan, done] {
            assert_eq!(told.contains("--exact"), is_advised, "{told}");
            assert!(told.contains("mine"), "{told}");
        }
        ours(&mut world, &["undo", "--yes"], 0);
    }
}

/// The bytes of a file are not to be had for a while.
#[test]
fn what_is_not_done_is_not_called_done() {
    let mut world = project();
    world.write("b", "before");
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's");
    let held = object(&world, |bytes| bytes == b"before");
    let away = held.with_extension("away");
    fs::rename(&held, &away).unwrap();
    let part = ours(&mut world, &["undo", "--yes"], 1);
    assert!(!part.stdout.contains("redo with"), "{}", part.stdout);
    assert!(part.stderr.contains("restore --continue` tries again"), "{}", part.stderr);
    let more = ours(&mut world, &["restore", "--continue"], 1);
    assert!(more.stdout.contains(" is not finished: 1 path not restored\n"), "{}", more.stdout);
    assert!(!more.stdout.contains("undo with"), "{}", more.stdout);
    assert!(more.stderr.contains("restore --continue` tries again"), "{}", more.stderr);
    fs::rename(&away, &held).unwrap();
    let done = ours(&mut world, &["restore", "--continue"], 0).stdout;
    assert!(done.starts_with("finished the undo to ") && done.contains("undo with"), "{done}");
    assert_eq!(["a", "b"].map(|path| world.read(path)), ["first", "before"]);
}

/// An interrupted restore is taken back before another one, as far as that can be.
#[test]
fn a_restore_that_is_taken_back_in_part_is_told_as_such() {
    let mut world = project();
    world.write("b", "before");
    writes(&mut world, "one", "a", "the agent's");
    writes(&mut world, "one", "b", "the agent's b");
    let held = object(&world, |bytes| bytes == b"before");
    let away = held.with_extension("away");
    fs::rename(&held, &away).unwrap();
    ours(&mut world, &["restore", "1", "--yes"], 1);
    let now = object(&world, |bytes| bytes == b"the agent's");
    fs::rename(&now, now.with_extension("away")).unwrap();
    let done = ours(&mut world, &["undo", "--yes"], 1);
    assert!(done.stderr.contains("took back the interrupted restore first, but for 1 path"));
    assert!(!done.stderr.contains("--continue"), "it is over: {}", done.stderr);
    let command = done.stderr.split('`').find(|it| it.starts_with("beforehand restore ")).unwrap();
    fs::rename(now.with_extension("away"), &now).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--yes"]).collect();
    ours(&mut world, &words, 0);
    assert_eq!(world.read("a"), "the agent's");
}
