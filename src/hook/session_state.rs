//! Opens, changes and closes the ledger of a session within one hook call.

use super::{
    input::INPUT_DEADLINE,
    place::working_directory,
    trouble::{said, write_journal},
};
use crate::{
    agent::Dialect,
    config,
    error::Result,
    journal::LineKind,
    ledger::Ledger,
    model::{CallContext, Decision},
    process::Process,
};

pub(super) fn with_ledger(
    process: &Process<'_>,
    dialect: &Dialect,
    context: &CallContext,
    act: impl FnOnce(&mut Ledger),
) -> Result<()> {
    let cwd = working_directory(process, context);
    let state = config::state(process, Some(&cwd))?;
    let deadline = process.started + INPUT_DEADLINE;
    let mut ledger = Ledger::open(&state, dialect.name, &context.session.0, deadline)?;
    ledger.home(&cwd);
    act(&mut ledger);
    ledger.close()
}

/// An event that is only bookkeeping: trouble with it goes to the journal, not to the user.
pub(super) fn quiet(process: &Process<'_>, context: &CallContext, done: Result<()>) -> Decision {
    if let Err(err) = done {
        let cwd = working_directory(process, context);
        write_journal(process, Some(&cwd), LineKind::Trouble, &said(&err));
    }
    Decision::NEUTRAL
}
