//! One verdict where nothing can be held: whatever the reason, a call that would lose something is asked
//! about by name, or refused where no user would see a question, for every kind of tool. Each reason is a
//! real one, made for a real process.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{real, temp::write, world::World};

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is held, whatever else is wrong.
    Held,
    /// It is asked about, and the question says this.
    Asked(&'static str),
}

/// A reason why a checkpoint cannot be taken, or may seem not to be.
struct Reason {
    name: &'static str,
    /// Makes it so, before the hook is started.
    make: fn(&mut World),
    /// What runs before the hook, in a mount namespace: `$STATE` is the state directory.
    mount: &'static str,
    /// What the hook is started by.
    by: fn() -> Command,
    outcome: Outcome,
}

fn nothing(_: &mut World) {}

fn directly() -> Command {
    Command::new("env")
}

const PLAIN: Reason =
    Reason { name: "", make: nothing, mount: "", by: directly, outcome: Outcome::Held };

const NOT_SAVED: Outcome = Outcome::Asked("could not save a checkpoint");

const REASONS: &[Reason] = &[
    Reason { name: "none", ..PLAIN },
    Reason {
        name: "a file is where the state directory should be",
        make: |world| write(&world.state(), "in the way"),
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the state directory is read-only",
        mount: "mkdir -p $STATE; mount --bind $STATE $STATE; mount -o remount,bind,ro $STATE",
        outcome: NOT_SAVED,
        ..PLAIN
    },
];

/// What an agent wants to do to `victim`, if it names one.
struct Tool {
    name: &'static str,
    agent: &'static str,
    input: fn(&Path) -> Value,
    /// Whether something that is there would be lost.
    loses: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "Write",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("victim"), "content": "x" }),
        loses: true,
    },
    Tool {
        name: "Edit",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("victim"), "old_string": "m", "new_string": "" }),
        loses: true,
    },
    Tool {
        name: "NotebookEdit",
        agent: "claude-code",
        input: |root| json!({ "notebook_path": root.join("victim"), "new_source": "" }),
        loses: true,
    },
    Tool {
        name: "apply_patch",
        agent: "codex",
        input: |_| json!({ "command": "*** Begin Patch\n*** Delete File: victim\n*** End Patch\n" }),
        loses: true,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "rm victim" }),
        loses: true,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "echo x > victim" }),
        loses: true,
    },
    // Nothing is there to be lost, or nothing is named: a note and no question.
    Tool {
        name: "Write",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("new"), "content": "x" }),
        loses: false,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "./unknown-program" }),
        loses: false,
    },
    Tool { name: "mcp__x__y", agent: "claude-code", input: |_| json!({}), loses: false },
];

const CONTENT: &str = "mine, and nowhere else";

/// What the hook answers to a call, for the reason.
fn answer(world: &World, reason: &Reason, tool: &Tool, mode: &str) -> Value {
    let payload = json!({
        "session_id": "s1",
        "cwd": world.root(),
        "prompt_id": "t1",
        "turn_id": "t1",
        "permission_mode": mode,
        "hook_event_name": "PreToolUse",
        "tool_name": tool.name,
        "tool_input": (tool.input)(&world.root()),
        "tool_use_id": "x",
    });
    let mut command = (reason.by)();
    let hook = format!("exec \"$TB\" hook --agent {}", tool.agent);
    if reason.mount.is_empty() {
        command.args(["sh", "-c", &hook]);
    } else {
        let script = format!("{{ {}; }} >&2 || exit 99\n{hook}", reason.mount);
        command.args(["unshare", "-rm", "sh", "-ec", &script]);
    }
    command.current_dir(world.root()).env_clear().envs(&world.env);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command.env("TB", env!("CARGO_BIN_EXE_beforehand")).env("STATE", world.state());
    command.env("BEFOREHAND_AUTO_PRUNE", "off").env("WORLD", world.home().parent().unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    real::answer(child)
}

/// The verdict on a call, and what is said of it.
fn verdict(answer: &Value) -> (&str, String) {
    let inner = &answer["hookSpecificOutput"];
    let said = [&answer["systemMessage"], &inner["permissionDecisionReason"]];
    let said: Vec<&str> = said.into_iter().filter_map(Value::as_str).collect();
    (inner["permissionDecision"].as_str().unwrap_or_default(), said.join("\n"))
}

/// Whether this user may mount something in a namespace.
fn can_mount() -> bool {
    let mut tried = Command::new("unshare");
    tried.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    tried.output().is_ok_and(|output| output.status.success())
}

#[test]
fn whatever_the_reason_what_cannot_be_held_is_asked_about_by_name() {
    let can_mount = can_mount();
    for reason in REASONS {
        if !reason.mount.is_empty() && !can_mount {
            real::skip(&format!("nothing can be mounted here: {}", reason.name));
            continue;
        }
        for tool in TOOLS {
            for mode in ["default", "bypassPermissions"] {
                let mut world = World::new();
                world.write("victim", CONTENT);
                (reason.make)(&mut world);
                let answer = answer(&world, reason, tool, mode);
                let (verdict, said) = verdict(&answer);
                let input = (tool.input)(Path::new(""));
                let case = format!("{}: {} {input}, {mode}: {answer}", reason.name, tool.name);
                let refused =
                    if mode == "default" && tool.agent != "codex" { "ask" } else { "deny" };
                match reason.outcome {
                    Outcome::Held => {
                        assert_eq!(verdict, "", "{case}");
                        assert!(!said.contains("NOT protected"), "{case}");
                        if tool.loses {
                            comes_back(&mut world, &case);
                        }
                    }
                    Outcome::Asked(why) => {
                        assert!(said.contains(why), "{case}");
                        assert_eq!(verdict, if tool.loses { refused } else { "" }, "{case}");
                        assert_eq!(said.contains("not held: victim ("), tool.loses, "{case}");
                    }
                }
            }
        }
    }
}

/// The call does its worst, and the user takes it back.
fn comes_back(world: &mut World, case: &str) {
    fs::remove_file(world.root().join("victim")).unwrap();
    let undone = world.run(&["undo", "--yes"]);
    assert_eq!(world.read("victim"), CONTENT, "{case}: {undone:?}");
}
