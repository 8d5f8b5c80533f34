//! Newer and older versions after each other and at once, and a program that is moved, replaced or
//! removed while hooks are registered.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::support::{
    real::before,
    temp::{chmod, write},
    world::World,
};

/// A world with Claude Code and Cline, and a copy of the program as a package would install it.
fn world_with(name: &str) -> (World, PathBuf) {
    let world = World::new();
    for agent in [".claude", ".cline"] {
        fs::create_dir_all(world.home().join(agent)).unwrap();
    }
    let program = world.home().join("packages").join(name);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    copy_to(&program);
    (world, program)
}

/// In a process of its own: what this one writes, a child of another test may hold open, and then it
/// cannot be run.
fn copy_to(place: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_beforehand")).arg(place).status();
    assert!(copied.unwrap().success());
}

fn run(program: &Path, world: &World, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(world.root())
        .env_clear()
        .env("BEFOREHAND_AUTO_PRUNE", "off")
        .envs(&world.env);
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The command that is registered for a tool call of Claude Code.
fn registered(world: &World) -> String {
    let settings = fs::read_to_string(world.home().join(".claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap().to_owned()
}

/// Runs a command as an agent does: by a shell, with the payload on standard input.
fn called(world: &World, command: &str, payload: &str) -> Output {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(world.root())
        .env_clear()
        .env("BEFOREHAND_AUTO_PRUNE", "off")
        .envs(&world.env);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    // One that cannot be started reads nothing.
    let _unread = child.stdin.take().unwrap().write_all(payload.as_bytes());
    child.wait_with_output().unwrap()
}

fn removal(world: &World) -> String {
    before(&world.root(), "s", "t", "Bash", &json!({ "command": "rm -rf a" }))
}

#[test]
fn without_the_program_the_agent_goes_on_and_doctor_says_so() {
    let (world, program) = world_with("beforehand");
    assert!(run(&program, &world, &["install", "claude-code", "cline", "--yes"]).status.success());
    fs::remove_file(&program).unwrap();
    let cline = world.home().join(".cline/hooks/PreToolUse");
    for command in [registered(&world), cline.to_string_lossy().into_owned()] {
        let answer = called(&world, &command, &removal(&world));
        // Anything else fails every call in some agent.
        assert!(answer.status.success(), "{command}: {answer:?}");
        assert_eq!(said(&answer), "", "{command}");
    }
    let other = world.home().join("elsewhere");
    copy_to(&other);
    let told = said(&run(&other, &world, &["doctor"]));
    assert!(told.contains("/packages/beforehand`, which cannot be run"), "{told}");
    assert!(told.contains("beforehand install claude-code"), "{told}");
    assert!(run(&other, &world, &["install", "--yes"]).status.success());
    assert!(registered(&world).contains(other.to_str().unwrap()), "it was moved there");
    assert!(run(&other, &world, &["uninstall", "--yes"]).status.success());
    assert!(!world.home().join(".claude/settings.json").exists());
}

#[test]
fn a_program_that_is_replaced_while_it_runs_finishes_its_call() {
    for is_replaced in [true, false] {
        let (world, program) = world_with("beforehand");
        world.write("a", "one\n");
        let mut hook = Command::new(&program);
        hook.args(["hook", "--agent", "claude-code"]).current_dir(world.root());
        hook.env_clear()
            .env("BEFOREHAND_AUTO_PRUNE", "off")
            .envs(&world.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut hook = hook.spawn().unwrap();
        if is_replaced {
            let newer = program.with_extension("new");
            copy_to(&newer);
            fs::rename(&newer, &program).unwrap();
        } else {
            fs::remove_file(&program).unwrap();
        }
        hook.stdin.take().unwrap().write_all(removal(&world).as_bytes()).unwrap();
        let answer = hook.wait_with_output().unwrap();
        assert!(answer.status.success());
        assert_eq!(String::from_utf8_lossy(&answer.stdout), "{}", "replaced: {is_replaced}");
        let list = run(Path::new(env!("CARGO_BIN_EXE_beforehand")), &world, &["list", "--json"]);
        assert!(said(&list).contains("rm -rf a"), "{}", said(&list));
    }
}

#[test]
fn two_programs_at_once_share_what_is_held() {
    let (world, old) = world_with("beforehand");
    let new = world.home().join("beforehand-2");
    copy_to(&new);
    assert!(run(&old, &world, &["install", "claude-code", "--yes"]).status.success());
    world.write("a", "one\n");
    let command = registered(&world);
    assert_eq!(called(&world, &command, &removal(&world)).stdout, b"{}");
    fs::remove_file(world.root().join("a")).unwrap();
    let told = said(&run(&new, &world, &["doctor"]));
    assert!(told.contains("runs another beforehand"), "{told}");
    let undone = run(&new, &world, &["undo", "--yes"]);
    assert!(undone.status.success(), "{}", said(&undone));
    assert_eq!(world.read("a"), "one\n");
    assert!(run(&old, &world, &["redo", "--yes"]).status.success());
    assert!(!world.root().join("a").exists());
}

#[test]
fn a_program_in_a_cache_is_told_of() {
    let (world, kept) = world_with("beforehand");
    for (cache, is_told) in
        [(".cache/uv/archive-v0/x/bin", true), (".npm/_npx/1/bin", true), (".local/bin", false)]
    {
        let program = world.home().join(cache).join("beforehand");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        copy_to(&program);
        let told = said(&run(&program, &world, &["install", "claude-code", "--yes"]));
        assert_eq!(
            told.contains("is in a cache, which may be emptied"),
            is_told,
            "{cache}: {told}"
        );
    }
    assert!(run(&kept, &world, &["uninstall", "--yes"]).status.success());
}

#[test]
fn what_a_newer_install_wrote_down_is_not_written_again() {
    let mut world = World::new();
    for agent in [".claude", ".gemini"] {
        fs::create_dir_all(world.home().join(agent)).unwrap();
    }
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    let record = world.state().join("installed.json");
    let settings = world.home().join(".claude/settings.json");
    let before = fs::read(&settings).unwrap();
    let mut newer: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    newer["version"] = json!(2);
    newer["of the future"] = json!([1]);
    let unknown = json!({ "version": 2, "files": "of another shape" });
    for newer in [newer, unknown] {
        chmod(&record, 0o600);
        write(&record, newer.to_string());
        for args in [["install", "gemini-cli", "--yes"], ["uninstall", "claude-code", "--yes"]] {
            let told = world.run(&args);
            assert_eq!(told.exit, Exit::Failed, "{args:?}");
            assert!(told.stderr.contains("update beforehand"), "{args:?}: {}", told.stderr);
        }
        assert_eq!(fs::read(&settings).unwrap(), before);
        assert_eq!(fs::read_to_string(&record).unwrap(), newer.to_string());
        assert!(!world.home().join(".gemini/settings.json").exists());
    }
}

/// The checkpoints of an older build are set aside whole, and named, and the hook holds anew.
#[test]
fn the_state_of_an_older_build_is_set_aside_and_named() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "by the older build\n");
        assert_eq!(world.run(&["create", "-m", "older"]).exit, Exit::Ok);
        let roots = world.state().join("roots");
        let root = fs::read_dir(&roots).unwrap().next().unwrap().unwrap().file_name();
        let file = roots.join(&root).join("root.json");
        let text = fs::read_to_string(&file).unwrap();
        chmod(&file, 0o600);
        write(&file, text.replace("\"version\": 2", "\"version\": 1"));
        let _from_a_reader = fs::remove_file(world.state().join("format-2"));
        world.write("a", "by the user since\n");
        assert_eq!(world.before_bash("t1", "rm a"), "{}");
        fs::remove_file(world.root().join("a")).unwrap();
        let aside = world.state().join("older-1-0/roots").join(&root);
        assert!(aside.join("root.json").exists(), "nothing of it is lost");
        let listed = world.run(&["list", "--all"]).stdout;
        assert!(!listed.contains("older"), "nor read: {listed}");
        let told = world.run(&["doctor"]).stdout;
        assert!(told.contains("older-1-0"), "{told}");
        assert_eq!(world.run(&["undo", "--yes"]).exit, Exit::Ok);
        assert_eq!(world.read("a"), "by the user since\n");
        // Without the mark, the roots tell that nothing is older.
        fs::remove_file(world.state().join("format-2")).unwrap();
        assert_eq!(world.run(&["list"]).exit, Exit::Ok);
        assert!(world.state().join("format-2").exists());
        assert!(!world.state().join("older-1-1").exists());
    }
}
