//! `install` and `uninstall`: changes of agents' settings files, through the whole program.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use beforehand::process::{Exit, Terminal};
use serde_json::{Value, json};

use crate::support::{
    temp::{chmod, special, write},
    world::World,
};

pub(crate) fn home(world: &World) -> PathBuf {
    world.root().join("../../home").canonicalize().unwrap()
}

/// Every file and directory of the home, with its bytes and mode.
fn all(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        let stat = path.symlink_metadata().unwrap();
        let bytes = if stat.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if stat.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, (stat.permissions().mode(), bytes));
    }
    found
}

const SETTINGS: &str = "{\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\r\n\t}\r\n}";
const WITH_COMMENTS: &str =
    "{\r\n\t// mine\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\r\n\t},\r\n}";

pub(crate) fn world() -> World {
    let world = World::new();
    let home = home(&world);
    write(&home.join(".claude/settings.json"), SETTINGS);
    write(&home.join(".gemini/settings.json"), "{}");
    write(&home.join(".qwen/settings.json"), WITH_COMMENTS);
    for dir in [".codex", ".qwen", ".copilot", ".cline", ".cursor", ".config/opencode"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    write(&home.join(".hermes/config.yaml"), "model: x\nlast: 1");
    world
}

#[test]
fn the_home_is_byte_for_byte_as_it_was() {
    let mut world = world();
    let home = home(&world);
    let before = all(&home);
    let output = world.run(&["install", "--yes"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    assert!(output.stderr.contains("wrote ~/.claude/settings.json"), "{}", output.stderr);
    assert!(output.stderr.contains("until they are approved"), "{}", output.stderr);
    let script = home.join(".cline/hooks/PreToolUse");
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let again = world.run(&["install", "--yes"]);
    assert!(again.stderr.starts_with("nothing to do"), "{}", again.stderr);
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home), before);
    assert!(world.run(&["uninstall"]).stderr.starts_with("nothing to do"));
}

#[test]
fn agents_are_taken_out_one_by_one() {
    let mut world = world();
    let before = all(&home(&world));
    assert_eq!(world.run(&["install", "--yes"]).exit, Exit::Ok);
    for agent in ["claude-code", "cline", "gemini-cli", "opencode", "cursor"] {
        assert_eq!(world.run(&["uninstall", agent, "--yes"]).exit, Exit::Ok);
    }
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home(&world)), before);
}

#[test]
fn nothing_is_written_without_a_yes() {
    let mut world = world();
    let before = all(&home(&world));
    let output = world.run(&["install", "claude-code"]);
    assert_eq!(output.exit, Exit::Failed);
    assert!(output.stdout.contains("--- a/~/.claude/settings.json"), "{}", output.stdout);
    assert!(output.stderr.contains("hint: run this again with `--yes`"), "{}", output.stderr);
    assert_eq!(world.run(&["install", "--dry-run"]).exit, Exit::Ok);
    world.terminal = Terminal { stdin: true, ..Terminal::default() };
    let (root, args) = (world.root(), ["install", "cursor"]);
    assert_eq!(world.run_in(&root, &args, "n\n").exit, Exit::Failed);
    assert_eq!(all(&home(&world)), before);
    assert_eq!(world.run_in(&root, &args, "y\n").exit, Exit::Ok);
    assert_ne!(all(&home(&world)), before);
}

#[test]
fn what_the_user_changed_since_stays() {
    let mut world = world();
    let path = home(&world).join(".qwen/settings.json");
    assert_eq!(world.run(&["install", "qwen-code", "--yes"]).exit, Exit::Ok);
    let text = fs::read_to_string(&path).unwrap();
    write(&path, text.replace("opus", "sonnet").replace("// mine", "// yours"));
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    let left = fs::read_to_string(&path).unwrap();
    assert_eq!(left, "{\r\n\t// yours\r\n\t\"model\": \"sonnet\",\r\n}");
}

#[test]
fn a_file_that_claude_code_would_ignore_is_refused() {
    let mut world = world();
    let path = home(&world).join(".claude/settings.json");
    write(&path, WITH_COMMENTS);
    let output = world.run(&["install", "claude-code", "--yes"]);
    assert_eq!(output.exit, Exit::Failed);
    let said = "line 2: Claude Code reads no comments";
    assert!(output.stderr.contains(said), "{}", output.stderr);
    assert_eq!(fs::read_to_string(&path).unwrap(), WITH_COMMENTS);
    assert!(diagnosis(&mut world, "claude code").contains(said));
}

#[test]
fn an_event_is_registered_only_where_the_agent_is_known_to_know_it() {
    let mut world = world();
    let home = home(&world);
    let settings = home.join(".claude/settings.json");
    let asks = || fs::read_to_string(&settings).unwrap().contains("PreSkillShellCommand");
    let versions = home.join("claude/versions");
    for version in ["2.1.331", "2.1.332"] {
        write(&versions.join(version), "");
        chmod(&versions.join(version), 0o755);
    }
    fs::create_dir(home.join("bin")).unwrap();
    world.set("PATH", home.join("bin").to_str().unwrap());
    for (version, is_known) in [(None, false), (Some("2.1.331"), false), (Some("2.1.332"), true)] {
        if let Some(version) = version {
            let _first = fs::remove_file(home.join("bin/claude"));
            symlink(versions.join(version), home.join("bin/claude")).unwrap();
        }
        assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
        assert_eq!(asks(), is_known, "{version:?}");
        assert!(diagnosis(&mut world, "claude code").starts_with("ok: "), "{version:?}");
    }
    // One that is older again leaves what is there, and asks for no more.
    fs::remove_file(home.join("bin/claude")).unwrap();
    assert!(diagnosis(&mut world, "claude code").starts_with("ok: "));
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);
    // Others may have an older one.
    symlink(versions.join("2.1.332"), home.join("bin/claude")).unwrap();
    assert_eq!(world.run(&["install", "claude-code", "--project", "--yes"]).exit, Exit::Ok);
    assert!(!world.read(".claude/settings.json").contains("PreSkillShellCommand"));
}

#[test]
fn codex_is_told_of_an_approval_only_by_an_explicit_yes() {
    let mut world = world();
    let config = home(&world).join(".codex/config.toml");
    write(&config, "# mine\nmodel = \"o\"\n");
    let before = all(&home(&world));
    let output = world.run(&["install", "codex", "--yes"]);
    assert!(output.stderr.contains("beforehand install codex --trust"), "{}", output.stderr);
    assert!(!fs::read_to_string(&config).unwrap().contains("trusted_hash"), "--yes is not enough");
    assert!(diagnosis(&mut world, "codex").starts_with("trouble: the hook is registered but not"));
    let root = world.root();
    world.terminal = Terminal { stdin: true, ..Terminal::default() };
    let asked = world.run_in(&root, &["install", "codex"], "n\n");
    assert!(asked.stderr.contains("approve them?"), "{}", asked.stderr);
    assert!(!fs::read_to_string(&config).unwrap().contains("trusted_hash"));
    world.terminal = Terminal::default();
    let trusted = world.run(&["install", "codex", "--yes", "--trust"]);
    assert_eq!(trusted.exit, Exit::Ok, "{}", trusted.stderr);
    assert!(diagnosis(&mut world, "codex").starts_with("ok: hook in ~/.codex/hooks.json"));
    let again = world.run(&["install", "codex", "--yes", "--trust"]);
    assert!(again.stderr.starts_with("nothing to do"), "{}", again.stderr);
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home(&world)), before);
}

#[test]
fn a_moved_program_is_written_where_the_old_one_stands() {
    let mut world = world();
    let path = home(&world).join(".claude/settings.json");
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    let new = fs::read_to_string(&path).unwrap();
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let guarded = format!("[ ! -x {program} ] || exec {program} hook");
    assert!(new.contains(&guarded), "{new}");
    for old in [
        new.replace(program, "'/old place/beforehand'"),
        // What earlier versions wrote.
        new.replace(&guarded, "'/old place/beforehand' hook"),
        new.replace(&guarded, "beforehand hook"),
    ] {
        write(&path, old);
        assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
        assert_eq!(fs::read_to_string(&path).unwrap(), new);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_never_touched() {
    let mut world = world();
    let home = home(&world);
    write(&home.join(".claude/settings.json"), "{\n  \"a\": 1\n  \"b\": 2\n}\n");
    write(&home.join(".gemini/settings.json"), b"{\"a\":\n\"\xff\"}");
    write(&home.join(".qwen/settings.json"), b"{\"a\0\": 1}");
    write(&home.join(".cline/hooks/PreToolUse"), "#!/bin/sh\nmine\n");
    special(&home.join(".cursor/hooks.json"), rustix::fs::FileType::Fifo, 0o400);
    symlink("/dev/zero", home.join(".codex/hooks.json")).unwrap();
    let huge = fs::File::create(home.join(".copilot/settings.json")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let agents = ["claude-code", "gemini-cli", "qwen-code", "cursor", "codex"];
    let before = agents.map(|agent| (agent, world.run(&["install", agent, "--yes"])));
    for (agent, output) in before {
        assert_eq!(output.exit, Exit::Failed, "{agent}");
    }
    let told = world.run(&["install", "--dry-run"]).stderr;
    let said = |text: &str| assert!(told.contains(text), "{text}: {told}");
    said(".claude/settings.json` is left as it is: line 2: expected comma");
    said(".gemini/settings.json` is left as it is: line 2: it is not UTF-8");
    said(".qwen/settings.json` is left as it is: line 1: not a valid string");
    said(".cline/hooks/PreToolUse` is left as it is: it is not beforehand's");
    said("not a regular file");
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let mut world = world();
    let home = home(&world);
    let real = home.join("dotfiles/claude.json");
    write(&real, "{\n    \"a\": 1\n}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(home.join(".claude/settings.json")).unwrap();
    symlink(&real, home.join(".claude/settings.json")).unwrap();
    let before = all(&home);
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    assert!(home.join(".claude/settings.json").is_symlink());
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&real).unwrap().contains("hook --agent claude-code"));
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home), before);
}

#[test]
fn a_project_has_settings_of_its_own_and_leads_nowhere_else() {
    let mut world = World::with_git();
    let before = all(&world.root());
    let output = world.run(&["install", "claude-code", "goose", "--project", "--yes"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    let line = "! command -v beforehand >/dev/null || exec beforehand hook --agent claude-code";
    assert!(world.read(".claude/settings.json").contains(line));
    assert!(world.read(".agents/plugins/beforehand/hooks/hooks.json").contains("--agent goose"));
    assert!(output.stderr.contains("on your `PATH`, `beforehand` is not /"), "{}", output.stderr);
    let again = world.run(&["install", "claude-code", "goose", "--project", "--yes"]);
    assert!(again.stderr.starts_with("nothing to do"), "{}", again.stderr);
    assert_eq!(world.run(&["uninstall", "--project", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&world.root()), before);
    symlink(home(&world), world.root().join(".cursor")).unwrap();
    let output = world.run(&["install", "cursor", "--project", "--yes"]);
    assert!(output.stderr.contains("it leads out of the project"), "{}", output.stderr);
}

/// Where agents read their user's hooks, and what is there before.
const ELSEWHERE: &[(&str, &str, Option<&str>)] = &[
    ("goose", ".agents/plugins/beforehand/hooks/hooks.json", None),
    ("antigravity", ".gemini/config/hooks.json", Some("{\"mine\": {\"Stop\": []}}")),
    ("devin-cli", ".config/devin/config.json", Some("{\n  // mine\n  \"agent\": {},\n}\n")),
    ("vscode-agent", ".vscode/hooks/beforehand.json", None),
    ("kiro", ".kiro/agents/mine.json", Some("{\"name\": \"mine\", \"tools\": [\"*\"]}")),
    ("kiro", ".aws/amazonq/cli-agents/old.json", Some("{\"hooks\": {}}")),
];

#[test]
fn hooks_go_where_an_agent_reads_them_and_come_out_again() {
    let mut world = World::new();
    let home = home(&world);
    for dir in [".config/goose", ".antigravity", ".config/devin", ".vscode", ".kiro"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    for (_, path, text) in ELSEWHERE {
        if let Some(text) = text {
            write(&home.join(path), text);
        }
    }
    let before = all(&home);
    let output = world.run(&["install", "--yes"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    let named = fs::read_to_string(home.join(".config/Code/User/settings.json")).unwrap();
    assert!(named.contains("\"~/.vscode/hooks\": true"), "{named}");
    for (agent, path, _) in ELSEWHERE {
        let text = fs::read_to_string(home.join(path)).unwrap();
        assert!(text.contains(&format!("hook --agent {agent}")), "{path}: {text}");
        // An agent's call that would drop it is a question, or a refusal.
        let program = json!({ "command": format!("rm {}", home.join(path).display()) });
        let payload = before_call(&world, &program);
        let answer = world.run_in(&world.root(), &["hook", "--agent", "codex"], &payload);
        assert!(answer.stdout.contains("beforehand's hook is registered"), "{path}: {answer:?}");
    }
    assert!(diagnosis(&mut world, "goose").starts_with("ok: "));
    assert!(diagnosis(&mut world, "vs code agent").starts_with("ok: "));
    write(&home.join(".config/Code/User/settings.json"), "{}");
    let told = diagnosis(&mut world, "vs code agent");
    assert!(told.contains("settings.json has no hook of beforehand's"), "{told}");
    write(&home.join(".config/Code/User/settings.json"), &named);
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    let mut after = all(&home);
    // The calls left checkpoints.
    after.retain(|path, _| !path.starts_with(home.join(".local")));
    assert!(after == before, "{:?}", after.keys());
}

fn before_call(world: &World, input: &Value) -> String {
    crate::support::real::before(&world.root(), "s", "t", "Bash", input)
}

#[test]
fn an_agent_file_that_was_added_after_install_is_told_of() {
    let mut world = World::new();
    let agents = home(&world).join(".kiro/agents");
    fs::create_dir_all(&agents).unwrap();
    assert!(diagnosis(&mut world, "kiro").starts_with("note: you have no agent of your own"));
    write(&agents.join("one.json"), "{}");
    assert!(diagnosis(&mut world, "kiro").starts_with("trouble: it has no hook"));
    assert_eq!(world.run(&["install", "--yes"]).exit, Exit::Ok);
    assert!(diagnosis(&mut world, "kiro").starts_with("ok: "));
    write(&agents.join("two.json"), "{}");
    let told = diagnosis(&mut world, "kiro");
    let wanted =
        "trouble: ~/.kiro/agents/two.json has no hook of beforehand's (beforehand install kiro)";
    assert_eq!(told, wanted);
}

#[test]
fn json_says_what_and_whether() {
    let mut world = world();
    let output = world.run(&["install", "cursor", "--dry-run", "--json"]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["done"], false);
    assert_eq!(value["changes"][0]["agent"], "cursor");
    assert_eq!(value["changes"][0]["old"], Value::Null);
}

/// What doctor says of one thing, with its hint.
pub(crate) fn diagnosis(world: &mut World, name: &str) -> String {
    let output = world.run(&["doctor", "--json"]);
    let lines: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let sick = lines.iter().any(|line| line["health"] == "trouble");
    assert_eq!(output.exit, if sick { Exit::Failed } else { Exit::Ok });
    let line = lines.iter().find(|line| line["name"] == name);
    line.map_or_else(String::new, |line| {
        let part = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        format!("{}: {} ({})", part("health"), part("text"), part("hint"))
    })
}

#[test]
fn doctor_says_what_is_in_the_way_and_how_to_fix_it() {
    let mut world = world();
    let home = home(&world);
    let claude = |world: &mut World| diagnosis(world, "claude code");
    assert_eq!(
        claude(&mut world),
        "trouble: it has no hook of beforehand's (beforehand install claude-code)"
    );
    assert_eq!(diagnosis(&mut world, "windsurf"), "absent: not installed (-)");
    assert_eq!(world.run(&["install", "--yes"]).exit, Exit::Ok);
    assert_eq!(claude(&mut world), "ok: hook in ~/.claude/settings.json, not seen yet (-)");
    for agent in ["cline", "opencode", "gemini cli", "copilot cli", "cursor", "qwen code"] {
        let told = diagnosis(&mut world, agent);
        assert!(told.starts_with("ok: hook in ~/"), "{agent}: {told}");
    }
    assert!(diagnosis(&mut world, "codex").contains("not trusted"), "Codex must approve it");
    let path = home.join(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    write(&path, text.replace("\"timeout\": 30", "\"timeout\": 2"));
    assert!(claude(&mut world).contains("SessionStart in ~/.claude/settings.json is too short"));
    write(&path, text.replace("PreToolUse", "OtherToolUse"));
    assert!(claude(&mut world).contains("has no hook for PreToolUse"));
    let program = std::env::current_exe().unwrap();
    write(&path, text.replace(program.to_str().unwrap(), "/nowhere/beforehand"));
    assert!(claude(&mut world).contains("runs `/nowhere/beforehand`, which cannot be run"));
    let other = home.join("bin/beforehand");
    write(&other, "#!/bin/sh\n");
    chmod(&other, 0o755);
    write(&path, text.replace(program.to_str().unwrap(), other.to_str().unwrap()));
    assert!(claude(&mut world).contains("/bin/beforehand`, which is not beforehand (beforehand"));
    write(&other, "#!/bin/sh\n# BEFOREHAND_ARGUMENTS_b7c1e94d\n");
    let another = "not seen yet; it runs another beforehand, ~/bin/beforehand (beforehand install";
    assert!(claude(&mut world).contains(another), "{}", claude(&mut world));
    write(&path, "{");
    assert!(claude(&mut world).contains("line 1: "), "{}", claude(&mut world));
    fs::set_permissions(home.join(".cline/hooks/PreToolUse"), fs::Permissions::from_mode(0o600))
        .unwrap();
    assert!(diagnosis(&mut world, "cline").contains("PreToolUse may not be executed"));
}

#[test]
fn doctor_tells_of_calls_that_no_hook_was_called_for() {
    let mut world = world();
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    // What was before the hooks is not looked at, and the hooks have been put in just now.
    let installed = world.state().join("installed.json").metadata().unwrap().modified().unwrap();
    world.now = chrono::DateTime::from(installed) + chrono::TimeDelta::minutes(1);
    let root = world.root().canonicalize().unwrap();
    world.write("a", "a");
    let name: String = root
        .to_str()
        .unwrap()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let conversation = home(&world).join(".claude/projects").join(name).join("s.jsonl");
    let at = world.now().to_rfc3339();
    let call = |id: &str, command: &str| {
        serde_json::json!({
            "type": "assistant", "timestamp": at, "sessionId": "s", "cwd": root, "message": {
                "content": [{ "type": "tool_use", "id": id, "name": "Bash",
                              "input": { "command": command } }] }
        })
    };
    let refused = serde_json::json!({ "message": { "content": [
        { "type": "tool_result", "tool_use_id": "3", "is_error": true }] } });
    let lines = [call("1", "rm a"), call("2", "ls"), call("3", "rm b"), refused];
    write(&conversation, lines.map(|line| line.to_string() + "\n").concat());
    let doctor = |world: &mut World| diagnosis(world, "claude code");
    assert_eq!(
        doctor(&mut world),
        "trouble: hook in ~/.claude/settings.json, 0 of 1 calls seen; not `Bash rm a` (agents \
         read their hooks when they start: start it again)"
    );
    let payload = serde_json::json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": root, "tool_name": "Bash",
        "tool_input": { "command": "rm a" }, "tool_use_id": "1", "prompt_id": "p",
    });
    world.run_in(&root, &["hook", "--agent", "claude-code"], &payload.to_string());
    assert_eq!(doctor(&mut world), "ok: hook in ~/.claude/settings.json, 1 of 1 calls seen (-)");
}

#[test]
fn doctor_finds_a_session_that_called_no_hook_at_all() {
    let mut world = world();
    assert_eq!(world.run(&["install", "codex", "--yes", "--trust"]).exit, Exit::Ok);
    let installed = world.state().join("installed.json").metadata().unwrap().modified().unwrap();
    world.now = chrono::DateTime::from(installed) + chrono::TimeDelta::minutes(1);
    let root = world.root().canonicalize().unwrap();
    let day = home(&world).join(".codex/sessions/2026/11/22");
    let at = world.now().to_rfc3339();
    let talk = |dir: &Path| {
        let meta = serde_json::json!({ "type": "session_meta", "payload": { "cwd": dir } });
        let call = serde_json::json!({ "type": "response_item", "timestamp": at, "payload": {
            "type": "function_call", "name": "exec_command", "call_id": "1",
            "arguments": "{\"cmd\": \"rm a\"}" } });
        format!("{meta}\n{call}\n")
    };
    // Of another project, and of one whose name only begins so.
    write(&day.join("rollout-1.jsonl"), talk(Path::new("/elsewhere")));
    write(&day.join("rollout-2.jsonl"), talk(&root.with_file_name("shop2")));
    assert!(diagnosis(&mut world, "codex").starts_with("ok: "));
    write(&day.join("rollout-3.jsonl"), talk(&root));
    let told = diagnosis(&mut world, "codex");
    assert!(told.contains("0 of 1 calls seen; not `Bash rm a`"), "{told}");
    let payload = serde_json::json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": root, "tool_name": "Bash",
        "tool_input": { "command": "rm a" }, "tool_use_id": "1", "turn_id": "p",
    });
    world.run_in(&root, &["hook", "--agent", "codex"], &payload.to_string());
    assert!(diagnosis(&mut world, "codex").contains("1 of 1 calls seen"));
}

#[test]
fn doctor_looks_at_the_store_and_at_settings() {
    let mut world = World::with_git();
    let state = world.state();
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(diagnosis(&mut world, "store").contains("other users can read"));
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(diagnosis(&mut world, "settings"), "");
    world.set("BEFOREHAND", "off");
    assert!(diagnosis(&mut world, "settings").contains("switched off"));
    let shown = world.run(&["doctor"]);
    assert!(shown.stdout.contains("claude code    –        not installed\n"), "{}", shown.stdout);
}

#[test]
fn codex_hooks_go_where_its_user_has_some() {
    let mut world = world();
    let home = home(&world);
    let config = home.join(".codex/config.toml");
    let text = "# mine\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = \"beep\"";
    write(&config, text);
    assert_eq!(world.run(&["install", "codex", "--yes"]).exit, Exit::Ok);
    assert!(!home.join(".codex/hooks.json").exists());
    assert!(fs::read_to_string(&config).unwrap().starts_with(text));
    assert!(diagnosis(&mut world, "codex").contains("not trusted"));
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(fs::read_to_string(&config).unwrap(), text);
    assert!(diagnosis(&mut world, "codex").contains("has no hook"));
}

#[test]
fn what_held_nothing_holds_nothing_again() {
    let mut world = World::new();
    let path = home(&world).join(".qwen/settings.json");
    for text in [
        "",
        "\n",
        "{}",
        "{ }\n",
        "{\n}",
        "{ // x\n}",
        "{\"hooks\":{}}",
        "{\"hooks\": {\n }, }",
        "{\"hooks\":{\"PreToolUse\":[ ], \"Stop\": []}}",
        "\u{feff}{\n \"hooks\" : { \"PreToolUse\" : [ /* x */ ] } }",
    ] {
        write(&path, text);
        assert_eq!(world.run(&["install", "qwen-code", "--yes"]).exit, Exit::Ok, "{text:?}");
        assert_eq!(
            diagnosis(&mut world, "qwen code"),
            "ok: hook in ~/.qwen/settings.json, not seen yet (-)"
        );
        assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok, "{text:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn doctor_runs_what_is_registered_as_an_agent_would() {
    let world = World::new();
    let home = home(&world);
    fs::create_dir(home.join(".claude")).unwrap();
    write(&world.settings(), "auto_prune = false\n");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beforehand"));
        let output = command.args(args).current_dir(world.root()).env_clear().env("HOME", &home);
        String::from_utf8(output.output().unwrap().stdout).unwrap()
    };
    run(&["install", "claude-code", "--yes"]);
    let told = run(&["doctor"]);
    assert!(
        told.contains("hook in ~/.claude/settings.json, ") && told.contains(" ms a call"),
        "{told}"
    );
    let broken = home.join("beforehand");
    write(&broken, "#!/bin/sh\n# BEFOREHAND_ARGUMENTS_b7c1e94d\nexit 3\n");
    chmod(&broken, 0o755);
    let path = home.join(".claude/settings.json");
    let text = fs::read_to_string(&path).unwrap();
    write(&path, text.replace(env!("CARGO_BIN_EXE_beforehand"), broken.to_str().unwrap()));
    let told = run(&["doctor"]);
    assert!(told.contains("which fails: it ended with exit status: 3"), "{told}");
}

/// Copies the program in a process of its own: what this one writes, a child that another test
/// starts meanwhile may hold open, and then it cannot be run ("text file busy").
fn copy_to(place: impl AsRef<Path>) {
    let mut copy = Command::new("cp");
    let copied = copy.arg(env!("CARGO_BIN_EXE_beforehand")).arg(place.as_ref()).status();
    assert!(copied.unwrap().success());
}

/// A copy of the program under another name, run as a process of its own, with little memory and
/// time: a loop must end this test and not the machine.
fn run_as(program: &Path, world: &World, args: &str) -> (bool, String) {
    let mut command = Command::new("/bin/sh");
    let line = format!("ulimit -t 20; ulimit -v 4000000; exec \"$0\" {args}");
    let output = command.args(["-c", &line]).arg(program).current_dir(world.root());
    let output = output.env_clear().envs(&world.env).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test's own home")]
fn a_program_of_any_name_is_installed_and_taken_out() {
    for name in ["bh-static", "beforehand_linux_amd64", ".beforehand-wrapped", "it's mine"] {
        let world = world();
        let program = world.root().join("../bin").join(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        copy_to(&program);
        let before = all(&home(&world));
        let (is_done, said) = run_as(&program, &world, "install --yes");
        // A path that is not plain fits into no slash command; that is refused and said.
        assert!(is_done || name.contains('\''), "{name}: {said}");
        let settings = fs::read_to_string(home(&world).join(".claude/settings.json")).unwrap();
        assert_eq!(settings.matches("hook --agent claude-code").count(), 8, "{name}: {settings}");
        let (_, again) = run_as(&program, &world, "install --yes");
        assert!(!again.contains("wrote"), "{name}: {again}");
        let (_, health) = run_as(&program, &world, "doctor");
        assert!(health.contains("hook in ~/.claude/settings.json"), "{name}: {health}");
        // The user has changed something since, so that the backup alone does not do it.
        let gemini = home(&world).join(".gemini/settings.json");
        write(&gemini, fs::read_to_string(&gemini).unwrap().replacen('{', "{\"a\": 1,", 1));
        let (is_done, said) = run_as(&program, &world, "uninstall --yes");
        assert!(is_done, "{name}: {said}");
        assert_eq!(fs::read_to_string(&gemini).unwrap(), "{\"a\": 1\n}", "{name}");
        write(&gemini, "{}");
        // What cannot be put back byte for byte has its backup kept.
        let _none_kept = fs::remove_dir_all(home(&world).join(".local"));
        assert_eq!(all(&home(&world)), before, "{name}");
    }
}

#[test]
fn a_program_that_was_renamed_finds_what_it_wrote() {
    let world = world();
    let program = |name: &str| world.root().join("../bin").join(name);
    fs::create_dir_all(program("")).unwrap();
    copy_to(program("one"));
    let before = all(&home(&world));
    assert!(run_as(&program("one"), &world, "install --yes").0);
    fs::rename(program("one"), program("two")).unwrap();
    assert!(run_as(&program("two"), &world, "install --yes").0);
    let settings = fs::read_to_string(home(&world).join(".claude/settings.json")).unwrap();
    assert!(settings.contains("/two hook") && !settings.contains("/one hook"), "{settings}");
    assert!(run_as(&program("two"), &world, "uninstall --yes").0);
    assert_eq!(all(&home(&world)), before);
}

#[test]
fn install_begins_with_a_line_for_each_agent() {
    let mut world = world();
    write(&home(&world).join(".qwen/settings.json"), "{");
    write(&home(&world).join(".claude/commands/undo.md"), "mine");
    let output = world.run(&["install", "--dry-run"]);
    let (summary, diffs) = output.stdout.split_once("\n\n").unwrap();
    assert_eq!(
        summary,
        "Claude Code  write ~/.claude/settings.json and 4 commands, but not 1 command, see below\n\
         Codex        write ~/.codex/hooks.json and 1 command\n\
         Gemini CLI   write ~/.gemini/settings.json and 5 commands\n\
         Qwen Code    nothing: ~/.qwen/settings.json is refused, see below\n\
         Copilot CLI  write ~/.copilot/hooks/beforehand.json\n\
         OpenCode     write ~/.config/opencode/plugins/beforehand.js and 4 commands\n\
         Cline        write 5 files in ~/.cline/hooks\n\
         Hermes       write ~/.hermes/config.yaml\n\
         Cursor       write ~/.cursor/hooks.json and 1 command"
    );
    assert!(diffs.starts_with("--- a/~/.claude/settings.json"), "{diffs}");
    assert_eq!(world.run(&["install", "hermes", "--yes"]).exit, Exit::Ok);
    let output = world.run(&["uninstall", "--dry-run"]);
    let (summary, _) = output.stdout.split_once("\n\n").unwrap();
    assert_eq!(summary, "Hermes  change ~/.hermes/config.yaml");
}

#[test]
fn an_agent_gets_all_or_nothing() {
    let mut world = world();
    let home = home(&world);
    write(&home.join(".qwen/settings.json"), "{");
    write(&home.join(".cline/hooks/TaskStart"), "#!/bin/sh\nmine\n");
    let before = all(&home);
    let output = world.run(&["install", "qwen-code", "cline", "--yes"]);
    assert_eq!(output.exit, Exit::Failed);
    let told = "note: ~/.qwen/commands/undo.md is not written without the hooks of its agent";
    assert!(output.stderr.contains(told), "{}", output.stderr);
    assert_eq!(all(&home), before);
    // One that fails half way is as it was, and those before it are done.
    write(&home.join(".gemini/commands"), "a file where a directory should be");
    let before = all(&home);
    let output = world.run(&["install", "claude-code", "gemini-cli", "--yes"]);
    assert_eq!(output.exit, Exit::Failed, "{}", output.stderr);
    let after = all(&home);
    let gemini = home.join(".gemini/settings.json");
    assert_eq!(after[&gemini], before[&gemini]);
    assert!(fs::read_to_string(home.join(".claude/settings.json")).unwrap().contains("beforehand"));
    assert_eq!(world.run(&["uninstall", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home), before);
}

#[test]
fn nothing_stays_behind_of_what_codex_has_changed() {
    let mut world = World::new();
    let home = home(&world);
    let config = home.join(".codex/config.toml");
    write(&config, "model = \"x\"\n");
    let before: Vec<_> = all(&home).into_keys().collect();
    assert_eq!(world.run(&["install", "codex", "--yes", "--trust"]).exit, Exit::Ok);
    // It notes the project it was started in, and takes the approvals for its own.
    let project = "[projects.\"/p\"]\ntrust_level = \"trusted\"\n";
    let text = fs::read_to_string(&config).unwrap();
    write(&config, format!("{text}{project}"));
    assert_eq!(world.run(&["uninstall", "codex", "--yes"]).exit, Exit::Ok);
    assert_eq!(fs::read_to_string(&config).unwrap(), format!("model = \"x\"\n{project}"));
    assert_eq!(all(&home).into_keys().collect::<Vec<_>>(), before);
    assert_eq!(world.run(&["install", "codex", "--yes", "--trust"]).exit, Exit::Ok);
    write(&config, "model = \"y\"\n");
    assert_eq!(world.run(&["uninstall", "codex", "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&home).into_keys().collect::<Vec<_>>(), before);
}
