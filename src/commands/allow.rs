//! `beforehand allow`: a person lets one refused call run, once.

use serde_json::{Value, json};

use super::{json_time, print_json, print_text, say, say_text};
use crate::{
    agent, config,
    error::{Error, Result},
    ledger::{self, Ledger, RefusedIn},
    process::{Exit, Process},
    ui::{self, Clock},
};

/// Fewer digits than this are no code.
const CODE_DIGITS_MIN: usize = 4;
/// How many refused calls are shown.
const SHOWN_MAX: usize = 10;
/// How long the session's own hook calls are waited for.
const WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// Let one call that beforehand refused run, once.
///
/// Without `--once`, the latest refused calls are listed. It asks at a terminal, and refuses to be
/// run by an agent: where no person can be asked, the refusal stands until a person comes.
#[derive(clap::Args)]
pub(crate) struct AllowArgs {
    /// The refused command line, or the code in the refusal; without --once, list the refused calls
    #[arg(long, value_name = "COMMAND")]
    pub(crate) once: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "once")]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &AllowArgs) -> Result<Exit> {
    let state = config::state(process, None)?;
    let refused = ledger::refused(&state);
    let Some(wanted) = &args.once else { return list(process, args, &refused) };
    let ancestors: Vec<_> = process.ancestors().collect();
    if ledger::has_called(&state, &ancestors) {
        return Err(Error::other(
            "only a person can allow a call; an agent started this one",
            "run it in a terminal that no agent opened",
        ));
    }
    if !process.terminal.stdin {
        return Err(Error::other(
            "only a person at a terminal can allow a call",
            "run it in a terminal, without a pipe",
        ));
    }
    let found = find(&refused, wanted)?;
    say_text(process, &refusal_words(found));
    if !ui::ask(process, "let it run once?") {
        say(process, "nothing was allowed");
        return Ok(Exit::Failed);
    }
    let deadline = process.started + process.elapsed() + WAIT;
    let mut ledger = Ledger::open(&state, &found.agent, &found.session, deadline)?;
    ledger.allow(&found.refused.code);
    ledger.close()?;
    say(process, &format!("allowed once; tell {} to try again", title(found)));
    Ok(Exit::Ok)
}

/// The newest refused call with this command line, or with a code that begins so.
fn find<'a>(refused: &'a [RefusedIn], wanted: &str) -> Result<&'a RefusedIn> {
    let is_code = wanted.len() >= CODE_DIGITS_MIN;
    let is_it = |it: &&RefusedIn| {
        it.refused.call == wanted || is_code && it.refused.code.starts_with(wanted)
    };
    refused.iter().find(is_it).ok_or_else(|| {
        let wanted = ui::escape_line(wanted.as_bytes());
        Error::other(
            format!("beforehand refused no call `{wanted}`"),
            "run `beforehand allow` to see what it refused",
        )
    })
}

fn title(found: &RefusedIn) -> &str {
    agent::by_name(&found.agent).map_or("the agent", |dialect| dialect.title)
}

fn refusal_words(found: &RefusedIn) -> String {
    let call = ui::escape_line(found.refused.call.as_bytes());
    let why = ui::escape_text(&found.refused.why);
    format!("{} was refused this call:\n  {call}\n{why}\n", title(found))
}

fn list(process: &mut Process<'_>, args: &AllowArgs, refused: &[RefusedIn]) -> Result<Exit> {
    if args.json {
        let one = |it: &RefusedIn| {
            json!({
                "code": it.refused.code,
                "agent": it.agent,
                "session": it.session,
                "call": it.refused.call,
                "why": it.refused.why,
                "at": json_time(it.refused.at),
            })
        };
        let refused: Vec<Value> = refused.iter().map(one).collect();
        print_json(process, "allow", refused.into())?;
        return Ok(Exit::Ok);
    }
    let clock = Clock::local(process.now);
    let mut text = String::new();
    for it in refused.iter().take(SHOWN_MAX) {
        let (code, when) = (ui::escape(it.refused.code.as_bytes()), clock.when(it.refused.at));
        let call = ui::escape_line(it.refused.call.as_bytes());
        text.push_str(&format!("{code}  {when}, {}: {call}\n", title(it)));
    }
    if refused.is_empty() {
        text.push_str("beforehand has refused no call\n");
    }
    print_text(process, &text)?;
    Ok(Exit::Ok)
}
