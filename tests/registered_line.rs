//! The line that `install` registers, run as each agent runs it: it answers as the program does, and
//! without the program it is silent.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::support::{
    real::{before, beforehand},
    temp::{chmod, write},
    world::World,
};

/// Agents with hooks of the user's. `OpenCode`'s plugin starts the program by itself.
const AGENTS: &[&str] = &[
    "claude-code", "codex", "gemini-cli", "qwen-code", "copilot-cli", "cline", "hermes", "cursor",
    "windsurf", "kiro", "factory-droid", "crush", "goose", "antigravity", "grok-build",
    "devin-cli", "vscode-agent", "vibe", "auggie", "openhands", "kimi", "qoder", "letta",
    "command-code",
];
/// Those of them that get no hooks in a project.
const NOT_IN_PROJECTS: &[&str] = &["hermes", "kiro", "grok-build", "vscode-agent", "vibe", "kimi"];
/// Agents that run no shell, or of which that is not known.
const WITHOUT_SHELL: &[&str] = &["hermes", "cursor"];
const SHELLS: &[&str] = &["/bin/sh", "/bin/dash", "/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"];

/// One line, and for whom it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Registered {
    agent: String,
    line: String,
}

/// Every line in the files below a directory, each once. PowerShell is not here to run its own.
fn registered(dir: &Path) -> BTreeSet<Registered> {
    let mut found = BTreeSet::new();
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        if path.ends_with(".git") {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let mut lines = Vec::new();
        if path.extension().is_some_and(|end| end == "yaml") {
            let commands = text.lines().filter_map(|line| line.trim().strip_prefix("- command: "));
            lines.extend(commands.map(|line| serde_json::from_str::<String>(line).unwrap()));
        } else if path.extension().is_some_and(|end| end == "toml") {
            let commands = text.lines().filter_map(|line| line.trim().strip_prefix("command = "));
            lines.extend(commands.map(|line| serde_json::from_str::<String>(line).unwrap()));
        } else if let Ok(json) = serde_json::from_str::<Value>(&text) {
            strings(&json, &mut lines);
        } else if text.starts_with("#!/bin/sh\n") {
            assert!(text.contains("hook --agent cline"), "{text}");
            let line = shell_words::quote(path.to_str().unwrap()).into_owned();
            found.insert(Registered { agent: "cline".to_owned(), line });
        }
        for line in lines {
            if let Some((_, rest)) = line.split_once("hook --agent ") {
                let agent = rest.split(|char: char| char != '-' && !char.is_alphanumeric()).next();
                found.insert(Registered { agent: agent.unwrap().to_owned(), line });
            }
        }
    }
    found
}

fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(map) => {
            let told = map.iter().filter(|(key, _)| *key != "powershell");
            told.for_each(|(_, value)| strings(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Runs a program with a payload, and nothing but the world's environment.
fn run(world: &World, path: &str, words: &[&str], payload: &str) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(world.root()).env_clear();
    command.env("BEFOREHAND_AUTO_PRUNE", "off").envs(&world.env).env("PATH", path);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Without the program nothing is read.
    let _unread = child.stdin.take().unwrap().write_all(payload.as_bytes());
    child.wait_with_output().unwrap()
}

/// Every way in which an agent may run the line.
fn outputs(world: &World, path: &str, registered: &Registered, payload: &str) -> Vec<Output> {
    let Registered { agent, line } = registered;
    let is_split = WITHOUT_SHELL.contains(&&**agent);
    // In quotes within quotes, `fish` reads a quote of the path otherwise.
    let shells = SHELLS.iter().filter(|shell| !(is_split && shell.ends_with("fish")));
    let shells = shells.filter(|shell| Path::new(shell).exists());
    let mut outputs: Vec<_> =
        shells.map(|shell| run(world, path, &[shell, "-c", line], payload)).collect();
    if is_split {
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        outputs.push(run(world, path, &words, payload));
    }
    outputs
}

fn parts(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Calls that are answered with nothing, and with a refusal.
fn payloads(world: &World, agent: &str) -> [String; 2] {
    ["ls", "beforehand uninstall --yes"].map(|command| {
        if agent == "windsurf" {
            let info = json!({ "command_line": command, "cwd": world.root() });
            json!({ "agent_action_name": "pre_run_command", "trajectory_id": "t",
                    "execution_id": "e", "tool_info": info })
            .to_string()
        } else {
            let mut payload: Value = serde_json::from_str(&before(
                &world.root(),
                "s",
                "t",
                "Bash",
                &json!({ "command": command }),
            ))
            .unwrap();
            payload["permission_mode"] = "bypassPermissions".into();
            payload.to_string()
        }
    })
}

/// A copy by a process of its own: what this one writes, a child of another test may hold open.
fn copy_to(place: &Path) {
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_beforehand")).arg(place).status();
    assert!(copied.unwrap().success());
}

/// The line answers as the program itself, whatever runs it.
fn answers_as(world: &World, path: &str, program: &Path, lines: &BTreeSet<Registered>) {
    let mut refused = BTreeSet::new();
    for registered in lines {
        for payload in payloads(world, &registered.agent) {
            let words = [program.to_str().unwrap(), "hook", "--agent", &registered.agent];
            let direct = parts(&run(world, path, &words, &payload));
            if direct.0 == Some(2) || direct.1.contains("\"deny\"") {
                refused.insert(&*registered.agent);
            }
            for output in outputs(world, path, registered, &payload) {
                assert_eq!(parts(&output), direct, "{registered:?}");
            }
        }
    }
    assert!(refused.contains("windsurf") && refused.contains("claude-code"), "{refused:?}");
}

fn is_silent(world: &World, path: &str, lines: &BTreeSet<Registered>) {
    for registered in lines {
        for payload in payloads(world, &registered.agent) {
            for output in outputs(world, path, registered, &payload) {
                assert_eq!(
                    parts(&output),
                    (Some(0), String::new(), String::new()),
                    "{registered:?}"
                );
            }
        }
    }
}

fn with_program(name: &str) -> (World, PathBuf) {
    let world = World::with_git();
    // Kiro has hooks only in an agent of the user's.
    write(&world.home().join(".kiro/agents/mine.json"), "{}");
    let program = world.home().join(name);
    copy_to(&program);
    (world, program)
}

#[test]
fn a_line_of_the_users_answers_as_the_program_and_is_silent_without_it() {
    for name in ["bin/beforehand", "it's my/beforehand"] {
        let (world, program) = with_program(name);
        let path = "/usr/bin:/bin";
        let args: Vec<&str> = ["install", "--yes"].iter().chain(AGENTS).copied().collect();
        let words: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(args).collect();
        run(&world, path, &words, "");
        let lines = registered(&world.home());
        let agents: BTreeSet<_> = lines.iter().map(|it| &*it.agent).collect();
        assert_eq!(agents, AGENTS.iter().copied().collect(), "{name}");
        answers_as(&world, path, &program, &lines);
        chmod(&program, 0o600);
        is_silent(&world, path, &lines);
        fs::remove_file(&program).unwrap();
        is_silent(&world, path, &lines);
    }
}

#[test]
fn a_line_of_a_project_names_no_place_of_this_machine() {
    let (world, program) = with_program("bin/beforehand");
    let agents: Vec<_> = AGENTS
        .iter()
        .filter(|agent| !NOT_IN_PROJECTS.contains(agent))
        .chain(&["amplifier", "opencode"])
        .copied()
        .collect();
    let args: Vec<&str> =
        ["install", "--project", "--yes"].into_iter().chain(agents.clone()).collect();
    let output = beforehand(&world, &world.root(), &args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = registered(&world.root());
    let found: BTreeSet<_> = lines.iter().map(|it| &*it.agent).collect();
    assert_eq!(found, agents.iter().copied().filter(|agent| *agent != "opencode").collect());
    let mut open = vec![world.root()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let text = String::from_utf8_lossy(&fs::read(&entry).unwrap()).into_owned();
                for place in [world.home().to_str().unwrap(), env!("CARGO_BIN_EXE_beforehand")] {
                    assert!(!text.contains(place), "{}: {text}", entry.display());
                }
            }
        }
    }
    let bin = program.parent().unwrap().display();
    answers_as(&world, &format!("{bin}:/usr/bin:/bin"), &program, &lines);
    is_silent(&world, "/usr/bin:/bin", &lines);
}
