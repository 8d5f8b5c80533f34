//! The hooks of every row speak of events that we understand, and the files of `hooks/` are as the rows say.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

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
        let fields = [
            "hook_event_name", "hookEventName", "hookName", "event", "event_type",
            "agent_action_name",
        ];
        let field = fields.iter().find(|field| payload.get(field).is_some())?;
        payload[*field] = event.into();
        Some(serde_json::to_vec(&payload).unwrap())
    });
    renamed.take(1).collect()
}

#[test]
fn every_plugin_names_its_agent() {
    for dialect in DIALECTS {
        let plugins = dialect.files.user.iter().filter_map(|file| {
            let FileKind::Plugin(text) = file.kind else { return None };
            Some(text)
        });
        let plugins: Vec<_> = plugins.collect();
        assert_eq!(plugins.len(), usize::from(dialect.trial.plugin.is_some()), "{}", dialect.name);
        let arguments = format!("[\"hook\", \"--agent\", \"{}\"]", dialect.name);
        assert!(plugins.iter().all(|text| text.contains(&arguments)), "{}", dialect.name);
    }
}

#[test]
fn every_event_asked_for_is_understood() {
    for dialect in DIALECTS {
        for event in dialect.hooks.events {
            let is_understood = |payload: &Vec<u8>| {
                let parsed = dialect.parse(payload, &Markers::default()).unwrap();
                EventKind::from(&parsed) != EventKind::Other
            };
            let is_named =
                payload::named_kind(dialect, event).is_some_and(|it| it != EventKind::Other);
            let mut payloads = payloads(dialect.name, event).into_iter();
            assert!(is_named || payloads.any(|it| is_understood(&it)), "{} {event}", dialect.name);
        }
    }
}

/// Kilo is a fork of `OpenCode` and takes the same plugin, and each plugin hands its payloads to us with
/// the same function.
#[test]
fn the_plugins_are_written_from_shared_parts() {
    const ASK: &str = "function ask(payload) {\n";
    let shared = text("ask.js");
    let shared = &shared[shared.find(ASK).unwrap()..];
    for (path, agent) in [
        ("opencode/beforehand.js", "opencode"),
        ("kilo/beforehand.js", "kilo"),
        ("pi/beforehand.js", "pi"),
        ("openclaw/index.js", "openclaw"),
    ] {
        let own = match agent {
            "kilo" => {
                let original = text("opencode/beforehand.js");
                original.replace("OpenCode", "Kilo").replace("opencode", "kilo")
            }
            _ => text(path),
        };
        let (before, rest) = own.split_once(ASK).unwrap();
        let (_, after) = rest.split_once("\n}\n").unwrap();
        let ask = shared.replace("\"AGENT\"", &format!("\"{agent}\""));
        assert_written(path, &format!("{before}{ask}{after}"));
    }
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

/// Compares a file of `hooks/` with the text that it should have, or writes it.
#[expect(clippy::disallowed_methods, reason = "a developer sets the variable")]
pub(crate) fn assert_written(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(path);
    if std::env::var_os("BEFOREHAND_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        crate::fs::replace_with(&file, text.as_bytes(), mode).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    let hint = "`BEFOREHAND_UPDATE=1 cargo test --lib written` writes it";
    assert!(found == text, "hooks/{path} is not as the rows say: {hint}\n{found}\n---\n{text}");
}

/// The hooks of an agent that run a line, without some of the events.
fn settings(dialect: &Dialect, line: &str, left_out: &[&str]) -> String {
    let settings = dialect.hooks.settings(dialect.hooks.holder, left_out);
    format!("{settings:#}\n").replace("\"LINE\"", &Value::from(line).to_string())
}

#[test]
fn a_package_is_written_from_the_row_with_its_own_launcher() {
    for (agent, package, hook, slash) in PACKAGES {
        let dialect = by_name(agent).unwrap();
        let line = format!("\"{hook}/bin/beforehand\" hook --agent {agent}");
        let newer = dialect.files.newer.map_or(&[][..], |newer| newer.events);
        let hooks = format!("packages/{package}/hooks");
        assert_written(&format!("{hooks}/hooks.json"), &settings(dialect, &line, newer));
        if !newer.is_empty() {
            // Run: up to 2.1.110 an event that Claude Code does not know voids its file of a plugin,
            // but not the plugin's other file.
            let mut others = dialect.hooks.events.to_vec();
            others.retain(|event| !newer.contains(event));
            assert_written(&format!("{hooks}/newer.json"), &settings(dialect, &line, &others));
        }
        if slash.is_empty() {
            continue;
        }
        let names = |dir: &str| -> Vec<_> {
            files(dir).iter().map(|path| path.file_name().unwrap().to_owned()).collect()
        };
        let own = names(&format!("hooks/commands/{agent}"));
        for name in own.iter().map(|name| name.to_str().unwrap()) {
            let called = in_package(agent, name);
            let launcher = format!("\"{slash}/bin/beforehand\" slash");
            let own = text(&format!("commands/{agent}/{name}"));
            let packaged = own.replace("beforehand slash", &launcher);
            assert_written(&format!("packages/{package}/commands/{called}"), &packaged);
        }
        let packaged =
            own.iter().map(|name| name.to_str().unwrap()).map(|name| in_package(agent, name));
        let packaged: BTreeSet<&str> = packaged.collect();
        let there = names(&format!("hooks/packages/{package}/commands"));
        let there: BTreeSet<&str> = there.iter().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(there, packaged, "{agent}");
    }
    let skill = text("skills/codex/SKILL.md");
    assert_written("packages/codex/plugins/beforehand/skills/beforehand/SKILL.md", &skill);
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
    for dialect in DIALECTS {
        for event in dialect.hooks.events {
            let Some(waits) = dialect.hooks.waits(event, dialect.files.second) else { continue };
            // Codex gives the end of a session no more, and hashes what it gives.
            let is_cut = dialect.name == "codex" && *event == "SessionEnd";
            let least = if is_cut { 3 } else { 5 };
            let limits = Duration::from_secs(least)..=Duration::from_secs(60);
            assert!(limits.contains(&waits), "{} {event}: {waits:?}", dialect.name);
        }
    }
}

#[test]
fn a_row_says_how_long_its_agent_waits() {
    let cases = [
        ("claude-code", EventKind::ToolCall, 30),
        ("gemini-cli", EventKind::ToolDone, 30),
        ("copilot-cli", EventKind::ToolCall, 30),
        ("kiro", EventKind::ToolCall, 30),
        ("opencode", EventKind::ToolCall, 30),
        ("codex", EventKind::SessionEnds, 3),
        ("codex", EventKind::ToolCall, 30),
        ("grok-build", EventKind::ToolCall, 5),
    ];
    for (name, kind, seconds) in cases {
        let waits = by_name(name).unwrap().waits(kind);
        assert_eq!(waits, Some(Duration::from_secs(seconds)), "{name} {kind:?}");
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
