//! `turnback restore`: plans, shows the plan, holds what it would overwrite, and carries it out.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    Desk, print, print_json,
    revive::{self, Revived},
};
use crate::{
    apply::{self, Outcome},
    error::{Error, Result},
    fs::{Dir, c_name, create_private_dirs, read_small, replace_synced, stat_path},
    model::{
        Cause, Checkpoint, CheckpointId, Kind, Place, RelPath, SkipReason, Skipped, Stamp, Tree,
    },
    plan::{self, Action, Kept, Options, OutsideStep, Past, Picked, RestorePlan, Step},
    process::{Exit, Process},
    scan::{PastRules, Scan},
    snapshot,
    store::{self, Draft, IndexOutcome},
    ui,
};

/// Put files back as they were at a checkpoint.
///
/// Shows what it will do and asks. Whatever it overwrites or removes is held in a checkpoint
/// first, so `turnback undo` takes it back. Only files that differ are touched.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command")]
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// The checkpoint: a number from `turnback list`, `latest`, or the start of an id
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) checkpoint: String,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Overwrite also what somebody else has changed since
    #[arg(long)]
    pub(crate) force: bool,
    /// Remove also what was created since, whoever did it
    #[arg(long, conflicts_with = "keep_new")]
    pub(crate) exact: bool,
    /// Keep everything that was created since
    #[arg(long)]
    pub(crate) keep_new: bool,
    /// Leave git's index as it is
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Put back also what lies outside the project
    #[arg(long)]
    pub(crate) outside: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The project, if it is not the current directory; it may be gone altogether
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Only these files and directories
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let mut desk = Desk::open(process, args.root.as_deref())?;
    let mut checkpoint = desk.find(&args.checkpoint);
    if desk.is_gone && checkpoint.is_err() {
        // It may have been taken after the repository was gone.
        desk = desk.into_present()?;
        checkpoint = desk.find(&args.checkpoint);
    }
    let checkpoint = checkpoint?;
    if desk.is_gone || args.paths.is_empty() {
        match revive::revive(process, &desk, &checkpoint, args.dry_run, args.yes)? {
            Revived::Unchanged => (),
            Revived::Anew(revived) => desk = *revived,
            Revived::Stop => return Ok(if args.dry_run { Exit::Ok } else { Exit::Failed }),
        }
    }
    let picked = picked(process, &desk, &args.paths)?;
    let order = Order {
        verb: "restore",
        options: Options { exact: args.exact, keep_new: args.keep_new, force: args.force },
        picked,
        index: !args.no_index && args.paths.is_empty(),
        outside: args.outside,
        of_restore: None,
    };
    carry_out(
        process,
        &desk,
        &checkpoint,
        &order,
        Consent { dry_run: args.dry_run, yes: args.yes, json: args.json },
    )
}

/// What a restore is to do.
pub(crate) struct Order {
    /// The word that led to it: `restore`, `undo` or `redo`.
    pub(crate) verb: &'static str,
    /// What the user said about what others did since.
    pub(crate) options: Options,
    /// The part of the root it is about.
    pub(crate) picked: Picked,
    /// Whether the index is restored as well.
    pub(crate) index: bool,
    /// Whether what lies outside the root is put back as well.
    pub(crate) outside: bool,
    /// When a restore is taken back: the checkpoint it went to. What that restore created goes.
    pub(crate) of_restore: Option<CheckpointId>,
}

/// Whether it may be done.
#[derive(Clone, Copy)]
pub(crate) struct Consent {
    /// Show, and do nothing.
    pub(crate) dry_run: bool,
    /// Do not ask.
    pub(crate) yes: bool,
    /// Show as JSON.
    pub(crate) json: bool,
}

/// Plans a restore, shows it, asks, holds what it overwrites, and does it.
pub(crate) fn carry_out(
    process: &mut Process<'_>,
    desk: &Desk,
    checkpoint: &Checkpoint,
    order: &Order,
    consent: Consent,
) -> Result<Exit> {
    recover(process, desk)?;
    let planned = Planned::make(process, desk, checkpoint, order)?;
    let clock = ui::Clock::local(process.now);
    let heading = heading(desk, checkpoint, order, &clock);
    if consent.dry_run || !consent.yes {
        show(process, desk, &planned, &heading, consent.json)?;
        if planned.plan.is_empty() {
            return Ok(Exit::Ok);
        }
        if consent.dry_run {
            say(process, "nothing was changed; without --dry-run this asks first")?;
            return Ok(Exit::Ok);
        }
        let question = format!(
            "{} {}?",
            capitalized(order.verb),
            ui::count(planned.plan.deeds().count() as u64, "path")
        );
        if !ui::ask(process, &question) {
            say(process, "nothing was changed; --yes does it without asking")?;
            return Ok(Exit::Failed);
        }
    }
    planned.apply(process, desk, checkpoint, order, consent)
}

/// A plan, and what it was made from.
struct Planned {
    plan: RestorePlan,
    /// What the system said about each path when it was looked at.
    seen: BTreeMap<RelPath, Stamp>,
}

impl Planned {
    fn make(
        process: &Process<'_>,
        desk: &Desk,
        checkpoint: &Checkpoint,
        order: &Order,
    ) -> Result<Self> {
        let then = desk.tree_of(checkpoint)?;
        // What was held for its own sake is looked at for its own sake.
        let privately = then.besides.iter().filter(|(_, entry)| {
            entry.content.is_none_or(|content| content.place == Place::Private)
        });
        let below = privately.map(|(path, _)| desk.root.join(path));
        let victims: Vec<PathBuf> = below.chain(then.outside.keys().cloned()).collect();
        let scan = desk.look(process, victims)?;
        let skipped = skipped_now(&scan);
        let stamps = Stamps::of(&scan);
        let now = desk.store.identify(scan)?;
        let store = desk.store.as_ref();
        let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
        let changes = plan::changes(&then, &now, &mut read)?;
        let ours = match order.of_restore {
            Some(of) => created_by(desk, of, &changes, &now)?,
            None => BTreeSet::new(),
        };
        let past = Past {
            ours: &ours,
            ignored: &ignored_then(process, desk, &then, &changes),
            skipped_then: &checkpoint.skipped,
            skipped_now: &skipped,
        };
        let mut plan = plan::restore(checkpoint.id, changes, order.options, &order.picked, &past);
        if order.outside || order.picked == Picked::All {
            plan.outside = outside(&then, &now);
        }
        let seen = stamps.of_plan(desk, &plan);
        Ok(Self { plan, seen })
    }

    fn apply(
        self,
        process: &mut Process<'_>,
        desk: &Desk,
        checkpoint: &Checkpoint,
        order: &Order,
        consent: Consent,
    ) -> Result<Exit> {
        let mut plan = self.plan;
        if !order.outside && consent.yes {
            plan.outside.clear();
        }
        let (mut outcome, mut safety) = (Outcome::default(), None);
        if !plan.is_empty() {
            let held = hold(process, desk, &plan, checkpoint, order)?;
            let log = Log::begin(desk, &plan, checkpoint.id, held)?;
            let seen = |path: &RelPath| self.seen.get(path).copied();
            outcome = apply::run(&desk.root, &plan, desk.store.as_ref(), &seen, &held.to_string())?;
            log.end();
            safety = Some(held);
        }
        let index = if order.index { Some(desk.store.restore_index(checkpoint.id)) } else { None };
        report(process, desk, &plan, &outcome, index, safety, checkpoint, consent)
    }
}

/// Stamps of everything a scan saw.
struct Stamps(BTreeMap<RelPath, Stamp>);

impl Stamps {
    fn of(scan: &Scan) -> Self {
        let mut stamps = BTreeMap::new();
        scan.each(|dir, row| {
            let path = crate::model::DirPath(dir.to_vec()).join(row.name);
            if let (Ok(path), None) = (RelPath::from_bytes(&path), row.skipped) {
                stamps.insert(path, row.stamp);
            }
        });
        for victim in &scan.victims {
            if let crate::scan::VictimPath::Below(path) = &victim.path {
                stamps.insert(path.clone(), victim.found.stamp);
            }
        }
        Self(stamps)
    }

    /// Those the plan needs. What the scan left out is looked at now: it will be held, too.
    fn of_plan(mut self, desk: &Desk, plan: &RestorePlan) -> BTreeMap<RelPath, Stamp> {
        let mut needed = BTreeMap::new();
        let top = Dir::open(desk.root.path());
        let look = |path: &RelPath| {
            let parent = top.as_ref().ok()?.parent_of(path).ok()?;
            parent.stat_child(&c_name(path.name()).ok()?).ok()
        };
        for step in plan.deeds() {
            let stamp = self.0.remove(&step.path).or_else(|| look(&step.path));
            needed.extend(stamp.map(|stamp| (step.path.clone(), stamp)));
        }
        needed
    }
}

/// What the present scan could not look into. What it merely left out can be held by name.
fn skipped_now(scan: &Scan) -> Vec<Skipped> {
    let mut skipped = Vec::new();
    scan.each(|dir, row| {
        let Some(reason) = row.skipped else { return };
        let out_of_reach = matches!(
            reason,
            SkipReason::Unreadable
                | SkipReason::OtherFileSystem
                | SkipReason::OutOfTime
                | SkipReason::TooDeep
                | SkipReason::UnknownKind
        );
        if out_of_reach {
            let path = crate::model::DirPath(dir.to_vec()).join(row.name);
            skipped.push(Skipped { path, reason, size: row.stamp.size });
        }
    });
    skipped
}

/// What the restore to `of`, which is being taken back, created and nobody has changed since.
fn created_by(
    desk: &Desk,
    of: CheckpointId,
    changes: &[plan::Change],
    now: &Tree,
) -> Result<BTreeSet<RelPath>> {
    let Ok(restored) = desk.store.tree(of) else { return Ok(BTreeSet::new()) };
    let store = desk.store.as_ref();
    let mut read = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let mut created = BTreeSet::new();
    for change in changes.iter().filter(|change| change.before.is_none()) {
        let left = plan::entry_at(&restored, &change.path, &mut read)?;
        let here = plan::entry_at(now, &change.path, &mut read)?;
        let is_same = left.zip(here).is_some_and(|(left, here)| {
            let is_dir = here.kind == Kind::Directory;
            left.kind == here.kind && (is_dir || left.content == here.content)
        });
        if is_same {
            created.insert(change.path.clone());
        }
    }
    Ok(created)
}

/// What is new since, and was ignored at the checkpoint.
fn ignored_then(
    process: &Process<'_>,
    desk: &Desk,
    then: &Tree,
    changes: &[plan::Change],
) -> BTreeSet<RelPath> {
    let store = desk.store.as_ref();
    let mut read_dir = |tree: &Tree, id: &_| store::directory_of(store, tree, id);
    let mut read = |path: &RelPath| {
        let entry = plan::entry_at(then, path, &mut read_dir).ok()??;
        let content = entry.content.filter(|_| entry.kind == Kind::File)?;
        let mut bytes = Vec::new();
        store.open(&content).ok()?.take(IGNORE_FILE_MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let user = snapshot::user_dirs(process);
    let mut rules = PastRules::new(&desk.root, &user, &mut read);
    let new = changes.iter().filter(|change| change.before.is_none());
    let is_dir =
        |change: &plan::Change| change.after.is_some_and(|now| now.kind == Kind::Directory);
    new.filter(|change| rules.ignores(&change.path, is_dir(change)))
        .map(|change| change.path.clone())
        .collect()
}

fn outside(then: &Tree, now: &Tree) -> Vec<OutsideStep> {
    let differs = |path: &&PathBuf| then.outside.get(*path) != now.outside.get(*path);
    then.outside
        .keys()
        .filter(differs)
        .map(|path| OutsideStep {
            path: path.clone(),
            then: then.outside[path],
            seen: stat_path(path).ok(),
        })
        .collect()
}

/// Takes the before-restore checkpoint. It holds all the plan overwrites or removes, or nothing
/// happens at all.
fn hold(
    process: &Process<'_>,
    desk: &Desk,
    plan: &RestorePlan,
    checkpoint: &Checkpoint,
    order: &Order,
) -> Result<CheckpointId> {
    let touched = plan.deeds().map(|step| desk.root.join(&step.path));
    let there = touched.filter(|path| path.symlink_metadata().is_ok_and(|found| !found.is_dir()));
    let outside = plan.outside.iter().map(|step| step.path.clone());
    let scan = desk.look(process, there.chain(outside).collect())?;
    refuse_unheld(&scan.unheld, plan)?;
    let cause = Cause { tool: Some(order.verb.to_owned()), ..Cause::before_restore(checkpoint.id) };
    let draft = Draft { cause, taken_at: process.now, scan, always: true, deadline: None };
    let saved = desk.store.save(draft)?;
    refuse_unheld(&saved.checkpoint.skipped, plan)?;
    Ok(saved.checkpoint.id)
}

fn refuse_unheld(skipped: &[Skipped], plan: &RestorePlan) -> Result<()> {
    let touches = |skipped: &&Skipped| {
        // A directory has nothing to hold but what is in it.
        let is_file = |step: &&Step| step.now.is_none_or(|now| now.kind != Kind::Directory);
        plan.deeds().filter(is_file).any(|step| step.path.as_bytes() == skipped.path)
            || plan.outside.iter().any(|step| {
                std::os::unix::ffi::OsStrExt::as_bytes(step.path.as_os_str()) == skipped.path
            })
    };
    match skipped.iter().find(touches) {
        Some(skipped) => Err(Error::CannotHold {
            path: ui::escape(&skipped.path).into_owned(),
            why: skipped.reason.words().to_owned(),
        }),
        None => Ok(()),
    }
}

/// The note that a restore is under way, for whoever comes after a crash.
struct Log {
    path: PathBuf,
}

impl Log {
    fn begin(
        desk: &Desk,
        plan: &RestorePlan,
        of: CheckpointId,
        held: CheckpointId,
    ) -> Result<Self> {
        let place = desk.state.root(&desk.root);
        create_private_dirs(place.dir())?;
        let path = place.restore_log();
        let hex = |path: &RelPath| {
            let digits: Vec<String> = path.as_bytes().iter().map(|b| format!("{b:02x}")).collect();
            digits.concat()
        };
        let paths: Vec<String> = plan.deeds().map(|step| hex(&step.path)).collect();
        let log = json!({
            "version": 1, "of": of.to_string(), "held": held.to_string(), "paths": paths,
        });
        replace_synced(&path, log.to_string().as_bytes())?;
        Ok(Self { path })
    }

    fn end(self) {
        // Left behind, it makes the next command look for litter that is not there.
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// An ignore file beyond it has no rules; see `scan`.
const IGNORE_FILE_MAX_BYTES: u64 = 4 << 20;
/// Larger than the log of a restore of a million paths.
const LOG_MAX_BYTES: u64 = 256 << 20;

/// Tidies up after a restore that was killed, and says so. What it overwrote is held; `undo` puts
/// it back.
fn recover(process: &mut Process<'_>, desk: &Desk) -> Result<()> {
    let path = desk.state.root(&desk.root).restore_log();
    let Some(bytes) = read_small(&path, LOG_MAX_BYTES)? else { return Ok(()) };
    let log: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let held = log["held"].as_str().unwrap_or_default();
    let unhex = |text: &str| {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        RelPath::from_bytes(&digits.map(byte).collect::<Option<Vec<u8>>>()?).ok()
    };
    let paths = log["paths"].as_array().into_iter().flatten();
    let paths: Vec<RelPath> = paths.filter_map(|path| unhex(path.as_str()?)).collect();
    if CheckpointId::parse(held).is_some() {
        apply::sweep(&desk.root, &paths, held);
        let short = &held[..4];
        let _nobody = writeln!(
            process.stderr,
            "note: a restore was interrupted here; what it had overwritten is in checkpoint {short}"
        );
    }
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))
}

/// The paths the user named, seen from where they are.
pub(crate) fn picked(process: &Process<'_>, desk: &Desk, paths: &[PathBuf]) -> Result<Picked> {
    if paths.is_empty() {
        return Ok(Picked::All);
    }
    let cwd = process.cwd.clone().unwrap_or_else(|| desk.root.path().to_owned());
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let mut picked = Vec::new();
    for path in paths {
        let absolute = normal(&cwd.join(path));
        if absolute == desk.root.path() {
            return Ok(Picked::All);
        }
        let rel = desk.root.relative(&absolute).map_err(|_| {
            let path = ui::escape_path(path).into_owned();
            Error::other(
                format!("`{path}` is not in `{}`", ui::escape_path(desk.root.path())),
                "name paths of this project",
            )
        })?;
        picked.push(rel);
    }
    Ok(Picked::Paths(picked))
}

/// A path without `.` and `..`, by its text alone: the file may be gone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => (),
            other => normal.push(other),
        }
    }
    normal
}

fn heading(desk: &Desk, checkpoint: &Checkpoint, order: &Order, clock: &ui::Clock) -> String {
    let id = checkpoint.id.short();
    let when = clock.when(checkpoint.taken_at);
    let root = ui::path(desk.root.path(), desk.home.as_deref());
    match order.verb {
        "undo" => format!("undoing: back to checkpoint {id} ({when}) in {root}"),
        "redo" => format!("redoing: forward to checkpoint {id} ({when}) in {root}"),
        _ => format!("restoring checkpoint {id} ({when}) in {root}"),
    }
}

fn show(
    process: &mut Process<'_>,
    desk: &Desk,
    planned: &Planned,
    heading: &str,
    json: bool,
) -> Result<()> {
    if json {
        return print_json(process, &plan_json(&planned.plan));
    }
    let mut text = format!("{heading}\n\n");
    if planned.plan.is_empty() && planned.plan.kept().next().is_none() {
        text.push_str("everything is as it was; there is nothing to do\n");
        return print(process, &text);
    }
    let home = desk.home.as_deref();
    for step in &planned.plan.steps {
        text.push_str(&step_line(step));
    }
    for step in &planned.plan.outside {
        let path = ui::path(&step.path, home);
        text.push_str(&format!("  outside   {path}   (needs --outside)\n"));
    }
    for skipped in &planned.plan.left {
        let why = skipped.reason.words();
        text.push_str(&format!(
            "  leave     {}   not in this checkpoint: {why}\n",
            ui::escape(&skipped.path)
        ));
    }
    let kept = planned.plan.kept().count() as u64;
    text.push_str(&format!(
        "\n{} would change",
        ui::count(planned.plan.deeds().count() as u64, "path")
    ));
    if kept > 0 {
        text.push_str(&format!(", {} kept", ui::number(kept)));
    }
    text.push('\n');
    print(process, &text)
}

fn step_line(step: &Step) -> String {
    let path = ui::escape(step.path.as_bytes());
    let slash = if is_directory(step) { "/" } else { "" };
    let (verb, why) = words(step.action);
    let why = if why.is_empty() { String::new() } else { format!("   {why}") };
    format!("  {verb:<9} {path}{slash}{why}\n")
}

fn is_directory(step: &Step) -> bool {
    step.then.or(step.now).is_some_and(|entry| entry.kind == Kind::Directory)
}

fn words(action: Action) -> (&'static str, String) {
    match action {
        Action::Restore => ("restore", String::new()),
        Action::Recreate => ("recreate", String::new()),
        Action::Remove => ("remove", "created since; held first".to_owned()),
        Action::Keep(Kept::New) => ("keep", "created since (--exact removes it)".to_owned()),
        Action::Keep(Kept::Ignored) => ("keep", "was ignored then".to_owned()),
        Action::Keep(Kept::NotCovered(why)) => ("leave", format!("not covered: {}", why.words())),
        Action::Keep(Kept::InTheWay) => ("keep", "something in it stays".to_owned()),
        Action::Keep(Kept::GitPrivate) => ("keep", "git's own".to_owned()),
    }
}

fn plan_json(plan: &RestorePlan) -> Value {
    let step = |step: &Step| {
        let (action, why) = words(step.action);
        json!({ "path": String::from_utf8_lossy(step.path.as_bytes()), "action": action, "why": why })
    };
    json!({
        "checkpoint": plan.of.to_string(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "outside": plan.outside.iter().map(|step| step.path.to_string_lossy()).collect::<Vec<_>>(),
        "left": plan.left.iter().map(super::show::skipped_json).collect::<Vec<_>>(),
    })
}

#[expect(clippy::too_many_arguments, reason = "all that came of it is said in one place")]
fn report(
    process: &mut Process<'_>,
    desk: &Desk,
    plan: &RestorePlan,
    outcome: &Outcome,
    index: Option<Result<IndexOutcome>>,
    safety: Option<CheckpointId>,
    checkpoint: &Checkpoint,
    consent: Consent,
) -> Result<Exit> {
    let index_said = index.as_ref().and_then(index_words);
    if consent.json {
        let missed: Vec<_> = outcome
            .missed
            .iter()
            .map(|(path, why)| json!({ "path": path.to_string_lossy(), "why": why }))
            .collect();
        let mut value = plan_json(plan);
        value["done"] = json!(outcome.done);
        value["missed"] = json!(missed);
        value["held_in"] = json!(safety.map(|id| id.to_string()));
        value["index"] = json!(index_said);
        print_json(process, &value)?;
    } else {
        let kept = plan.kept().filter(|step| step.action == Action::Keep(Kept::New)).count() as u64;
        let mut text = match outcome.done {
            0 => format!("everything is as it was at {}\n", checkpoint.id.short()),
            done => format!(
                "restored {} from {}\n",
                ui::count(done as u64, "path"),
                checkpoint.id.short()
            ),
        };
        if kept > 0 {
            text.push_str(&format!(
                "{} created since kept (--exact removes them)\n",
                ui::count(kept, "path")
            ));
        }
        if let Some(said) = index_said {
            text.push_str(&format!("{said}\n"));
        }
        if safety.is_some() {
            text.push_str("undo with: turnback undo\n");
        }
        print(process, &text)?;
    }
    for (path, why) in &outcome.missed {
        let path = ui::path(path, desk.home.as_deref());
        let _nobody = writeln!(
            process.stderr,
            "warning: not restored: {path}: {}",
            ui::escape_line(why.as_bytes())
        );
    }
    if let Some(Err(err)) = index {
        return Err(err);
    }
    Ok(if outcome.missed.is_empty() { Exit::Ok } else { Exit::Failed })
}

fn index_words(index: &Result<IndexOutcome>) -> Option<String> {
    match index {
        Ok(IndexOutcome::Restored(entries)) => Some(format!(
            "staged as it was: {}",
            ui::count(*entries as u64, "entry").replace("entrys", "entries")
        )),
        Ok(IndexOutcome::HeadMoved) => {
            Some("the index stays as it is: HEAD has moved since".to_owned())
        }
        Ok(IndexOutcome::InProgress(what)) => {
            Some(format!("the index stays as it is: a {what} is in progress, or was then"))
        }
        Ok(IndexOutcome::Unchanged | IndexOutcome::NotKept) | Err(_) => None,
    }
}

fn say(process: &mut Process<'_>, text: &str) -> Result<()> {
    writeln!(process.stderr, "{text}").map_err(Error::io("write to", Path::new("standard error")))
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
