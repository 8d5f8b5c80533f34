//! Plays a loss through the line that each agent has registered, run as that agent runs it: the only
//! proof that the agent's next call would be held. Nothing of the user's is touched.

use std::{ffi::OsString, path::Path};

use serde_json::json;

use super::{
    CheckResult,
    scratch::{COMMAND, ScratchProject},
    trial::said,
};
use crate::{
    agent::Dialect,
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
    let dialect = agent.row.dialect();
    let ours = health::ours(process, state);
    let mut count = 0;
    let mut proof = TrialProof::Hook;
    for site in health::sites(agent.row, process, query.root) {
        let starts = install::starts_before_call(&site, dialect.trial.event, &ours);
        for start in starts.map_err(|err| said(&err))? {
            count += 1;
            proof = play(process, dialect, &start, count).map_err(|why| {
                let file = ui::path(&site.path, process.home().as_deref()).into_owned();
                format!("the hook in {file} was run, and {why}")
            })?;
        }
    }
    match (proof, count) {
        (_, 0) => Err("it has no hook of beforehand's before a call".to_owned()),
        (TrialProof::Hook, 1) => {
            Ok("files lost in a scratch project came back, through its own hook".to_owned())
        }
        (TrialProof::Hook, _) => {
            Ok(format!("files lost in a scratch project came back, {count} times"))
        }
        (TrialProof::ProgramOnly, _) => {
            Ok("files lost in a scratch project came back, through the \
             program that its plugin starts; the plugin itself was not run, for want of `node`"
                .to_owned())
        }
    }
}

/// How much of a hook was run.
enum TrialProof {
    /// All of it, as the agent would.
    Hook,
    /// The program that a plugin starts, and not the plugin.
    ProgramOnly,
}

/// A hook as it is called in a scratch project.
struct TrialRun {
    words: Vec<OsString>,
    input: String,
    proof: TrialProof,
}

impl TrialRun {
    fn plan(process: &Process<'_>, dialect: &Dialect, start: &HookStart, dir: &Path) -> Self {
        match start {
            HookStart::Words(words) => Self {
                words: words.clone(),
                input: dialect.trial_payload(dir, COMMAND),
                proof: TrialProof::Hook,
            },
            HookStart::Plugin { file, program } => {
                if let (Some(call), Some(node)) = (dialect.trial.plugin, process.which("node")) {
                    let script = format!("{LOAD_PLUGIN}{call}");
                    let eval = ["--input-type=module", "--eval", &script].map(OsString::from);
                    let words = std::iter::once(node.into()).chain(eval).collect();
                    let input = json!({ "file": file, "dir": dir, "command": COMMAND }).to_string();
                    return Self { words, input, proof: TrialProof::Hook };
                }
                let arguments = ["hook", "--agent", dialect.name].map(OsString::from);
                Self {
                    words: std::iter::once(program.into()).chain(arguments).collect(),
                    input: dialect.trial_payload(dir, COMMAND),
                    proof: TrialProof::ProgramOnly,
                }
            }
        }
    }
}

/// Loads a plugin from its text: by the name of its file, older versions of `node` would take it for a
/// script.
const LOAD_PLUGIN: &str = r#"
import { readFileSync } from "node:fs"
const { file, dir, command } = JSON.parse(readFileSync(0))
const text = readFileSync(file).toString("base64")
const plugin = await import(`data:text/javascript;base64,${text}`)
"#;

/// Plays the loss through one line.
fn play(
    process: &Process<'_>,
    dialect: &Dialect,
    start: &HookStart,
    count: usize,
) -> Result<TrialProof, String> {
    let temp = process.var("TMPDIR").map_or_else(|| "/tmp".into(), std::path::PathBuf::from);
    let name = format!("{}-{count}", dialect.name);
    let project = ScratchProject::make(&temp, &name).map_err(|err| said(&err))?;
    let root = project.root();
    let mut env = project.env(process);
    if let Some(variable) = dialect.trial.dir_variable {
        env.insert(variable.into(), root.clone().into());
    }
    let run = TrialRun::plan(process, dialect, start, &root);
    let place = Some(HookPlace { dir: &root, env: &env });
    let call = HookCall { words: &run.words, place, input: run.input.as_bytes() };
    process.aside.time(&call).map_err(|err| format!("it could not be run: {err}"))?;
    project.lose().map_err(|err| said(&err))?;
    project.restore(process)?;
    Ok(run.proof)
}
