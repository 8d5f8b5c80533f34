//! One verdict where nothing can be held: whatever the reason, a call that would lose something is asked
//! about by name, or refused where no user would see a question, for every kind of tool. Each reason is a
//! real one, made for a real process.

use std::{
    ffi::OsStr,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use beforehand::state::hash_name;
use rustix::fs::FileType;
use serde_json::{Value, json};

use crate::support::{
    real,
    temp::{chmod, special, write},
    world::World,
};

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is held, whatever else is wrong.
    Held,
    /// Nothing is held, for this reason.
    NotSaved(&'static str),
    /// The victim is not held, as a question says in these words.
    LeftOut(&'static str),
    /// The victim is held, or is asked about.
    HeldOrAsked,
}

/// A reason why a checkpoint cannot be taken, or may seem not to be.
struct Reason {
    name: &'static str,
    /// Makes it so, before the hook is started.
    make: fn(&mut World),
    /// What runs before the hook, in a mount namespace: `$STATE` is the state directory.
    mount: &'static str,
    /// What the hook is started by.
    by: Starter,
    outcome: Outcome,
}

/// What a hook is started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    Env,
    /// Permissions bind it, whoever runs the tests.
    BoundByPermissions,
    /// No file can be locked, as on some file systems of servers.
    WithoutLocks,
}

impl Starter {
    fn command(self) -> Command {
        match self {
            Self::Env => Command::new("env"),
            Self::BoundByPermissions => real::bound_by_permissions(),
            Self::WithoutLocks => {
                let mut command = Command::new("strace");
                let refused = "inject=flock:error=ENOLCK";
                command.args(["-f", "-qqq", "-o", "/dev/null", "-e", refused]);
                command
            }
        }
    }

    fn works_here(self) -> bool {
        self.command().arg("true").output().is_ok_and(|output| output.status.success())
    }
}

const PLAIN: Reason =
    Reason { name: "", make: |_| (), mount: "", by: Starter::Env, outcome: Outcome::Held };

const NOT_SAVED: Outcome = Outcome::NotSaved("could not save a checkpoint");

/// Makes the user database say this of the user of a mount namespace.
macro_rules! user_database {
    ($users:literal) => {
        concat!(
            "echo '",
            $users,
            "' | sed \"s|HOME|$WORLD/home|\" > $WORLD/passwd; ",
            "echo passwd: files > $WORLD/nsswitch.conf; ",
            "mount --bind $WORLD/passwd /etc/passwd; ",
            "if [ -e /etc/nsswitch.conf ]; then ",
            "mount --bind $WORLD/nsswitch.conf /etc/nsswitch.conf; fi"
        )
    };
}

const NO_USER: &str = user_database!("another:x:4711:4711::HOME:/bin/sh");
const USER: &str = user_database!("user:x:0:0::HOME:/bin/sh");

const REASONS: &[Reason] = &[
    Reason { name: "none", ..PLAIN },
    Reason {
        name: "a file is where the state directory should be",
        make: |world| write(&world.state(), "in the way"),
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the state directory is read-only",
        mount: "mkdir -p $STATE; mount --bind $STATE $STATE; mount -o remount,bind,ro $STATE",
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the state directory may not be written",
        make: |world| {
            fs::create_dir_all(world.state()).unwrap();
            chmod(&world.state(), 0o500);
        },
        by: Starter::BoundByPermissions,
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the disk is full",
        mount: "mkdir -p $STATE; mount -t tmpfs -o size=64k none $STATE; \
                cat /dev/zero > $STATE/fill || true",
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "there are no inodes",
        mount: "mkdir -p $STATE; mount -t tmpfs -o size=1m,nr_inodes=1 none $STATE",
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the home is below a file",
        make: |world| {
            write(&world.home().join("file"), "");
            world.set("HOME", world.home().join("file/home").to_str().unwrap());
        },
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "HOME is unset, and the user database does not know the user",
        make: without_home,
        mount: NO_USER,
        outcome: Outcome::NotSaved("`HOME` is not set to an absolute path"),
        ..PLAIN
    },
    Reason {
        name: "HOME is relative, and the user database does not know the user",
        make: |world| world.set("HOME", "home"),
        mount: NO_USER,
        outcome: Outcome::NotSaved("`HOME` is not set to an absolute path"),
        ..PLAIN
    },
    Reason { name: "HOME is unset", make: without_home, mount: USER, ..PLAIN },
    Reason { name: "HOME is empty", make: |world| world.set("HOME", ""), mount: USER, ..PLAIN },
    Reason {
        name: "HOME is relative",
        make: |world| world.set("HOME", "home"),
        mount: USER,
        ..PLAIN
    },
    Reason { name: "there is no /proc", mount: "mount -t tmpfs none /proc", ..PLAIN },
    Reason {
        name: "a directory is where the session's lock should be",
        make: |world| ledger(world, "lock").iter().for_each(|it| fs::create_dir(it).unwrap()),
        ..PLAIN
    },
    Reason {
        name: "a directory is where the session's ledger should be",
        make: |world| ledger(world, "json").iter().for_each(|it| fs::create_dir(it).unwrap()),
        ..PLAIN
    },
    Reason {
        name: "a pipe is where the session's ledger should be",
        make: |world| {
            for path in ledger(world, "json") {
                special(&path, FileType::Fifo, 0o600);
            }
        },
        ..PLAIN
    },
    Reason {
        name: "the session's ledger cannot be read",
        make: |world| {
            for path in ledger(world, "json") {
                write(&path, "{}");
                chmod(&path, 0);
            }
        },
        by: Starter::BoundByPermissions,
        ..PLAIN
    },
    Reason {
        name: "no file can be locked",
        by: Starter::WithoutLocks,
        outcome: NOT_SAVED,
        ..PLAIN
    },
    Reason {
        name: "the victim cannot be read",
        make: |world| chmod(&world.root().join("victim"), 0),
        by: Starter::BoundByPermissions,
        outcome: Outcome::LeftOut("not held: victim ("),
        ..PLAIN
    },
    Reason {
        name: "the victim is too large",
        make: |world| {
            let victim = fs::File::options().write(true).open(world.root().join("victim"));
            victim.unwrap().set_len(2 << 30).unwrap();
        },
        outcome: Outcome::LeftOut("not held: victim (2.1 GB, over max_victim_size)"),
        ..PLAIN
    },
    Reason {
        name: "the deadline has passed",
        make: |world| world.set("BEFOREHAND_DEADLINE", "1ms"),
        outcome: Outcome::HeldOrAsked,
        ..PLAIN
    },
    Reason {
        name: "a bug",
        make: |world| world.set("BEFOREHAND_TEST_BUG_AT", "hold"),
        outcome: Outcome::NotSaved("could not save a checkpoint (a bug in beforehand)"),
        ..PLAIN
    },
];

fn without_home(world: &mut World) {
    world.env.remove(OsStr::new("HOME"));
}

/// The files of the ledgers of both agents' sessions, in a directory that is there.
fn ledger(world: &World, extension: &str) -> [PathBuf; 2] {
    let sessions = world.state().join("sessions");
    fs::create_dir_all(&sessions).unwrap();
    ["claude-code", "codex"].map(|agent| {
        let name = hash_name(&[agent.as_bytes(), b"s1"]);
        sessions.join(format!("{name}.{extension}"))
    })
}

/// What an agent wants to do to `victim`, if it names one.
struct Tool {
    name: &'static str,
    agent: &'static str,
    input: fn(&Path) -> Value,
    /// Whether something that is there would be lost.
    loses: bool,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "Write",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("victim"), "content": "x" }),
        loses: true,
    },
    Tool {
        name: "Edit",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("victim"), "old_string": "m", "new_string": "" }),
        loses: true,
    },
    Tool {
        name: "NotebookEdit",
        agent: "claude-code",
        input: |root| json!({ "notebook_path": root.join("victim"), "new_source": "" }),
        loses: true,
    },
    Tool {
        name: "apply_patch",
        agent: "codex",
        input: |_| json!({ "command": "*** Begin Patch\n*** Delete File: victim\n*** End Patch\n" }),
        loses: true,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "rm victim" }),
        loses: true,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "echo x > victim" }),
        loses: true,
    },
    // Nothing is there to be lost, or nothing is named: a note and no question.
    Tool {
        name: "Write",
        agent: "claude-code",
        input: |root| json!({ "file_path": root.join("new"), "content": "x" }),
        loses: false,
    },
    Tool {
        name: "Bash",
        agent: "claude-code",
        input: |_| json!({ "command": "./unknown-program" }),
        loses: false,
    },
    Tool { name: "mcp__x__y", agent: "claude-code", input: |_| json!({}), loses: false },
];

const CONTENT: &str = "mine, and nowhere else";

/// What the hook answers to a call, for the reason.
fn answer(world: &World, reason: &Reason, tool: &Tool, mode: &str) -> Value {
    let payload = json!({
        "session_id": "s1",
        "cwd": world.root(),
        "prompt_id": "t1",
        "turn_id": "t1",
        "permission_mode": mode,
        "hook_event_name": "PreToolUse",
        "tool_name": tool.name,
        "tool_input": (tool.input)(&world.root()),
        "tool_use_id": "x",
    });
    let mut command = reason.by.command();
    let hook = format!("exec \"$TB\" hook --agent {}", tool.agent);
    if reason.mount.is_empty() {
        command.args(["sh", "-c", &hook]);
    } else {
        // Only the answer of the hook goes to standard output.
        let script = format!("exec 3>&1 >&2\n{}\nexec >&3 3>&- 2>&4 4>&-\n{hook}", reason.mount);
        let script = format!("exec 4>&2 2>/dev/null\n{script}");
        command.args(["unshare", "-rm", "sh", "-ec", &script]);
    }
    command.current_dir(world.root()).env_clear().envs(&world.env);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command.env("TB", env!("CARGO_BIN_EXE_beforehand")).env("STATE", world.state());
    command.env("BEFOREHAND_AUTO_PRUNE", "off").env("WORLD", world.home().parent().unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    real::answer(child)
}

/// The verdict on a call, and what is said of it.
fn verdict(answer: &Value) -> (&str, String) {
    let inner = &answer["hookSpecificOutput"];
    let said = [&answer["systemMessage"], &inner["permissionDecisionReason"]];
    let said: Vec<&str> = said.into_iter().filter_map(Value::as_str).collect();
    (inner["permissionDecision"].as_str().unwrap_or_default(), said.join("\n"))
}

/// Whether this user may mount something in a namespace.
fn can_mount() -> bool {
    let mut tried = Command::new("unshare");
    tried.args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]);
    tried.output().is_ok_and(|output| output.status.success())
}

/// What is wrong with the outcome of a call, if anything is.
fn fault(world: &mut World, reason: &Reason, tool: &Tool, mode: &str) -> Option<String> {
    let answer = answer(world, reason, tool, mode);
    let (verdict, said) = verdict(&answer);
    let refused = if mode == "default" && tool.agent != "codex" { "ask" } else { "deny" };
    let is_asked = verdict == refused && said.contains("not held: victim (");
    let is_right = match reason.outcome {
        Outcome::Held => {
            let is_held = verdict.is_empty() && !said.contains("NOT protected");
            is_held && (!tool.loses || comes_back(world))
        }
        Outcome::NotSaved(why) if tool.loses => is_asked && said.contains(why),
        Outcome::NotSaved(why) => verdict.is_empty() && said.contains(why),
        Outcome::LeftOut(words) if tool.loses => is_asked && said.contains(words),
        Outcome::LeftOut(_) => verdict.is_empty(),
        Outcome::HeldOrAsked => !tool.loses || is_asked || comes_back(world),
    };
    let input = (tool.input)(Path::new(""));
    let case = || format!("{}: {} {input}, {mode}: {answer}", reason.name, tool.name);
    (!is_right).then(case)
}

/// Does the worst that the call could do. Returns whether the user can take it back.
fn comes_back(world: &mut World) -> bool {
    fs::remove_file(world.root().join("victim")).unwrap();
    let home = world.home();
    world.set("HOME", home.to_str().unwrap());
    let _undone = world.run(&["undo", "--yes"]);
    fs::read(world.root().join("victim")).is_ok_and(|found| found == CONTENT.as_bytes())
}

#[test]
fn whatever_the_reason_what_cannot_be_held_is_asked_about_by_name() {
    let can_mount = can_mount();
    let mut faults = Vec::new();
    for reason in REASONS {
        if !reason.by.works_here() || (!reason.mount.is_empty() && !can_mount) {
            real::skip(reason.name);
            continue;
        }
        for tool in TOOLS {
            // Without a loss there is no question, whoever could answer it.
            let modes: &[&str] =
                if tool.loses { &["default", "bypassPermissions"] } else { &["default"] };
            for mode in modes {
                let mut world = World::new();
                world.write("victim", CONTENT);
                (reason.make)(&mut world);
                faults.extend(fault(&mut world, reason, tool, mode));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
