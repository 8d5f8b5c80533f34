//! `beforehand show`: what one checkpoint is and holds.

use serde_json::{Value, json};

use super::{
    Project, json_time,
    list::{ListArgs, ListView},
    meant_a_path, named_line, print_json, print_text, rows,
    rows::{CheckpointLabel, agent_name, agent_title, on_one_line, skipped_json},
    steps::ShownStep,
};
use crate::{
    error::Result,
    ledger,
    model::{By, Checkpoint, Entry, Head, Kind},
    process::{Exit, Process},
    restore::step_named,
    snapshot,
    store::{
        Held,
        record::{self, StoreKind},
        repository::{history_words, is_reftable},
    },
    ui::{self, Clock, Style},
};

/// More than these are counted, not named.
const SKIPPED_SHOWN_MAX: usize = 12;
/// Enough of a session's name to tell it from others.
const SESSION_CHARS: usize = 8;

/// Show what one checkpoint is and holds.
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint: a number from `beforehand list`, a step of a turn as in 2.3, `latest`, the start of
    /// an id, a message of `create -m`, or a time, which names the last state at or before it
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &ShowArgs) -> Result<Exit> {
    let project = Project::open(process, None)?;
    let step = step_named(&args.checkpoint);
    let step = step.map(|step| ShownStep::of(process, &project, step)).transpose()?;
    let (step, project) = match step {
        Some(step) => step.holding(project),
        None => (None, project),
    };
    let checkpoint = match &step {
        Some(step) => step.base.clone(),
        None => found(&project, &args.checkpoint)?,
    };
    let listed = ListView::of(&project, &ListArgs::default())?;
    let rows = rows(vec![checkpoint.clone()], &ledger::uses(&project.state));
    let label =
        rows.first().map_or_else(|| CheckpointLabel::alone(&checkpoint), |row| row.label(0));
    if args.json {
        let mut value = as_json(&project, &label);
        value["step"] = step.map_or(Value::Null, |step| step.json(&project));
        print_json(process, "show", value)?;
    } else {
        let mut text = as_text(process, &project, (&label, &listed));
        if let Some(step) = step {
            text = step.text(process, &project) + &text;
        }
        print_text(process, &text)?;
    }
    Ok(Exit::Ok)
}

fn found(project: &Project, given: &str) -> Result<Checkpoint> {
    project.find(given).map_err(|err| meant_a_path(project, given, err, "diff"))
}

fn as_json(project: &Project, label: &CheckpointLabel<'_>) -> Value {
    let checkpoint = label.checkpoint;
    let (kind, why) = keeper(project, checkpoint);
    let head = checkpoint.head.as_ref().map(|head| {
        json!({ "branch": head.branch, "commit": head.commit, "in_progress": head.in_progress })
    });
    json!({
        "id": checkpoint.id.to_string(),
        "time": json_time(checkpoint.taken_at),
        "cause": checkpoint.cause.reason.name(),
        "agent": label.by.map(|by| agent_name(by.agent)),
        "session": label.by.map(|by| &by.session.0),
        "turn": label.by.and_then(|by| Some(&by.turn.as_ref()?.0)),
        "prompt": label.by.and_then(|by| by.prompt.as_ref()),
        "tool": label.tool,
        "summary": label.summary,
        "of": checkpoint.cause.of.map(|of| of.to_string()),
        "root": project.root.path().to_string_lossy(),
        "files": checkpoint.files,
        "outside": checkpoint.outside.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        "partial": !checkpoint.completeness.is_whole(),
        "skipped": checkpoint.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
        "head": head,
        "staged": checkpoint.staged,
        "store": kind,
        "store_reason": why,
        "by_hand": project.store.by_hand(checkpoint.id),
    })
}

fn as_text(
    process: &Process<'_>,
    project: &Project,
    (label, listed): (&CheckpointLabel<'_>, &ListView),
) -> String {
    let checkpoint = label.checkpoint;
    let style = Style::stdout(process);
    let clock = Clock::local(process.now);
    let id = checkpoint.id.to_string();
    let mut text = format!("checkpoint {}{}\n", style.bold(&id[..4]), style.dim(&id[4..]));
    let mut line = |name: &str, said: &str| text.push_str(&named_line(process, name, said));
    let taken = checkpoint.taken_at;
    let words = label.words();
    let words = ui::escape(words.as_bytes());
    line("taken", &format!("{} ({}), {words}", clock.when(taken), clock.exact(taken)));
    if let Some(by) = label.by {
        line("by", &by_words(by, listed.turn_of(checkpoint.id)));
    }
    if let Some(counts) = listed.turn_counts(process, project, checkpoint.id) {
        line("changed", &format!("{} in this turn", counts.words()));
    }
    line("holds", &holds(project, checkpoint));
    for (n, unheld) in not_held(checkpoint).iter().enumerate() {
        line(if n == 0 { "not held" } else { "" }, unheld);
    }
    if let Some(lacks) = checkpoint.completeness.lacks() {
        line("partial", lacks);
    }
    for (n, words) in history(project, checkpoint).iter().enumerate() {
        line(if n == 0 { "history" } else { "" }, words);
    }
    if let Some(words) = unstaged(project, checkpoint) {
        line("staged", words);
    }
    let (kind, why) = keeper(project, checkpoint);
    let place = if kind == "git" { "in a private repository" } else { "in beforehand's own store" };
    let why = why.map(|why| format!(": {}", ui::escape(why.as_bytes()))).unwrap_or_default();
    line("stored", &format!("{place}{why}"));
    // A command stays on its line.
    let by_hand = project.store.by_hand(checkpoint.id);
    text.push_str(&format!("{:<10} {}\n", "", ui::escape(by_hand.as_bytes())));
    text
}

/// Where the files of a checkpoint are, and why they are not in a private repository if the next ones
/// would not be either.
fn keeper<'a>(project: &'a Project, checkpoint: &Checkpoint) -> (&'static str, Option<&'a str>) {
    let next = snapshot::store_kind(project.store.as_ref(), project.settings.store);
    match record::read(&project.state.root(&project.root), checkpoint.id)
        .map(|record| record.keeper)
    {
        Ok(StoreKind::Git) => ("git", None),
        Ok(StoreKind::Copy) => ("files", next.1.filter(|_| next.0 == "files")),
        Err(_) => next,
    }
}

/// What is to be said of the index if it is held as a file of the project's repository and no more.
fn unstaged(project: &Project, checkpoint: &Checkpoint) -> Option<&'static str> {
    let record = record::read(&project.state.root(&project.root), checkpoint.id).ok()?;
    let is_own =
        |held: &Held| held.path == b".git" || held.pointers.iter().any(|(path, _)| path == b".git");
    let is_copy = record.keeper == StoreKind::Copy && record.repositories.iter().any(is_own);
    is_copy.then_some("what was staged is restored only with the repository, by `--repository`")
}

/// What a restore cannot do where refs are kept as reftable.
const REFTABLE: &str = "its refs are kept as reftable: a restore names no commits made since, and \
                        brings back what was staged only with --repository";

/// What is to be said of how the history of its repositories is held.
fn history(project: &Project, checkpoint: &Checkpoint) -> Vec<String> {
    let Ok(record) = record::read(&project.state.root(&project.root), checkpoint.id) else {
        return Vec::new();
    };
    let head = checkpoint.head.as_ref().and_then(|head| head.commit.as_deref());
    let mut words = Vec::new();
    for (n, held) in record.repositories.iter().enumerate() {
        let path = ui::escape(&held.path);
        // HEAD is that of the root's own, which comes first.
        let history = history_words(&project.state, held, head.filter(|_| n == 0));
        words.extend(history.map(|history| format!("{path}: {history}")));
        if is_reftable(&project.state, held) {
            words.push(format!("{path}: {REFTABLE}"));
        }
    }
    words
}

fn by_words(by: &By, turn: Option<usize>) -> String {
    let mut words = agent_title(by.agent).to_owned();
    words.push_str(&format!(", session {}", shortened(&by.session.0)));
    if let Some(turn) = turn {
        words.push_str(&format!(", turn {turn}"));
    }
    if by.subagent.is_some() {
        words.push_str(", by a sub-agent");
    }
    if let Some(prompt) = &by.prompt {
        words.push_str(&format!(": \"{}\"", ui::escape(on_one_line(prompt).as_bytes())));
    }
    words
}

/// The start of a name too long to read.
fn shortened(name: &str) -> String {
    let short: String = name.chars().take(SESSION_CHARS).collect();
    let dots = if short.len() < name.len() { "…" } else { "" };
    format!("{}{dots}", ui::escape(short.as_bytes()))
}

fn holds(project: &Project, checkpoint: &Checkpoint) -> String {
    let root = ui::path(project.root.path(), project.home.as_deref());
    let is_file = |entry: &&Entry| entry.kind != Kind::Directory;
    let tree = Some(checkpoint.id).filter(|_| !checkpoint.outside.is_empty());
    let tree = tree.and_then(|id| project.store.tree(id).ok());
    let outside = tree.map_or(0, |tree| tree.outside.values().filter(is_file).count() as u64);
    let below = checkpoint.files.saturating_sub(outside);
    let mut holds = format!("{} in {root}", ui::count(below, "file"));
    if let Some(staged) = checkpoint.staged.filter(|staged| *staged > 0) {
        holds.push_str(&format!(", staged changes to {}", ui::count(staged, "file")));
    }
    if let Some(head) = &checkpoint.head {
        holds.push_str(&format!(", {}", head_words(head)));
    }
    for path in &checkpoint.outside {
        holds.push_str(&format!(" · {}", ui::path(path, project.home.as_deref())));
    }
    holds
}

fn head_words(head: &Head) -> String {
    let branch = head.branch.as_deref();
    let branch = branch.map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    let commit = head.commit.as_deref().map(|commit| commit.chars().take(7).collect::<String>());
    let words = match (branch, commit) {
        (Some(branch), Some(commit)) => format!("HEAD {branch} @ {commit}"),
        (Some(branch), None) => format!("HEAD {branch}, no commit yet"),
        (None, Some(commit)) => format!("HEAD detached @ {commit}"),
        (None, None) => "no HEAD".to_owned(),
    };
    let words = match &head.in_progress {
        Some(what) => format!("{words}, a {what} in progress"),
        None => words,
    };
    ui::escape(words.as_bytes()).into_owned()
}

fn not_held(checkpoint: &Checkpoint) -> Vec<String> {
    ui::at_most(ui::left_out(&checkpoint.skipped), SKIPPED_SHOWN_MAX, |more| {
        format!("and {} more; --json names them all", ui::number(more))
    })
}
