//! The files in `hooks/` speak of agents and events that we understand.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::*;

/// Every file below a directory of the project.
fn files(dir: &str) -> Vec<PathBuf> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)];
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The agent that a hook line names.
fn agent_in(text: &str) -> Option<&str> {
    text.split_once("hook --agent ")?
        .1
        .split(|char: char| char != '-' && !char.is_alphanumeric())
        .next()
}

/// Every event with the agent it is registered for: the innermost key above a hook line that is
/// an event's, not a part of its entry.
fn events(value: &Value, event: &str, found: &mut Vec<(String, String)>) {
    const PARTS: &[&str] = &["hooks", "command", "bash", "powershell", "beforehand"];
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let event = if PARTS.contains(&key.as_str()) { event } else { key };
            events(value, event, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| events(item, event, found)),
        Value::String(text) => {
            found.extend(agent_in(text).map(|agent| (agent.to_owned(), event.to_owned())));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Payloads of an agent for an event: those on record, or any other renamed to it.
fn payloads(agent: &str, event: &str) -> Vec<Vec<u8>> {
    let all = files(&format!("fixtures/payloads/{agent}"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let of_event = |path: &&PathBuf| {
        name(path).split(['-', '.']).next() == Some(event) && !name(path).contains(".invalid")
    };
    let recorded: Vec<_> =
        all.iter().filter(of_event).map(|path| fs::read(path).unwrap()).collect();
    if !recorded.is_empty() {
        return recorded;
    }
    let renamed = all.iter().filter_map(|path| {
        let mut payload: Value = serde_json::from_slice(&fs::read(path).unwrap()).ok()?;
        let fields =
            ["hook_event_name", "hookEventName", "event", "event_type", "agent_action_name"];
        let field = fields.iter().find(|field| payload.get(field).is_some())?;
        payload[*field] = event.into();
        Some(serde_json::to_vec(&payload).unwrap())
    });
    renamed.take(1).collect()
}

#[test]
fn every_hook_line_names_an_agent_we_speak() {
    let mut named = BTreeSet::new();
    for path in files("hooks") {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|_| path.extension().is_none_or(|ext| ext != "md")) {
            if let Some(agent) = agent_in(line) {
                assert!(by_name(agent).is_some(), "{}: {agent}", path.display());
                named.insert(agent.to_owned());
            }
        }
    }
    // The plugins name their agent in an array of arguments.
    for path in
        ["opencode/beforehand.js", "kilo/beforehand.js", "pi/beforehand.js", "openclaw/index.js"]
    {
        let text = text(path);
        let (_, rest) = text.split_once("[\"hook\", \"--agent\", \"").unwrap();
        let (agent, _) = rest.split_once('"').unwrap();
        assert!(path.starts_with(agent) && by_name(agent).is_some(), "{path}: {agent}");
        named.insert(agent.to_owned());
    }
    for dialect in DIALECTS {
        assert!(named.contains(dialect.name), "nothing in hooks/ for {}", dialect.name);
    }
}

#[test]
fn every_event_asked_for_is_understood() {
    let mut seen = 0;
    for path in files("hooks").iter().filter(|path| path.extension() == Some("json".as_ref())) {
        let json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut found = Vec::new();
        events(&json, "", &mut found);
        let names = [
            "plugin.json", "marketplace.json", "gemini-extension.json", "qwen-extension.json",
            "openclaw.plugin.json", "entry.json",
        ];
        let is_manifest = path.file_name().is_some_and(|name| names.iter().any(|it| name == *it));
        assert_eq!(found.is_empty(), is_manifest, "{} registers something", path.display());
        for (agent, event) in found {
            let payloads = payloads(&agent, &event);
            assert!(!payloads.is_empty(), "{agent} {event}: no payload to try");
            let dialect = by_name(&agent).unwrap();
            let understood = |payload: &Vec<u8>| {
                let parsed = dialect.parse(payload, &Markers::default()).unwrap();
                EventKind::from(&parsed) != EventKind::Other
            };
            assert!(payloads.iter().any(understood), "{agent} {event}");
            seen += 1;
        }
    }
    assert!(seen > 80, "only {seen} events were tried");
}

/// Kilo is a fork of `OpenCode` and takes the same plugin.
#[test]
fn the_plugin_of_a_fork_is_the_plugin_of_the_original() {
    let plugin = text("opencode/beforehand.js");
    let renamed = plugin.replace("OpenCode", "Kilo").replace("opencode", "kilo");
    assert_eq!(text("kilo/beforehand.js"), renamed);
}

/// What is in a file of `hooks/`.
fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(path)).unwrap()
}

fn manifest(path: &str) -> Value {
    serde_json::from_str(&text(&format!("packages/{path}"))).unwrap()
}

/// Packages of agents: where, how a hook of theirs names the launcher, and how a command does.
const PACKAGES: [(&str, &str, &str, &str); 4] = [
    ("claude-code", "claude-code", "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"),
    ("codex", "codex/plugins/beforehand", "${PLUGIN_ROOT}", ""),
    ("gemini-cli", "gemini-cli", "${extensionPath}", "$HOME/.gemini/extensions/beforehand"),
    ("qwen-code", "qwen-code", "${CLAUDE_PLUGIN_ROOT}", "$HOME/.qwen/extensions/beforehand"),
];

/// The name of a command in a package, which puts its own name before it: only there can Claude Code, which has
/// a `/fork` itself, tell ours apart.
fn in_package<'n>(agent: &str, name: &'n str) -> &'n str {
    if agent == "claude-code" && name == "fork-turn.md" { "fork.md" } else { name }
}

#[test]
fn a_package_is_what_install_would_write_with_its_own_launcher() {
    for (agent, package, hook, slash) in PACKAGES {
        let launcher = format!("\\\"{hook}/bin/beforehand\\\" hook");
        let hooks = text(&format!("packages/{package}/hooks/hooks.json"));
        let on_path = "! command -v beforehand >/dev/null || exec beforehand hook";
        let own = text(&format!("{agent}.json")).replace(on_path, &launcher);
        if agent == "claude-code" {
            // Run: up to 2.1.110 an event that Claude Code does not know voids its file of a plugin,
            // but not the plugin's other file.
            let newer = text(&format!("packages/{package}/hooks/newer.json"));
            let event = newer.strip_prefix("{\n  \"hooks\": {\n").unwrap();
            let event = event.strip_suffix("\n  }\n}\n").unwrap();
            assert_eq!(hooks, own.replace(&format!("{event},\n"), ""), "{agent}");
            assert_ne!(hooks, own);
        } else {
            assert_eq!(hooks, own, "{agent}");
        }
        if slash.is_empty() {
            continue;
        }
        let names = |dir: &str| -> Vec<_> {
            files(dir).iter().map(|path| path.file_name().unwrap().to_owned()).collect()
        };
        let own = names(&format!("hooks/commands/{agent}"));
        let packaged =
            own.iter().map(|name| name.to_str().unwrap()).map(|name| in_package(agent, name));
        let packaged: BTreeSet<&str> = packaged.collect();
        let there = names(&format!("hooks/packages/{package}/commands"));
        let there: BTreeSet<&str> = there.iter().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(there, packaged, "{agent}");
        for name in own.iter().map(|name| name.to_str().unwrap()) {
            let called = in_package(agent, name);
            let packaged = text(&format!("packages/{package}/commands/{called}"));
            let launcher = format!("\"{slash}/bin/beforehand\" slash");
            let own = text(&format!("commands/{agent}/{name}"));
            assert_eq!(packaged, own.replace("beforehand slash", &launcher), "{agent} {name}");
        }
    }
    assert_eq!(
        text("packages/codex/plugins/beforehand/skills/beforehand/SKILL.md"),
        text("skills/codex/SKILL.md")
    );
}

/// Runs a launcher in `home`, with only the system's programs and `first` on the PATH.
fn launched(launcher: &Path, home: &Path, first: &Path, payload: &str) -> String {
    let mut command = Command::new("/bin/sh");
    command.arg(launcher).args(["hook", "--agent", "claude-code"]).env_clear();
    command.env("HOME", home).env("PATH", format!("{}:/usr/bin:/bin", first.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that is not ours reads nothing.
    let _unread = child.stdin.take().unwrap().write_all(payload.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_launcher_runs_no_other_program_of_its_name_and_says_what_is_missing() {
    let dir = std::env::temp_dir().join(format!("beforehand-launcher-{}", std::process::id()));
    let (home, foreign) = (dir.join("home"), dir.join("foreign"));
    let bin = home.join(".local/bin");
    for dir in [&foreign, &bin] {
        fs::create_dir_all(dir).unwrap();
    }
    let put = |dir: &Path, text: &str| {
        let path = dir.join("beforehand");
        crate::fs::replace_with(&path, text.as_bytes(), 0o755).unwrap();
    };
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/packages");
    let launchers = PACKAGES.map(|(_, package, ..)| packages.join(package).join("bin/beforehand"));
    let first = fs::read(&launchers[0]).unwrap();
    for launcher in &launchers {
        assert_eq!(fs::read(launcher).unwrap(), first, "{}", launcher.display());
    }
    let run = |payload: &str| launched(&launchers[0], &home, &foreign, payload);
    put(&foreign, "#!/bin/sh\necho foreign\n");
    assert_eq!(run("{\"hook_event_name\":\"PreToolUse\"}"), "{}\n");
    let told = run("{\"hook_event_name\":\"SessionStart\"}");
    assert!(told.starts_with("{\"systemMessage\":\"beforehand is not installed"), "{told}");
    // Whatever writes our slash commands has the mark in it.
    assert!(text("commands/claude-code/undo.md").contains("BEFOREHAND_ARGUMENTS_b7c1e94d"));
    put(&bin, "#!/bin/sh\n# BEFOREHAND_ARGUMENTS_b7c1e94d\necho ours\n");
    assert_eq!(run(""), "ours\n");
    assert_eq!(run(""), "ours\n", "as noted");
    // A clock that ticks slowly would not tell the two apart.
    std::thread::sleep(std::time::Duration::from_millis(50));
    put(&bin, "#!/bin/sh\necho foreign as well\n");
    assert_eq!(run(""), "{}\n", "another program stands there now");
    crate::fs::remove_tree(&dir).unwrap();
}

#[test]
fn a_manifest_names_what_is_there_and_this_version() {
    let codex = "codex/plugins/beforehand";
    for path in [
        "claude-code/.claude-plugin/plugin.json",
        "gemini-cli/gemini-extension.json",
        "qwen-code/qwen-extension.json",
        &format!("{codex}/.codex-plugin/plugin.json"),
    ] {
        assert_eq!(manifest(path)["name"], "beforehand", "{path}");
        assert_eq!(manifest(path)["version"], env!("CARGO_PKG_VERSION"), "{path}");
    }
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/packages");
    let market = manifest("../../.claude-plugin/marketplace.json");
    let plugin = market["plugins"][0]["source"].as_str().unwrap();
    assert_eq!(
        packages.join("../..").join(plugin).canonicalize().ok(),
        packages.join("claude-code").canonicalize().ok()
    );
    let market = manifest("codex/.agents/plugins/marketplace.json");
    let plugin = market["plugins"][0]["source"]["path"].as_str().unwrap();
    assert!(packages.join("codex").join(plugin).is_dir(), "{plugin}");
    let newer = manifest("claude-code/.claude-plugin/plugin.json")["hooks"].clone();
    assert!(packages.join("claude-code").join(newer.as_str().unwrap()).is_file());
    for key in ["skills", "hooks"] {
        let manifest = manifest(&format!("{codex}/.codex-plugin/plugin.json"));
        let told = manifest[key].as_str().unwrap();
        assert!(packages.join(codex).join(told).exists(), "{told}");
    }
}

#[test]
fn a_skill_and_a_prompt_run_nothing_that_changes_files() {
    for path in ["skills/codex/SKILL.md", "prompts/beforehand.md"] {
        let text = text(path);
        assert!(text.starts_with("---\n") && text.contains("\ndescription: "), "{path}");
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        for command in quoted.iter().filter(|text| text.starts_with("beforehand ")) {
            let free = *command == "beforehand list";
            let told_to_the_user = ["beforehand undo", "beforehand restore ID"].contains(command);
            assert!(free || told_to_the_user, "{path}: {command}");
        }
    }
}

#[test]
fn every_timeout_is_meant_in_the_agents_own_unit() {
    for path in files("hooks").iter().filter(|path| path.extension() == Some("json".as_ref())) {
        let mut json: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        if path.to_string_lossy().contains("codex")
            && let Some(ends) = json["hooks"].as_object_mut().and_then(|it| it.remove("SessionEnd"))
        {
            // Codex gives it no more, and hashes what it gives.
            assert_eq!(ends[0]["hooks"][0]["timeout"], 3, "{}", path.display());
        }
        let mut open = vec![&json];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(map) => open.extend(map.values()),
                Value::Array(items) => open.extend(items),
                _ => continue,
            }
            let keys = ["timeout", "timeoutSec", "timeout_ms"];
            for (key, told) in keys.iter().filter_map(|key| Some((*key, value.get(key)?))) {
                let name = path.to_string_lossy();
                let in_ms = key == "timeout_ms"
                    || ["gemini", "auggie", "letta"].iter().any(|agent| name.contains(agent));
                let told = told.as_u64().unwrap();
                let seconds = if in_ms { told / 1000 } else { told };
                assert!((5..=60).contains(&seconds), "{}: {key} {told}", path.display());
            }
        }
    }
}

#[test]
fn slash_commands_paste_arguments_where_nothing_reads_them() {
    for path in files("hooks/commands") {
        let text = fs::read_to_string(&path).unwrap();
        let label = path.display();
        if text.contains("$ARGUMENTS") {
            let document = "<<'BEFOREHAND_ARGUMENTS_b7c1e94d'\n$ARGUMENTS\nBEFOREHAND_END\n\
                            BEFOREHAND_ARGUMENTS_b7c1e94d";
            assert!(text.contains(document), "{label}");
            assert_eq!(text.matches("$ARGUMENTS").count(), 1, "{label}");
        } else {
            // Quoted by the agent, but only inside its command.
            assert!(text.contains(" -- {{args}}}"), "{label}");
        }
        if path.extension() == Some("toml".as_ref()) {
            toml::from_str::<toml::Table>(&text).unwrap();
        }
    }
}
