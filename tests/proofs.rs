//! `doctor --prove` plays a loss through the hook that each agent has registered, and fails if any part
//! of it is broken; `doctor` takes and restores a checkpoint where the store lies.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use beforehand::agent::DIALECTS;
use serde_json::{Value, json};

use crate::support::{
    real::{before, beforehand},
    temp::{chmod, write},
    world::World,
};

/// A way in which a hook is broken.
struct Break {
    name: &'static str,
    make: fn(&World, &HookFile),
    /// Parts of the reasons that are given.
    reasons: &'static [&'static str],
}

/// A file with our hook.
struct HookFile {
    agent: &'static str,
    path: PathBuf,
}

/// A temporary directory for what is played, of which nothing may stay.
fn temporary(world: &World) -> PathBuf {
    let dir = world.home().join("tmp");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs this program. Its copy is on the `PATH`, before `system`.
fn run_with(world: &World, args: &[&str], system: &str) -> Output {
    let mut command = beforehand(world, &world.root(), args);
    let own = program(world).parent().unwrap().display().to_string();
    command.env("PATH", format!("{own}:{system}")).env("TMPDIR", temporary(world));
    command.output().unwrap()
}

/// Where a machine has its programs.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

fn run(world: &World, args: &[&str]) -> Output {
    run_with(world, args, SYSTEM)
}

/// The proof of every agent, and the exit code.
fn proofs_with(world: &World, system: &str) -> (Option<i32>, Vec<Value>) {
    let output = run_with(world, &["doctor", "--prove", "--json"], system);
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{output:?}"));
    let left: Vec<_> = fs::read_dir(temporary(world)).unwrap().collect();
    assert!(left.is_empty(), "nothing stays: {left:?} {lines:#?}");
    (output.status.code(), lines)
}

fn proofs(world: &World) -> (Option<i32>, Vec<Value>) {
    proofs_with(world, SYSTEM)
}

/// A machine on which every agent has our hooks, which run a copy of the program.
fn all_installed() -> World {
    let world = World::with_git();
    write(&world.home().join(".kiro/agents/mine.json"), "{}");
    write(&world.home().join(".hermes/config.yaml"), "hooks_auto_accept: true\n");
    copy_program(&world);
    reinstall(&world);
    world
}

/// Installs the hooks of every agent, for the user or else in the project.
fn reinstall(world: &World) {
    // Amplifier reads hooks in projects alone.
    let in_project = ["amplifier"];
    let names = DIALECTS.iter().map(|dialect| dialect.name);
    let (project, user): (Vec<_>, Vec<_>) = names.partition(|name| in_project.contains(name));
    for (names, flags) in [(user, &["--yes", "--trust"][..]), (project, &["--project", "--yes"])] {
        let mut install = Command::new(program(world));
        install.arg("install").args(names).args(flags).current_dir(world.root());
        let installed = install.env_clear().envs(&world.env).output().unwrap();
        assert!(installed.status.success(), "{installed:?}");
    }
}

/// Every file with a hook line of ours, or a plugin.
fn hook_files(world: &World) -> Vec<HookFile> {
    let mut open = vec![world.home(), world.root()];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path != program(world) && !path.starts_with(world.state()) {
            let text = fs::read_to_string(&path).unwrap_or_default();
            found.extend(agent_of(&text).map(|agent| HookFile { agent, path }));
        }
    }
    found
}

/// The agent that a hook line names, or the array of arguments in a plugin.
fn agent_of(text: &str) -> Option<&'static str> {
    let text = text.replace("\", \"", " ");
    let (_, rest) = text.split_once("hook --agent ")?;
    let name = rest.split(|char: char| char != '-' && !char.is_alphanumeric()).next()?;
    DIALECTS.iter().find(|dialect| dialect.name == name).map(|dialect| dialect.name)
}

#[test]
fn every_installed_agent_proves_that_lost_files_come_back() {
    let world = all_installed();
    let in_files: BTreeSet<_> = hook_files(&world).iter().map(|file| file.agent).collect();
    assert_eq!(in_files.len(), DIALECTS.len(), "{in_files:?}");
    let (exit, lines) = proofs(&world);
    for line in &lines {
        assert_eq!(line["health"], "ok", "{line:#}");
    }
    assert_eq!((exit, lines.len()), (Some(0), DIALECTS.len()));
    // Nothing was kept among the user's own checkpoints.
    assert!(!world.state().join("sessions").exists());
    let list = run(&world, &["list"]);
    assert!(list.stdout.is_empty(), "{list:?}");
}

/// A plugin is run by `node`, if there is one.
#[test]
fn a_plugin_is_run_itself_or_is_said_not_to_have_been() {
    let has_node = Command::new("node").arg("--version").env("PATH", SYSTEM).output().is_ok();
    let world = all_installed();
    for (system, is_run) in [(SYSTEM, has_node), ("/nowhere", false)] {
        let (exit, lines) = proofs_with(&world, system);
        assert_eq!(exit, Some(0), "{lines:#?}");
        for dialect in DIALECTS.iter().filter(|dialect| dialect.trial.plugin.is_some()) {
            let name = dialect.title.to_lowercase();
            let line = lines.iter().find(|line| line["name"] == *name).unwrap();
            let said = line["text"].as_str().unwrap();
            assert_eq!(said.contains("through its own hook"), is_run, "{line:#}");
            assert_eq!(said.contains("the plugin itself was not run"), !is_run, "{line:#}");
        }
    }
}

#[test]
fn without_an_agent_nothing_is_proved() {
    let output = run(&World::new(), &["doctor", "--prove"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no agent has hooks of beforehand's"), "{said}");
}

const BREAKS: &[Break] = &[
    Break {
        name: "the program is missing",
        make: |world, _| fs::remove_file(program(world)).unwrap_or_default(),
        reasons: &["which cannot be run"],
    },
    Break {
        name: "the program may not be executed",
        make: |world, _| chmod(&program(world), 0o600),
        reasons: &["which cannot be run"],
    },
    Break {
        name: "the program is another",
        make: |world, _| replace_program(world, "#!/bin/sh\nexit 0\n"),
        reasons: &["which is not beforehand"],
    },
    Break {
        name: "the program looks like ours and does nothing",
        make: |world, _| {
            replace_program(world, "#!/bin/sh\n# BEFOREHAND_ARGUMENTS_b7c1e94d\nexit 0\n");
        },
        reasons: &["nothing was held"],
    },
    Break {
        name: "the agent has another name",
        make: |_, file| {
            edit(&file.path, |text| {
                let text = text.replace("--agent ", "--agent not-");
                text.replace("\"--agent\", \"", "\"--agent\", \"not-")
            });
        },
        reasons: &["has no hook"],
    },
    Break {
        name: "the line does nothing",
        make: |_, file| {
            edit(&file.path, |text| {
                text.replace("|| exec ", "|| true ").replace("JSON.stringify(payload)", "\"{}\"")
            });
        },
        reasons: &["has no hook", "not as beforehand wrote it"],
    },
    Break {
        name: "the hook is gone from the file",
        make: |_, file| {
            let text = text_of(&file.path);
            match file.path.extension().and_then(OsStr::to_str) {
                Some("js") | None => fs::remove_file(&file.path).unwrap(),
                Some("json") => write(&file.path, "{}"),
                Some(_) => write(&file.path, text.replace("hook --agent", "")),
            }
        },
        reasons: &["has no hook"],
    },
    Break {
        name: "it runs before other calls alone",
        make: |_, file| edit(&file.path, |text| with_key(&text, "matcher", &json!("Nothing"))),
        reasons: &["not as beforehand wrote it (`matcher`)", "has no hook"],
    },
    Break {
        name: "it is switched off",
        make: |_, file| edit(&file.path, |text| with_key(&text, "enabled", &json!(false))),
        reasons: &["not as beforehand wrote it (`enabled`)", "has no hook"],
    },
];

#[test]
fn a_hook_that_is_broken_in_any_way_is_not_proved() {
    for broken in BREAKS {
        let world = all_installed();
        for file in hook_files(&world) {
            (broken.make)(&world, &file);
        }
        let (exit, lines) = proofs(&world);
        assert_eq!((exit, lines.len()), (Some(1), DIALECTS.len()), "{}: {lines:#?}", broken.name);
        for line in &lines {
            let label = format!("{}: {line:#}", broken.name);
            let text = line["text"].as_str().unwrap();
            assert!(text.starts_with("not proved: "), "{label}");
            assert!(broken.reasons.iter().any(|reason| text.contains(reason)), "{label}");
            assert!(line["hint"].is_string(), "{label}");
        }
    }
}

/// A script that the agent runs itself needs its permission.
#[test]
fn a_script_that_may_not_be_executed_is_not_proved() {
    let world = all_installed();
    for file in hook_files(&world).iter().filter(|file| file.agent == "cline") {
        chmod(&file.path, 0o600);
    }
    let (exit, lines) = proofs(&world);
    let failed: Vec<_> = lines.iter().filter(|line| line["health"] != "ok").collect();
    assert_eq!((exit, failed.len()), (Some(1), 1), "{failed:#?}");
    assert!(failed[0]["text"].as_str().unwrap().contains("may not be executed"), "{failed:#?}");
}

/// Puts another program in the place of ours.
fn replace_program(world: &World, text: &str) {
    fs::remove_file(program(world)).unwrap();
    write(&program(world), text);
    chmod(&program(world), 0o755);
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

/// A file with one more key in each hook of ours, as its user would write it. A script and a plugin
/// have no keys: they get a line that ends them.
fn with_key(text: &str, key: &str, value: &Value) -> String {
    if let Ok(mut json) = serde_json::from_str::<Value>(text) {
        add_key(&mut json, key, value);
        return json.to_string();
    }
    if text.starts_with("#!") {
        return text.replace('\n', "\nexit 0\n");
    }
    if text.contains("import {") {
        return format!("{text}process.exit(0)\n");
    }
    let lines = text.lines().map(|line| {
        if !line.contains("hook --agent") {
            return format!("{line}\n");
        }
        match line.find("- command: ") {
            Some(indent) => format!("{line}\n{:indent$}  {key}: {value}\n", ""),
            None => format!("{line}\n{key} = {value}\n"),
        }
    });
    lines.collect()
}

/// Adds a key to each group of hooks, or to each hook that is in no group.
fn add_key(json: &mut Value, key: &str, value: &Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| add_key(item, key, value)),
        Value::Object(members) => {
            let is_group = members.get("hooks").is_some_and(Value::is_array);
            let is_hook = members
                .values()
                .any(|it| it.as_str().is_some_and(|it| it.contains("hook --agent")));
            if is_group || is_hook {
                members.insert(key.to_owned(), value.clone());
            } else {
                members.values_mut().for_each(|item| add_key(item, key, value));
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => (),
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
