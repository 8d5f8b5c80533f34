//! Whatever a project, an agent or a damaged file calls things: nothing that we print moves the
//! terminal of whoever reads it, or hides or reorders what stands there.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use beforehand::{error::is_plain, process::Exit};
use serde_json::{Value, json};

use crate::support::{
    real::git,
    temp::{chmod, on_disk, write},
    world::World,
};

/// A title, a screen that is cleared, a line that reads backwards, nothing at all, and a control
/// character of the old kind.
const EVIL: &str = "\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}\u{200b}\u{9b}2K\r";

fn evil(name: &str) -> String {
    format!("{name}{EVIL}")
}

/// Runs a command and looks at every character it prints.
#[track_caller]
fn runs(world: &World, root: &Path, args: &[&str]) -> String {
    let output = world.run_in(root, args, "");
    for said in [&output.stdout, &output.stderr] {
        let at = said.find(|c: char| c != '\n' && c != '\t' && !is_plain(c));
        assert_eq!(at, None, "{args:?}: {said:?}");
    }
    assert_ne!(output.exit, Exit::Bug, "{args:?}: {}", output.stderr);
    output.stdout
}

/// Answers a call; what the person reads of the answer is looked at.
#[track_caller]
fn call(world: &World, root: &Path, event: &str, turn: &str, tool: &str, input: &Value) {
    let payload = json!({
        "session_id": evil("s"), "cwd": root, "prompt_id": evil(turn), "hook_event_name": event,
        "tool_name": tool, "tool_input": input, "tool_use_id": evil("u"), "prompt": evil("words"),
        "transcript_path": root.join(evil("t")),
    });
    let output = world.run_in(root, &["hook", "--agent", "claude-code"], &payload.to_string());
    assert_eq!((output.exit, &*output.stderr), (Exit::Ok, ""));
    let answer: Value = serde_json::from_str(&output.stdout).unwrap();
    let mut open = vec![&answer];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                assert!(text.chars().all(|c| c == '\n' || is_plain(c)), "{text:?}");
            }
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(values) => open.extend(values),
            Value::Null | Value::Bool(_) | Value::Number(_) => (),
        }
    }
}

/// A project in which everything has such a name, and calls that name it.
fn project(world: &mut World, with_git: bool) -> PathBuf {
    let root = world.root().join(evil("project\n"));
    let dir = root.join(evil("d"));
    write(&root.join(evil("a")), evil("one\n"));
    write(&root.join(evil(".env")), "secret");
    write(&dir.join("b"), "two\n");
    symlink(evil("to"), root.join(evil("l"))).unwrap();
    if with_git {
        let line = format!(
            "git init -q -b main && git config remote.x.url 'ext::{EVIL}' && git add -A && \
             git commit -qm 'subject{EVIL}' && git checkout -qb 'b\u{202e}x'"
        );
        git(world, &root, &line);
    }
    world.set("BEFOREHAND_MAX_VICTIM_SIZE", "1 MB");
    call(world, &root, "UserPromptSubmit", "t1", "", &Value::Null);
    let line = format!("rm -rf 'd{EVIL}' /nowhere/{EVIL} && echo {EVIL}");
    call(world, &root, "PreToolUse", "t1", "Bash", &json!({ "command": line }));
    let edit = json!({ "file_path": root.join(evil("a")), "content": "" });
    call(world, &root, "PreToolUse", "t2", "Write", &edit);
    write(&root.join(evil("a")), evil("other\n"));
    call(world, &root, "PostToolUse", "t2", "Write", &edit);
    let big = root.join(evil("big"));
    fs::File::create(&big).unwrap().set_len(1 << 40).unwrap();
    let line = format!("rm 'big{EVIL}'; beforehand clear {EVIL}");
    call(world, &root, "PreToolUse", "t3", "Bash", &json!({ "command": line }));
    call(world, &root, "PreToolUse", "t4", &evil("Tool"), &json!({ EVIL: EVIL }));
    fs::remove_file(big).unwrap();
    fs::rename(&dir, dir.with_file_name("elsewhere")).unwrap();
    root
}

/// Every command there is, and what it is given: a shell makes arguments of names.
fn every(given: &str) -> Vec<Vec<&str>> {
    let lines = [
        "list",
        "list --all",
        "list --everywhere",
        "list --json",
        "show 1",
        "show latest --json",
        "diff 1",
        "diff 2 1",
        "diff 1 --json",
        "find a*",
        "find --text one",
        "find %",
        "find b --everywhere",
        "status",
        "status --json",
        "check",
        "check --read-data",
        "doctor",
        "config",
        "explain %",
        "prune --dry-run --keep 1",
        "clear",
        "restore latest~1 --dry-run",
        "restore 1 --dry-run --exact --force",
        "restore 1 %",
        "restore %",
        "show %",
        "diff %",
        "list %",
        "%",
        "--%",
        "restore 1 --yes --force --exact",
        "undo --yes",
        "redo --yes",
        "restore 1 --yes --conversation",
        "install --dry-run",
        "uninstall --dry-run",
        "rewind",
        "slash %",
        "slash rollback -- %",
        "slash checkpoint -- %",
        "config %",
        "clear --root %",
        "create -m %",
        "status",
        "list",
    ];
    let words = |line: &'static str| line.split(' ').map(|it| if it == "%" { given } else { it });
    lines.iter().map(|line| words(line).collect()).collect()
}

#[test]
fn nothing_that_is_printed_moves_the_terminal() {
    for with_git in [true, false] {
        let mut world = World::new();
        let root = project(&mut world, with_git);
        runs(&world, &root, &["create", "-m", EVIL]);
        for args in every(EVIL) {
            runs(&world, &root, &args);
        }
    }
}

#[test]
fn settings_and_damaged_files_move_it_no_more() {
    let mut world = World::new();
    let root = project(&mut world, true);
    runs(&world, &root, &["create", "-m", "message"]);
    let text = "\"k\\u001b[2J\" = 1\nretention = \"\\u202ex\"\n[\"/x\\u009b\"]\nenabled = 1\n";
    write(&world.settings(), text);
    world.set("BEFOREHAND_DEADLINE", EVIL);
    let told = runs(&world, &root, &["config"]) + &runs(&world, &root, &["status"]);
    assert!(!told.is_empty());
    call(&world, &root, "PreToolUse", "t9", "Bash", &json!({ "command": "make" }));
    fs::remove_file(world.settings()).unwrap();
    let state = world.state();
    for name in on_disk(&state).into_keys() {
        let path = state.join(String::from_utf8(name).unwrap());
        if path.is_file() && path.components().any(|part| part.as_os_str() == "checkpoints") {
            let text = fs::read_to_string(&path).unwrap();
            chmod(&path, 0o600);
            write(&path, text.replace("message", "\\u001b[2J").replace("asked", "\\u009basked"));
        }
    }
    for args in [
        &["list", "--all"][..],
        &["show", "1"],
        &["status"],
        &["check"],
        &["doctor"],
        &["check", "--repair"],
        &["list", "--json"],
    ] {
        runs(&world, &root, args);
    }
}
