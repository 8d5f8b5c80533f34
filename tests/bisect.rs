//! `beforehand bisect`: the turn that broke something is found in a copy, and the project stays as it is.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Output},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    evidence::{event, run, writes},
    support::{
        dice::Dice,
        real::{self, git},
        temp::{count, on_disk, write},
        world::World,
    },
};

/// A project in which each of `count` turns writes its number into `a`; the newest turn is number 1.
fn project(is_git: bool, count: usize) -> World {
    let mut world = if is_git { World::with_git() } else { World::new() };
    write(&world.settings(), "deadline = \"60s\"\n");
    world.write("a", "0\n");
    world.write("node_modules/lib", "lib");
    world.write("package.json", "{}");
    for turn in 1..=count {
        writes(&mut world, &format!("turn {turn}"), "a", &format!("{turn}\n"));
    }
    world
}

fn copies(world: &World) -> PathBuf {
    world.state().join("scratch")
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = real::beforehand(world, &world.root(), &[&["bisect"], args].concat());
    // As a git hook has it: it must not lead into the project.
    command.env("GIT_DIR", world.root().join(".git"));
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

/// Bisects, and sees that nothing but what was found is left of it.
fn bisect(world: &World, args: &[&str]) -> (i32, String, String) {
    let before = on_disk(&world.root());
    let Output { status, stdout, stderr } = command(world, args).output().unwrap();
    assert!(on_disk(&world.root()) == before, "the project is as it was");
    assert_eq!(count(&copies(world)), 0, "nothing is left of the copy");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn the_turn_that_broke_it_is_found() {
    for seed in 0..6 {
        let mut dice = Dice::new(seed);
        let (count, is_git) = (2 + dice.below(6), dice.is(2));
        let world = project(is_git, count);
        let broken = 1 + dice.below(count);
        let script = format!("test \"$(cat a)\" -lt {broken}");
        let (code, told, said) = bisect(&world, &["--json", "--", "sh", "-c", &script]);
        assert_eq!(code, 0, "{told}{said}");
        let told: Value = serde_json::from_str(&told).unwrap();
        let number = count + 1 - broken;
        assert_eq!(told["suspects"][0]["number"], number, "{broken} of {count}: {told}");
        assert_eq!(told["suspects"][0]["turn"], format!("turn {broken}"));
        assert_eq!(
            (told["suspects"].as_array().unwrap().len(), &told["others"]),
            (1, &false.into())
        );
        assert_eq!(
            (&told["files"][0]["path"], told["files"].as_array().unwrap().len()),
            (&"a".into(), 1)
        );
        let tried = told["tried"].as_array().unwrap().len();
        assert!(tried <= 5, "{tried}");
    }
}

#[test]
fn what_the_user_broke_since_the_last_turn_is_said_of_that_turn_and_what_followed() {
    let world = project(true, 2);
    world.write("a", "mine\n");
    let (code, told, said) = bisect(&world, &["--", "grep", "-q", "[0-9]", "a"]);
    assert_eq!(code, 0, "{said}");
    let expected = "broken by turn 1: go on (Claude Code)\nor by what else was done until now\n";
    let told = told.replace("before Write a", "go on");
    assert!(told.starts_with(expected), "{told}");
    assert!(told.contains("-1\n+mine\n") || told.contains("+mine"), "{told}");
    assert!(said.contains("now: bad\nbefore turn 2: good\nbefore turn 1: good\n"), "{said}");
}

#[test]
fn what_no_turn_broke_is_said_of_none() {
    let mut world = project(true, 2);
    world.write("b", "broken\n");
    run(&mut world, "turn 3", "make", |world| world.write("c", "c\n"));
    let args = ["--", "sh", "-c", "! grep -q broken b"];
    let (code, told, said) = bisect(&world, &[&["--good", "2"], &args[..]].concat());
    assert_eq!(code, 0, "{told}{said}");
    let expected = "broken by turn 2: before Write a (Claude Code)\nor by what else was done until turn 1 began\n";
    assert!(told.starts_with(expected), "{told}");
    run(&mut world, "turn 4", "make nothing", |_| ());
    world.write("b", "worse\n");
    let (code, told, said) =
        bisect(&world, &["--good", "1", "--", "sh", "-c", "! grep -q worse b"]);
    assert_eq!(code, 0, "{told}{said}");
    assert!(told.starts_with("no turn broke it: something else did, "), "{told}");
}

/// What a turn left is held when it has ended.
#[test]
fn what_the_user_broke_between_two_turns_is_no_turns() {
    for is_git in [false, true] {
        let mut world = project(is_git, 2);
        world.write("b", "good\n");
        writes(&mut world, "turn 3", "a", "3\n");
        drop(world.started());
        event(&mut world, "Stop", "turn 3", "", &json!({}), "");
        world.run_started();
        world.write("b", "broken\n");
        writes(&mut world, "turn 4", "a", "4\n");
        let (code, told, said) = bisect(&world, &["--good", "2", "--", "grep", "-q", "good", "b"]);
        assert_eq!(code, 0, "{told}{said}");
        assert!(said.contains("(between turns): good\n"), "{said}");
        assert!(told.starts_with("no turn broke it: something else did, "), "{told}");
        assert!(told.lines().next().unwrap().ends_with(" until turn 1 began"), "{told}");
    }
}

#[test]
fn of_turns_at_the_same_time_the_one_that_broke_it_is_named() {
    let mut world = project(true, 1);
    writes(&mut world, "s/one", "b", "good\n");
    run(&mut world, "t/two", "make", |world| world.write("c", "c\n"));
    writes(&mut world, "s/one", "b", "broken\n");
    let args = ["--", "sh", "-c", "! grep -q broken b"];
    let (code, told, _) = bisect(&world, &[&["--json"], &args[..]].concat());
    let told: Value = serde_json::from_str(&told).unwrap();
    let turns: Vec<&Value> =
        told["suspects"].as_array().unwrap().iter().map(|it| &it["turn"]).collect();
    assert_eq!((code, turns), (1, vec![&"one".into(), &"two".into()]), "{told:#}");
    assert_eq!(told["others"], false, "{told:#}");
    let (_, told, _) = bisect(&world, &args);
    assert!(told.starts_with("broken by one of these:\n  turn "), "{told}");
    run(&mut world, "t/three", "make", |world| world.write("c", "C\n"));
    writes(&mut world, "s/one", "b", "worse\n");
    let (code, told, _) = bisect(&world, &["--", "sh", "-c", "! grep -q worse b"]);
    assert!(code == 1 && told.contains("turn 1: ") && told.contains("turn 3: "), "{told}");
    assert!(!told.contains("turn 2: "), "it did nothing since: {told}");
}

#[test]
fn what_cannot_be_told_is_left_out_and_all_suspects_are_named() {
    let world = project(false, 4);
    let script = "case $(cat a) in 2) exit 125;; [01]) exit 0;; *) exit 3;; esac";
    let (code, told, said) = bisect(&world, &["--", "sh", "-c", script]);
    assert_eq!(code, 1, "more than one is left: {told}{said}");
    assert!(told.contains("broken by one of these"), "{told}");
    assert!(told.contains("  turn 3: ") && told.contains("  turn 2: "), "{told}");
    assert!(said.contains("before turn 2: skipped\n"), "{said}");
}

#[test]
fn what_leads_to_nothing_is_an_error_and_leaves_nothing() {
    let world = project(true, 3);
    for (args, code, why) in [
        (&["--", "true"][..], 1, "it is good now"),
        (&["--", "false"], 1, "it was bad before turn 3 already"),
        (&["--", "sh", "-c", "exit 130"], 1, "`sh` ended with 130, which ends the search"),
        (&["--", "sh", "-c", "exit 125"], 1, "it cannot be told now"),
        (&["--", "no-such-program"], 1, "cannot run `no-such-program`"),
        (&["--good", "9", "--", "false"], 1, "no checkpoint `9`"),
        (&["--good", "3.3", "--", "false"], 64, "`3.3` is a step of a turn"),
        (&["--bad", "3", "--good", "1", "--", "false"], 64, "the good turn has to come before"),
        (&[], 64, "required"),
    ] {
        let (came, told, said) = bisect(&world, args);
        assert_eq!((came, &*told), (code, ""), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let script = "test \"$(cat a)\" -lt 3";
    let (code, told, said) = bisect(&world, &["--good", "2", "--", "sh", "-c", script]);
    assert!(code == 0 && told.starts_with("broken by turn 1: "), "{told}{said}");
    let none = World::new();
    assert!(bisect(&none, &["--", "false"]).2.contains("no checkpoints yet"));
}

#[test]
fn what_the_command_does_stays_in_the_copy() {
    let world = project(true, 3);
    git(&world, &world.root(), "git add -A && git commit -qm all");
    let script = "test -e .git && git status --porcelain >&2 && test \"$(basename \"$PWD\")\" = shop \
                  && test ! -e made || exit 200; n=$(cat a); echo x > made; rm -rf a .git; chmod 0 .; \
                  test $n -lt 2";
    let (code, told, said) = bisect(&world, &["--", "sh", "-c", script]);
    assert!(code == 0 && told.starts_with("broken by turn 2: "), "{told}{said}");
}

/// What is left of a search that was killed, and of one that goes on.
#[test]
fn the_next_command_removes_what_a_killed_one_left() {
    let mut world = project(false, 2);
    let [killed, going] = [0, 1].map(|_| started(&world));
    assert_eq!(fs::read_dir(copies(&world)).unwrap().count(), 4);
    kill_process(pid(killed.0.id()), Signal::KILL).unwrap();
    kill_process(killed.1, Signal::KILL).unwrap();
    killed.0.wait_with_output().unwrap();
    assert_eq!(fs::read_dir(copies(&world)).unwrap().count(), 4, "they are still there");
    world.run(&["list"]);
    assert_eq!(fs::read_dir(copies(&world)).unwrap().count(), 2, "that of the other one stays");
    kill_process(going.1, Signal::KILL).unwrap();
    going.0.wait_with_output().unwrap();
    assert_eq!(count(&copies(&world)), 0);
}

fn pid(number: u32) -> Pid {
    i32::try_from(number).ok().and_then(Pid::from_raw).unwrap()
}

/// A search whose command runs, and that command.
fn started(world: &World) -> (Child, Pid) {
    let child = command(world, &["--json", "--", "sleep", "60"]).spawn().unwrap();
    let running = format!("/proc/{}/task/{}/children", child.id(), child.id());
    let program = loop {
        let children = fs::read_to_string(&running).unwrap();
        if let Some(child) = children.split_whitespace().find_map(|it| it.parse().ok()) {
            break pid(child);
        }
        thread::sleep(Duration::from_millis(10));
    };
    (child, program)
}

#[test]
fn a_command_that_is_interrupted_ends_the_search_and_leaves_nothing() {
    let world = project(false, 2);
    for signal in [Signal::TERM, Signal::INT] {
        let (child, program) = started(&world);
        // A key of the terminal goes to both.
        kill_process(pid(child.id()), signal).unwrap();
        if signal == Signal::INT {
            kill_process(program, signal).unwrap();
        }
        let Output { status, stderr, .. } = child.wait_with_output().unwrap();
        let said = String::from_utf8(stderr).unwrap();
        assert_eq!((status.code(), status.signal()), (Some(1), None), "{said}");
        let is_told = said.contains("interrupted") || said.contains("which ends the search");
        assert!(is_told, "{said}");
        assert_eq!(count(&copies(&world)), 0);
    }
}

#[test]
fn a_turn_that_changed_nothing_is_no_state_of_its_own() {
    let mut world = project(true, 2);
    run(&mut world, "looks", "make", |_| ());
    let (code, told, said) = bisect(&world, &["--", "sh", "-c", "test $(cat a) -lt 2"]);
    assert!(code == 0 && told.starts_with("broken by turn 2: "), "{told}{said}");
}
