//! `turnback undo` and `turnback redo`: one step back, one step forward.

use super::{
    Desk,
    restore::{Consent, Order, carry_out},
};
use crate::{
    error::{Error, Result},
    model::{Checkpoint, Reason},
    plan::{self, Options, Picked},
    process::{Exit, Process},
};

/// Take back the last turn, or the last restore. Shows what it will do and asks.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn undo(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let desk = Desk::open(process, None)?.into_present()?;
    let checkpoints = desk.store.list()?;
    let target = plan::undo_target(&checkpoints).cloned();
    let target = target.ok_or_else(|| {
        Error::other(
            "there is no turn and no restore to undo",
            "`turnback list` shows what there is, `turnback restore 1` goes to the newest",
        )
    })?;
    step(process, &desk, &target, "undo", args)
}

pub(crate) fn redo(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let desk = Desk::open(process, None)?.into_present()?;
    let checkpoints = desk.store.list()?;
    let target = plan::redo_target(&checkpoints).cloned();
    let target = target.ok_or_else(|| {
        Error::other(
            "there is nothing to redo",
            "only an undo can be redone, and only until something else happens",
        )
    })?;
    step(process, &desk, &target, "redo", args)
}

/// A step along the line puts back exactly what was there; what people made or changed since
/// stays.
fn step(
    process: &mut Process<'_>,
    desk: &Desk,
    target: &Checkpoint,
    verb: &'static str,
    args: &Args,
) -> Result<Exit> {
    let is_restore = target.cause.reason == Reason::BeforeRestore;
    let order = Order {
        verb,
        options: Options::default(),
        markers: false,
        picked: Picked::All,
        index: true,
        outside: true,
        of_restore: target.cause.of.filter(|_| is_restore),
    };
    let consent = Consent { dry_run: args.dry_run, yes: args.yes, json: args.json };
    carry_out(process, desk, target, &order, consent)
}
