//! `beforehand list`: the checkpoints of a project, a row for each turn.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Project, TurnRow,
    compare::{Comparison, Counts},
    json_time, known_roots, origin, print_json, print_table, print_text, rows,
    rows::skipped_json,
    rows::{CheckpointLabel, agent_name},
    say,
    stats::Stats,
    steps, table_text,
};
use crate::{
    attribution::{self, PathSide},
    config as settings,
    error::Result,
    health::{AgentVerdict, Evidence, HealthQuery},
    ledger::{self, Use},
    model::{Agent, By, Checkpoint, CheckpointId, Reason, SessionId, TurnKey},
    process::{Exit, Process},
    project::is_counted,
    restore::{FileHistory, StepChanges, step_numbers},
    snapshot,
    ui::{self, Cell, Clock, Column, Cut, Paint, Table},
};

/// Looking at the files as they are now must not make a list feel slow.
const NOW_TIME: Duration = Duration::from_millis(50);
/// How many of the newest rows are counted. Older ones have the counts from when they were among these.
const COUNTED_MAX: usize = 50;
/// All the counting of one list.
const COUNT_TIME: Duration = Duration::from_millis(400);

/// List the checkpoints of this project, a row for each turn, the newest first.
///
/// Number N is the state before that turn changed anything: `beforehand restore N` goes back there. So
/// does its id, its time (the last state at or before it), and the message of `create -m`, in quotes.
/// The newest row is counted for a terminal and for `--json`, but not for a pipe: that needs a scan.
#[derive(clap::Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct ListArgs {
    /// Show every checkpoint inside the turns, and those taken before restores
    #[arg(long)]
    pub(crate) all: bool,
    /// Show one row for each checkpoint, with the call it was taken before
    #[arg(long)]
    pub(crate) calls: bool,
    /// Show the calls of a turn [default: the newest], their changes, and whether the state before
    /// each is held
    #[arg(long, value_name = "TURN", num_args = 0..=1, default_missing_value = "", conflicts_with_all = [
        "all", "calls", "everywhere", "session", "limit",
    ])]
    pub(crate) steps: Option<String>,
    /// List the checkpoints of every project; the rows have ids, but no numbers
    #[arg(long, conflicts_with = "root")]
    pub(crate) everywhere: bool,
    /// List the project around this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only turns of this session: its id, or the first characters of it
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// At most this many rows
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Whether a person will read it although it is no terminal.
    #[arg(skip)]
    pub(crate) is_read: bool,
}

impl ListArgs {
    /// Whether there is a row for each call. The steps of a turn have nothing else to tell them apart.
    fn shows_calls(&self) -> bool {
        self.calls || self.all
    }
}

pub(crate) fn run(process: &mut Process<'_>, args: &ListArgs) -> Result<Exit> {
    if args.everywhere {
        return everywhere(process, args);
    }
    let project = Project::open(process, args.root.as_deref())?;
    if let Some(turn) = &args.steps {
        let turn = Some(turn.as_str()).filter(|turn| !turn.is_empty());
        return steps::list(process, project, turn, args.json);
    }
    let mut listed = ListView::of(&project, args)?;
    listed.digits = shown_digits(process, listed.digits);
    // A script that wants to know asks for JSON; for it the files as they are now are not looked at.
    let is_read = args.json || args.is_read || process.terminal.stdout;
    let counts = listed.counts(process, &project, is_read);
    if args.json {
        let root = project.root.path().to_string_lossy().into_owned();
        let lines = listed.lines.iter().zip(counts);
        let lines: Vec<Value> = lines.map(|(line, counts)| line.json(&root, counts)).collect();
        print_json(process, "list", lines.into())?;
        return Ok(Exit::Ok);
    }
    if listed.lines.is_empty() && args.limit != Some(0) {
        let none = match args.session.as_ref().filter(|_| listed.turns + listed.asked > 0) {
            Some(session) => format!(
                "no checkpoint of a session `{}…`; `beforehand list` shows those of all sessions",
                ui::escape(session.as_bytes())
            ),
            None if has_others(&project) => {
                "no turn is left; `beforehand list --all` shows the other checkpoints".into()
            }
            None => {
                "no checkpoints yet; an agent's hook takes them, and `beforehand create`".into()
            }
        };
        say(process, &none);
        origin::say_if_known(process, &project);
        say_if_unprotected(process, &project, listed.uses);
        return Ok(Exit::Ok);
    }
    let heading = heading(&project, &listed);
    let table = table(process, &project, &listed, &counts, args.shows_calls());
    print_table(process, &heading, &table)?;
    let place = args.root.as_ref().map_or_else(String::new, |_| {
        format!("in {}: ", ui::path(project.root.path(), project.home.as_deref()))
    });
    if listed.lines.iter().any(|line| line.number.is_some()) {
        let undo = listed.undo_words();
        say(process, &format!("\n{place}beforehand diff 1 · beforehand restore 1{undo}"));
    }
    origin::say_if_swapped(process, &project);
    say_if_unprotected(process, &project, listed.uses);
    Ok(Exit::Ok)
}

/// Says which agents' calls are not held, and so in no list.
fn say_if_unprotected(process: &mut Process<'_>, project: &Project, uses: Vec<Use>) {
    let query = HealthQuery {
        root: Some(project.root.path()),
        settings: &project.settings,
        conversations: None,
        other_hooks: false,
    };
    let mut agents = Evidence::with_uses(process, &project.state, uses).agents(query);
    agents.retain(|agent| agent.verdict == AgentVerdict::Unprotected);
    for agent in agents {
        let title = agent.title();
        say(process, &format!("note: the calls of {title} are not held: {}", agent.message));
        say(process, "hint: `beforehand doctor` says more");
    }
}

/// Whether there are checkpoints that something asked for or needed, though no turn is left.
fn has_others(project: &Project) -> bool {
    let all = project.store.list().unwrap_or_default();
    all.iter().any(|one| one.cause.reason != Reason::Net)
}

/// How many digits of ids to show. A script may keep them until others begin with the same.
fn shown_digits(process: &Process<'_>, enough: usize) -> usize {
    if process.terminal.stdout { enough } else { CheckpointId::DIGITS }
}

/// What is shown, and where each comes in the order of all.
pub(super) struct ListView {
    pub(super) lines: Vec<ListRow>,
    /// All checkpoints, newest first.
    all: Vec<Checkpoint>,
    /// These checkpoints, each with the turn that uses it.
    pub(super) checkpoints: Vec<Checkpoint>,
    turns: usize,
    /// How many rows are of people, not of turns.
    asked: usize,
    /// How many digits of an id it takes.
    pub(super) digits: usize,
    /// The checkpoints that calls used, newest first.
    uses: Vec<Use>,
}

/// One row.
pub(super) struct ListRow {
    row: TurnRow,
    /// Which step of it.
    step: usize,
    /// As in `3` or `3.2`; none for one that was held before a restore.
    pub(super) number: Option<(usize, usize)>,
    /// The next newer one in the list it comes from; none for the newest.
    next: Option<Checkpoint>,
    /// The turn that it stands for as a whole, if it does.
    turn: Option<TurnKey>,
    /// Whether that turn is over.
    is_over: bool,
}

impl ListView {
    /// What the flags ask for.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(super) fn of(project: &Project, args: &ListArgs) -> Result<Self> {
        let all = project.store.list()?;
        let uses = ledger::uses(&project.state);
        let mut checkpoints = all.clone();
        ledger::adopt(&mut checkpoints, &uses);
        let digits = rows::digits(&checkpoints);
        let uncounted: Vec<Checkpoint> =
            checkpoints.iter().filter(|one| !is_counted(one)).cloned().collect();
        // What a restore found is what the turns before it had come to.
        let is_end =
            |one: &&Checkpoint| is_counted(one) || one.cause.reason == Reason::BeforeRestore;
        let ends: Vec<&Checkpoint> = checkpoints.iter().filter(is_end).collect();
        let rows = rows(checkpoints.clone(), &uses);
        let asked = rows.iter().filter(|row| row.label(0).by.is_none()).count();
        let turns = rows.len() - asked;
        let has_steps = args.shows_calls() && rows.iter().any(|row| row.checkpoints.len() > 1);
        let numbers = if has_steps { step_numbers(project, &rows)? } else { BTreeMap::new() };
        let each = rows.into_iter().enumerate();
        let of_row =
            |(n, row): (usize, TurnRow)| ListRow::of_row(&row, n + 1, args.shows_calls(), &numbers);
        let mut lines: Vec<ListRow> = each.flat_map(of_row).collect();
        if args.all {
            lines.extend(uncounted.into_iter().map(ListRow::uncounted));
        }
        if args.shows_calls() {
            lines.sort_by_key(|line| std::cmp::Reverse(line.checkpoint().sequence));
            for n in 1..lines.len() {
                lines[n].next = Some(lines[n - 1].checkpoint().clone());
            }
        } else {
            // Turns of two sessions at once overlap.
            for line in &mut lines {
                let last = line.row.checkpoints.last().map_or(0, |last| last.sequence);
                let newer = ends.partition_point(|one| one.sequence > last);
                line.next = ends[..newer].last().map(|next| (*next).clone());
            }
            let mut newer: HashSet<(Agent, SessionId)> = HashSet::new();
            for line in &mut lines {
                line.turn = line.label().by.and_then(By::turn_key);
                let Some((agent, session, _)) = line.turn.clone() else { continue };
                line.is_over = !newer.insert((agent, session));
            }
        }
        if let Some(session) = &args.session {
            lines.retain(|line| line.is_of(session));
        }
        lines.truncate(args.limit.unwrap_or(usize::MAX));
        Ok(Self { lines, all, checkpoints, turns, asked, digits, uses })
    }

    /// The hint to undo the newest turn, or if all are undone, to redo.
    fn undo_words(&self) -> &'static str {
        let is_turn = |line: &&ListRow| line.number.is_some() && line.label().by.is_some();
        let mut turns = self.lines.iter().filter(is_turn).peekable();
        match (turns.peek().is_some(), turns.all(|line| line.row.is_undone)) {
            (false, _) => "",
            (true, true) => " · beforehand redo",
            (true, false) => " · beforehand undo",
        }
    }

    /// The number of the turn that a checkpoint belongs to.
    pub(super) fn turn_of(&self, id: CheckpointId) -> Option<usize> {
        let has = |line: &&ListRow| line.row.checkpoints.iter().any(|step| step.id == id);
        self.lines.iter().find(has).and_then(|line| line.number).map(|(turn, _)| turn)
    }

    /// How much the turn changed that begins with a checkpoint, if one does and time allows.
    pub(super) fn turn_counts(
        &self,
        process: &Process<'_>,
        project: &Project,
        id: CheckpointId,
    ) -> Option<Counts> {
        let begins = |line: &&ListRow| line.checkpoint().id == id && line.turn.is_some();
        let line = self.lines.iter().find(begins)?;
        let mut stats = Stats::load(&project.place());
        let since = line.checkpoint().sequence;
        line.counts(&mut TurnCounter::new(process, project, self, &mut stats, since))
    }

    /// How much each turn changed, or if wanted how much changed until `now`, as far as time allows.
    fn counts(&self, process: &Process<'_>, project: &Project, now: bool) -> Vec<Option<Counts>> {
        let mut stats = Stats::load(&project.place());
        let newest = self.lines.iter().take(COUNTED_MAX);
        let since = newest.map(|line| line.row.checkpoints[0].sequence).min();
        let since = since.unwrap_or(u64::MAX);
        let mut counter = TurnCounter::new(process, project, self, &mut stats, since);
        let counts = self.lines.iter().map(|line| {
            let is_wanted = now || line.next.is_some();
            is_wanted.then(|| line.counts(&mut counter))?
        });
        let counts = counts.collect();
        stats.save(&self.checkpoints);
        counts
    }
}

/// Counts the changes of turns, for some time.
pub(super) struct TurnCounter<'a, 'p> {
    process: &'a Process<'p>,
    project: &'a Project,
    listed: &'a ListView,
    /// The counts of earlier lists.
    stats: &'a mut Stats,
    /// Turns that began before the checkpoint with this sequence number are not counted.
    since: u64,
    /// The history since then, once it was asked for.
    history: OnceCell<FileHistory<'a>>,
    deadline: Instant,
}

impl<'a, 'p> TurnCounter<'a, 'p> {
    pub(super) fn new(
        process: &'a Process<'p>,
        project: &'a Project,
        listed: &'a ListView,
        stats: &'a mut Stats,
        since: u64,
    ) -> Self {
        let deadline = Instant::now() + COUNT_TIME;
        Self { process, project, listed, stats, since, history: OnceCell::new(), deadline }
    }

    /// Whether there is time to count a turn that begins with a checkpoint.
    fn may_count(&self, first: &Checkpoint) -> bool {
        first.sequence >= self.since && Instant::now() <= self.deadline
    }

    /// The history since the oldest turn that is counted.
    fn history(&self) -> Option<&FileHistory<'a>> {
        let ListView { all, uses, .. } = self.listed;
        let since = all.iter().rfind(|one| one.sequence >= self.since)?;
        Some(
            self.history
                .get_or_init(|| FileHistory::since(self.project, all, uses, since, PathSide::Root)),
        )
    }
}

impl ListRow {
    /// The lines of a row, the newest first: all of its steps, or the first alone.
    fn of_row(
        row: &TurnRow,
        number: usize,
        all: bool,
        numbers: &BTreeMap<CheckpointId, usize>,
    ) -> Vec<Self> {
        let steps = if all { row.checkpoints.len() } else { 1 };
        let line = |at: usize| {
            let step =
                if at == 0 { Some(1) } else { numbers.get(&row.checkpoints[at].id).copied() };
            let number = step.map(|step| (number, step));
            Self { row: row.clone(), step: at, number, next: None, turn: None, is_over: false }
        };
        (0..steps).rev().map(line).collect()
    }

    fn uncounted(checkpoint: Checkpoint) -> Self {
        let row = TurnRow { checkpoints: vec![checkpoint], used: None, is_undone: false };
        Self { row, step: 0, number: None, next: None, turn: None, is_over: false }
    }

    /// The checkpoint of it.
    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.row.checkpoints[self.step]
    }

    /// What a list tells of it.
    pub(super) fn label(&self) -> CheckpointLabel<'_> {
        self.row.label(self.step)
    }

    fn is_of(&self, session: &str) -> bool {
        self.label().by.is_some_and(|by| by.session.0.starts_with(session))
    }

    /// How much its turn changed, where the log of calls knows; or else how much changed between it and the next
    /// newer one, or now. `None` if there is no time to count.
    pub(super) fn counts(&self, counter: &mut TurnCounter<'_, '_>) -> Option<Counts> {
        let Some(turn) = &self.turn else { return self.between(counter) };
        let first = self.checkpoint().id;
        // Without a newer checkpoint it is looked at as it is now.
        let is_kept = self.next.is_some();
        let known = counter.stats.turn(first, turn, self.is_over).filter(|_| is_kept);
        if let Some(known) = known {
            return known.or_else(|| self.between(counter));
        }
        let (number, _) = self.number?;
        if !counter.may_count(self.checkpoint()) {
            return None;
        }
        let Some(made) = counter.history().and_then(|history| history.turn_changes(number)) else {
            if is_kept {
                counter.stats.put_turn(first, turn, None);
            }
            return self.between(counter);
        };
        let mut counts =
            Comparison::count_changes(counter.project, first, &made, counter.deadline)?;
        // Of files outside the root, and of repositories, checkpoints tell.
        if let Some(apart) = self.compare(counter, Some(&made)) {
            counts = counts.and(apart.counts(counter.deadline)?);
        }
        if is_kept {
            counter.stats.put_turn(first, turn, Some(counts));
        }
        Some(counts)
    }

    /// From it to the next newer one, or to now if that is quickly looked at, without the changes of others. With
    /// `known` changes, without these and without all files below the root.
    fn compare<'a>(
        &self,
        counter: &TurnCounter<'a, '_>,
        known: Option<&StepChanges>,
    ) -> Option<Comparison<'a>> {
        let (project, from) = (counter.project, self.checkpoint());
        let mut made = if let Some(to) = &self.next {
            Comparison::between(project, &counter.listed.checkpoints, from, to).ok()?
        } else {
            let deadline = Instant::now() + NOW_TIME;
            Comparison::quickly(project, counter.process, from, deadline)?
        };
        if let Some(known) = known {
            made.leave_out_files(known);
        }
        if !made.found.is_empty() {
            let log = counter.stats.log();
            let by = self.label().by;
            match &self.next {
                Some(to) => made.leave_out_others(from, by, &attribution::before(log, to)),
                None => made.leave_out_others(from, by, log),
            }
        }
        Some(made)
    }

    /// How much changed between it and the next newer one, or now, if time allows to count.
    fn between(&self, counter: &mut TurnCounter<'_, '_>) -> Option<Counts> {
        let from = self.checkpoint();
        let Some(to) = &self.next else {
            return self.compare(counter, None)?.counts(counter.deadline);
        };
        if let Some(known) = counter.stats.get(from.id, to.id) {
            return Some(known);
        }
        if !counter.may_count(from) {
            return None;
        }
        let counts = self.compare(counter, None)?.counts(counter.deadline)?;
        counter.stats.put(from.id, to.id, counts);
        Some(counts)
    }

    fn json(&self, root: &str, counts: Option<Counts>) -> Value {
        let number = match self.number {
            Some((row, 1)) => json!(row),
            Some((row, step)) => json!(format!("{row}.{step}")),
            None => Value::Null,
        };
        let mut value = checkpoint_json(&self.label(), root, &number);
        value["undone"] = json!(self.row.is_undone);
        value["changed"] = json!(counts.map(|counts| counts.files + counts.repositories));
        let lines = counts.and_then(|counts| counts.lines);
        value["added"] = json!(lines.map(|lines| lines.added));
        value["removed"] = json!(lines.map(|lines| lines.removed));
        value
    }
}

fn checkpoint_json(label: &CheckpointLabel<'_>, root: &str, number: &Value) -> Value {
    let checkpoint = label.checkpoint;
    json!({
        "id": checkpoint.id.to_string(),
        "number": number,
        "time": json_time(checkpoint.taken_at),
        "agent": label.by.map(|by| agent_name(by.agent)),
        "session": label.by.map(|by| &by.session.0),
        "turn": label.by.and_then(|by| Some(&by.turn.as_ref()?.0)),
        "prompt": label.by.and_then(|by| by.prompt.as_ref()),
        "cause": checkpoint.cause.reason.name(),
        "tool": label.tool,
        "summary": label.summary,
        "root": root,
        "changed": null,
        "added": null,
        "removed": null,
        "undone": null,
        "partial": !checkpoint.completeness.is_whole(),
        "skipped": checkpoint.skipped.iter().map(skipped_json).collect::<Vec<_>>(),
    })
}

/// Which project this is, and how it is kept.
pub(super) fn title(project: &Project) -> String {
    let path = project.root.path();
    let name = path.file_name().map(Path::new).map(ui::escape_path).unwrap_or_default();
    let (kind, _) = snapshot::store_kind(project.store.as_ref(), project.settings.store);
    format!("{name} — {} ({kind})", ui::path(path, project.home.as_deref()))
}

fn heading(project: &Project, listed: &ListView) -> String {
    let turns = ui::count(listed.turns as u64, "turn");
    let asked = match listed.asked {
        0 => String::new(),
        asked => format!(", {} by hand", ui::number(asked as u64)),
    };
    format!("{} — {turns}{asked}\n\n", title(project))
}

fn table(
    process: &Process<'_>,
    project: &Project,
    listed: &ListView,
    counts: &[Option<Counts>],
    calls: bool,
) -> Table {
    let clock = Clock::local(process.now);
    let mut table = Table::new([
        Column::right("#"),
        Column::left("id"),
        Column::left("when"),
        Column::cut("what", Cut::End),
        // From one checkpoint to the next, other calls and users may have changed the same files.
        Column::left(if calls { "changed until the next" } else { "changed" }),
    ]);
    for (line, counts) in listed.lines.iter().zip(counts) {
        let number = match line.number {
            Some((row, 1)) => row.to_string(),
            Some((row, step)) => format!("{row}.{step}"),
            None => String::new(),
        };
        let label = line.label();
        let mut badges = label.badges(project.home.as_deref());
        if line.row.is_undone {
            badges.insert(0, "undone".to_owned());
        }
        let what = described(&label, &badges, calls);
        table.row([
            number.into(),
            Cell::new(&line.checkpoint().id.to_string()[..listed.digits], Paint::Bold),
            clock.named(label.at).into(),
            what.into(),
            counts.map(Counts::words).unwrap_or_default().into(),
        ]);
    }
    table
}

fn described(label: &CheckpointLabel<'_>, badges: &[String], calls: bool) -> String {
    let words = if calls { label.words() } else { label.turn() };
    if badges.is_empty() { words } else { format!("{words}  [{}]", badges.join("; ")) }
}

/// One root's part of a list of everything.
struct RootSection {
    known: known_roots::KnownRoot,
    checkpoints: Vec<Checkpoint>,
    digits: usize,
}

fn everywhere(process: &mut Process<'_>, args: &ListArgs) -> Result<Exit> {
    let home = process.home();
    let mut parts = Vec::new();
    let state = settings::state(process, None)?;
    let uses = ledger::uses(&state);
    for known in known_roots::known(&state)? {
        match known.checkpoints(process) {
            Ok(mut checkpoints) => {
                ledger::adopt(&mut checkpoints, &uses);
                let digits = shown_digits(process, rows::digits(&checkpoints));
                checkpoints.retain(|checkpoint| is_wanted(checkpoint, args));
                checkpoints.truncate(args.limit.unwrap_or(usize::MAX));
                parts.push(RootSection { known, checkpoints, digits });
            }
            Err(err) => {
                let path = ui::path(&known.path, home.as_deref()).into_owned();
                say(process, &format!("warning: {path}: {err}"));
            }
        }
    }
    parts.retain(|part| !part.checkpoints.is_empty());
    if args.json {
        print_json(process, "list", everything_json(&parts))?;
    } else if parts.is_empty() {
        say(process, "no checkpoints anywhere yet");
    } else {
        let parts: Vec<String> =
            parts.iter().map(|part| part.words(process, args, home.as_deref())).collect();
        print_text(process, &parts.join("\n"))?;
    }
    Ok(Exit::Ok)
}

fn is_wanted(checkpoint: &Checkpoint, args: &ListArgs) -> bool {
    let is_of = |session: &String| {
        let by = checkpoint.cause.by.as_ref();
        by.is_some_and(|by| by.session.0.starts_with(&session[..]))
    };
    (args.all || is_counted(checkpoint)) && args.session.as_ref().is_none_or(is_of)
}

/// The newest first, whatever root it is of.
fn everything_json(parts: &[RootSection]) -> Value {
    let each = |part: &RootSection| {
        let root = part.known.path.to_string_lossy().into_owned();
        let labels = part.checkpoints.iter().map(CheckpointLabel::alone);
        labels
            .map(|label| (label.at, checkpoint_json(&label, &root, &Value::Null)))
            .collect::<Vec<_>>()
    };
    let mut values: Vec<_> = parts.iter().flat_map(each).collect();
    values.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    values.into_iter().map(|(_, value)| value).collect::<Vec<_>>().into()
}

impl RootSection {
    fn words(&self, process: &Process<'_>, args: &ListArgs, home: Option<&Path>) -> String {
        let clock = Clock::local(process.now);
        let mut table =
            Table::new([Column::left("id"), Column::left("when"), Column::cut("what", Cut::End)]);
        for label in self.checkpoints.iter().map(CheckpointLabel::alone) {
            let id = Cell::new(&label.checkpoint.id.to_string()[..self.digits], Paint::Bold);
            let what = described(&label, &label.badges(home), args.shows_calls());
            table.row([id, clock.named(label.at).into(), what.into()]);
        }
        let gone = if self.known.gone { " — gone" } else { "" };
        let path = ui::path(&self.known.path, home);
        let table =
            if process.terminal.stdout { table_text(process, &table) } else { table.lines().1 };
        format!("{path}{gone}\n{table}")
    }
}
