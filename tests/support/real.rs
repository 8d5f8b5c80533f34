//! Real processes: beforehand's own binary, and git as its user has it.

use std::{
    io::Write as _,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::{Value, json};

use super::world::{PATIENT, World};

/// A command line of beforehand in `dir`, with nothing but the world's environment.
pub(crate) fn beforehand(world: &World, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beforehand"));
    command.args(args).current_dir(dir).env_clear();
    // What goes on in the background would outlive the test.
    command.env("BEFOREHAND_AUTO_PRUNE", "off");
    if args.first() == Some(&"hook") {
        command.env(PATIENT.0, PATIENT.1);
    }
    command.envs(&world.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A payload of Claude Code before a tool runs in `dir`.
pub(crate) fn before(dir: &Path, session: &str, turn: &str, tool: &str, input: &Value) -> String {
    json!({
        "session_id": session,
        "cwd": dir,
        "prompt_id": turn,
        "hook_event_name": "PreToolUse",
        "tool_name": tool,
        "tool_input": input,
        "tool_use_id": "x",
    })
    .to_string()
}

/// Starts a hook with `payload` and does not wait for it.
pub(crate) fn start_hook(world: &World, dir: &Path, payload: &str) -> Child {
    let args = ["hook", "--agent", "claude-code"];
    let mut child = beforehand(world, dir, &args).spawn().unwrap();
    // A hook that dies early has said why on stderr.
    let _gone = child.stdin.take().unwrap().write_all(payload.as_bytes());
    child
}

/// What a hook answered. It must never fail, nor say anything but one JSON document.
#[track_caller]
pub(crate) fn answer(child: Child) -> Value {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert_eq!((status.code(), &*stderr), (Some(0), ""));
    serde_json::from_slice(&stdout).unwrap()
}

/// Runs one hook to its end.
#[track_caller]
pub(crate) fn hook(world: &World, dir: &Path, payload: &str) -> Value {
    answer(start_hook(world, dir, payload))
}

/// Runs a shell command line with git in `dir`, as a user of its own; what it printed, or `Err`.
pub(crate) fn try_git(world: &World, dir: &Path, line: &str) -> Result<String, String> {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr) + &text(&output.stdout))
    }
}

/// The same, which must succeed.
#[track_caller]
pub(crate) fn git(world: &World, dir: &Path, line: &str) -> String {
    let done = try_git(world, dir, line);
    done.unwrap_or_else(|err| panic!("{line}: {err}")).trim().to_owned()
}

/// Says that a test asserts nothing here: this user may not do what it needs, or the file system or git
/// cannot. Where root runs the tests in `.ci/run`, each of them must assert.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#[expect(clippy::disallowed_methods, reason = "a wish of `.ci/run`, not of users")]
pub(crate) fn skip(why: &str) {
    let is_required = std::env::var_os("BEFOREHAND_REQUIRE_ALL").is_some();
    assert!(!is_required, "here it must not be skipped: {why}");
    eprintln!("skipped: {why}");
}

/// The beginning of a command line that permissions bind, also where root runs the tests.
pub(crate) fn bound_by_permissions() -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new("env");
    }
    let mut command = Command::new("setpriv");
    let without = "-dac_override,-dac_read_search";
    command.args(["--bounding-set", without, "--inh-caps", without]);
    command
}
