//! Questions and refusals: a question is asked or the call is refused, and the user can allow a
//! refused call once. Through the whole program.

use std::fs;

use beforehand::process::{Exit, Terminal};
use serde_json::{Value, json};

use crate::support::{temp::write, world::World};

/// A project with a file that cannot be held.
fn project() -> World {
    let mut world = World::new();
    let big = fs::File::create(world.root().join("big.db")).unwrap();
    big.set_len(2 << 30).unwrap();
    world.started_by(&[(30, "sh"), (20, "agent"), (10, "bash"), (2, "sshd")]);
    world
}

const LINE: &str = "rm big.db";

/// The answer of the hook to a command line of an agent, whose payload has these fields besides.
fn answer(world: &World, agent: &str, line: &str, fields: &Value) -> Value {
    let (event, tool) = match agent {
        "gemini-cli" => ("BeforeTool", "run_shell_command"),
        "qwen-code" => ("PreToolUse", "run_shell_command"),
        "hermes" => ("pre_tool_call", "terminal"),
        "vscode-agent" => ("PreToolUse", "run_in_terminal"),
        "cursor" => ("preToolUse", "Shell"),
        _ => ("PreToolUse", "Bash"),
    };
    let mut payload = json!({
        "session_id": "s1",
        "cwd": world.root(),
        "hook_event_name": event,
        "tool_name": tool,
        "tool_input": { "command": line },
    });
    for (key, value) in fields.as_object().unwrap() {
        payload[key] = value.clone();
    }
    let args = ["hook", "--agent", agent];
    let output = world.run_in(&world.root(), &args, &payload.to_string());
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// What it says of the call, in whatever form the agent reads it, and why.
fn verdict(answer: &Value) -> (String, String) {
    let inner = &answer["hookSpecificOutput"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let first = |values: [&Value; 5]| values.into_iter().map(text).find(|it| !it.is_empty());
    let said = first([
        &inner["permissionDecision"],
        &answer["permissionDecision"],
        &answer["decision"],
        &answer["action"],
        &answer["permission"],
    ]);
    let why = first([
        &inner["permissionDecisionReason"],
        &answer["permissionDecisionReason"],
        &answer["reason"],
        &answer["message"],
        &answer["user_message"],
    ]);
    (said.unwrap_or_default(), why.unwrap_or_default())
}

fn said(world: &World, agent: &str, fields: &Value) -> String {
    verdict(&answer(world, agent, LINE, fields)).0
}

fn mode(name: &str) -> Value {
    json!({ "permission_mode": name })
}

/// The code that a refusal names.
fn code(why: &str) -> String {
    let (_, rest) = why.split_once("`beforehand allow --once ").unwrap_or_else(|| panic!("{why}"));
    rest.split('`').next().unwrap().to_owned()
}

/// A person runs `allow` at a terminal no agent opened, and says yes.
fn allow(world: &mut World, wanted: &str) -> (Exit, String) {
    world.started_by(&[(11, "bash"), (2, "sshd")]);
    let output = world.run_asked(&["allow", "--once", wanted], &mut &b"y\n"[..]);
    world.started_by(&[(30, "sh"), (20, "agent"), (10, "bash"), (2, "sshd")]);
    (output.exit, output.stderr)
}

#[test]
fn what_would_be_asked_is_refused_where_nobody_would_see_it() {
    let mut world = project();
    let mode_of = |agent: &str, name: &str, wanted: &str| {
        assert_eq!(said(&project(), agent, &mode(name)), wanted, "{agent} {name}");
    };
    for (agent, name, wanted) in [
        ("claude-code", "default", "ask"),
        ("claude-code", "acceptEdits", "ask"),
        ("claude-code", "plan", "ask"),
        ("claude-code", "auto", "ask"),
        ("claude-code", "bypassPermissions", "deny"),
        ("claude-code", "dontAsk", "deny"),
        ("claude-code", "a mode of tomorrow", "deny"),
        ("qwen-code", "auto_edit", "ask"),
        ("qwen-code", "auto", "ask"),
        ("qwen-code", "yolo", "deny"),
        // These have no question at all; Droid passes over an answer that asks.
        ("factory-droid", "off", "deny"),
        ("factory-droid", "auto-high", "deny"),
        ("codex", "default", "deny"),
        ("gemini-cli", "default", "deny"),
        ("hermes", "default", "block"),
    ] {
        mode_of(agent, name, wanted);
    }
    assert_eq!(said(&world, "copilot-cli", &json!({})), "ask");
    world.set("COPILOT_ALLOW_ALL", "true");
    assert_eq!(said(&world, "copilot-cli", &json!({})), "deny");
    world.set("CLAUDE_CODE_SESSION_ATTENDED", "0");
    assert_eq!(said(&world, "claude-code", &mode("default")), "deny");
}

#[test]
fn an_agents_own_settings_may_answer_for_its_user() {
    let world = project();
    assert_eq!(said(&world, "vscode-agent", &json!({})), "ask");
    write(
        &world.root().join(".vscode/settings.json"),
        "{ // mine\n\"chat.tools.global.autoApprove\": true, }",
    );
    assert_eq!(said(&world, "vscode-agent", &json!({})), "deny");
}

#[test]
fn self_defence_refuses_where_nobody_is_asked() {
    let world = project();
    write(
        &world.root().join(".claude/settings.json"),
        "{\"command\":\"beforehand hook --agent claude-code\"}",
    );
    for line in ["rm -rf ~/.local", "rm -rf .claude", "beforehand clear --yes"] {
        let (asked, _) = verdict(&answer(&world, "claude-code", line, &mode("default")));
        assert_eq!(asked, "ask", "{line}");
        let (said, why) = verdict(&answer(&world, "claude-code", line, &mode("bypassPermissions")));
        assert_eq!(said, "deny", "{line}");
        assert!(why.contains("`self_defence = \"note\"`"), "{why}");
    }
}

#[test]
fn a_refused_call_is_allowed_once_by_a_person() {
    let mut world = project();
    let bypass = mode("bypassPermissions");
    let refused = |world: &World| verdict(&answer(world, "claude-code", LINE, &bypass));
    let (_, why) = refused(&world);
    assert!(why.contains("not held: big.db"), "{why}");
    let code = code(&why);
    let (exit, told) = allow(&mut world, &code);
    assert_eq!(exit, Exit::Ok, "{told}");
    assert!(told.contains("Claude Code was refused this call:\n  rm big.db\n"), "{told}");
    // Not another call, not another session, not a second time.
    let other = json!({ "permission_mode": "bypassPermissions", "session_id": "s2" });
    assert_eq!(verdict(&answer(&world, "claude-code", LINE, &other)).0, "deny");
    let line = "rm -f big.db";
    assert_eq!(verdict(&answer(&world, "claude-code", line, &bypass)).0, "deny");
    let free = answer(&world, "claude-code", LINE, &bypass);
    assert_eq!(verdict(&free).0, "");
    assert!(free["systemMessage"].as_str().unwrap().contains("allowed once"), "{free}");
    world.wait(1);
    assert_eq!(refused(&world).0, "deny");
    // By the command line itself, too.
    assert_eq!(allow(&mut world, LINE).0, Exit::Ok);
    assert_eq!(refused(&world).0, "");
    assert_eq!(refused(&world).0, "deny");
}

#[test]
fn a_question_that_nobody_may_see_says_how_it_is_allowed() {
    let mut world = project();
    let call = json!({ "sessionId": "s1", "cwd": world.root(), "toolName": "bash",
        "toolArgs": { "command": LINE } });
    let answer = |world: &World| {
        let args = ["hook", "--agent", "copilot-cli"];
        let output = world.run_in(&world.root(), &args, &call.to_string());
        // What it is told of the call is another line.
        verdict(&serde_json::from_str(output.stdout.lines().next_back().unwrap()).unwrap())
    };
    let (said, why) = answer(&world);
    assert_eq!(said, "ask", "{why}");
    assert_eq!(allow(&mut world, &code(&why)).0, Exit::Ok, "{why}");
    assert_eq!(answer(&world).0, "");
    assert_eq!(answer(&world).0, "ask");
}

#[test]
fn two_hook_entries_ask_about_one_call() {
    let mut world = project();
    let call = |id: &str| json!({ "permission_mode": "dontAsk", "tool_use_id": id });
    let said = |world: &World, id: &str| said(world, "claude-code", &call(id));
    assert_eq!(said(&world, "a"), "deny");
    assert_eq!(allow(&mut world, LINE).0, Exit::Ok);
    assert_eq!([said(&world, "b"), said(&world, "b"), said(&world, "c")], ["", "", "deny"]);
}

#[test]
fn two_events_of_one_command_need_one_yes() {
    let mut world = project();
    let first = |world: &World, id: &str| said(world, "cursor", &json!({ "tool_use_id": id }));
    let second = |world: &World| {
        let fields = json!({ "hook_event_name": "beforeShellExecution", "tool_name": null,
            "tool_input": null, "command": LINE });
        said(world, "cursor", &fields)
    };
    assert_eq!([first(&world, "a"), second(&world)], ["deny", "deny"]);
    assert_eq!(allow(&mut world, LINE).0, Exit::Ok);
    assert_eq!([first(&world, "b"), second(&world)], ["", ""]);
    assert_eq!([first(&world, "c"), second(&world)], ["deny", "deny"]);
}

#[test]
fn an_agent_cannot_allow_its_own_call() {
    let mut world = project();
    let (_, why) = verdict(&answer(&world, "claude-code", LINE, &mode("yolo")));
    let code = code(&why);
    let yes = |world: &World| world.run_asked(&["allow", "--once", &code], &mut &b"y\n"[..]);
    for ancestors in [[(40, "bash"), (20, "agent")], [(40, "python3"), (30, "sh")]] {
        world.started_by(&ancestors);
        let output = yes(&world);
        assert_eq!(output.exit, Exit::Failed);
        assert!(output.stderr.contains("an agent started this one"), "{}", output.stderr);
    }
    // The shell that a person started the agent from is the person's.
    world.started_by(&[(10, "bash"), (2, "sshd")]);
    let output = world.run(&["allow", "--once", &code]);
    assert!(output.stderr.contains("only a person at a terminal"), "{}", output.stderr);
    world.terminal = Terminal { stdin: true, ..Terminal::default() };
    let (root, args) = (world.root(), ["allow", "--once", &*code]);
    assert_eq!(world.run_in(&root, &args, "n\n").exit, Exit::Failed);
    assert_eq!(yes(&world).exit, Exit::Ok);
    world.started_by(&[(30, "sh"), (20, "agent"), (10, "bash"), (2, "sshd")]);
    // And one that tries is refused by its own hook.
    let line = format!("beforehand allow --once {code}");
    assert_eq!(verdict(&answer(&world, "claude-code", &line, &mode("yolo"))).0, "deny");
}

#[test]
fn an_agent_whose_calls_were_never_refused_is_known_by_its_prompts() {
    let mut world = project();
    answer(&world, "claude-code", LINE, &mode("yolo"));
    world.started_by(&[(70, "other agent"), (10, "bash")]);
    let prompt =
        json!({ "session_id": "s9", "hook_event_name": "UserPromptSubmit", "prompt": "x" });
    world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &prompt.to_string());
    world.started_by(&[(71, "bash"), (70, "other agent"), (10, "bash")]);
    let output = world.run_asked(&["allow", "--once", LINE], &mut &b"y\n"[..]);
    assert_eq!(output.exit, Exit::Failed, "{}", output.stderr);
}

#[test]
fn refused_calls_are_listed() {
    let mut world = project();
    assert_eq!(world.run(&["allow"]).stdout, "beforehand has refused no call\n");
    answer(&world, "codex", LINE, &json!({}));
    let listed = world.run(&["allow"]).stdout;
    assert!(listed.ends_with(", Codex: rm big.db\n"), "{listed}");
    let unknown = world.run_asked(&["allow", "--once", "rm other"], &mut &b"y\n"[..]);
    assert_eq!(unknown.exit, Exit::Failed);
}
