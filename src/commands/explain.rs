//! `turnback explain`: what a command line could do to files, without running it.

use std::{ffi::OsString, path::PathBuf};

use serde_json::{Value, json};

use super::{print, print_json};
use crate::{
    config,
    error::{Error, Result},
    fs::PathResolver,
    model::{
        Agent, Certainty, Context, Effect, Finding, Intent, Language, Level, Reach, Scope,
        SessionId, Simple, Target, TargetAction,
    },
    process::{Exit, Process},
    reach::{self, Surroundings},
    shell,
    ui::{self, Cell, Column, Cut, Paint, Style, Table},
};

/// Say what a command line could do to files, without running it.
///
/// Shows each command found in it, its effect, what it would do that to, and why; then what a
/// checkpoint before it would hold. Needs no project.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory the command would run in
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print an object
    #[arg(long)]
    pub(crate) json: bool,
    /// The command line, in one word or several
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let line = command_line(&args.command)?;
    let here = process.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
    let settings = config::load(process, Some(&cwd)).settings;
    let home = process.var("HOME").map(PathBuf::from);
    let rules = shell::Patterns::parse(&settings.shell.always, &settings.shell.never);
    let home_text = home.as_ref().and_then(|home| Some(home.to_str()?.to_owned()));
    let scope = shell::Scope { home: home_text, rules: rules.unwrap_or_default() };
    let finding = shell::classify(&line, Language::Shell, &scope);
    let effect = shell::effect(&Intent::Run { command: line, language: Language::Shell }, &scope);
    let reach = reach_of(process, &cwd, &effect);
    if args.json {
        let value = as_json(&finding, reach.as_ref());
        print_json(process, &value)?;
        return Ok(Exit::Ok);
    }
    let mut text = format!("{}\n{}", level_name(finding.level), table(process, &finding));
    if let Some(reach) = &reach {
        text.push_str(&would_hold(reach, home.as_deref()));
    }
    print(process, &text)?;
    Ok(Exit::Ok)
}

/// One word is a line as a shell gets it; several are a command as `exec` gets it.
fn command_line(words: &[OsString]) -> Result<String> {
    let texts: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let texts = texts.ok_or_else(|| Error::Other {
        message: "the command line is not UTF-8 text".to_owned(),
        hint: None,
    })?;
    Ok(match texts[..] {
        [line] => line.to_owned(),
        _ => shell_words::join(texts),
    })
}

/// What a checkpoint before the command would hold; `None` if it needs none, or nothing is there.
fn reach_of(process: &Process<'_>, cwd: &std::path::Path, effect: &Effect) -> Option<Reach> {
    if *effect == Effect::None {
        return None;
    }
    let state = config::state(process, Some(cwd)).ok()?;
    let home = process.var("HOME").map(PathBuf::from);
    let context = Context {
        agent: Agent::ClaudeCode,
        session: SessionId("explain".to_owned()),
        turn: None,
        cwd: Some(cwd.to_owned()),
        bases: Vec::new(),
        transcript: None,
        server: None,
        subagent: None,
        mode: None,
    };
    let surroundings =
        Surroundings { home: home.as_deref(), state: &state, real: &PathResolver::default() };
    reach::reach(cwd, &context, effect, &surroundings)
}

fn table(process: &Process<'_>, finding: &Finding) -> String {
    let mut table = Table::new([
        Column::cut("", Cut::End),
        Column::left(""),
        Column::cut("", Cut::Middle),
        Column::cut("", Cut::End),
    ]);
    for command in &finding.commands {
        let mut targets = command.targets.iter();
        table.row([
            command.text.as_str().into(),
            level_name(command.level).into(),
            targets.next().map(target_words).unwrap_or_default().into(),
            Cell::new(&command.reason, Paint::Dim),
        ]);
        for target in targets {
            table.row(["".into(), "".into(), target_words(target).into(), "".into()]);
        }
    }
    table.show(process.terminal.columns, Style::stdout(process))
}

fn target_words(target: &Target) -> String {
    let sure = certainty_name(target.certainty);
    format!("{} ({sure}, {})", target.path, action_name(target.action))
}

fn would_hold(reach: &Reach, home: Option<&std::path::Path>) -> String {
    const NAMED_MAX: usize = 8;
    let root = ui::path(reach.root.path(), home);
    let mut parts = match reach.scope {
        Scope::Whole => vec![format!("the whole of {root}")],
        Scope::Named => Vec::new(),
    };
    let is_news =
        |path: &&PathBuf| reach.scope == Scope::Named || !path.starts_with(reach.root.path());
    let named: Vec<_> = reach.victims.iter().filter(is_news).collect();
    parts.extend(named.iter().take(NAMED_MAX).map(|path| ui::path(path, home).into_owned()));
    if named.len() > NAMED_MAX {
        parts.push(format!("{} more", ui::number((named.len() - NAMED_MAX) as u64)));
    }
    if parts.is_empty() {
        return format!("would hold: nothing; {root} is never held as a whole\n");
    }
    format!("would hold: {}\n", parts.join(", "))
}

fn as_json(finding: &Finding, reach: Option<&Reach>) -> Value {
    let reasons: Vec<&str> = finding.commands.iter().map(|simple| simple.reason.as_str()).collect();
    let commands: Vec<Value> = finding.commands.iter().map(command_json).collect();
    json!({
        "effect": level_name(finding.level),
        "targets": finding.targets().map(target_json).collect::<Vec<_>>(),
        "reasons": reasons,
        "commands": commands,
        "would_hold": reach.map(|reach| json!({
            "root": reach.root.path().to_string_lossy(),
            "whole": reach.scope == Scope::Whole,
            "named": reach.victims.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        })),
    })
}

fn command_json(simple: &Simple) -> Value {
    json!({
        "command": simple.text,
        "effect": level_name(simple.level),
        "reason": simple.reason,
        "targets": simple.targets.iter().map(target_json).collect::<Vec<_>>(),
    })
}

fn target_json(target: &Target) -> Value {
    json!({
        "path": target.path,
        "certainty": certainty_name(target.certainty),
        "action": action_name(target.action),
        "reason": target.reason,
    })
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ReadOnly => "read-only",
        Level::Creates => "creates",
        Level::Destroys => "destroys",
        Level::Unknown => "unknown",
    }
}

fn certainty_name(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::Glob => "glob",
        Certainty::Dynamic => "dynamic",
    }
}

fn action_name(action: TargetAction) -> &'static str {
    match action {
        TargetAction::Delete => "delete",
        TargetAction::Overwrite => "overwrite",
        TargetAction::Modify => "modify",
        TargetAction::Move => "move",
        TargetAction::Create => "create",
        TargetAction::Git => "git",
    }
}
