//! Calls that are not what a row of the table expects: rewritten, unknown, unreadable, without a call, or
//! made by a sub-agent. All of them are held before they run.

use std::fs;

use beforehand::fs::remove_tree;
use serde_json::{Value, json};

use crate::{
    reports::listed,
    support::{
        temp::write,
        world::{Output, World},
    },
};

/// Sends a payload of an agent.
fn send(world: &mut World, agent: &str, payload: &Value) -> Output {
    world.wait(1);
    let root = world.root();
    world.run_in(&root, &["hook", "--agent", agent], &payload.to_string())
}

/// A payload of Claude Code about a call.
fn call(world: &World, event: &str, id: &str, tool: &str, input: &Value) -> Value {
    json!({
        "hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": world.root(),
        "tool_name": tool, "tool_use_id": id, "tool_input": input,
    })
}

fn bash(world: &mut World, event: &str, id: &str, command: &str) -> String {
    let payload = call(world, event, id, "Bash", &json!({ "command": command }));
    send(world, "claude-code", &payload).stdout
}

fn prompt(world: &mut World, words: &str) -> String {
    let payload = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": words,
        "cwd": world.root(), "prompt": words,
    });
    send(world, "claude-code", &payload).stdout
}

/// How many checkpoints there are.
fn count(world: &mut World) -> usize {
    listed(world, &["--all"]).as_array().map_or(0, Vec::len)
}

#[test]
fn a_call_that_ran_otherwise_is_reported_and_ends_the_trust() {
    let mut world = World::new();
    world.write("docs/a", "an hour of work");
    prompt(&mut world, "go");
    assert_eq!(bash(&mut world, "PreToolUse", "t1", "ls docs"), "{}");
    assert_eq!(count(&mut world), 0, "a line that only reads takes no checkpoint");
    remove_tree(&world.root().join("docs")).unwrap();
    let told = bash(&mut world, "PostToolUse", "t1", "rm -rf docs");
    assert!(told.contains("`rm -rf docs` ran, but another call was announced"), "{told}");
    world.write("b", "made by hand");
    assert_eq!(bash(&mut world, "PreToolUse", "t2", "ls"), "{}");
    assert_eq!(count(&mut world), 1, "no line of this session is taken for harmless");
}

#[test]
fn a_call_that_ran_as_announced_is_no_news_however_often_it_is_told() {
    let mut world = World::new();
    world.write("a", "1");
    prompt(&mut world, "go");
    bash(&mut world, "PreToolUse", "t1", "rm a");
    fs::remove_file(world.root().join("a")).unwrap();
    for _ in 0..2 {
        assert_eq!(bash(&mut world, "PostToolUse", "t1", "rm a"), "{}");
    }
    // An edit that the turn has covered leaves no announcement.
    for id in ["t2", "t3"] {
        world.agent_writes("go", "b", id);
    }
    assert_eq!(bash(&mut world, "PreToolUse", "t4", "ls"), "{}");
}

#[test]
fn another_programs_hook_voids_every_proof() {
    let mut world = World::new();
    world.write("docs/a", "an hour of work");
    let settings = json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [
        { "type": "command", "command": "rewrite-calls" },
    ] }] } });
    write(&world.home().join(".claude/settings.json"), settings.to_string());
    prompt(&mut world, "go");
    assert_eq!(bash(&mut world, "PreToolUse", "t1", "ls docs"), "{}");
    assert_eq!(count(&mut world), 1, "the line that runs may be another");
    remove_tree(&world.root().join("docs")).unwrap();
    bash(&mut world, "PostToolUse", "t1", "rm -rf docs");
    let undone = world.run(&["undo", "--yes"]);
    assert_eq!(undone.exit.code(), 0, "{}", undone.stderr);
    assert_eq!(world.read("docs/a"), "an hour of work");
}

#[test]
fn a_payload_that_cannot_be_read_holds_the_root_and_is_told_once() {
    let mut world = World::new();
    world.write("a", "1");
    let root = world.root();
    let first = world.run_in(&root, &["hook", "--agent", "grok-build"], "{\"tool_name\": rm");
    assert_eq!((first.exit.code(), first.stdout.as_str()), (0, ""));
    assert_eq!(count(&mut world), 1);
    let claude =
        |world: &World| world.run_in(&root, &["hook", "--agent", "claude-code"], "{]").stdout;
    assert!(claude(&world).contains("cannot read the hook payload"));
    assert_eq!(claude(&world), "{}");
}

#[test]
fn every_field_twice_in_two_spellings_is_a_call() {
    let mut world = World::new();
    world.write("docs/a", "1");
    let root = world.root();
    let payload = format!(
        r#"{{"hookEventName":"pre_tool_use","hook_event_name":"PreToolUse","sessionId":"s",
        "session_id":"s","cwd":{root},"toolName":"run_terminal_command",
        "tool_name":"run_terminal_command","toolInput":{{"command":"rm -rf docs"}},
        "tool_input":{{"command":"rm -rf docs"}},"toolUseId":"t","tool_use_id":"t"}}"#,
        root = json!(root)
    );
    for agent in ["grok-build", "claude-code"] {
        let answer = world.run_in(&root, &["hook", "--agent", agent], &payload);
        assert_eq!(answer.exit.code(), 0, "{}", answer.stderr);
        let rows = listed(&mut world, &["--all"]);
        assert!(rows.to_string().contains("rm -rf docs"), "{agent}: {rows}");
    }
}

#[test]
fn a_custom_command_is_held_before_it_runs() {
    let mut world = World::new();
    world.write("a", "1");
    bash(&mut world, "PreToolUse", "t1", "rm -f nothing");
    let before = count(&mut world);
    world.write("notes", "an hour of work");
    for own in ["/undo", "/beforehand:rollback 2", "undo what you did"] {
        prompt(&mut world, own);
    }
    assert_eq!(count(&mut world), before, "our own commands hold what they replace themselves");
    assert_eq!(prompt(&mut world, "/clean now"), "{}");
    assert_eq!(count(&mut world), before + 1);
    fs::remove_file(world.root().join("notes")).unwrap();
    let back = world.run(&["restore", "latest", "--yes", "--", "notes"]);
    assert_eq!(back.exit.code(), 0, "{}", back.stderr);
    assert_eq!(world.read("notes"), "an hour of work");
}

#[test]
fn the_shell_line_of_a_command_is_held_and_never_refused() {
    let mut world = World::with_git();
    write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
    world.write(".gitignore", "*.bin");
    world.write("big.bin", vec![1; 3 << 20]);
    world.write("docs/a", "1");
    let line = |world: &World, command: &str| {
        let input = json!({ "command": command });
        let mut payload = call(world, "PreSkillShellCommand", "t", "Bash", &input);
        payload["command_name"] = json!("clean");
        payload
    };
    let payload = line(&world, "rm -rf docs big.bin");
    let answer = send(&mut world, "claude-code", &payload).stdout;
    assert!(!answer.contains("permissionDecision"), "any opinion stops the line: {answer}");
    assert!(answer.contains("not held: big.bin"), "{answer}");
    let before = count(&mut world);
    assert_eq!(before, 1);
    let payload = line(&world, "beforehand slash undo --stdin <<'X'\n\nX");
    world.write("docs/b", "2");
    assert_eq!(send(&mut world, "claude-code", &payload).stdout, "{}");
    assert_eq!(count(&mut world), before);
}

#[test]
fn an_unknown_tool_is_asked_about_where_it_names_what_is_not_held() {
    let mut world = World::with_git();
    write(&world.settings(), "max_file_size = \"1 MB\"\nmax_victim_size = \"2 MB\"\n");
    world.write(".gitignore", "*.bin");
    world.write("big.bin", vec![1; 3 << 20]);
    let outside = world.home().join("elsewhere");
    write(&outside.join("conf.ini"), "port=80\n");
    let root = world.root();
    let asks = |world: &mut World, tool: &str, input: Value| {
        let payload = call(world, "PreToolUse", tool, tool, &input);
        send(world, "claude-code", &payload).stdout.contains("\"permissionDecision\":\"ask\"")
    };
    let big = root.join("big.bin");
    assert!(asks(&mut world, "mcp__fs__delete_file", json!({ "path": big })));
    assert!(asks(&mut world, "fs-delete_file", json!({ "vault": root, "filename": "big.bin" })));
    let uri = format!("file://{}", big.display());
    assert!(asks(&mut world, "REPL", json!({ "args": [{ uri: "x" }] })));
    assert!(asks(&mut world, "exec_command", json!({ "input": "cd . && rm big.bin" })));
    assert!(!asks(&mut world, "mcp__fs__read_file", json!({ "path": big })), "it only looks");
    assert!(
        !asks(&mut world, "mcp__fs__list", json!({ "path": root })),
        "a directory is looked at"
    );
    let input = json!({ "repo_path": outside, "filename": "conf.ini" });
    assert!(!asks(&mut world, "mcp__fs__delete_file", input));
    fs::remove_file(outside.join("conf.ini")).unwrap();
    let back = world.run(&["restore", "latest", "--outside", "--force", "--yes"]);
    assert_eq!(
        fs::read_to_string(outside.join("conf.ini")).ok().as_deref(),
        Some("port=80\n"),
        "{}",
        back.stderr
    );
}

#[test]
fn a_tilde_in_a_file_tool_is_the_home_directory() {
    let mut world = World::new();
    write(&world.home().join("notes.txt"), "an hour of work");
    let input = json!({ "file_path": "~/notes.txt", "content": "" });
    let payload = call(&world, "PreToolUse", "t", "Write", &input);
    send(&mut world, "claude-code", &payload);
    write(&world.home().join("notes.txt"), "");
    let back = world.run(&["restore", "latest", "--outside", "--force", "--yes"]);
    let text = fs::read_to_string(world.home().join("notes.txt")).unwrap();
    assert_eq!(text, "an hour of work", "{}", back.stderr);
}

#[test]
fn a_sub_agent_with_a_session_of_its_own_belongs_to_the_turn_that_started_it() {
    let mut world = World::new();
    world.write("docs/a", "1");
    let root = world.root();
    let event = |name: &str, session: &str, more: Value| {
        let mut payload = json!({ "hook_event_name": name, "session_id": session, "cwd": root });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let steps = [
        event("UserPromptSubmit", "s", json!({ "prompt": "tidy up" })),
        event("SessionStart", "child", json!({ "calling_session_id": "s" })),
        event("UserPromptSubmit", "child", json!({ "prompt": "remove docs" })),
        event(
            "PreToolUse",
            "child",
            json!({
                "tool_name": "Execute", "tool_input": { "command": "rm -rf docs" },
            }),
        ),
    ];
    for payload in &steps {
        send(&mut world, "factory-droid", payload);
    }
    remove_tree(&root.join("docs")).unwrap();
    let done = event(
        "PostToolUse",
        "child",
        json!({
            "tool_name": "Execute", "tool_input": { "command": "rm -rf docs" },
        }),
    );
    send(&mut world, "factory-droid", &done);
    let rows = listed(&mut world, &[]);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["prompt"], &rows[0]["session"]), (&json!("tidy up"), &json!("s")));
}

#[test]
fn every_command_line_of_a_shell_tool_is_judged() {
    for input in [
        json!({ "command": "ls", "script": "rm a" }),
        json!({ "command": "ls", "commands": ["rm a"] }),
        json!({ "command": "ls", "args": ["; rm a"] }),
        json!({ "command": "ls", "env": { "BASH_ENV": "/x" } }),
    ] {
        let mut world = World::new();
        world.write("a", "1");
        let payload = call(&world, "PreToolUse", "t", "Bash", &input);
        send(&mut world, "claude-code", &payload);
        assert_eq!(count(&mut world), 1, "{input}");
    }
    let mut world = World::new();
    world.write("a", "1");
    let mut payload = call(&world, "PreToolUse", "t", "Bash", &json!({ "command": "ls" }));
    payload["toolArgs"] = json!({ "command": "rm a" });
    send(&mut world, "claude-code", &payload);
    assert_eq!(count(&mut world), 1);
}

#[test]
fn a_long_program_hides_no_file_that_it_names() {
    let mut world = World::new();
    let outside = world.home().join("elsewhere/o.txt");
    write(&outside, "an hour of work");
    let filler = "x = 1\n".repeat(5_000);
    let line = format!("python3 - <<'E'\n{filler}import os\nos.remove('{}')\nE", outside.display());
    bash(&mut world, "PreToolUse", "t", &line);
    fs::remove_file(&outside).unwrap();
    let back = world.run(&["restore", "latest", "--outside", "--force", "--yes"]);
    assert_eq!(
        fs::read_to_string(&outside).ok().as_deref(),
        Some("an hour of work"),
        "{}",
        back.stderr
    );
}

#[test]
fn an_unknown_tool_that_ran_otherwise_is_reported() {
    let mut world = World::new();
    world.write("a", "1");
    prompt(&mut world, "go");
    let tool = "mcp__fs__delete_file";
    let announced = call(&world, "PreToolUse", "t", tool, &json!({ "path": "b" }));
    send(&mut world, "claude-code", &announced);
    let ran = call(&world, "PostToolUse", "t", tool, &json!({ "path": "a" }));
    let told = send(&mut world, "claude-code", &ran).stdout;
    assert!(told.contains("another call was announced"), "{told}");
}
