//! `turnback prune` and `turnback clear`: forget checkpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Desk, print, print_json};
use crate::{
    config,
    error::Result,
    house,
    model::{Checkpoint, CheckpointId},
    plan::{self, Limits, PrunePlan, Stock},
    process::{Exit, Process},
    ui::{self, Cell, Clock, Column, Cut, Paint, Style, Table},
};

/// Drop old checkpoints of this project.
///
/// Without --keep and --older-than, your settings `max_checkpoints` and `retention` decide. The
/// newest always stays, and so does for seven days what was held before a restore.
#[derive(clap::Args)]
pub(crate) struct PruneArgs {
    /// Keep at most this many
    #[arg(long, value_name = "N")]
    keep: Option<String>,
    /// Drop what is older, as in `36h` or `14d`
    #[arg(long, value_name = "AGE")]
    older_than: Option<String>,
    /// Show what would go, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Print an object
    #[arg(long)]
    json: bool,
}

/// Drop every checkpoint of this project. Shows them and asks; there is no way back.
#[derive(clap::Args)]
pub(crate) struct ClearArgs {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn prune(process: &mut Process<'_>, args: &PruneArgs) -> Result<Exit> {
    let desk = Desk::open(process, None)?;
    let limits = limits(process, &desk, args)?;
    let checkpoints = desk.store.list()?;
    let ages = plan::ages(&checkpoints, process.now);
    let pinned = pinned(&desk, &checkpoints);
    let plan = Stock { newest_first: &checkpoints, ages: &ages, pinned: &pinned }.prune(limits);
    let freed = if args.dry_run { 0 } else { carry_out(&desk, &plan)? };
    if args.json {
        let value = as_json(&checkpoints, &plan, freed, args.dry_run);
        print_json(process, &value)?;
        return Ok(Exit::Ok);
    }
    if plan.goes.is_empty() {
        let stay = ui::count(plan.stays as u64, "checkpoint");
        let _nobody = writeln!(process.stderr, "nothing to drop; {stay} stay");
        return Ok(Exit::Ok);
    }
    let mut text = table(process, &checkpoints, &plan);
    text.push_str(&summary(&plan, freed, args.dry_run));
    print(process, &text)?;
    Ok(Exit::Ok)
}

pub(crate) fn clear(process: &mut Process<'_>, args: &ClearArgs) -> Result<Exit> {
    let desk = Desk::open(process, None)?;
    let checkpoints = desk.store.list()?;
    let ages = plan::ages(&checkpoints, process.now);
    let pinned = pinned(&desk, &checkpoints);
    let plan = Stock { newest_first: &checkpoints, ages: &ages, pinned: &pinned }.clear();
    if plan.goes.is_empty() {
        let _nobody = writeln!(process.stderr, "there are no checkpoints to drop");
        return Ok(Exit::Ok);
    }
    if !args.yes {
        let text = table(process, &checkpoints, &plan);
        print(process, &text)?;
        let question =
            format!("Drop {} for good?", ui::count(plan.goes.len() as u64, "checkpoint"));
        if !ui::ask(process, &question) {
            let _nobody = writeln!(
                process.stderr,
                "nothing was dropped\nhint: --yes drops them without asking"
            );
            return Ok(Exit::Failed);
        }
    }
    let freed = carry_out(&desk, &plan)?;
    print(process, &summary(&plan, freed, false))?;
    Ok(Exit::Ok)
}

fn limits(process: &Process<'_>, desk: &Desk, args: &PruneArgs) -> Result<Limits> {
    let mut loaded = config::load(process, Some(desk.root.path()));
    if let Some(keep) = &args.keep {
        loaded.set_flag("--keep", "max_checkpoints", keep)?;
    }
    if let Some(age) = &args.older_than {
        loaded.set_flag("--older-than", "retention", age)?;
    }
    let neither = args.keep.is_none() && args.older_than.is_none();
    Ok(Limits {
        keep: (neither || args.keep.is_some()).then_some(loaded.settings.max_checkpoints),
        older_than: (neither || args.older_than.is_some()).then_some(loaded.settings.retention),
    })
}

/// The checkpoints that a restore needs which was begun and has not ended: all, if nobody can tell.
fn pinned(desk: &Desk, checkpoints: &[Checkpoint]) -> BTreeSet<CheckpointId> {
    let pinned = house::pinned(&desk.state.root(&desk.root));
    pinned.unwrap_or_else(|| checkpoints.iter().map(|checkpoint| checkpoint.id).collect())
}

fn carry_out(desk: &Desk, plan: &PrunePlan) -> Result<u64> {
    if plan.goes.is_empty() {
        return Ok(0);
    }
    let ids: Vec<CheckpointId> = plan.goes.keys().copied().collect();
    desk.store.remove(&ids)
}

fn table(process: &Process<'_>, checkpoints: &[Checkpoint], plan: &PrunePlan) -> String {
    let clock = Clock::local(process.now);
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
            super::rows::Told::alone(checkpoint).words().into(),
            Cell::new(why, Paint::Dim),
        ]);
    }
    table.show(process.terminal.columns, Style::stdout(process))
}

fn summary(plan: &PrunePlan, freed: u64, dry_run: bool) -> String {
    let gone = ui::count(plan.goes.len() as u64, "checkpoint");
    let stays = ui::number(plan.stays as u64);
    if dry_run {
        return format!("{gone} would go, {stays} stay; nothing was changed\n");
    }
    format!("{gone} dropped, {stays} left; {} freed\n", ui::size(freed))
}

fn as_json(checkpoints: &[Checkpoint], plan: &PrunePlan, freed: u64, dry_run: bool) -> Value {
    let goes = checkpoints.iter().filter_map(|checkpoint| {
        let why = plan.goes.get(&checkpoint.id)?;
        Some(json!({ "id": checkpoint.id.to_string(), "why": why.words() }))
    });
    json!({
        "dropped": goes.collect::<Vec<_>>(),
        "left": plan.stays,
        "freed": freed,
        "dry_run": dry_run,
    })
}
