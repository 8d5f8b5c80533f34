//! Unexpected behaviour of agents, through the whole program. Each case was observed in a real
//! agent or read in its documentation.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    process::{Command, Stdio},
};

use beforehand::{
    agent::{DIALECTS, Dialect, Markers},
    model::{Event, Intent, ToolCall},
};
use serde_json::{Value, json};

use crate::support::{temp::write, world::World};

/// Tells one hook of one agent.
fn tell(world: &World, agent: &str, payload: &Value) -> String {
    let root = world.root();
    let output = world.run_in(&root, &["hook", "--agent", agent], &payload.to_string());
    assert_eq!(output.exit.code(), 0, "{}", output.stderr);
    output.stdout
}

/// How many checkpoints each turn has, newest turn first.
fn turns(world: &mut World) -> Vec<usize> {
    let listed = world.run(&["list", "--all", "--json"]).stdout;
    let rows: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let number = |row: &Value| row["number"].to_string().trim_matches('"').to_owned();
    let turn = |row: &Value| number(row).split('.').next().unwrap().parse::<usize>().ok();
    let numbers: Vec<usize> = rows.iter().filter_map(turn).collect();
    let turns: BTreeSet<usize> = numbers.iter().copied().collect();
    turns.iter().map(|turn| numbers.iter().filter(|other| *other == turn).count()).collect()
}

/// A call in the format of Claude Code.
fn call(world: &World, more: Value) -> Value {
    let mut payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.root(),
        "tool_name": "Bash", "tool_use_id": "1", "prompt_id": "p",
    });
    let Value::Object(more) = more else { panic!("an object") };
    payload.as_object_mut().unwrap().extend(more);
    payload
}

/// An ignored file, which only a call that names it makes us hold.
fn with_ignored(path: &str) -> World {
    let world = World::with_git();
    world.write(".gitignore", "*.db\n");
    world.write(path, "data");
    world
}

/// Changes the file and goes back.
fn comes_back(world: &mut World, path: &str) {
    world.write(path, "lost");
    let done = world.run(&["restore", "1", "--yes", "--force"]);
    assert_eq!(world.read(path), "data", "{}{}", done.stdout, done.stderr);
}

/// What the newest row of the list says was asked for.
fn asked_for(world: &mut World) -> String {
    let json: Value = serde_json::from_str(&world.run(&["list", "--json"]).stdout).unwrap();
    json[0]["prompt"].as_str().unwrap_or("nothing").to_owned()
}

#[test]
fn what_was_asked_for_is_known_whatever_way_the_agent_tells_it() {
    let prompt = "make it";
    // Cline names the session only; what it keeps of that has the words.
    let mut world = World::new();
    let home = world.root().join("../../home").canonicalize().unwrap();
    let kept = home.join(".cline/data/sessions/17_a/17_a.json");
    write(&kept, json!({ "prompt": prompt }).to_string());
    let session = json!({ "rootSessionId": "17_a" });
    let begins = json!({ "hookName": "agent_start", "taskId": "c", "sessionContext": session,
        "workspaceRoots": [world.root()], "taskStart": {} });
    let call = json!({ "hookName": "tool_call", "taskId": "c", "sessionContext": session,
        "workspaceRoots": [world.root()], "tool_call":
        { "id": "1", "name": "run_commands", "input": { "commands": ["make"] } } });
    for payload in [begins, call] {
        tell(&world, "cline", &payload);
    }
    assert_eq!(asked_for(&mut world), prompt);
    // Droid's `exec` says no prompt; its conversation has it after its own reminders.
    let mut world = World::new();
    let conversation = world.root().parent().unwrap().join("talk.jsonl");
    let line = |text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "type": "message", "timestamp": "2026-11-22T17:53:14.286Z",
            "message": { "role": "user", "content": content } })
        .to_string()
    };
    write(&conversation, format!("{}\n{}\n", line("<system-reminder>\nToday is"), line(prompt)));
    let call = json!({ "session_id": "s", "cwd": world.root(), "hook_event_name": "PreToolUse",
        "transcript_path": conversation, "tool_name": "Execute", "tool_input": { "command": "make" } });
    tell(&world, "factory-droid", &call);
    assert_eq!(asked_for(&mut world), prompt);
    // `opencode run` puts quotes around what it was given.
    for (told, is) in [
        ("\"make it\"", prompt),
        ("say \"hi\"", "say \"hi\""),
        ("\"a\" or \"b\"", "\"a\" or \"b\""),
    ] {
        let mut world = World::new();
        for (name, more) in [("chat.message", json!(told)), ("tool.execute.before", Value::Null)] {
            let payload = json!({ "hook_event_name": name, "session_id": "ses_1", "message_id": "m",
                "cwd": world.root(), "prompt": more, "tool_name": "bash", "call_id": "1",
                "tool_input": { "command": "make" } });
            tell(&world, "opencode", &payload);
        }
        assert_eq!(asked_for(&mut world), is);
    }
}

#[test]
fn a_sub_agent_works_in_the_turn_that_started_it() {
    let mut world = World::with_git();
    world.write("a", "a");
    let own = world.state().join("../rollout.jsonl");
    write(&own, "{\"payload\":{\"role\":\"user\",\"content\":\"a task\"}}\n");
    let prompt = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "turn_id": "t1",
        "cwd": world.root(), "prompt": "do it", "transcript_path": null,
    });
    tell(&world, "codex", &prompt);
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    let root = call(
        &world,
        json!({
            "tool_name": "apply_patch", "tool_input": { "command": patch }, "turn_id": "t1",
            "transcript_path": null,
        }),
    );
    tell(&world, "codex", &root);
    world.write("b", "b");
    let sub = call(
        &world,
        json!({
            "tool_input": { "command": "rm b" }, "turn_id": "of-its-own", "agent_id": "helper",
            "transcript_path": own,
        }),
    );
    tell(&world, "codex", &sub);
    assert_eq!(turns(&mut world), [2]);
}

#[test]
fn without_prompts_a_turn_begins_after_the_end_of_one() {
    let mut world = World::with_git();
    let event = |name: &str, session: &str, parent: Option<&str>| {
        json!({ "hook_event_name": name, "session_id": session, "parent_session_id": parent,
            "cwd": world.root(), "tool_name": "file_system.bash", "tool_call_id": name,
            "tool_input": { "command": "make" } })
    };
    let steps = [
        event("pre_tool", "s", None),
        event("pre_tool", "child", Some("s")),
        // The end of a sub-agent ends no turn of the user's.
        event("post_agent", "child", Some("s")),
        event("pre_tool", "s", None),
        event("post_agent", "s", None),
        event("pre_tool", "s", None),
    ];
    for (at, payload) in steps.iter().enumerate() {
        world.write("a", at.to_string());
        tell(&world, "vibe", payload);
    }
    assert_eq!(turns(&mut world).len(), 2);
}

#[test]
fn a_sub_agent_of_a_sub_agent_works_in_the_turn_of_the_user() {
    let mut world = World::with_git();
    world.write("a", "a");
    let event = |session: &str, parent: Option<&str>, more: Value| {
        let mut payload = json!({ "sessionId": session, "timestamp": 1, "cwd": world.root() });
        if let Some(parent) = parent {
            let names = json!({ "agentId": session, "parentAgentId": parent });
            payload.as_object_mut().unwrap().extend(names.as_object().unwrap().clone());
        }
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let call = json!({ "toolName": "bash", "toolArgs": { "command": "rm a" } });
    for payload in [
        event("s", None, json!({ "prompt": "tidy up" })),
        event("child", Some("s"), json!({ "prompt": "find what to remove" })),
        event("grandchild", Some("child"), json!({ "prompt": "remove it" })),
        event("grandchild", Some("child"), call.clone()),
        event("child", Some("s"), json!({ "stopReason": "end_turn" })),
        event("s", None, call),
    ] {
        tell(&world, "copilot-cli", &payload);
    }
    assert_eq!(turns(&mut world).len(), 1);
    assert_eq!(asked_for(&mut world), "tidy up");
}

#[test]
fn a_call_that_arrives_through_two_configurations_is_held_once() {
    let mut world = World::with_git();
    world.write("a", "a");
    world.set("COPILOT_CLI", "1");
    // Copilot CLI runs its own hooks, and those of the repository's Claude Code settings.
    let input = json!({ "path": world.root().join("a"), "old_str": "a", "new_str": "b" });
    let own = json!({
        "sessionId": "s", "timestamp": 1, "cwd": world.root(), "toolName": "edit", "toolArgs": input,
    });
    let foreign = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.root(),
        "tool_name": "Edit", "tool_input": input,
    });
    tell(&world, "copilot-cli", &own);
    tell(&world, "claude-code", &foreign);
    assert_eq!(turns(&mut world), [1]);
}

#[test]
fn prompts_that_are_no_turns_begin_none() {
    let mut world = World::with_git();
    world.write("a", "a");
    let prompt = |text: &str| {
        json!({
            "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p",
            "cwd": world.root(), "prompt": text,
        })
    };
    tell(&world, "qwen-code", &prompt("do it"));
    let shell = |line: &str| {
        call(&world, json!({ "tool_name": "run_shell_command", "tool_input": { "command": line } }))
    };
    tell(&world, "qwen-code", &shell("rm a"));
    for text in ["", "<task-notification>\n<task-id>"] {
        tell(&world, "qwen-code", &prompt(text));
    }
    world.write("b", "b");
    tell(&world, "qwen-code", &shell("rm b"));
    assert_eq!(turns(&mut world), [2]);
}

#[test]
fn a_path_is_looked_for_from_everywhere_it_may_be_meant() {
    let mut world = with_ignored("x.db");
    fs::create_dir(world.root().join("sub")).unwrap();
    let root = world.root();
    world.set("CLAUDE_PROJECT_DIR", root.to_str().unwrap());
    // `cwd` follows `cd`; the path may still be meant from the project.
    let edit = call(
        &world,
        json!({
            "cwd": root.join("sub"), "tool_name": "Edit", "tool_input": { "file_path": "x.db" },
        }),
    );
    tell(&world, "claude-code", &edit);
    comes_back(&mut world, "x.db");
}

#[test]
fn a_command_runs_where_it_says() {
    let mut world = with_ignored("rel/x.db");
    // Hermes gives the process's directory, and the command's own beside it.
    let payload = json!({
        "hook_event_name": "pre_tool_call", "session_id": "s", "cwd": world.root(),
        "tool_name": "terminal", "tool_input": { "command": "rm x.db", "workdir": "rel" },
        "extra": { "turn_id": "t", "tool_call_id": "1" },
    });
    tell(&world, "hermes", &payload);
    comes_back(&mut world, "rel/x.db");
}

#[test]
fn a_command_whose_directory_is_hidden_is_held_with_the_whole_project() {
    let mut world = World::with_git();
    world.write("sub/rel.txt", "data");
    // Codex does not tell that this runs in `sub`.
    let shell = call(
        &world,
        json!({
            "tool_input": { "command": "echo y > rel.txt" }, "turn_id": "t", "transcript_path": null,
        }),
    );
    tell(&world, "codex", &shell);
    comes_back(&mut world, "sub/rel.txt");
}

#[test]
fn an_agent_that_does_not_say_where_it_is_says_so_in_its_environment() {
    let mut world = World::with_git();
    world.write("a", "data");
    let root = world.root();
    world.set("DEVIN_PROJECT_DIR", root.to_str().unwrap());
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "prompt_id": "p",
        "tool_name": "exec", "tool_input": { "command": "rm a" },
    });
    world.run_in(root.parent().unwrap(), &["hook", "--agent", "devin-cli"], &payload.to_string());
    comes_back(&mut world, "a");
}

#[test]
fn calls_at_once_are_held_once_and_none_runs_before() {
    let mut world = World::with_git();
    // Maintenance goes on after the hook has returned; here its home is removed first.
    write(&world.settings(), "auto_prune = false\n");
    world.write("a", "a");
    world.write("b", "b");
    let shell = |id: &str, line: &str| {
        call(&world, json!({ "tool_use_id": id, "tool_input": { "command": line } }))
    };
    let calls = [shell("1", "rm a"), shell("2", "rm b"), shell("3", "make all")];
    let start = |payload: &Value| {
        let mut started = Command::new(env!("CARGO_BIN_EXE_beforehand"))
            .args(["hook", "--agent", "claude-code"])
            .current_dir(world.root())
            .env_clear()
            .env("HOME", world.root().join("../../home").canonicalize().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        started.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        started
    };
    let started: Vec<_> = calls.iter().map(start).collect();
    for one in started {
        let output = one.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"{}".as_slice()));
    }
    assert_eq!(turns(&mut world), [1]);
}

/// A call of an agent, as it was recorded.
struct Recorded {
    payload: Value,
    call: ToolCall,
}

impl Recorded {
    fn of(dialect: &Dialect, payload: &Value) -> Option<Self> {
        let text = payload.to_string();
        match dialect.parse(text.as_bytes(), &Markers::default()) {
            Ok(Event::ToolCall(call)) => Some(Self { payload: payload.clone(), call }),
            Ok(_) | Err(_) => None,
        }
    }

    /// Every call in the agent's folder of payloads.
    fn all(dialect: &Dialect) -> Vec<Self> {
        let dir = format!("{}/fixtures/payloads/{}", env!("CARGO_MANIFEST_DIR"), dialect.name);
        let mut paths: Vec<_> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.retain(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("decision-"));
        let payloads =
            paths.iter().filter_map(|path| serde_json::from_slice(&fs::read(path).unwrap()).ok());
        payloads.filter_map(|payload: Value| Self::of(dialect, &payload)).collect()
    }

    /// The same call with another text in the place of each that is, or has in it, `old`.
    fn with(&self, dialect: &Dialect, old: &str, new: &str, is_whole: bool) -> Option<Self> {
        fn replace(value: &mut Value, old: &str, new: &str, is_whole: bool) {
            match value {
                Value::String(text) if !is_whole || text == old => *text = text.replace(old, new),
                Value::Array(items) => {
                    for item in items {
                        replace(item, old, new, is_whole);
                    }
                }
                Value::Object(members) => {
                    for item in members.values_mut() {
                        replace(item, old, new, is_whole);
                    }
                }
                Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => (),
            }
        }
        let mut payload = self.payload.clone();
        replace(&mut payload, old, new, is_whole);
        Self::of(dialect, &payload)
    }

    /// The same call in another directory.
    fn moved(self, dialect: &Dialect, root: &str) -> Self {
        let mut from = self.call.context.cwd.clone();
        if let Intent::Write(paths) | Intent::Edit(paths) = &self.call.intent {
            // Windsurf's edits name no directory.
            let path = paths.iter().find(|path| path.is_absolute());
            from = from.or_else(|| Some(path?.parent()?.to_owned()));
        }
        let moved = from.and_then(|from| self.with(dialect, from.to_str().unwrap(), root, false));
        moved.unwrap_or(self)
    }
}

/// A call that writes, one that edits, one that runs `rm`, and one of a tool that no row knows, from the
/// recorded payloads of each agent.
fn destructive_calls(dialect: &Dialect, root: &str) -> Vec<Recorded> {
    let all: Vec<_> =
        Recorded::all(dialect).into_iter().map(|call| call.moved(dialect, root)).collect();
    let is_write = |it: &&Recorded| matches!(it.call.intent, Intent::Write(_));
    let is_edit = |it: &&Recorded| matches!(it.call.intent, Intent::Edit(_));
    let write = all.iter().find(is_write);
    let edit = all.iter().find(is_edit);
    assert!(write.or(edit).is_some(), "{}: no payload of a write or an edit", dialect.name);
    let same = |it: &Recorded| Recorded::of(dialect, &it.payload).unwrap();
    let mut calls: Vec<_> = write.into_iter().chain(edit).map(same).collect();
    let wanted = "rm -rf docs notes.txt";
    let is_wanted =
        |it: &Recorded| matches!(&it.call.intent, Intent::Run { command, .. } if command == wanted);
    let runs = all.iter().find_map(|it| match &it.call.intent {
        Intent::Run { command, .. } => {
            let mut calls =
                [true, false].map(|is_whole| it.with(dialect, command, wanted, is_whole));
            calls.iter_mut().find_map(|call| call.take_if(|call| is_wanted(call)))
        }
        _ => None,
    });
    let trial = dialect.trial_payload(root.as_ref(), wanted);
    let trial = || Recorded::of(dialect, &serde_json::from_str(&trial).unwrap()).unwrap();
    calls.push(runs.unwrap_or_else(trial));
    let unknown = all.iter().find_map(|it| it.with(dialect, &it.call.tool, "made_up", true));
    calls.extend(unknown.filter(|it| matches!(it.call.intent, Intent::Unknown(_))));
    calls
}

#[test]
fn whatever_call_of_an_agent_destroys_comes_back() {
    let mut unknown = 0;
    for dialect in DIALECTS {
        let root = World::new().root();
        let count = destructive_calls(dialect, root.to_str().unwrap()).len();
        for at in 0..count {
            let mut world = World::new();
            let root = world.root();
            let Recorded { payload, call } =
                destructive_calls(dialect, root.to_str().unwrap()).swap_remove(at);
            if let Some(variable) = dialect.trial.dir_variable {
                world.env.insert(variable.into(), root.clone().into());
            }
            let mut lost = vec![root.join("notes.txt"), root.join("docs/plan.md")];
            if let Intent::Write(paths) | Intent::Edit(paths) = &call.intent {
                lost = paths.iter().map(|path| root.join(path)).collect();
            }
            unknown += usize::from(matches!(call.intent, Intent::Unknown(_)));
            for path in &lost {
                write(path, b"bytes\r\n\0");
            }
            tell(&world, dialect.name, &payload);
            for path in &lost {
                fs::remove_file(path).unwrap();
            }
            let done = world.run(&["restore", "1", "--yes", "--force"]);
            for path in &lost {
                let label = format!("{} {payload}: {}{}", dialect.name, done.stdout, done.stderr);
                assert_eq!(fs::read(path).ok().as_deref(), Some(&b"bytes\r\n\0"[..]), "{label}");
            }
        }
    }
    assert!(unknown + 3 > DIALECTS.len(), "only {unknown} tools had another name");
}
