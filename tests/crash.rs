//! Restores killed at any point: the next command reports it, and the restore can be finished or
//! aborted exactly.

use std::{fs, path::Path, process::Command};

use crate::{
    evidence,
    support::{
        dice::wished,
        temp::{Files, chmod, link, on_disk, write},
        world::World,
    },
};

/// Where a restore can be killed, and how often it comes there in [`damaged`].
const POINTS: [(&str, u32); 7] = [
    ("apply-vacate", 3),
    ("apply-directory", 1),
    ("apply-write", 4),
    ("apply-rename", 4),
    ("apply-close", 1),
    ("restore-index", 1),
    ("restore-end", 1),
];

/// A project that was damaged after its checkpoint, as it was then, and as it is now.
fn damaged() -> (World, Files, Files) {
    let mut world = World::new();
    for (path, text) in [("a", "a"), ("d/f", "f"), ("d/g", "g"), ("swap", "file"), ("keep", "k")] {
        world.write(path, text);
    }
    link(&world.root().join("l"), "a");
    chmod(&world.root().join("d/g"), 0o600);
    assert!(world.run(&["create"]).stderr.is_empty());
    let then = on_disk(&world.root());
    world.write("a", "changed");
    let remove = |path: &str| fs::remove_file(world.root().join(path)).unwrap();
    ["d/f", "d/g", "swap", "l"].into_iter().for_each(remove);
    fs::remove_dir(world.root().join("d")).unwrap();
    world.write("d", "a file now");
    world.write("swap/new", "n");
    let now = on_disk(&world.root());
    (world, then, now)
}

/// Runs a restore in a process of its own that dies at `point`; tells whether it came there.
fn killed_at(world: &World, point: &str) -> bool {
    dies_at(world, &["restore", "1", "--yes", "--exact", "--force"], point)
}

fn dies_at(world: &World, args: &[&str], point: &str) -> bool {
    let output = Command::new(env!("CARGO_BIN_EXE_beforehand"))
        .args(args)
        .current_dir(world.root())
        .env_clear()
        .envs(&world.env)
        .env("BEFOREHAND_TEST_CRASH_AT", point)
        .output()
        .unwrap();
    output.status.code().is_none()
}

fn every_point(mut check: impl FnMut(&str, &mut World, &Files, &Files)) {
    for (point, times) in POINTS {
        for nth in 1..=times {
            let (mut world, then, now) = damaged();
            let point = format!("{point}:{nth}");
            assert!(killed_at(&world, &point), "{point} is never reached");
            check(&point, &mut world, &then, &now);
        }
    }
}

#[test]
fn a_restore_killed_anywhere_is_finished() {
    every_point(|point, world, then, now| {
        let said = world.run(&["list"]).stderr;
        assert!(said.contains("restore --continue"), "{point}: {said}");
        let done = world.run(&["restore", "--continue"]);
        assert_eq!(done.exit.code(), 0, "{point}: {}", done.stderr);
        assert_eq!(on_disk(&world.root()), *then, "{point}");
        let said = world.run(&["list"]).stderr;
        assert!(!said.contains("interrupted"), "{point}: it is settled");
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit.code(), 0, "{point}: {}", undone.stderr);
        assert_eq!(on_disk(&world.root()), *now, "{point}: undo is the identity");
    });
}

#[test]
fn a_restore_killed_anywhere_is_taken_back() {
    every_point(|point, world, then, now| {
        let done = world.run(&["restore", "--abort"]);
        assert_eq!(done.exit.code(), 0, "{point}: {}", done.stderr);
        assert_eq!(on_disk(&world.root()), *now, "{point}");
        let again = world.run(&["restore", "1", "--yes", "--exact", "--force"]);
        assert_eq!(again.exit.code(), 0, "{point}: {}", again.stderr);
        assert_eq!(on_disk(&world.root()), *then, "{point}");
    });
}

#[test]
fn changes_made_while_a_restore_was_interrupted_are_kept() {
    let (mut world, ..) = damaged();
    assert!(killed_at(&world, "apply-rename:2"));
    world.write("a", "mine, in between");
    let done = world.run(&["restore", "--continue"]);
    assert_eq!(done.exit.code(), 3, "{}", done.stderr);
    assert_eq!(world.read("a"), "mine, in between");
    assert_eq!(world.read("d/f"), "f");
}

#[test]
fn another_restore_takes_the_interrupted_one_back_first() {
    let (mut world, then, now) = damaged();
    assert!(killed_at(&world, "apply-rename:1"));
    let asked = world.run(&["restore", "1"]);
    assert_eq!(asked.exit.code(), 1, "nobody said yes");
    let done = world.run(&["restore", "1", "--yes", "--exact", "--force"]);
    assert!(done.stderr.contains("aborted the interrupted restore"), "{}", done.stderr);
    assert_eq!(on_disk(&world.root()), then);
    world.run(&["undo", "--yes"]);
    assert_eq!(on_disk(&world.root()), now);
}

#[test]
fn an_undo_that_was_taken_back_can_be_done_again() {
    for point in ["apply-vacate:1", "apply-rename:1", "restore-end:1"] {
        let (mut world, then, now) = damaged();
        world.run(&["restore", "1", "--yes", "--exact", "--force"]);
        world.wait(1);
        assert!(dies_at(&world, &["undo", "--yes"], point), "{point} is never reached");
        let aborted = world.run(&["restore", "--abort"]);
        assert_eq!(aborted.exit.code(), 0, "{point}: {}", aborted.stderr);
        assert_eq!(on_disk(&world.root()), then, "{point}");
        world.wait(1);
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit.code(), 0, "{point}: {}", undone.stderr);
        assert_eq!(on_disk(&world.root()), now, "{point}");
    }
}

/// Where a step along the line can be killed: before it began, in it, and at its end.
const STEP_POINTS: [&str; 9] = [
    "restore-announced:1", "restore-held:1", "restore-begun:1", "apply-write:1", "apply-rename:1",
    "apply-close:1", "restore-head:1", "restore-index:1", "restore-end:1",
];

/// A project after three turns that each changed a file, in both kinds of store.
fn three_turns() -> [World; 2] {
    [World::new(), World::with_git()].map(|mut world| {
        for (turn, text) in [("1", "one"), ("2", "two"), ("3", "three")] {
            world.agent_writes(turn, "a", text);
            world.wait(1);
        }
        world
    })
}

fn must_work(world: &mut World, args: &[&str], context: &str) {
    let done = world.run(args);
    assert_eq!(done.exit.code(), 0, "{context}: {args:?}: {}", done.stderr);
    world.wait(1);
}

/// The first undo is killed at a point, then repeated; the same with the redo that follows.
#[test]
fn a_step_killed_anywhere_and_repeated_is_one_step() {
    for point in STEP_POINTS {
        for mut world in three_turns() {
            assert!(dies_at(&world, &["undo", "--yes"], point), "{point} is never reached");
            must_work(&mut world, &["undo", "--yes"], point);
            assert_eq!(world.read("a"), "two", "{point}");
            must_work(&mut world, &["undo", "--yes"], point);
            assert_eq!(world.read("a"), "one", "{point}: the next one is the next step");
            assert!(dies_at(&world, &["redo", "--yes"], point), "{point} is never reached");
            must_work(&mut world, &["redo", "--yes"], point);
            assert_eq!(world.read("a"), "two", "{point}: redo");
            must_work(&mut world, &["redo", "--yes"], point);
            assert_eq!(world.read("a"), "three", "{point}: redo");
        }
    }
}

#[test]
fn a_restore_that_never_began_is_no_step_and_interrupts_nothing() {
    for point in ["restore-announced", "restore-held"] {
        for mut world in three_turns() {
            let before = world.run(&["undo", "--dry-run"]).stdout;
            assert!(dies_at(&world, &["restore", "2", "--yes"], point), "{point}");
            let said = world.run(&["list"]).stderr;
            assert!(!said.contains("interrupted"), "{point}: {said}");
            assert_eq!(world.run(&["undo", "--dry-run"]).stdout, before, "{point}");
            let none = world.run(&["restore", "--abort"]);
            assert!(none.stderr.contains("no restore was interrupted"), "{point}: {}", none.stderr);
            must_work(&mut world, &["undo", "--yes"], point);
            assert_eq!(world.read("a"), "two", "{point}");
        }
    }
}

/// What is left of a restore that never began is removed in steps, too.
#[test]
fn what_never_began_is_cleared_away_however_often_that_is_killed() {
    for points in [["forget-record", "restore-called-off"], ["restore-called-off", "restore-held"]]
    {
        for mut world in three_turns() {
            assert!(dies_at(&world, &["undo", "--yes"], "restore-held"));
            for point in points {
                assert!(dies_at(&world, &["undo", "--yes"], point), "{point} is never reached");
            }
            must_work(&mut world, &["undo", "--yes"], points[0]);
            assert_eq!(world.read("a"), "two", "{points:?}");
            must_work(&mut world, &["redo", "--yes"], points[0]);
            assert_eq!(world.read("a"), "three", "{points:?}");
            let checked = world.run(&["check"]);
            assert_eq!(checked.exit.code(), 0, "{points:?}: {}{}", checked.stdout, checked.stderr);
        }
    }
}

#[test]
fn a_preview_says_that_an_interrupted_restore_is_taken_back() {
    for mut world in three_turns() {
        assert!(dies_at(&world, &["restore", "1", "--yes"], "apply-rename:1"));
        world.wait(1);
        let shown = world.run(&["undo", "--dry-run"]);
        assert_eq!(shown.stderr, "this aborts the interrupted restore, and does nothing else\n");
        let done = world.run(&["undo", "--yes"]);
        assert_eq!((done.exit.code(), world.read("a").as_str()), (0, "three"), "{}", done.stderr);
    }
}

/// A revert that merges, recreates and removes, killed anywhere.
#[test]
fn a_revert_killed_anywhere_is_finished_or_taken_back() {
    let points = [
        ("restore-announced", 1),
        ("restore-held", 1),
        ("restore-begun", 1),
        ("apply-vacate", 1),
        ("apply-write", 3),
        ("apply-rename", 3),
        ("restore-end", 1),
    ];
    let text = |changed: &[(usize, &str)]| -> String {
        let line = |n| match changed.iter().find(|(at, _)| *at == n) {
            Some((_, text)) => format!("{text}\n"),
            None => format!("line {n}\n"),
        };
        (1..=10).map(line).collect()
    };
    for (point, times) in points {
        for (nth, ends) in (1..=times).flat_map(|nth| [(nth, "--continue"), (nth, "--abort")]) {
            let mut world = evidence::project();
            world.write("a", text(&[]));
            world.write("moved", text(&[(1, "moved")]));
            evidence::run(&mut world, "one", "make", |world| {
                world.write("a", text(&[(1, "ONE")]));
                world.write("new", "new");
                fs::rename(world.root().join("moved"), world.root().join("here")).unwrap();
                fs::remove_file(world.root().join("b")).unwrap();
            });
            evidence::writes(&mut world, "two", "a", &text(&[(1, "ONE"), (9, "NINE")]));
            evidence::writes(&mut world, "two", "here", &text(&[(1, "moved"), (9, "NINE")]));
            let before = on_disk(&world.root());
            evidence::ours(&mut world, &["revert", "2", "--yes"], 0);
            let after = on_disk(&world.root());
            assert_eq!(world.read("moved"), text(&[(1, "moved"), (9, "NINE")]));
            evidence::ours(&mut world, &["undo", "--yes"], 0);
            let at = format!("{point}:{nth}");
            assert!(dies_at(&world, &["revert", "2", "--yes"], &at), "{at} is never reached");
            let is_begun = !matches!(point, "restore-announced" | "restore-held");
            let code = u8::from(!is_begun);
            evidence::ours(&mut world, &["restore", ends], code);
            let wanted = if is_begun && ends == "--continue" { &after } else { &before };
            assert!(on_disk(&world.root()) == *wanted, "{at} {ends}");
            if is_begun && ends == "--continue" {
                evidence::ours(&mut world, &["undo", "--yes"], 0);
                assert!(on_disk(&world.root()) == before, "{at}: undo is the identity");
            }
        }
    }
}

/// Files of every kind, which [`first_half`] and [`second_half`] change.
fn make_kinds(dir: &Path) {
    for path in
        ["mode", "both", "text", "gone", "rewritten", "to-directory", "to-link/in", "open/in"]
    {
        write(&dir.join(path), format!("{path}\n"));
    }
    link(&dir.join("link"), "mode");
    fs::create_dir(dir.join("empty")).unwrap();
}

fn first_half(dir: &Path) {
    chmod(&dir.join("mode"), 0o755);
    chmod(&dir.join("both"), 0o755);
    write(&dir.join("rewritten"), "another text\n");
    fs::remove_file(dir.join("link")).unwrap();
    link(&dir.join("link"), "both");
    fs::remove_dir(dir.join("empty")).unwrap();
    fs::create_dir(dir.join("new-empty")).unwrap();
}

fn second_half(dir: &Path) {
    chmod(&dir.join("open"), 0o700);
    write(&dir.join("text"), "another text\n");
    for path in ["gone", "to-directory", "to-link/in"] {
        fs::remove_file(dir.join(path)).unwrap();
    }
    write(&dir.join("to-directory/in"), "new\n");
    fs::remove_dir(dir.join("to-link")).unwrap();
    link(&dir.join("to-link"), "mode");
    write(&dir.join("new"), "new\n");
    chmod(&dir.join("new"), 0o755);
}

/// What others do to the same files, so that both are merged: bytes where those changed the mode, and the
/// other way round.
fn others_work(dir: &Path) {
    write(&dir.join("both"), "both, and more\n");
    chmod(&dir.join("rewritten"), 0o600);
}

/// A turn that changes files of every kind, and one after it.
fn two_turns() -> World {
    let mut world = evidence::project();
    make_kinds(&world.root());
    evidence::run(&mut world, "one", "make", |world| first_half(&world.root()));
    evidence::run(&mut world, "one", "make more", |world| second_half(&world.root()));
    evidence::run(&mut world, "two", "make much more", |world| others_work(&world.root()));
    world
}

/// The same changes in a fork, and in its project.
fn forked() -> World {
    let mut world = evidence::project();
    make_kinds(&world.root());
    evidence::run(&mut world, "one", "make", |_| ());
    evidence::ours(&mut world, &["fork", "1", "--no-conversation"], 0);
    let fork = world.root().with_file_name("shop-fork-1");
    first_half(&fork);
    second_half(&fork);
    others_work(&world.root());
    world
}

/// How its project is made, the commands before it, and the one that is killed.
type KilledCommand = (fn() -> World, &'static [&'static [&'static str]], &'static [&'static str]);

const KINDS: [KilledCommand; 7] = [
    (two_turns, &[], &["restore", "2", "--yes"]),
    (two_turns, &[], &["restore", "2.2", "--yes"]),
    (two_turns, &[], &["revert", "2", "--yes"]),
    (two_turns, &[&["revert", "2", "--yes"]], &["undo", "--yes"]),
    (two_turns, &[&["revert", "2", "--yes"], &["undo", "--yes"]], &["redo", "--yes"]),
    (forked, &[], &["fork", "--keep", "--yes"]),
    (forked, &[&["fork", "--keep", "--yes"]], &["undo", "--yes"]),
];

/// Types, permissions, link texts, empty directories and bytes, whatever sort of plan is interrupted. With
/// `BEFOREHAND_CASES`, at every point, else at some.
#[test]
fn every_kind_of_change_is_finished_and_taken_back_exactly() {
    let stride = if wished("BEFOREHAND_CASES").is_some() { 1 } else { 4 };
    for (make, first, args) in KINDS {
        let start = || {
            let mut world = make();
            for args in first {
                evidence::ours(&mut world, args, 0);
            }
            world.wait(1);
            world
        };
        let mut world = start();
        let before = on_disk(&world.root());
        evidence::ours(&mut world, args, 0);
        let after = on_disk(&world.root());
        assert_ne!(before, after, "{args:?}");
        for point in
            ["apply-vacate", "apply-directory", "apply-write", "apply-rename", "apply-close"]
        {
            for nth in (1..).step_by(stride) {
                let mut is_reached = true;
                for (end, wanted) in [("--continue", &after), ("--abort", &before)] {
                    let mut world = start();
                    let at = format!("{point}:{nth}");
                    is_reached = is_reached && dies_at(&world, args, &at);
                    if !is_reached {
                        break;
                    }
                    evidence::ours(&mut world, &["restore", end], 0);
                    assert!(on_disk(&world.root()) == *wanted, "{args:?} {at} {end}");
                }
                if !is_reached {
                    assert!(nth > 1, "{args:?}: {point} is never reached");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_mode_that_a_person_sets_while_a_revert_is_interrupted_is_kept() {
    for end in ["--continue", "--abort"] {
        let mut world = two_turns();
        assert!(dies_at(&world, &["revert", "2", "--yes"], "apply-close:1"));
        chmod(&world.root().join("both"), 0o640);
        let done = evidence::ours(&mut world, &["restore", end], 3);
        let said = done.stdout + &done.stderr;
        assert!(said.contains("both"), "{end}: {said}");
        let mode = &on_disk(&world.root())[&b"both"[..]];
        assert_eq!(mode.permissions, 0o640, "{end}");
    }
}
