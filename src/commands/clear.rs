//! `beforehand clear`: forgets every checkpoint of a project, or of all, after asking.

use std::{collections::BTreeSet, path::PathBuf};

use super::{Project, print_text, prune, say};
use crate::{
    config,
    error::Result,
    fs::own_bytes,
    maintenance::{self, MaintenanceState, RootInventory, conversations},
    plan::RetentionInput,
    process::{Exit, Process},
    state::RootState,
    store::record,
    ui,
};

/// Drop every checkpoint of this project. Shows them and asks; there is no way back.
#[derive(clap::Args)]
pub(crate) struct ClearArgs {
    /// The project around this directory, even if it is deleted
    #[arg(long, value_name = "DIR", conflicts_with = "everywhere")]
    root: Option<PathBuf>,
    /// Drop the checkpoints of every project
    #[arg(long)]
    everywhere: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &ClearArgs) -> Result<Exit> {
    if args.everywhere {
        return clear_several(process, args.yes, |_| true);
    }
    let project = Project::open(process, args.root.as_deref())?;
    if project.is_gone {
        let path = project.root.path().to_owned();
        return clear_several(process, args.yes, |holding| holding.place.path == path);
    }
    let checkpoints = project.store.list()?;
    let pinned = prune::pinned(process, &project, &checkpoints)?;
    let stock =
        RetentionInput { newest_first: &checkpoints, ages: &[], tiers: &[], pinned: &pinned };
    let plan = stock.clear();
    let own = project.state.root(&project.root);
    if plan.goes.is_empty() && record::quarantined(&own)?.is_empty() {
        say(process, "there are no checkpoints to drop");
        return Ok(Exit::Ok);
    }
    if !args.yes {
        let text = prune::table(process, &project, &checkpoints, &plan);
        print_text(process, &text)?;
        if !is_sure(process, plan.goes.len()) {
            return Ok(Exit::Failed);
        }
    }
    give_up_aside(&own)?;
    let freed = prune::carry_out(&project, &plan)?;
    conversations::drop_unused(process, &project.state)?;
    prune::say_if_busy(process, freed);
    print_text(process, &prune::summary(&plan, freed, false))?;
    Ok(Exit::Ok)
}

/// The same for roots that are gone, or for all.
fn clear_several(
    process: &mut Process<'_>,
    yes: bool,
    is_meant: impl Fn(&RootInventory) -> bool,
) -> Result<Exit> {
    let state = config::state(process, None)?;
    let (mut holdings, _) =
        maintenance::all(process, &state, &mut MaintenanceState::read(&state)?)?;
    holdings.retain(is_meant);
    let home = process.home();
    let (mut text, mut count) = (String::new(), 0);
    let goes: Vec<BTreeSet<_>> =
        holdings.iter().map(|it| it.retention_input().clear().goes.into_keys().collect()).collect();
    for (holding, goes) in holdings.iter().zip(&goes).filter(|(_, goes)| !goes.is_empty()) {
        let path = ui::path(&holding.place.path, home.as_deref());
        text.push_str(&format!(
            "  drop  {}  of {path}\n",
            ui::count(goes.len() as u64, "checkpoint")
        ));
        count += goes.len();
    }
    if count == 0 {
        say(process, "there are no checkpoints to drop");
        return Ok(Exit::Ok);
    }
    if !yes {
        print_text(process, &text)?;
        if !is_sure(process, count) {
            return Ok(Exit::Failed);
        }
    }
    let (mut gone, before) = (0, own_bytes(state.dir()));
    for (holding, goes) in holdings.iter_mut().zip(&goes) {
        gone += holding.forget(goes)?;
        give_up_aside(&holding.own)?;
    }
    conversations::drop_unused(process, &state)?;
    let freed = prune::free(&state, before)?;
    prune::say_if_busy(process, freed);
    let gone = ui::count(gone as u64, "checkpoint");
    print_text(process, &format!("{gone} dropped; {} freed\n", ui::size(freed.bytes)))?;
    Ok(Exit::Ok)
}

/// Lets go of the damaged records that were put aside, and so of what they may have named.
fn give_up_aside(own: &RootState) -> Result<()> {
    record::quarantined(own)?.into_iter().try_for_each(|id| record::give_up(own, id))
}

fn is_sure(process: &mut Process<'_>, count: usize) -> bool {
    let is_sure =
        ui::ask(process, &format!("Drop {} for good?", ui::count(count as u64, "checkpoint")));
    if !is_sure {
        let said = "nothing was dropped\nhint: --yes drops them without asking";
        say(process, said);
    }
    is_sure
}
