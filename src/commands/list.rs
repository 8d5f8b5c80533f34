//! `turnback list`: the checkpoints of a project, a row for each turn.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use chrono::SecondsFormat;
use serde_json::{Value, json};

use super::{
    Desk, Row,
    compare::{Comparison, Counts},
    places, print, print_json, rows,
    rows::{Told, agent_name, is_before_restore},
    show::skipped_json,
    stats::Stats,
};
use crate::{
    config as settings,
    error::Result,
    model::Checkpoint,
    process::{Exit, Process},
    snapshot,
    ui::{self, Cell, Clock, Column, Cut, Paint, Style, Table},
};

/// Looking at the files as they are now must not make a list feel slow.
const NOW_TIME: Duration = Duration::from_millis(50);
/// All the counting of one list.
const COUNT_TIME: Duration = Duration::from_millis(400);

/// List the checkpoints of this project, a row for each turn, the newest first.
///
/// Number N is the state before that turn changed anything: `turnback restore N` goes back there.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Show the steps inside each turn, and what was held before restores
    #[arg(long)]
    pub(crate) all: bool,
    /// List every project, by id only
    #[arg(long, conflicts_with = "root")]
    pub(crate) everywhere: bool,
    /// List the project around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only turns of this session; the start of its name will do
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print an array with an object for each checkpoint
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    if args.everywhere {
        return everywhere(process, args);
    }
    let desk = Desk::open(process, args.root.as_deref())?;
    let listed = Listed::of(&desk, args)?;
    let counts = listed.counts(process, &desk);
    if args.json {
        let root = desk.root.path().to_string_lossy().into_owned();
        let lines = listed.lines.iter().zip(counts);
        let lines: Vec<Value> = lines.map(|(line, counts)| line.json(&root, counts)).collect();
        print_json(process, &lines.into())?;
        return Ok(Exit::Ok);
    }
    if listed.lines.is_empty() {
        let _nobody = writeln!(
            process.stderr,
            "no checkpoints yet; an agent's hook takes them, and `turnback create`"
        );
        return Ok(Exit::Ok);
    }
    let text = heading(&desk, &listed) + &table(process, &desk, &listed.lines, Some(&counts));
    print(process, &text)?;
    let _nobody =
        writeln!(process.stderr, "\nturnback diff 1 · turnback restore 1 · turnback undo");
    Ok(Exit::Ok)
}

/// What is shown, and where each comes in the order of all.
struct Listed {
    lines: Vec<Line>,
    turns: usize,
}

/// One row.
struct Line {
    row: Row,
    /// Which step of it.
    step: usize,
    /// As in `3` or `3.2`; none for one that was held before a restore.
    number: Option<(usize, usize)>,
    /// The next newer one in the list it comes from; none for the newest.
    next: Option<Checkpoint>,
}

impl Listed {
    fn of(desk: &Desk, args: &Args) -> Result<Self> {
        let checkpoints = desk.store.list()?;
        let held_first: Vec<Checkpoint> = checkpoints
            .iter()
            .filter(|checkpoint| is_before_restore(checkpoint))
            .cloned()
            .collect();
        let rows = rows(checkpoints, &desk.state);
        let turns = rows.len();
        let mut lines = Vec::new();
        for (n, row) in rows.into_iter().enumerate() {
            let steps = if args.all { row.steps.len() } else { 1 };
            lines.extend((0..steps).rev().map(|step| Line {
                row: row.clone(),
                step,
                number: Some((n + 1, step + 1)),
                next: None,
            }));
        }
        if args.all {
            let alone = |checkpoint| Row { steps: vec![checkpoint], used: None };
            lines.extend(held_first.into_iter().map(|checkpoint| Line {
                row: alone(checkpoint),
                step: 0,
                number: None,
                next: None,
            }));
            lines.sort_by_key(|line| std::cmp::Reverse(line.checkpoint().sequence));
        }
        for n in 1..lines.len() {
            lines[n].next = Some(lines[n - 1].checkpoint().clone());
        }
        if let Some(session) = &args.session {
            lines.retain(|line| line.is_of(session));
        }
        lines.truncate(args.limit.unwrap_or(usize::MAX));
        Ok(Self { lines, turns })
    }

    /// How much changed between each line and the next newer one, or now, as far as time allows.
    fn counts(&self, process: &Process<'_>, desk: &Desk) -> Vec<Option<Counts>> {
        let mut stats = Stats::load(&desk.state.root(&desk.root));
        let deadline = Instant::now() + COUNT_TIME;
        let counts = self.lines.iter().map(|line| line.counts(process, desk, &mut stats, deadline));
        let counts = counts.collect();
        stats.save();
        counts
    }
}

impl Line {
    fn checkpoint(&self) -> &Checkpoint {
        &self.row.steps[self.step]
    }

    fn told(&self) -> Told<'_> {
        self.row.told(self.step)
    }

    fn is_of(&self, session: &str) -> bool {
        self.told().by.is_some_and(|by| by.session.0.starts_with(session))
    }

    fn counts(
        &self,
        process: &Process<'_>,
        desk: &Desk,
        stats: &mut Stats,
        deadline: Instant,
    ) -> Option<Counts> {
        let from = self.checkpoint();
        let Some(to) = &self.next else {
            let now = Comparison::quickly(desk, process, from, Instant::now() + NOW_TIME)?;
            return now.counts(deadline);
        };
        if let Some(known) = stats.get(from.id, to.id) {
            return Some(known);
        }
        if Instant::now() > deadline {
            return None;
        }
        let counts = Comparison::between(desk, from, to).ok()?.counts(deadline)?;
        stats.put(from.id, to.id, counts);
        Some(counts)
    }

    fn json(&self, root: &str, counts: Option<Counts>) -> Value {
        let number = match self.number {
            Some((row, 1)) => json!(row),
            Some((row, step)) => json!(format!("{row}.{step}")),
            None => Value::Null,
        };
        let mut value = checkpoint_json(&self.told(), root, number);
        value["changed"] = json!(counts.map(|counts| counts.files));
        value["added"] = json!(counts.map(|counts| counts.lines.added));
        value["removed"] = json!(counts.map(|counts| counts.lines.removed));
        value
    }
}

fn checkpoint_json(told: &Told<'_>, root: &str, number: Value) -> Value {
    let checkpoint = told.checkpoint;
    json!({
        "id": checkpoint.id.to_string(),
        "number": number,
        "time": checkpoint.taken_at.to_rfc3339_opts(SecondsFormat::Secs, true),
        "agent": told.by.map(|by| agent_name(by.agent)),
        "session": told.by.map(|by| &by.session.0),
        "turn": told.by.and_then(|by| Some(&by.turn.as_ref()?.0)),
        "cause": checkpoint.cause.reason.name(),
        "tool": told.tool,
        "summary": told.summary,
        "root": root,
        "changed": null,
        "added": null,
        "removed": null,
        "partial": checkpoint.partial,
        "skipped": checkpoint.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
    })
}

fn heading(desk: &Desk, listed: &Listed) -> String {
    let path = desk.root.path();
    let name = path.file_name().map(std::path::Path::new).map(ui::escape_path).unwrap_or_default();
    let (kind, _) = snapshot::keeper(desk.store.root(), desk.settings.store);
    let turns = ui::count(listed.turns as u64, "turn");
    format!("{name} — {} ({kind}) — {turns}\n\n", ui::path(path, desk.home.as_deref()))
}

fn table(
    process: &Process<'_>,
    desk: &Desk,
    lines: &[Line],
    counts: Option<&[Option<Counts>]>,
) -> String {
    let clock = Clock::local(process.now);
    let mut table = Table::new([
        Column::right("#"),
        Column::left("id"),
        Column::left("when"),
        Column::cut("what", Cut::End),
        Column::left("changed"),
    ]);
    for (n, line) in lines.iter().enumerate() {
        let number = match line.number {
            Some((row, 1)) => row.to_string(),
            Some((row, step)) => format!("{row}.{step}"),
            None => String::new(),
        };
        let told = line.told();
        let counts = counts.and_then(|counts| counts[n]);
        let what = described(&told, desk.home.as_deref());
        table.row([
            number.into(),
            Cell::new(&line.checkpoint().id.short(), Paint::Bold),
            clock.when(told.at).into(),
            what.into(),
            counts.map(counted).unwrap_or_default().into(),
        ]);
    }
    table.show(process.terminal.columns, Style::stdout(process))
}

fn described(told: &Told<'_>, home: Option<&std::path::Path>) -> String {
    let badges = told.badges(home);
    let words = told.words();
    if badges.is_empty() { words } else { format!("{words}  [{}]", badges.join("; ")) }
}

fn counted(counts: Counts) -> String {
    match counts.files {
        0 => "nothing".to_owned(),
        files if counts.lines == ui::Lines::default() => ui::count(files, "file"),
        files => format!("{}  {}", ui::count(files, "file"), counts.lines),
    }
}

fn everywhere(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let state = settings::state(process, None)?;
    let home = process.var("HOME").map(PathBuf::from);
    let clock = Clock::local(process.now);
    let (mut text, mut values) = (String::new(), Vec::new());
    for known in places::known(&state)? {
        let checkpoints = match known.checkpoints(process) {
            Ok(checkpoints) => checkpoints,
            Err(err) => {
                let path = ui::path(&known.path, home.as_deref()).into_owned();
                let _nobody = writeln!(process.stderr, "warning: {path}: {err}");
                continue;
            }
        };
        let mut table =
            Table::new([Column::left("id"), Column::left("when"), Column::cut("what", Cut::End)]);
        let shown = checkpoints.iter().filter(|one| args.all || !is_before_restore(one));
        let told = shown.map(Told::alone).filter(|told| match &args.session {
            Some(session) => told.by.is_some_and(|by| by.session.0.starts_with(session)),
            None => true,
        });
        for told in told.take(args.limit.unwrap_or(usize::MAX)) {
            let root = known.path.to_string_lossy();
            values.push((told.at, checkpoint_json(&told, &root, Value::Null)));
            let id = Cell::new(&told.checkpoint.id.short(), Paint::Bold);
            table.row([id, clock.when(told.at).into(), described(&told, home.as_deref()).into()]);
        }
        if !table.is_empty() {
            let gone = if known.gone { " — gone" } else { "" };
            let between = if text.is_empty() { "" } else { "\n" };
            let path = ui::path(&known.path, home.as_deref());
            text.push_str(&format!("{between}{path}{gone}\n"));
            text.push_str(&table.show(process.terminal.columns, Style::stdout(process)));
        }
    }
    if args.json {
        values.sort_by_key(|value| std::cmp::Reverse(value.0));
        let values: Vec<Value> = values.into_iter().map(|(_, value)| value).collect();
        print_json(process, &values.into())?;
    } else if text.is_empty() {
        let _nobody = writeln!(process.stderr, "no checkpoints anywhere yet");
    } else {
        print(process, &text)?;
    }
    Ok(Exit::Ok)
}
