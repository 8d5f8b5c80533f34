//! The list of subcommands. Hides clap from all modules but `commands`, and from the hook altogether:
//! a hook call is answered before any of this is built.

use std::{
    ffi::{OsStr, OsString},
    panic::{AssertUnwindSafe, catch_unwind},
};

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    commands::{self, parse},
    error::{Error, Result},
    hook,
    process::{Exit, Process},
    ui,
};

/// Takes a checkpoint before an AI agent changes your files, and restores them when you ask.
#[derive(Parser)]
#[command(
    name = "beforehand",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "A CHECKPOINT is a number from `beforehand list` (1 is before the newest turn), the first \
                  four or more digits of an id, or `latest` or `latest~N`: the newest checkpoints, also \
                  those inside a turn."
)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Answer one hook call of an agent (for agents, not for people)
    Hook(HookArgs),
    /// Put beforehand's hooks into the settings of your agents
    Install(commands::install::InstallArgs),
    /// Remove beforehand's hooks from the settings of your agents
    #[command(mut_arg("trust", |trust| trust.hide(true)))]
    Uninstall(commands::install::InstallArgs),
    /// Check that agents call the hooks, and that the hooks can save
    Doctor(commands::doctor::DoctorArgs),
    /// Allow one refused call to run once
    Allow(commands::allow::AllowArgs),
    /// Demonstrate a turn and a restore in a temporary project
    Demo(commands::demo::DemoArgs),
    /// Take a checkpoint now
    Create(commands::create::CreateArgs),
    /// Run a program as a turn that `undo` can undo
    Run(commands::run::RunArgs),
    /// List the checkpoints of this project
    List(commands::list::ListArgs),
    /// Show what a checkpoint holds
    Show(commands::show::ShowArgs),
    /// Show what has changed since a checkpoint, or between two
    Diff(commands::diff::DiffArgs),
    /// Show who wrote each line of a file
    Blame(commands::blame::BlameArgs),
    /// Find the turn that broke something
    Bisect(commands::bisect::BisectArgs),
    /// Write the changes of turns as commits or patches
    Export(commands::export::ExportArgs),
    /// Find a file in the checkpoints
    Find(commands::find::FindArgs),
    /// Restore files from a checkpoint
    Restore(commands::restore::RestoreArgs),
    /// Undo one turn, and keep everything done since
    Revert(commands::revert::RevertArgs),
    /// Copy the project as it was before a turn to another directory, to try again there
    Fork(commands::fork::ForkArgs),
    /// Choose a turn in a full-screen view, and go back to it
    Rewind(commands::rewind::RewindArgs),
    /// Undo the last turn, or the last restore
    Undo(commands::undo::UndoArgs),
    /// Undo the last undo
    Redo(commands::undo::UndoOptions),
    /// Show what is protected, and how much space that takes
    Status(commands::status::StatusArgs),
    /// Check the stored checkpoints for damage
    Check(commands::check::CheckArgs),
    /// Show every setting and where it comes from
    Config(commands::config::ConfigArgs),
    /// Show what a command line could do to files
    Explain(commands::explain::ExplainArgs),
    /// Drop old checkpoints
    Prune(commands::prune::PruneArgs),
    /// Drop every checkpoint of this project
    Clear(commands::clear::ClearArgs),
    /// Apply the limits, in the background
    #[command(hide = true)]
    Maintain(commands::maintain::MaintainArgs),
    /// Take a checkpoint before a call needs one, in the background
    #[command(hide = true)]
    Warm(commands::warm::WarmArgs),
    /// Print the shell code for Esc Esc and completions
    Init(commands::init::InitArgs),
    /// Answer a slash command of an agent
    #[command(hide = true)]
    Slash(commands::slash::SlashArgs),
}

/// Answer one hook call of an agent.
#[derive(clap::Args)]
struct HookArgs {
    /// Which agent calls, as in `claude-code`
    #[arg(long, value_name = "NAME")]
    agent: String,
}

/// Runs the command that `process` was given.
pub fn run(process: &mut Process<'_>) -> Exit {
    match hook_agent(process) {
        Some(agent) => guarded_hook(process, &agent),
        // What went wrong has been said, by the hook that `lib` sets.
        None => catch_unwind(AssertUnwindSafe(|| command(process))).unwrap_or(Exit::Bug),
    }
}

/// The agent of a plain `hook --agent NAME`, found without a parser.
fn hook_agent(process: &Process<'_>) -> Option<String> {
    let words: Vec<&OsStr> = process.args.iter().map(AsRef::as_ref).collect();
    match words[..] {
        [hook, flag, name] if hook == "hook" && flag == "--agent" => {
            Some(name.to_str()?.to_owned())
        }
        [hook, flag] if hook == "hook" => Some(flag.to_str()?.strip_prefix("--agent=")?.to_owned()),
        _ => None,
    }
}

/// Whether this is a hook call, during which nothing but the answer may be printed.
pub fn is_hook(process: &Process<'_>) -> bool {
    process.args.first().is_some_and(|first| first == "hook")
}

/// Whether another process of ours started this, to work in the background.
pub fn is_background(process: &Process<'_>) -> bool {
    process.args.first().is_some_and(|first| first == "maintain" || first == "warm")
}

/// A hook must not end with a panic's code, whatever happens in it.
fn guarded_hook(process: &mut Process<'_>, agent: &str) -> Exit {
    let answered = catch_unwind(AssertUnwindSafe(|| hook::run(process, agent)));
    answered.unwrap_or_else(|_| hook::after_a_bug(process, agent))
}

fn command(process: &mut Process<'_>) -> Exit {
    let words = || std::iter::once("beforehand".into()).chain(process.args.iter().cloned());
    let parsed = alone(&process.args)
        .map_or_else(|| Cli::try_parse_from(words()).map(|cli| cli.command), Ok);
    let command = match parsed {
        Ok(command) => command,
        Err(err) => return usage(process, &err),
    };
    match dispatch(process, command) {
        Ok(exit) => exit,
        Err(err) => report(process, &err),
    }
}

/// One of the commands that people, agents and scripts run often, parsed without building the
/// others. What it does not understand is left to the whole parser, which says why.
fn alone(words: &[OsString]) -> Option<CliCommand> {
    let (name, words) = words.split_first()?;
    match name.to_str()? {
        "create" => parse(words).map(CliCommand::Create),
        "list" => parse(words).map(CliCommand::List),
        "diff" => parse(words).map(CliCommand::Diff),
        "restore" => parse(words).map(CliCommand::Restore),
        "revert" => parse(words).map(CliCommand::Revert),
        "undo" => parse(words).map(CliCommand::Undo),
        "status" => parse(words).map(CliCommand::Status),
        "maintain" => parse(words).map(CliCommand::Maintain),
        "warm" => parse(words).map(CliCommand::Warm),
        _ => return None,
    }
    .ok()
}

fn dispatch(process: &mut Process<'_>, command: CliCommand) -> Result<Exit> {
    let sees_to_it = matches!(
        command,
        CliCommand::Hook(_)
            | CliCommand::Restore(_)
            | CliCommand::Revert(_)
            | CliCommand::Undo(_)
            | CliCommand::Redo(_)
            | CliCommand::Maintain(_)
            | CliCommand::Warm(_)
    );
    if !sees_to_it {
        commands::restore::say_if_interrupted(process);
    }
    commands::sweep_scratch(process);
    match command {
        CliCommand::Hook(args) => Ok(guarded_hook(process, &args.agent)),
        CliCommand::Install(args) => commands::install::install(process, &args),
        CliCommand::Uninstall(args) => commands::install::uninstall(process, &args),
        CliCommand::Doctor(args) => commands::doctor::run(process, &args),
        CliCommand::Allow(args) => commands::allow::run(process, &args),
        CliCommand::Demo(args) => commands::demo::run(process, &args),
        CliCommand::Create(args) => commands::create::run(process, &args),
        CliCommand::Run(args) => commands::run::run(process, &args),
        CliCommand::List(args) => commands::list::run(process, &args),
        CliCommand::Show(args) => commands::show::run(process, &args),
        CliCommand::Diff(args) => commands::diff::run(process, &args),
        CliCommand::Blame(args) => commands::blame::run(process, &args),
        CliCommand::Bisect(args) => commands::bisect::run(process, &args),
        CliCommand::Export(args) => commands::export::run(process, &args),
        CliCommand::Find(args) => commands::find::run(process, &args),
        CliCommand::Restore(args) => commands::restore::run(process, &args),
        CliCommand::Revert(args) => commands::revert::run(process, &args),
        CliCommand::Fork(args) => commands::fork::run(process, &args),
        CliCommand::Rewind(args) => commands::rewind::run(process, &args),
        CliCommand::Undo(args) => commands::undo::undo(process, &args),
        CliCommand::Redo(args) => commands::undo::redo(process, &args),
        CliCommand::Status(args) => commands::status::run(process, &args),
        CliCommand::Check(args) => commands::check::run(process, &args),
        CliCommand::Config(args) => commands::config::run(process, &args),
        CliCommand::Explain(args) => commands::explain::run(process, &args),
        CliCommand::Prune(args) => commands::prune::run(process, &args),
        CliCommand::Clear(args) => commands::clear::run(process, &args),
        CliCommand::Maintain(args) => commands::maintain::run(process, &args),
        CliCommand::Warm(args) => commands::warm::run(process, &args),
        CliCommand::Init(args) => commands::init::run(process, &args, Cli::command()),
        CliCommand::Slash(args) => commands::slash::run(process, &args),
    }
}

/// The whole command line, for what is made of it: man pages and completions.
pub fn command_line() -> clap::Command {
    Cli::command()
}

/// Help goes to stdout and is a success; a command line that makes no sense goes to stderr. For a
/// hook it is a success too: an agent may take any other code for a refusal.
fn usage(process: &mut Process<'_>, err: &clap::Error) -> Exit {
    let text = err.render();
    if !err.use_stderr() {
        let _ignored = write!(process.stdout, "{text}");
        return Exit::Ok;
    }
    // It names what was given, and a shell gives names of files for a `*`.
    let _ignored = write!(process.stderr, "{}", ui::escape_text(&text.to_string()));
    if is_hook(process) { Exit::Ok } else { Exit::Usage }
}

/// Says what could not be done, why, and what to do next.
fn report(process: &mut Process<'_>, err: &Error) -> Exit {
    let text = commands::error_text(err, ui::Style::stderr(process));
    commands::say_text(process, &text);
    match err {
        Error::Usage { .. } => Exit::Usage,
        _ => Exit::Failed,
    }
}
