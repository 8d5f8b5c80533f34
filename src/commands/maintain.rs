//! `beforehand maintain`: keeps the limits. Started by hooks, in the background, without streams.

use std::path::PathBuf;

use crate::{
    agent, config,
    error::Result,
    journal::{self, LineKind},
    maintenance::{self, EndedSession},
    model::SessionId,
    process::{Exit, Process},
};

/// Keep the store within its limits. Started by hooks, in the background.
#[derive(clap::Args)]
pub(crate) struct MaintainArgs {
    /// Drop what this session of this agent left, but for the newest
    #[arg(long, num_args = 2, value_names = ["AGENT", "SESSION"], allow_hyphen_values = true)]
    ended: Option<Vec<String>>,
    /// Only make borrowed objects our own, and many packs few
    #[arg(long, value_name = "DIR", conflicts_with = "ended")]
    tidy: Option<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &MaintainArgs) -> Result<Exit> {
    let state = config::state(process, args.tidy.as_deref())?;
    let ended = args.ended.as_deref().and_then(ended);
    let done = match &args.tidy {
        Some(_) => maintenance::tidy_stores(process, &state),
        None => maintenance::run(process, &state, ended.as_ref()).map(drop),
    };
    // There are no streams; the journal is where trouble is looked for.
    if let Err(err) = &done
        && state.dir().is_dir()
    {
        let text = format!("maintenance: {err}");
        journal::write(&state, process.now, LineKind::Trouble, None, &text);
    }
    done.map(|()| Exit::Ok)
}

fn ended(words: &[String]) -> Option<EndedSession> {
    let [agent, session] = words else { return None };
    let agent = agent::by_name(agent)?.agent;
    Some(EndedSession { agent, session: SessionId(session.clone()) })
}
