//! Takes a checkpoint in the background when a session or turn begins, so that the first call finds
//! a warm cache and, usually, nothing to save; and when a turn has ended, so that what it left is held
//! before a person goes on with it.
//!
//! The hook starts this at the start of a session, at the end of a turn that did something, and at the prompt
//! after it; it never delays the agent's answer. A save waits for it briefly (see
//! `snapshot::take`) and then uses its result. If a call saves first, this has nothing to do.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::conversations;
use crate::{
    config, crash,
    error::Result,
    fs::{Lock, PathResolver, create_private_dirs, stat_path},
    ledger,
    model::{Agent, By, Cause, Checkout, Reach, Reason, ScanScope, SessionId, Settings},
    process::Process,
    reach::{Surroundings, root_around},
    snapshot::{self, SnapshotRequest},
    state::StateDir,
    store::record,
};

/// Ten times what 79,000 files take. In a larger directory, a session that changes nothing should
/// not fill the disk; the rest is left to the calls.
const TIME_MAX: Duration = Duration::from_secs(10);
/// If a call saved this shortly before the start, there is nothing to do.
const RECENT: TimeDelta = TimeDelta::seconds(10);

/// Which session to warm up for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmRequest {
    /// The agent.
    pub agent: Agent,
    /// The agent's name on the hook's command line.
    pub name: String,
    /// The session.
    pub session: SessionId,
    /// The directory in which the session works.
    pub dir: PathBuf,
    /// When it was started.
    pub edge: Edge,
}

/// When a warm-up is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// A session or a turn begins: a call that saves first makes it needless.
    Begins,
    /// A turn has ended: what its last call left is held nowhere.
    Ended,
}

/// Starts the warm-up for a session. It also runs maintenance afterwards if that is due.
pub fn start(
    process: &Process<'_>,
    name: &str,
    session: &SessionId,
    dir: &Path,
    edge: Edge,
) -> bool {
    let mut args: Vec<OsString> = vec![
        "warm".into(),
        "--agent".into(),
        name.into(),
        "--session".into(),
        session.0.clone().into(),
        "--dir".into(),
        dir.into(),
    ];
    if edge == Edge::Ended {
        args.push("--ended".into());
    }
    // If it cannot be started, the first call only takes longer.
    process.start_aside(&args).is_ok()
}

/// Whether anything was done in a root since its last scan. Costs two stats.
pub fn is_cold(state: &StateDir, root: &Path) -> bool {
    let own = state.root_at(root);
    let changed = |path: &Path| stat_path(path).map(|stamp| stamp.mtime_ns).ok();
    let done = changed(&own.attribution().join("log"));
    done.is_some_and(|done| changed(&own.cache()).is_none_or(|looked| looked < done))
}

/// Takes a checkpoint of the root that a session works in, unless a call has already saved one, and
/// keeps the session's conversation.
///
/// # Errors
///
/// Fails if the root cannot be read or the store cannot be written.
pub fn warm(process: &Process<'_>, warm_request: &WarmRequest) -> Result<()> {
    let settings = config::load(process, Some(&warm_request.dir)).settings;
    let state = config::state(process, Some(&warm_request.dir))?;
    if !settings.enabled || !settings.triggers.session_start {
        return Ok(());
    }
    let kept = conversations::keep(process, &state, warm_request.agent, &warm_request.session);
    take_checkpoint(process, warm_request, &settings, &state).and(kept)
}

fn take_checkpoint(
    process: &Process<'_>,
    warm_request: &WarmRequest,
    settings: &Settings,
    state: &StateDir,
) -> Result<()> {
    let home = process.home();
    let surroundings =
        Surroundings { home: home.as_deref(), state: Some(state), real: &PathResolver::default() };
    let Some((root, scope)) = root_around(&warm_request.dir, &surroundings) else { return Ok(()) };
    if scope == ScanScope::Named {
        return Ok(());
    }
    // A root counts as new if its earlier location cannot be found.
    let _found = record::settle(state, root.path(), process.now);
    let place = state.root(&root);
    create_private_dirs(place.dir())?;
    let Some(_at_work) = Lock::acquire_if_free(&place.warming(), Instant::now())? else {
        // Another process is already warming this root.
        return Ok(());
    };
    let since = process.now - RECENT;
    let is_beginning = warm_request.edge == Edge::Begins;
    if is_beginning && is_covered(state, warm_request, root.path(), since) {
        return Ok(());
    }
    crash::point("warm");
    let reach = Reach { root, scope, victims: Vec::new(), checkout: Checkout::default() };
    let request = request(&reach, settings, warm_request, process.now);
    snapshot::take(process, state, request).map(drop)
}

fn is_covered(
    state: &StateDir,
    warm_request: &WarmRequest,
    root: &Path,
    since: DateTime<Utc>,
) -> bool {
    ledger::covered_since(state, &warm_request.name, &warm_request.session.0, root, since)
}

fn request<'a>(
    reach: &'a Reach,
    settings: &'a Settings,
    warm_request: &WarmRequest,
    taken_at: DateTime<Utc>,
) -> SnapshotRequest<'a> {
    let by = By {
        agent: warm_request.agent,
        session: warm_request.session.clone(),
        turn: None,
        subagent: None,
        prompt: None,
        transcript: None,
        position: None,
    };
    SnapshotRequest {
        reach,
        settings,
        cause: Cause { reason: Reason::Net, by: Some(by), tool: None, summary: None, of: None },
        taken_at,
        always: false,
        deadline: Some(Instant::now() + TIME_MAX),
        waits: false,
    }
}
