//! Plays a loss through the line that each agent has registered, run as that agent runs it: the only
//! proof that the agent's next call would be held. Nothing of the user's is touched.

use super::{
    CheckResult,
    payloads::{AgentPayload, PAYLOADS},
    scratch::{COMMAND, ScratchProject},
    trial::said,
};
use crate::{
    error::{Error, Result},
    health::{self, AgentHealth, AgentVerdict, Evidence, HealthQuery, Severity},
    install::{self, HookStart},
    process::{HookCall, HookPlace, Process},
    state::StateDir,
    ui,
};

/// One line for each agent that should have our hooks.
///
/// # Errors
///
/// Fails if no agent should.
pub(super) fn run(
    process: &Process<'_>,
    state: &StateDir,
    query: HealthQuery<'_>,
) -> Result<Vec<CheckResult>> {
    let mut lines = Vec::new();
    for agent in Evidence::read(process, state).agents(query) {
        let sites = health::sites(agent.row, process, query.root);
        if agent.verdict.is_registered() || install::wrote(state, &sites) {
            lines.push(line(process, state, query, agent));
        }
    }
    if lines.is_empty() {
        let message = "no agent has hooks of beforehand's";
        return Err(Error::other(message, "run `beforehand install`, then run this again"));
    }
    Ok(lines)
}

fn line(
    process: &Process<'_>,
    state: &StateDir,
    query: HealthQuery<'_>,
    agent: AgentHealth,
) -> CheckResult {
    let name = agent.title().to_lowercase();
    let proved = prove(process, state, query, &agent);
    match proved {
        Ok(message) => CheckResult::new(name, Severity::Ok, message, None),
        Err(why) => {
            let hint = agent.hint.unwrap_or_else(|| health::install_hint(agent.row));
            let message = format!("not proved: {}", ui::escape_line(why.as_bytes()));
            CheckResult::new(name, Severity::Trouble, message, Some(hint))
        }
    }
}

/// Plays the loss with each line that the agent would run.
fn prove(
    process: &Process<'_>,
    state: &StateDir,
    query: HealthQuery<'_>,
    agent: &AgentHealth,
) -> Result<String, String> {
    // Without a file with a hook that can be called, nothing would run.
    let is_off = agent.place.is_none()
        && matches!(agent.verdict, AgentVerdict::Unprotected | AgentVerdict::Unregistered);
    if is_off {
        return Err(agent.message.clone());
    }
    let payload = PAYLOADS.iter().find(|payload| payload.agent == agent.row.agent);
    let payload = payload.ok_or_else(|| "no payload of this agent is known".to_owned())?;
    let ours = health::ours(process, state);
    let mut count = 0;
    for site in health::sites(agent.row, process, query.root) {
        let starts = install::starts_before_call(&site, payload.event, &ours);
        for start in starts.map_err(|err| said(&err))? {
            count += 1;
            play(process, payload, &start, count).map_err(|why| {
                let file = ui::path(&site.path, process.home().as_deref()).into_owned();
                format!("the hook in {file} was run, and {why}")
            })?;
        }
    }
    match count {
        0 => Err("it is not known how the agent starts its hook".to_owned()),
        1 => Ok("files lost in a scratch project came back, through its own hook".to_owned()),
        _ => Ok(format!("files lost in a scratch project came back, {count} times")),
    }
}

/// Plays the loss through one line.
fn play(
    process: &Process<'_>,
    payload: &AgentPayload,
    start: &HookStart,
    count: usize,
) -> Result<(), String> {
    let temp = process.var("TMPDIR").map_or_else(|| "/tmp".into(), std::path::PathBuf::from);
    let name = format!("{}-{count}", payload.agent);
    let project = ScratchProject::make(&temp, &name).map_err(|err| said(&err))?;
    let mut env = project.env(process);
    if let Some(variable) = payload.dir_variable {
        env.insert(variable.into(), project.root().into());
    }
    let input = payload.payload(&project.root(), COMMAND);
    let place = Some(HookPlace { dir: &project.root(), env: &env });
    let call = HookCall { words: start.words(), place, input: input.as_bytes() };
    process.aside.time(&call).map_err(|err| format!("it could not be run: {err}"))?;
    project.lose().map_err(|err| said(&err))?;
    project.restore(process)
}
