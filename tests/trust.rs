//! What `docs/TRUST.md` says of the network and of places that are written.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use crate::{
    costs::may_trace,
    support::{temp::write, world::World},
};

/// What the program does to the system, command by command, as `strace` tells it.
fn traced(world: &World, args: &[&str], input: &str, calls: &str) -> String {
    let place = world.root().join("../trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-qq", "-e", calls, "-o"]).arg(&place);
    command.arg(env!("CARGO_BIN_EXE_beforehand")).args(args).current_dir(world.root());
    command.env_clear().env("BEFOREHAND_AUTO_PRUNE", "off").envs(&world.env).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{args:?}");
    fs::read_to_string(&place).unwrap()
}

#[test]
fn nothing_leaves_the_machine_and_a_hook_writes_to_its_own_directory_alone() {
    if !may_trace() {
        return;
    }
    let world = World::new();
    fs::create_dir(world.home().join(".claude")).unwrap();
    write(&world.root().join("a"), "one\n");
    let payload = serde_json::json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p", "tool_use_id": "t",
        "cwd": world.root(), "permission_mode": "default", "transcript_path": "/none",
        "tool_name": "Bash", "tool_input": {"command": "rm -rf a"},
    })
    .to_string();
    let story: [(&[&str], &str); 6] = [
        (&["install", "claude-code", "--yes"], ""),
        (&["hook", "--agent", "claude-code"], &payload),
        (&["list"], ""),
        (&["doctor"], ""),
        (&["undo", "--yes"], ""),
        (&["uninstall", "--yes"], ""),
    ];
    for (args, input) in story {
        if args[0] == "undo" {
            fs::remove_file(world.root().join("a")).unwrap();
        }
        let trace = traced(&world, args, input, "trace=network,execve,openat,open,mkdir,rename");
        let sent = trace.lines().find(|line| line.contains("AF_INET"));
        assert_eq!(sent, None, "{args:?}");
        let other = trace.lines().find(|line| {
            line.contains("execve(") && !line.contains(env!("CARGO_BIN_EXE_beforehand"))
        });
        assert_eq!(other, None, "{args:?} runs nothing but itself");
        let is_written = |line: &&str| {
            ["O_WRONLY", "O_RDWR", "mkdir", "rename"].iter().any(|call| line.contains(call))
        };
        let state = world.state();
        let elsewhere = trace.lines().filter(is_written).find(|line| {
            !line.contains(state.to_str().unwrap())
                && !line.contains("/dev/null")
                && !line.contains("= -1")
        });
        if args[0] == "hook" {
            assert_eq!(elsewhere, None);
        }
    }
    assert_eq!(fs::read_to_string(world.root().join("a")).unwrap(), "one\n");
}
