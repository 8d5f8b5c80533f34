//! `beforehand run`: runs a program as a turn of its own.

use std::{ffi::OsString, io};

use super::{Project, say};
use crate::{
    error::{Error, Result},
    hook,
    model::{
        Agent, CallContext, Decision, Intent, Language, ScanScope, SessionId, ToolCall, Verdict,
    },
    process::{Exit, Process, RunPlace},
    ui,
};

/// Take a checkpoint, run a program, and note what it changed.
///
/// For agents without hooks, codemods and scripts: `beforehand undo` then takes back what the program
/// did. It has this terminal, its streams and its signals to itself, and its exit code is returned
/// (127 if there is no such program, 126 if it cannot be run).
#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// The name of this turn in the list
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Do not ask, even if files that it may destroy cannot be held
    #[arg(short, long)]
    yes: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &RunArgs) -> Result<Exit> {
    let call = call(process, &args.command);
    let project = Project::open(process, None)?;
    if project.scope == ScanScope::Named {
        let path = ui::path(project.root.path(), project.home.as_deref());
        let said = format!(
            "`{path}` is never held as a whole, so what the program does to it is not held"
        );
        say(process, &format!("warning: {said}"));
        may_run(process, args)?;
    }
    let decision = hook::program_begins(process, &call, args.name.as_deref())?;
    say_note(process, &decision);
    let may_run =
        if decision.verdict == Verdict::Abstain { Ok(()) } else { may_run(process, args) };
    let ran = may_run.map(|()| process.run_program(&args.command, RunPlace::default()));
    // It is over even if it was not run: nothing that comes later is its doing.
    let told = hook::program_ended(process, &call);
    Ok(match ran? {
        Ok(code) => {
            say_note(process, &told);
            Exit::Program(code)
        }
        Err(err) => not_run(process, &args.command, &err),
    })
}

fn may_run(process: &mut Process<'_>, args: &RunArgs) -> Result<()> {
    if args.yes || ui::ask(process, "Run it all the same?") {
        return Ok(());
    }
    Err(Error::other("it was not run", "--yes runs it without asking"))
}

/// The program as a call of its own session.
fn call(process: &Process<'_>, command: &[OsString]) -> ToolCall {
    let words = command.iter().map(|word| word.to_string_lossy());
    let context = CallContext {
        agent: Agent::Program,
        // Its beginning is what people see of it.
        session: SessionId(format!("{}-{}", std::process::id(), crate::fs::now_ns())),
        turn: None,
        cwd: process.cwd.clone(),
        bases: Vec::new(),
        transcript: None,
        server: None,
        subagent: None,
        mode: None,
    };
    let intent = Intent::Run { command: shell_words::join(words), language: Language::Shell };
    ToolCall { context, id: Some("run".to_owned()), tool: "run".to_owned(), intent }
}

fn say_note(process: &mut Process<'_>, decision: &Decision) {
    if let Some(note) = &decision.note {
        say(process, note);
    }
}

/// Says why it was not run, with the exit codes that shells have for it.
fn not_run(process: &mut Process<'_>, command: &[OsString], err: &io::Error) -> Exit {
    let program = command.first().map(|word| ui::escape(word.as_encoded_bytes()));
    let program = program.unwrap_or_default();
    say(process, &format!("error: cannot run `{program}`: {err}"));
    Exit::Program(if err.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}
