//! `doctor --prove` plays a loss through the hook that each agent has registered, and fails if any part
//! of it is broken; `doctor` takes and restores a checkpoint where the store lies.

use std::{
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

/// What is broken, and how.
struct Break {
    name: &'static str,
    make: fn(&World, &Path),
    told: &'static str,
}

/// A temporary directory for what is played, of which nothing may stay.
fn temporary(world: &World) -> PathBuf {
    let dir = world.home().join("tmp");
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn run(world: &World, args: &[&str]) -> Output {
    let mut command = beforehand(world, &world.root(), args);
    command.env("PATH", "/usr/bin:/bin").env("TMPDIR", temporary(world));
    command.output().unwrap()
}

/// The proof of every agent, and the exit code.
fn proofs(world: &World) -> (Option<i32>, Vec<Value>) {
    let output = run(world, &["doctor", "--prove", "--json"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{output:?}"));
    let left: Vec<_> = fs::read_dir(temporary(world)).unwrap().collect();
    assert!(left.is_empty(), "nothing stays: {left:?} {lines:#?}");
    (output.status.code(), lines)
}

fn install(world: &World, agent: &str) {
    let installed = run(world, &["install", agent, "--yes", "--trust"]);
    assert!(installed.status.success(), "{agent}: {installed:?}");
}

#[test]
fn every_installed_agent_proves_that_lost_files_come_back() {
    let world = World::new();
    let agents = [
        "claude-code", "codex", "gemini-cli", "qwen-code", "copilot-cli", "opencode", "cline",
        "hermes", "cursor", "windsurf", "kiro", "factory-droid", "crush", "goose", "antigravity",
        "grok-build", "devin-cli", "vscode-agent",
    ];
    write(&world.home().join(".kiro/agents/mine.json"), "{}");
    write(&world.home().join(".hermes/config.yaml"), "hooks_auto_accept: true\n");
    for agent in agents {
        install(&world, agent);
    }
    let (exit, lines) = proofs(&world);
    for line in &lines {
        assert_eq!(line["health"], "ok", "{line:#}");
    }
    assert_eq!((exit, lines.len()), (Some(0), agents.len()));
    // Nothing was kept among the user's own checkpoints.
    assert!(!world.state().join("sessions").exists());
    let list = run(&world, &["list"]);
    assert!(list.stdout.is_empty(), "{list:?}");
}

#[test]
fn without_an_agent_nothing_is_proved() {
    let output = run(&World::new(), &["doctor", "--prove"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no agent has hooks of beforehand's"), "{said}");
}

#[test]
fn a_hook_that_is_broken_in_any_way_is_not_proved() {
    let breaks = [
        Break {
            name: "the program is missing",
            make: |world, file| {
                fs::remove_file(program(world)).unwrap();
                assert!(file.exists());
            },
            told: "which cannot be run",
        },
        Break {
            name: "the agent has another name",
            make: |_, file| edit(file, |text| text.replace("--agent ", "--agent not-")),
            told: "has no hook",
        },
        Break {
            name: "the line does nothing",
            make: |_, file| edit(file, |text| without_lines(&text, "true")),
            told: "has no hook",
        },
        Break {
            name: "the hook is gone from the file",
            make: |_, file| {
                let is_script = !text_of(file).starts_with(['{', 'h']);
                if is_script {
                    fs::remove_file(file).unwrap();
                } else {
                    write(file, if text_of(file).starts_with('{') { "{}" } else { "" });
                }
            },
            told: "has no hook",
        },
        Break {
            name: "the program may not be executed",
            make: |world, _| chmod(&program(world), 0o600),
            told: "which cannot be run",
        },
        Break {
            name: "the program is another",
            make: |world, _| {
                fs::remove_file(program(world)).unwrap();
                write(&program(world), "#!/bin/sh\nexit 0\n");
                chmod(&program(world), 0o755);
            },
            told: "which is not beforehand",
        },
        Break {
            name: "the program looks like ours and does nothing",
            make: |world, _| {
                fs::remove_file(program(world)).unwrap();
                write(&program(world), "#!/bin/sh\n# BEFOREHAND_ARGUMENTS_b7c1e94d\nexit 0\n");
                chmod(&program(world), 0o755);
            },
            told: "nothing was held",
        },
    ];
    let agents = [
        ("claude-code", ".claude/settings.json"),
        ("cline", ".cline/hooks/PreToolUse"),
        ("hermes", ".hermes/config.yaml"),
    ];
    for (agent, file) in agents {
        for broken in &breaks {
            let world = World::new();
            write(&world.home().join(".hermes/config.yaml"), "hooks_auto_accept: true\n");
            copy_program(&world);
            let installed = Command::new(program(&world))
                .args(["install", agent, "--yes"])
                .current_dir(world.root())
                .env_clear()
                .envs(&world.env)
                .output()
                .unwrap();
            assert!(installed.status.success(), "{installed:?}");
            let (exit, lines) = proofs(&world);
            assert_eq!((exit, lines.len()), (Some(0), 1), "{agent}: {lines:#?}");
            (broken.make)(&world, &world.home().join(file));
            let (exit, lines) = proofs(&world);
            let what = format!("{agent}, {}: {lines:#?}", broken.name);
            assert_eq!(exit, Some(1), "{what}");
            let text = lines[0]["text"].as_str().unwrap();
            assert!(text.starts_with("not proved: ") && text.contains(broken.told), "{what}");
            assert!(lines[0]["hint"].is_string(), "{what}");
        }
    }
}

/// A copy of the program, in a place of its own.
fn program(world: &World) -> PathBuf {
    world.home().join("bin/beforehand")
}

/// In a process of its own: a file that this one writes, a child of another test may hold open, and then
/// it cannot be run.
fn copy_program(world: &World) {
    fs::create_dir_all(world.home().join("bin")).unwrap();
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_beforehand")).arg(program(world));
    assert!(copy.status().unwrap().success());
}

fn text_of(file: &Path) -> String {
    fs::read_to_string(file).unwrap()
}

fn edit(file: &Path, change: impl Fn(String) -> String) {
    let old = text_of(file);
    let new = change(old.clone());
    assert_ne!(old, new);
    write(file, new);
}

/// A settings file or script with another line in the place of each of ours.
fn without_lines(text: &str, instead: &str) -> String {
    if let Ok(mut json) = serde_json::from_str::<Value>(text) {
        replace(&mut json, instead);
        return json.to_string();
    }
    let lines = text.lines().map(|line| {
        if !line.contains("hook --agent") {
            return line.to_owned();
        }
        let before = line.find("- command: ").map_or("", |at| &line[..at + "- command: ".len()]);
        format!("{before}{instead}")
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn replace(json: &mut Value, instead: &str) {
    match json {
        Value::String(text) if text.contains("hook --agent") => *json = instead.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, instead)),
        Value::Object(members) => members.values_mut().for_each(|item| replace(item, instead)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (),
    }
}

/// What `doctor` says of the store, where a system call is refused or something is not mounted.
fn store_within(world: &World, wrapped: &mut Command) -> Value {
    wrapped.arg(env!("CARGO_BIN_EXE_beforehand")).args(["doctor", "--json"]);
    wrapped.current_dir(world.root()).env_clear().envs(&world.env);
    let output = wrapped.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{output:?}"));
    lines.into_iter().find(|line| line["name"] == "store").unwrap()
}

#[test]
fn a_store_is_called_good_only_after_a_checkpoint_came_back() {
    let world = World::with_git();
    let line = store_within(&world, &mut Command::new("env"));
    assert_eq!(line["health"], "ok", "{line:#}");
    assert!(line["text"].as_str().unwrap().contains("a trial checkpoint was restored"), "{line:#}");
    assert!(!world.state().exists(), "nothing stays");
    assert_eq!(fs::read_dir(world.home()).unwrap().count(), 0, "nothing stays");
}

/// A command that runs another for which the system refuses these calls, by their numbers on x86-64.
#[cfg(target_arch = "x86_64")]
fn refusing(world: &World, calls: &[u32]) -> Command {
    /// One instruction of a filter, as the kernel reads it.
    fn instruction(filter: &mut Vec<u8>, code: u16, if_equal: u8, value: u32) {
        filter.extend(code.to_ne_bytes());
        filter.extend([if_equal, 0]);
        filter.extend(value.to_ne_bytes());
    }
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0001;
    let mut filter = Vec::new();
    instruction(&mut filter, LOAD, 0, 0);
    for (at, call) in calls.iter().enumerate() {
        let skipped = u8::try_from(calls.len() - at).unwrap();
        instruction(&mut filter, JUMP_IF_EQUAL, skipped, *call);
    }
    instruction(&mut filter, RETURN, 0, ALLOW);
    instruction(&mut filter, RETURN, 0, REFUSE);
    let file = world.root().with_file_name("filter");
    write(&file, filter);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec bwrap --dev-bind / / --seccomp 9 -- \"$@\" 9<\"$0\""]).arg(file);
    command
}

/// Each of these is refused on some network or container file system.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_store_that_cannot_lock_sync_or_change_permissions_is_trouble() {
    let tried = refusing(&World::new(), &[]).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        // There is no sandbox in which a call can be refused.
        return;
    }
    for (name, calls) in [
        ("flock", &[73][..]),
        ("fsync, fdatasync and syncfs", &[74, 75, 306]),
        ("chmod", &[90, 91, 268, 452]),
        ("rename", &[82, 264, 316]),
    ] {
        let world = World::with_git();
        let line = store_within(&world, &mut refusing(&world, calls));
        assert_eq!(line["health"], "trouble", "{name}: {line:#}");
        let text = line["text"].as_str().unwrap();
        assert!(text.starts_with("a trial checkpoint in ~/"), "{name}: {text}");
    }
}

/// Without `/proc` some paths cannot be proved. `doctor` must not be more confident than the hook.
#[test]
fn without_proc_the_store_is_as_good_as_the_hook_finds_it() {
    let within = || {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "within"]);
        command
    };
    if !within().arg("true").status().is_ok_and(|status| status.success()) {
        return;
    }
    let world = World::with_git();
    world.write("a", "one");
    let line = store_within(&world, &mut within());
    let mut hook = within();
    hook.arg(env!("CARGO_BIN_EXE_beforehand")).args(["hook", "--agent", "claude-code"]);
    hook.env_clear().envs(&world.env).env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    hook.env("BEFOREHAND_AUTO_PRUNE", "off").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = hook.spawn().unwrap();
    let payload = before(&world.root(), "s", "t", "Bash", &json!({ "command": "rm a" }));
    running.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    let answer = running.wait_with_output().unwrap().stdout;
    let is_held = !String::from_utf8_lossy(&answer).contains("NOT protected");
    assert_eq!(line["health"] == "ok", is_held, "{line:#}");
}
