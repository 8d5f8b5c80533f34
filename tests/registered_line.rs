//! The line that `install` registers, run as each agent runs it: it answers as the program does, and
//! without the program it is silent.

use std::{
    collections::BTreeSet,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use beforehand::agent::{
    AgentFiles, DIALECTS, Dialect, FileKind, InstallFile, LineRunner, by_name,
};
use serde_json::{Value, json};

use crate::support::{
    real::{before, beforehand},
    temp::{chmod, write},
    world::World,
};

/// The agents of which a file among these has our line. A plugin starts the program by itself.
fn agents(files: fn(&AgentFiles) -> Vec<&'static [InstallFile]>) -> Vec<&'static str> {
    let has_line = |dialect: &&Dialect| {
        files(&dialect.files)
            .into_iter()
            .flatten()
            .any(|file| file.kind.is_settings() || matches!(file.kind, FileKind::Script))
    };
    DIALECTS.iter().filter(has_line).map(|dialect| dialect.name).collect()
}

fn users() -> Vec<&'static str> {
    agents(|files| vec![files.user, files.each])
}

/// Whether an agent runs no shell, or that is not known.
fn is_without_shell(agent: &str) -> bool {
    by_name(agent).unwrap().files.runner == LineRunner::Words
}

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
    let is_split = is_without_shell(agent);
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
        let args: Vec<&str> = ["install", "--yes"].into_iter().chain(users()).collect();
        let words: Vec<&str> = [program.to_str().unwrap()].into_iter().chain(args).collect();
        run(&world, path, &words, "");
        let lines = registered(&world.home());
        let agents: BTreeSet<_> = lines.iter().map(|it| &*it.agent).collect();
        assert_eq!(agents, users().into_iter().collect(), "{name}");
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
    let agents = agents(|files| vec![files.project]);
    let args: Vec<&str> = ["install", "--project", "--yes", "opencode"]
        .into_iter()
        .chain(agents.iter().copied())
        .collect();
    let output = beforehand(&world, &world.root(), &args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = registered(&world.root());
    let found: BTreeSet<_> = lines.iter().map(|it| &*it.agent).collect();
    assert_eq!(found, agents.into_iter().collect());
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
