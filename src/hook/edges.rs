//! Where a session or a turn begins or ends: nobody waits for us then, and what goes on in the
//! background is started.

use super::place::working_directory;
use crate::{
    agent::Dialect,
    config, house,
    model::{Context, SessionEnd},
    process::Process,
};

/// Sees whether the limits want keeping.
pub(super) fn look_after_house(process: &Process<'_>, context: &Context) {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    // Where nothing was ever saved there is nothing to keep.
    if let Ok(state) = config::state(process, Some(&cwd))
        && settings.enabled
        && state.dir().is_dir()
    {
        house::ask(process, &state, &settings);
    }
}

/// What becomes of the checkpoints of a session that is over.
pub(super) fn on_session_end(process: &Process<'_>, dialect: &dyn Dialect, context: &Context) {
    let cwd = working_directory(process, context);
    let settings = config::load(process, Some(&cwd)).settings;
    if settings.on_session_end == SessionEnd::Keep {
        return look_after_house(process, context);
    }
    if let Ok(state) = config::state(process, Some(&cwd))
        && state.dir().is_dir()
    {
        house::ask_after(process, &state, &settings, dialect.name(), &context.session);
    }
}
