//! `beforehand explain`: what a command line could do to files, without running it.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{print_json, print_text, rows::skipped_json, table_text};
use crate::{
    agent,
    error::{Error, Result},
    hook::{self, Foreseen},
    model::{
        Agent, CallContext, Certainty, Decision, Finding, Intent, Language, Level, Reach,
        ScanScope, SessionId, Simple, Skipped, Target, TargetAction, ToolCall, Verdict,
    },
    process::{Exit, Process},
    ui::{self, Cell, Column, Cut, Paint, Table},
};

/// Say what a command line could do to files, without running it.
///
/// Shows each command found in it, its effect, what it would do that to, and why; then what a
/// checkpoint before it would hold. Needs no project.
#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    /// The directory the command would run in
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Print JSON
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

pub(crate) fn run(process: &mut Process<'_>, args: &ExplainArgs) -> Result<Exit> {
    let line = command_line(&args.command)?;
    let here = process.cwd.clone().unwrap_or_else(|| PathBuf::from("/"));
    let cwd = args.cwd.as_ref().map_or_else(|| here.clone(), |dir| here.join(dir));
    let home = process.home();
    let foreseen = foresee(process, line, cwd);
    if args.json {
        let value = as_json(&foreseen);
        print_json(process, "explain", value)?;
        return Ok(Exit::Ok);
    }
    let finding = &foreseen.finding;
    let mut text = format!("{}\n{}", level_name(finding.level), table(process, finding));
    if foreseen.changes {
        text.push_str(&would_hold(&foreseen, home.as_deref()));
    }
    text.push_str(&would_answer(&foreseen.decision));
    print_text(process, &text)?;
    Ok(Exit::Ok)
}

/// What the hook would do about the line, as an agent's only call.
fn foresee(process: &mut Process<'_>, command: String, cwd: PathBuf) -> Foreseen {
    let dialect = agent::by_name("claude-code").expect("it is in the table of agents");
    let context = CallContext {
        agent: Agent::ClaudeCode,
        session: SessionId("explain".to_owned()),
        turn: None,
        cwd: Some(cwd),
        bases: Vec::new(),
        transcript: None,
        server: None,
        subagent: None,
        mode: None,
    };
    let intent = Intent::Run { command, language: Language::Shell };
    let call = ToolCall { context, id: None, tool: "Bash".to_owned(), intent };
    hook::foresee(process, dialect, &call)
}

/// What the agent would be told; nothing if that is nothing.
fn would_answer(decision: &Decision) -> String {
    let does = match (decision.verdict, &decision.note) {
        (_, None) => return String::new(),
        (Verdict::Abstain, _) => "would say",
        (Verdict::Ask, _) => "would ask",
        (Verdict::Deny, _) => "would refuse",
    };
    let note = decision.note.as_deref().unwrap_or_default();
    let lines = note.lines().map(|line| line.strip_prefix("beforehand: ").unwrap_or(line));
    lines.fold(String::new(), |text, line| text + does + ": " + line + "\n")
}

/// One word is a line as a shell gets it; several are a command as `exec` gets it.
fn command_line(words: &[OsString]) -> Result<String> {
    let texts: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let texts = texts.ok_or_else(|| Error::Usage {
        message: "the command line is not UTF-8 text".to_owned(),
        hint: None,
    })?;
    Ok(match texts[..] {
        [line] => line.to_owned(),
        _ => shell_words::join(texts),
    })
}

fn table(process: &Process<'_>, finding: &Finding) -> String {
    let mut table = Table::new([
        Column::cut("", Cut::End),
        Column::left(""),
        Column::cut("", Cut::Middle),
        Column::below(""),
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
    table_text(process, &table)
}

fn target_words(target: &Target) -> String {
    let sure = certainty_name(target.certainty);
    format!("{} ({sure}, {})", target.path, action_name(target.action))
}

fn would_hold(foreseen: &Foreseen, home: Option<&Path>) -> String {
    let Foreseen { reaches, left_out, .. } = foreseen;
    if reaches.is_empty() {
        return "would hold: nothing\n".to_owned();
    }
    let parts = reaches.iter().zip(left_out);
    parts.map(|(reach, out)| held_of(reach, home) + &not_held(reach, out)).collect()
}

/// What the call names and would not be held; of a call that names nothing, what would not be held
/// at all.
fn not_held(reach: &Reach, left_out: &[Skipped]) -> String {
    const LINES_MAX: usize = 5;
    let is_named = |out: &&Skipped| {
        let path = reach.root.path().join(OsStr::from_bytes(&out.path));
        reach.victims.iter().any(|named| path.starts_with(named) || named.starts_with(&path))
    };
    let mut out: Vec<Skipped> = left_out.iter().filter(is_named).cloned().collect();
    if out.is_empty() {
        out = left_out.to_vec();
    }
    let lines = ui::at_most(ui::left_out(&out), LINES_MAX, |more| format!("{more} more"));
    lines.iter().fold(String::new(), |text, line| text + "but not:    " + line + "\n")
}

fn held_of(reach: &Reach, home: Option<&Path>) -> String {
    const NAMED_MAX: usize = 8;
    let root = ui::path(reach.root.path(), home);
    let mut parts = match reach.scope {
        ScanScope::Whole => vec![format!("the whole of {root}")],
        ScanScope::Named => Vec::new(),
    };
    let is_news =
        |path: &&PathBuf| reach.scope == ScanScope::Named || !path.starts_with(reach.root.path());
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

fn as_json(foreseen: &Foreseen) -> Value {
    let Foreseen { finding, reaches, left_out, decision, .. } = foreseen;
    let reasons: Vec<&str> = finding.commands.iter().map(|simple| simple.reason.as_str()).collect();
    let commands: Vec<Value> = finding.commands.iter().map(command_json).collect();
    json!({
        "effect": level_name(finding.level),
        "targets": finding.targets().map(target_json).collect::<Vec<_>>(),
        "reasons": reasons,
        "commands": commands,
        "answer": match decision.verdict {
            Verdict::Abstain => "none",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        },
        "note": decision.note,
        "would_not_hold": left_out.iter().flatten().map(skipped_json).collect::<Vec<_>>(),
        "would_hold": reaches.first().map(|reach| json!({
            "root": reach.root.path().to_string_lossy(),
            "whole": reach.scope == ScanScope::Whole,
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
