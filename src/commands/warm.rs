//! `beforehand warm`: looks at a project before the first call needs it. Started by hooks, in the
//! background, without streams.

use std::path::PathBuf;

use crate::{
    agent, config,
    error::Result,
    journal::{self, LineKind},
    maintenance::{
        self,
        warm::{Edge, WarmRequest, warm},
    },
    model::SessionId,
    process::{Exit, Process},
};

/// Take the checkpoint of a session or turn that begins. Started by hooks, in the background.
#[derive(clap::Args)]
pub(crate) struct WarmArgs {
    /// The agent, as in its hook line
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// Its session
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    session: String,
    /// Where it works
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// A turn has ended there
    #[arg(long)]
    ended: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &WarmArgs) -> Result<Exit> {
    let Some(dialect) = agent::by_name(&args.agent) else { return Ok(Exit::Failed) };
    let visit = WarmRequest {
        agent: dialect.agent,
        name: dialect.name.to_owned(),
        session: SessionId(args.session.clone()),
        dir: args.dir.clone(),
        edge: if args.ended { Edge::Ended } else { Edge::Begins },
    };
    let state = config::state(process, Some(&args.dir))?;
    let done = warm(process, &visit);
    // There are no streams; the journal is where trouble is looked for.
    if let Err(err) = &done {
        let text = format!("in the background: {err}");
        journal::write(&state, process.now, LineKind::Trouble, Some(&args.dir), &text);
    }
    let settings = config::load(process, None).settings;
    if settings.auto_prune
        && state.dir().is_dir()
        && maintenance::is_due(&state, settings.prune_interval, process.now)
    {
        maintenance::run(process, &state, None)?;
    }
    done.map(|()| Exit::Ok)
}
