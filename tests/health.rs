//! An agent is called protected only if its calls arrive and are held, and whatever shows that they will
//! not be is told, with the step that helps.

use std::fs;

use beforehand::process::Exit;
use serde_json::{Value, json};

use crate::{
    install::{diagnosis, home, world},
    support::{temp::write, world::World},
};

/// A world in which an agent has our hooks, and has made a call that was held.
fn protected(agent: &str) -> World {
    let mut world = world();
    assert_eq!(world.run(&["install", agent, "--yes"]).exit, Exit::Ok);
    assert_eq!(standing(&mut world), "installed, not seen yet");
    world.write("a", "one");
    call(&mut world, agent, "1");
    assert_eq!(standing(&mut world), "protected");
    world
}

/// The agent is about to remove a file.
fn call(world: &mut World, agent: &str, id: &str) {
    let payload = json!({
        "session_id": "s", "cwd": world.root(), "hook_event_name": "PreToolUse", "prompt_id": id,
        "tool_name": "Bash", "tool_input": { "command": "rm a" }, "tool_use_id": id,
    });
    hook(world, agent, &payload.to_string());
}

fn hook(world: &mut World, agent: &str, payload: &str) {
    world.wait(1);
    let output = world.run_in(&world.root(), &["hook", "--agent", agent], payload);
    assert_eq!(output.exit, Exit::Ok);
}

/// What `status` says of this project.
fn standing(world: &mut World) -> String {
    let output = world.run(&["status", "--json"]);
    let status: Value = serde_json::from_str(&output.stdout).unwrap();
    let here = &status["roots"][0];
    let is_unprotected =
        here["agents"].as_array().unwrap().iter().all(|agent| agent["verdict"] == "not-protected");
    assert_eq!(output.exit, if is_unprotected { Exit::Failed } else { Exit::Ok }, "{status:#}");
    let words = here["status"].as_str().unwrap().to_owned();
    let is_protected = words.starts_with("protected");
    assert_eq!(here["protected"], is_protected, "{status:#}");
    words
}

/// Each situation comes with what brings it about, what takes it away, and what `status` says in it.
#[test]
fn status_says_the_truth_in_each_situation_in_which_hooks_do_not_run() {
    type Change = fn(&mut World);
    let nothing: Change = |world| world.runs(&[]);
    let cases: [(Change, Change, &str, &str); 9] = [
        (
            |world| replace_in_settings(world, "\"matcher\": \"*\"", "\"matcher\": \"Write\""),
            |world| replace_in_settings(world, "\"matcher\": \"Write\"", "\"matcher\": \".*\""),
            "is not as beforehand wrote it (`matcher`)",
            "beforehand uninstall claude-code",
        ),
        (
            |world| replace_in_settings(world, "\"type\":", "\"async\": true, \"type\":"),
            |world| replace_in_settings(world, "\"async\": true, \"type\":", "\"type\":"),
            "is not as beforehand wrote it (`async`)",
            "beforehand uninstall claude-code",
        ),
        (
            |world| {
                let managed = world.system_file("etc/claude-code/managed-settings.json");
                write(&managed, "{\"strictPluginOnlyCustomization\": [\"hooks\"]}");
            },
            |world| {
                let managed = world.system_file("etc/claude-code/managed-settings.json");
                write(&managed, "{\"strictPluginOnlyCustomization\": false}");
            },
            "only plugins may have hooks: `strictPluginOnlyCustomization` in /",
            "install beforehand's plugin instead",
        ),
        (
            |world| world.runs(&["vim a", "claude --bare -p x"]),
            nothing,
            "was started with `--bare`, and runs no hook of beforehand's (process 2)",
            "start it without `--bare`",
        ),
        (
            |world| world.runs(&["/opt/claude --safe-mode"]),
            nothing,
            "was started with `--safe-mode`, and runs no hook",
            "start it without `--safe-mode`",
        ),
        (
            |world| world.runs(&["claude --setting-sources project"]),
            nothing,
            "was started with `--setting-sources`, and runs no hook",
            "start it without `--setting-sources`",
        ),
        (
            |world| world.runs(&["claude --settings '{\"disableAllHooks\":true}'"]),
            |world| world.runs(&["claude --settings '{\"disableAllHooks\":false}'"]),
            "was started with `--settings {\"disableAllHooks\":true}`, and runs no hook",
            "start it without `--settings`",
        ),
        (
            |world| {
                let program = std::env::current_exe().unwrap();
                replace_in_settings(world, program.to_str().unwrap(), "/gone/beforehand");
            },
            |world| {
                let program = std::env::current_exe().unwrap();
                replace_in_settings(world, "/gone/beforehand", program.to_str().unwrap());
            },
            "runs `/gone/beforehand`, which cannot be run",
            "beforehand install claude-code",
        ),
        (
            |world| replace_in_settings(world, "PreToolUse", "NoToolUse"),
            |world| replace_in_settings(world, "NoToolUse", "PreToolUse"),
            "has no hook for PreToolUse",
            "beforehand install claude-code",
        ),
    ];
    for (begin, end, told, hint) in cases {
        let mut world = protected("claude-code");
        begin(&mut world);
        assert_eq!(
            standing(&mut world),
            "not protected: the calls of Claude Code are not held",
            "{told}"
        );
        let words = world.run(&["status"]).stdout;
        assert!(words.contains("\nClaude Code: not protected: "), "{words}");
        assert!(words.contains(told) && words.contains(hint), "{told}: {words}");
        let diagnosis = diagnosis(&mut world, "claude code");
        assert!(diagnosis.starts_with("trouble: ") && diagnosis.contains(told), "{diagnosis}");
        end(&mut world);
        assert_eq!(standing(&mut world), "protected", "after: {told}");
    }
}

fn replace_in_settings(world: &mut World, old: &str, new: &str) {
    let path = home(world).join(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{text}");
    write(&path, text.replace(old, new));
}

#[test]
fn calls_that_are_held_in_another_place_are_told_of() {
    let mut world = world();
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    let settings = home(&world).join(".claude/settings.json");
    let mut value: Value = serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    value["env"] = json!({ "BEFOREHAND_HOME": "/elsewhere" });
    write(&settings, value.to_string());
    assert_eq!(standing(&mut world), "installed, not seen yet");
    let told = diagnosis(&mut world, "claude code");
    assert!(told.contains("its calls are held in /elsewhere, by `BEFOREHAND_HOME`"), "{told}");
}

#[test]
fn a_plugin_alone_protects_and_is_no_missing_hook() {
    let mut world = world();
    let settings = home(&world).join(".claude/settings.json");
    write(&settings, "{\"enabledPlugins\": {\"beforehand@beforehand\": true}}");
    assert_eq!(standing(&mut world), "installed, not seen yet");
    world.write("a", "one");
    call(&mut world, "claude-code", "1");
    assert_eq!(standing(&mut world), "protected");
    assert!(
        diagnosis(&mut world, "claude code").starts_with("ok: hook in ~/.claude/settings.json")
    );
    // A lock on everything but plugins is none on this.
    let managed = world.system_file("etc/claude-code/managed-settings.json");
    write(&managed, "{\"strictPluginOnlyCustomization\": true}");
    assert_eq!(standing(&mut world), "protected");
    world.runs(&["claude --bare"]);
    assert!(standing(&mut world).starts_with("not protected: "));
    world.runs(&[]);
    write(&settings, "{\"enabledPlugins\": {\"beforehand@beforehand\": false}}");
    assert!(standing(&mut world).contains("`beforehand install` has set up none"));
}

#[test]
fn packages_of_every_agent_are_known() {
    for (agent, file, text) in [
        ("codex", ".codex/config.toml", "[plugins.\"beforehand@beforehand\"]\nenabled = true\n"),
        ("gemini-cli", ".gemini/extensions/beforehand/gemini-extension.json", "{}"),
        ("qwen-code", ".qwen/extensions/beforehand/qwen-extension.json", "{}"),
        ("opencode", ".config/opencode/opencode.json", "{\"plugin\": [\"beforehand\"]}"),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"plugin\": [\"file:///x/node_modules/beforehand/opencode.mjs\"]}",
        ),
    ] {
        let mut world = World::new();
        assert!(standing_words(&mut world).contains("no agent calls beforehand yet"), "{agent}");
        write(&home(&world).join(file), text);
        assert_eq!(standing_words(&mut world), "installed, not seen yet", "{agent}");
    }
    let mut world = World::new();
    let config = home(&world).join(".codex/config.toml");
    write(&config, "[plugins.\"beforehand@beforehand\"]\nenabled = false\n");
    assert!(standing_words(&mut world).contains("no agent calls beforehand yet"));
}

fn standing_words(world: &mut World) -> String {
    let output = world.run(&["status", "--json"]);
    let status: Value = serde_json::from_str(&output.stdout).unwrap();
    status["roots"][0]["status"].as_str().unwrap().to_owned()
}

/// The project is held for an unreadable payload, and nothing else is.
#[test]
fn an_agent_whose_payloads_cannot_be_read_is_told_of() {
    let mut world = world();
    world.write("a", "one");
    assert_eq!(world.run(&["install", "grok-build", "--yes"]).exit, Exit::Ok);
    for _ in 0..13 {
        hook(&mut world, "grok-build", "[]");
    }
    assert_eq!(standing(&mut world), "protected");
    let words = world.run(&["status"]).stdout;
    let said = "Grok Build: protected, but for its last call the project was held, and no more: \
                cannot read the hook payload";
    assert!(words.contains(said), "{words}");
    let told = diagnosis(&mut world, "grok build");
    assert!(told.starts_with("trouble: ") && told.contains("update beforehand"), "{told}");
    // It is another agent's trouble, not this one's.
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    call(&mut world, "claude-code", "1");
    assert!(diagnosis(&mut world, "claude code").starts_with("ok: "));
}

#[test]
fn an_agent_whose_calls_cannot_be_held_is_never_called_protected() {
    let mut world = protected("claude-code");
    // In the place of the objects and records of the project.
    for name in ["objects", "roots"] {
        let dir = world.state().join(name);
        fs::rename(&dir, dir.with_extension("away")).unwrap();
        write(&dir, "in the way");
    }
    world.write("a", "two");
    call(&mut world, "claude-code", "2");
    let told = diagnosis(&mut world, "claude code");
    assert!(told.contains("its last call was not held: warning: could not save"), "{told}");
}

#[test]
fn a_session_begins_with_what_is_wrong_and_a_list_ends_with_it() {
    let mut world = protected("claude-code");
    let begin = |world: &mut World, session: &str| {
        let payload = json!({
            "session_id": session, "cwd": world.root(), "hook_event_name": "SessionStart",
            "source": "startup",
        });
        let args = ["hook", "--agent", "claude-code"];
        world.run_in(&world.root(), &args, &payload.to_string()).stdout
    };
    assert_eq!(begin(&mut world, "one"), "{}");
    assert!(!world.run(&["list"]).stderr.contains("not held"));
    replace_in_settings(&mut world, "PreToolUse", "NoToolUse");
    let said = begin(&mut world, "two");
    assert!(said.contains("the calls of Claude Code are not held: ~/.claude"), "{said}");
    assert_eq!(begin(&mut world, "two"), "{}", "it is said once");
    let list = world.run(&["list"]).stderr;
    assert!(list.contains("note: the calls of Claude Code are not held: ~/.claude"), "{list}");
    replace_in_settings(&mut world, "NoToolUse", "PreToolUse");
    assert_eq!(begin(&mut world, "three"), "{}");
    assert!(!world.run(&["list"]).stderr.contains("not held"));
}

#[test]
fn calls_of_long_ago_show_nothing_of_today() {
    let mut world = protected("claude-code");
    world.wait(15 * 24 * 60 * 60);
    assert_eq!(standing(&mut world), "installed, not seen yet");
    let told = diagnosis(&mut world, "claude code");
    assert!(told.contains("no call seen in the last 14 days"), "{told}");
}

#[test]
fn a_session_that_makes_calls_of_which_none_arrives_is_told_of() {
    let mut world = protected("claude-code");
    let installed = world.state().join("installed.json").metadata().unwrap().modified().unwrap();
    world.now = world.now.max(chrono::DateTime::from(installed)) + chrono::TimeDelta::minutes(1);
    let root = world.root().canonicalize().unwrap();
    let conversation = home(&world).join(".claude/projects/p/t.jsonl");
    let line = json!({
        "type": "assistant", "timestamp": world.now().to_rfc3339(), "sessionId": "t", "cwd": root,
        "message": { "content": [{
            "type": "tool_use", "id": "9", "name": "Bash", "input": { "command": "rm b" },
        }] },
    });
    write(&conversation, format!("{line}\n"));
    assert!(standing(&mut world).starts_with("not protected: the calls of Claude Code"));
    let words = world.run(&["status"]).stdout;
    assert!(words.contains("0 of 1 calls seen; not `Bash rm b`"), "{words}");
    assert!(words.contains("start it again"), "{words}");
}
