//! `beforehand prune`: forgets old checkpoints of one project, by the plan it shows.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Project, print_json, print_text, rows, rows::CheckpointLabel, say, table_text};
use crate::{
    config,
    error::{Error, Result},
    fs::own_bytes,
    ledger,
    maintenance::{self, Pruned},
    model::{Checkpoint, CheckpointId},
    plan::{self, Pins, PruneLimits, PrunePlan, Retention, RetentionInput, Why},
    process::{Exit, Process},
    restore_log,
    state::{RootState, StateDir},
    store::{record, sweep, usage::UsageIndex},
    ui::{self, Cell, Clock, Column, Cut, Paint, Table},
};

/// Drop old checkpoints of this project.
///
/// Without --keep, --older-than and --max-size, your settings `retention`, `keep_turns` and
/// `keep_sessions` decide, as they do for maintenance: every checkpoint of the last days stays, then
/// one for each turn, then one for each session, and always those of `create`. With these options,
/// the times that `list` shows count, and those of `create` go as well. The newest always stays, and
/// so does for seven days what was held before a restore.
#[derive(clap::Args)]
pub(crate) struct PruneArgs {
    /// Keep at most this many
    #[arg(long, value_name = "N")]
    keep: Option<NonZeroU32>,
    /// Drop checkpoints older than this, as in `36h` or `14d`
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Drop the oldest until the rest takes no more in beforehand's own store, as in `200 MB`
    #[arg(long, value_name = "SIZE")]
    max_size: Option<String>,
    /// Show what would be dropped, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &PruneArgs) -> Result<Exit> {
    let project = Project::open(process, None)?;
    let wanted = wanted(process, &project, args)?;
    let checkpoints = project.store.list()?;
    let ages = match wanted.limits {
        Some(_) => plan::ages(&checkpoints, process.now),
        None => maintenance::ages(process, &project.state, &project.place(), &checkpoints)?,
    };
    let tiers = maintenance::tiers(&checkpoints, &ledger::uses(&project.state));
    let pinned = pinned(process, &project, &checkpoints)?;
    let stock =
        RetentionInput { newest_first: &checkpoints, ages: &ages, tiers: &tiers, pinned: &pinned };
    let mut plan = match wanted.limits {
        Some(limits) => stock.prune(limits),
        None => stock.thin(Retention::of(&project.settings)),
    };
    let over = match wanted.size_max_bytes {
        Some(max) => make_room(&project, stock, max, &mut plan)?,
        None => None,
    };
    let freed = if args.dry_run {
        Freed { bytes: would_free(&project, &plan)?, is_busy: false }
    } else {
        carry_out(&project, &plan)?
    };
    if !args.dry_run {
        // The checkpoints are gone, whether or not `status` knows.
        let pruned = Pruned { at: process.now, dropped: plan.goes.len(), freed: freed.bytes };
        let own = project.place();
        maintenance::note_prune(process, &project.state, &own, &checkpoints, pruned).ok();
    }
    say_if_busy(process, freed);
    if args.json {
        let mut value = as_json(&checkpoints, &plan, freed, args.dry_run);
        value["over"] = json!(over.map(|over| over.bytes));
        print_json(process, "prune", value)?;
        return Ok(Exit::Ok);
    }
    if let Some(over) = over {
        say_over(process, over, args.dry_run);
    }
    if plan.goes.is_empty() && over.is_none() {
        let stay = ui::count(plan.stays as u64, "checkpoint");
        let verb = if plan.stays == 1 { "stays" } else { "stay" };
        let freed = match freed.bytes {
            0 => String::new(),
            bytes => format!("; {} freed", ui::size(bytes)),
        };
        say(process, &format!("nothing to drop; {stay} {verb}{freed}"));
        return Ok(Exit::Ok);
    }
    let mut text = table(process, &project, &checkpoints, &plan);
    text.push_str(&summary(&plan, freed, args.dry_run));
    print_text(process, &text)?;
    Ok(Exit::Ok)
}

/// What must stay takes more room than the user wants.
#[derive(Clone, Copy)]
struct Over {
    /// How many bytes it takes.
    bytes: u64,
    /// How many it should.
    max: u64,
}

fn say_over(process: &mut Process<'_>, Over { bytes, max }: Over, dry_run: bool) {
    let stays = if dry_run { "would stay" } else { "stay" };
    let (bytes, max) = (ui::size(bytes), ui::size(max));
    let said =
        format!("note: {bytes} {stays}, and not {max}: what is marked `keep` cannot be dropped");
    say(process, &said);
}

struct PruneGoal {
    /// `None` if the settings decide.
    limits: Option<PruneLimits>,
    size_max_bytes: Option<u64>,
}

fn wanted(process: &Process<'_>, project: &Project, args: &PruneArgs) -> Result<PruneGoal> {
    let mut loaded = config::load(process, Some(project.root.path()));
    let flags = [
        (&args.older_than, "--older-than", "retention"),
        (&args.max_size, "--max-size", "max_total_size"),
    ];
    for (given, flag, key) in flags {
        if let Some(given) = given {
            loaded.set_flag(flag, key, given).map_err(Error::into_usage)?;
        }
    }
    let settings = loaded.settings;
    let is_any = args.keep.is_some() || args.older_than.is_some() || args.max_size.is_some();
    let limits = PruneLimits {
        keep: args.keep.map(NonZeroU32::get),
        older_than: args.older_than.is_some().then_some(settings.retention),
    };
    let size_max_bytes = args.max_size.is_some().then_some(settings.max_total_size);
    Ok(PruneGoal { limits: is_any.then_some(limits), size_max_bytes })
}

/// Adds to a plan what goes so that the rest takes no more than `max` bytes, and what must stay if
/// that is not enough.
fn make_room(
    project: &Project,
    stock: RetentionInput<'_>,
    max: u64,
    plan: &mut PrunePlan,
) -> Result<Option<Over>> {
    if let Some((path, _)) = record::gc_blocker(&project.state)? {
        return Err(Error::Other {
            message: format!("nothing can be freed: cannot read `{}`", ui::escape_path(&path)),
            hint: Some("run `beforehand status` to see what keeps it".to_owned()),
        });
    }
    let own = project.state.root(&project.root);
    let mut scales = UsageIndex::new(&project.state);
    scales.add(0, &own, &[]);
    let excess = scales.total().saturating_sub(max);
    let none = RetentionInput { newest_first: &[], ages: &[], tiers: &[], ..stock };
    let owns = own_first(project)?;
    let stocks: Vec<RetentionInput<'_>> =
        (0..owns.len()).map(|n| if n == 0 { stock } else { none }).collect();
    let owns: Vec<_> = owns.iter().collect();
    let goes = maintenance::plan_room(&project.state, &stocks, &owns, excess);
    for id in goes.into_iter().next().unwrap_or_default() {
        plan.goes.entry(id).or_insert(Why::TooLarge);
    }
    plan.stays = stock.newest_first.len() - plan.goes.len();
    let bytes = scales.total().saturating_sub(would_free(project, plan)?);
    let over = (bytes > max).then_some(Over { bytes, max });
    if over.is_some() {
        plan.spared = stock.spared();
    }
    Ok(over)
}

/// Our part of every project, this one's first. What others need as well is not free when this one
/// lets go of it.
fn own_first(project: &Project) -> Result<Vec<RootState>> {
    let own = project.state.root(&project.root);
    let mut owns = record::all_roots(&project.state)?;
    owns.retain(|other| *other != own);
    owns.insert(0, own);
    Ok(owns)
}

/// What must stay of a project's checkpoints.
pub(super) fn pinned(
    process: &Process<'_>,
    project: &Project,
    checkpoints: &[Checkpoint],
) -> Result<Pins> {
    let own = project.state.root(&project.root);
    let running = ledger::running(&project.state, process.now);
    Ok(maintenance::pins(&own, checkpoints, &project.store.survey()?.unreadable, &running))
}

/// How many bytes carrying out the plan would free.
fn would_free(project: &Project, plan: &PrunePlan) -> Result<u64> {
    if record::gc_blocker(&project.state)?.is_some() {
        return Ok(0);
    }
    let goes: Vec<CheckpointId> = plan.goes.keys().copied().collect();
    let mut scales = UsageIndex::new(&project.state);
    for (n, own) in own_first(project)?.iter().enumerate() {
        scales.add(n, own, if n == 0 { &goes } else { &[] });
    }
    Ok(scales.chunks().iter().map(|thing| thing.bytes).sum())
}

/// What dropping checkpoints came to.
#[derive(Clone, Copy, Default)]
pub(super) struct Freed {
    /// How many bytes less our own files take on the disk, as `status` counts them.
    pub(super) bytes: u64,
    /// Whether there may be more to free, to which another process did not let us.
    pub(super) is_busy: bool,
}

/// Drops what the plan names, and frees what no checkpoint needs.
pub(super) fn carry_out(project: &Project, plan: &PrunePlan) -> Result<Freed> {
    let before = own_bytes(project.state.dir());
    if !plan.goes.is_empty() {
        let own = project.state.root(&project.root);
        // A restore, or the answer to its question, may need any of them.
        let _ignored_restores = restore_log::lock(&own)?;
        let ids: Vec<CheckpointId> = plan.goes.keys().copied().collect();
        project.store.forget(&ids)?;
    }
    free(&project.state, before)
}

/// How long it waits for saves. One takes a few seconds.
const SAVES_TIME: Duration = Duration::from_secs(20);
/// How long it waits for maintenance, which may copy objects for minutes.
const MAINTENANCE_TIME: Duration = Duration::from_secs(2);
/// How often it looks whether maintenance is done.
const MAINTENANCE_LOOK: Duration = Duration::from_millis(100);

/// Frees what no checkpoint needs; our own files took `before` bytes.
pub(super) fn free(state: &StateDir, before: u64) -> Result<Freed> {
    if !state.dir().is_dir() {
        return Ok(Freed::default());
    }
    let start = Instant::now();
    loop {
        let is_busy = match sweep::sweep(state, Instant::now() + SAVES_TIME) {
            Ok(swept) => swept.is_busy,
            Err(Error::Busy { .. }) => true,
            Err(err) => return Err(err),
        };
        if !is_busy || start.elapsed() > MAINTENANCE_TIME {
            let bytes = before.saturating_sub(own_bytes(state.dir()));
            return Ok(Freed { bytes, is_busy });
        }
        std::thread::sleep(MAINTENANCE_LOOK);
    }
}

/// Says that not all was freed, and what to do.
pub(super) fn say_if_busy(process: &mut Process<'_>, freed: Freed) {
    if freed.is_busy {
        let said = "note: another beforehand is at work on the store, so not all is freed yet\n\
                    hint: run `beforehand prune` again in a minute";
        say(process, said);
    }
}

/// What goes and what stays, each told as `list` tells it.
pub(super) fn table(
    process: &Process<'_>,
    project: &Project,
    checkpoints: &[Checkpoint],
    plan: &PrunePlan,
) -> String {
    let clock = Clock::local(process.now);
    let rows = rows(checkpoints.to_vec(), &ledger::uses(&project.state));
    let words = |checkpoint: &Checkpoint| {
        let step = rows.iter().find_map(|row| {
            Some((row, row.checkpoints.iter().position(|step| step.id == checkpoint.id)?))
        });
        match step {
            Some((row, 0)) => row.label(0).turn(),
            Some((row, n)) => row.label(n).words(),
            None => CheckpointLabel::alone(checkpoint).words(),
        }
    };
    let mut table = Table::new([
        Column::left(""),
        Column::left(""),
        Column::left(""),
        Column::cut("", Cut::End),
        Column::left(""),
    ]);
    for checkpoint in checkpoints {
        let (verb, why) = match (plan.goes.get(&checkpoint.id), plan.spared.get(&checkpoint.id)) {
            (Some(why), _) => ("drop", why.words()),
            (None, Some(why)) => ("keep", *why),
            (None, None) => continue,
        };
        table.row([
            verb.into(),
            Cell::new(&checkpoint.id.short(), Paint::Bold),
            clock.when(checkpoint.taken_at).into(),
            words(checkpoint).into(),
            Cell::new(why, Paint::Dim),
        ]);
    }
    table_text(process, &table)
}

pub(super) fn summary(plan: &PrunePlan, freed: Freed, dry_run: bool) -> String {
    let gone = ui::count(plan.goes.len() as u64, "checkpoint");
    let stays = ui::number(plan.stays as u64);
    if dry_run {
        return format!("{gone} would be dropped, {stays} kept; nothing was changed\n");
    }
    format!("{gone} dropped, {stays} left; {} freed\n", ui::size(freed.bytes))
}

fn as_json(checkpoints: &[Checkpoint], plan: &PrunePlan, freed: Freed, dry_run: bool) -> Value {
    let goes = checkpoints.iter().filter_map(|checkpoint| {
        let why = plan.goes.get(&checkpoint.id)?;
        Some(json!({ "id": checkpoint.id.to_string(), "why": why.words() }))
    });
    let kept = plan.spared.iter();
    let kept = kept.map(|(id, why)| json!({ "id": id.to_string(), "why": why }));
    json!({
        "kept": kept.collect::<Vec<_>>(),
        "dropped": goes.collect::<Vec<_>>(),
        "left": plan.stays,
        "freed": freed.bytes,
        "busy": freed.is_busy,
        "dry_run": dry_run,
    })
}
