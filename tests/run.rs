//! A program that a person runs as a turn.

use std::{
    fs,
    io::Write as _,
    process::{Command, Output},
    thread,
    time::Duration,
};

use beforehand::process::Exit;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    real,
    temp::{chmod, write},
    tmux::Tmux,
    world::World,
};

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = real::beforehand(world, &world.root(), &[&["run"], args].concat());
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command
}

fn run(world: &World, args: &[&str]) -> (i32, String, String) {
    run_with(world, args, "")
}

fn run_with(world: &World, args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = command(world, args).spawn().unwrap();
    let _not_read = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn what_a_program_did_is_a_turn_and_is_taken_back() {
    for make in [World::new, World::with_git] {
        let mut world = make();
        world.write("a", "mine");
        world.write("b", "mine too");
        world.write("c", "a third");
        let script = "echo made > new; echo changed > a; rm b; cat";
        let done = run_with(&world, &["--name", "the codemod", "sh", "-c", script], "to it");
        assert_eq!(done, (0, "to it".to_owned(), String::new()));
        let list = world.see(&["list"]);
        assert!(list.contains("the codemod"), "{list}");
        assert_eq!(list.lines().filter(|line| line.contains("the codemod")).count(), 1, "{list}");
        // What a person does afterwards stays.
        world.write("c", "written later");
        let plan = world.run(&["undo", "--dry-run"]).stdout;
        assert!(plan.contains("remove    new   made by the program; held first"), "{plan}");
        assert!(plan.contains("changed since, not by the program"), "{plan}");
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit, Exit::Ok, "{}{}", undone.stdout, undone.stderr);
        assert!(undone.stdout.contains("1 path changed by others kept: c\n"), "{}", undone.stdout);
        assert_eq!((&*world.read("a"), &*world.read("b")), ("mine", "mine too"));
        assert_eq!(world.read("c"), "written later");
        assert!(!world.root().join("new").exists(), "it is the program's");
    }
}

#[test]
fn the_exit_code_is_the_programs() {
    let world = World::new();
    world.write("a", "1");
    for (script, code) in [("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137)] {
        assert_eq!(run(&world, &["sh", "-c", script]).0, code, "{script}");
    }
    let (code, _, said) = run(&world, &["no-such-program\u{1b}"]);
    assert_eq!(code, 127, "{said}");
    assert!(said.starts_with("error: cannot run `no-such-program\\u{1b}`: "), "{said}");
    assert_eq!(run(&world, &["./a"]).0, 126);
    let mut world = world;
    let reverted = world.run(&["revert", "1", "--yes"]);
    assert_eq!(reverted.exit, Exit::Ok, "its turn is over: {}", reverted.stderr);
    assert_eq!(run(&world, &[]).0, 64);
}

#[test]
fn its_options_are_its_own() {
    let world = World::new();
    let (code, out, _) = run(&world, &["echo", "--name", "-y", "--help", "--"]);
    assert_eq!((code, &*out), (0, "--name -y --help --\n"));
    let (code, out, _) = run(&world, &["--", "echo", "a  b", "*"]);
    assert_eq!((code, &*out), (0, "a  b *\n"), "no shell comes between");
}

#[test]
fn what_is_sent_to_end_us_ends_the_program_and_its_work_is_noted() {
    let mut world = World::with_git();
    world.write("a", "mine");
    let script = "trap 'echo ended > a; exit 5' TERM; echo began > b; while :; do sleep 0.05; done";
    let mut child = command(&world, &["sh", "-c", script]).spawn().unwrap();
    while !world.root().join("b").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it runs");
        thread::sleep(Duration::from_millis(10));
    }
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    // A key of the terminal is the program's alone, and this one was not sent to it.
    kill_process(pid, Signal::INT).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert_eq!(world.read("a"), "ended\n");
    let undone = world.run(&["undo", "--yes"]);
    assert_eq!(undone.exit, Exit::Ok, "{}{}", undone.stdout, undone.stderr);
    assert_eq!(world.read("a"), "mine");
    assert!(!world.root().join("b").exists());
}

#[test]
fn what_cannot_be_held_is_asked_about_before_it_runs() {
    let world = World::with_git();
    write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
    write(&world.root().join("large"), vec![b'x'; 3_000_000]);
    let (code, _, said) = run(&world, &["rm", "large"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not held: large"), "{said}");
    assert!(said.contains("it was not run"), "{said}");
    assert!(world.root().join("large").exists());
    let (code, _, said) = run(&world, &["--yes", "rm", "large"]);
    assert_eq!(code, 0, "{said}");
    assert!(!world.root().join("large").exists());
}

#[test]
fn without_a_checkpoint_nothing_runs() {
    let world = World::new();
    world.write("a", "mine");
    // Where our own files would be, there is a file.
    write(&world.home().join(".local/state"), "");
    let (code, _, said) = run(&world, &["rm", "a"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(world.read("a"), "mine");
}

#[test]
fn each_is_a_turn_of_its_own_and_the_last_is_undone() {
    for make in [World::new, World::with_git] {
        let mut world = make();
        world.write("a", "mine");
        run(&world, &["--name", "one", "sh", "-c", "echo important > x"]);
        run(&world, &["--name", "two", "sh", "-c", ":"]);
        run(&world, &["--name", "three", "sh", "-c", "echo junk > y"]);
        // By hand it is as it was before the third.
        fs::remove_file(world.root().join("y")).unwrap();
        run(&world, &["--name", "four", "sh", "-c", "echo junk > z; echo changed > a"]);
        let list = world.run(&["list"]).stdout;
        assert!(["one", "two", "three", "four"].iter().all(|it| list.contains(it)), "{list}");
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit, Exit::Ok, "{}{}", undone.stdout, undone.stderr);
        let is_there = |name: &str| world.root().join(name).exists();
        assert_eq!(["x", "y", "z"].map(is_there), [true, false, false]);
        assert_eq!(world.read("a"), "mine");
    }
}

#[test]
fn a_program_that_changes_nothing_has_ended() {
    let programs: [&[&str]; 4] =
        [&["true"], &["cat", "a"], &["sh", "-c", "kill -9 $$"], &["no-such-program"]];
    for program in programs {
        let mut world = World::new();
        world.write("a", "mine\n");
        run(&world, program);
        let steps = world.see(&["list", "--steps", "1", "--json"]);
        assert!(steps.contains(r#""done": true"#), "{program:?}: {steps}");
        run(&world, &["sh", "-c", "echo line >> a"]);
        let blame = world.see(&["blame", "a"]);
        assert!(blame.lines().any(|line| line.contains("turn 1 ")), "{program:?}: {blame}");
    }
}

#[test]
fn a_name_proves_nothing() {
    let mut world = World::new();
    world.write("a", "mine");
    write(&world.root().join("bin/ls"), "#!/bin/sh\nrm a\n");
    chmod(&world.root().join("bin/ls"), 0o755);
    let mut command = command(&world, &["ls"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", world.root().join("bin").display()));
    assert!(command.status().unwrap().success());
    assert!(!world.root().join("a").exists());
    assert_eq!(world.run(&["undo", "--yes"]).exit, Exit::Ok);
    assert_eq!(world.read("a"), "mine");
}

#[test]
fn where_nothing_is_held_as_a_whole_it_is_asked_first() {
    let world = World::new();
    write(&world.home().join("note"), "mine");
    let run = |args: &[&str]| {
        let mut command = real::beforehand(&world, &world.home(), args);
        command.env("PATH", "/usr/bin:/bin").output().unwrap()
    };
    let done = run(&["run", "rm", "note"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("never held as a whole") && said.contains("it was not run"), "{said}");
    assert!(world.home().join("note").exists());
    assert_eq!(run(&["run", "--yes", "rm", "note"]).status.code(), Some(0));
}

#[test]
fn the_terminal_and_its_keys_are_the_programs() {
    let world = World::with_git();
    world.write("a", "mine");
    let script = "trap 'echo interrupted > a; exit 3' INT; test -t 0 && test -t 1 && echo \"a-tty $1\"; \
                  while :; do sleep 0.05; done";
    let program = world.root().join("program");
    write(&program, script);
    chmod(&program, 0o755);
    let Some(tmux) = Tmux::with_sh(&world, (80, 24)) else { return };
    tmux.line("beforehand run sh program now; echo code-$?-");
    tmux.sees("a-tty now");
    tmux.press(&["C-c"]);
    tmux.sees("code-3-");
    assert_eq!(world.read("a"), "interrupted\n");
    // A stopped program stops us with it, and both go on.
    tmux.line("clear; beforehand run sh program again; echo code-$?-");
    tmux.sees("a-tty again");
    tmux.press(&["C-z"]);
    tmux.sees("topped");
    tmux.line("fg; echo code-$?-");
    thread::sleep(Duration::from_millis(200));
    tmux.press(&["C-c"]);
    tmux.sees("code-3-");
}
