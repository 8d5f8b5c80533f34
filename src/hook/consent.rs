//! Calls that the user must decide on. The hook asks where a user sees the question, refuses where no
//! user does, and lets a call pass that the user has allowed once.

use std::path::Path;

use super::{answer::Answer, site::EventSite};
use crate::{
    agent::{self, Dialect, Markers},
    install,
    ledger::Refused,
    model::{Decision, Intent, ToolCall, Verdict},
    state::hash_name,
    ui,
};

/// Few enough digits of a code to type, and enough to tell the calls of a session apart.
const CODE_DIGITS: usize = 8;

/// Why a question became a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal<'a> {
    /// The settings want none of these calls.
    BySettings,
    /// The hooks of this agent cannot ask.
    NoQuestion(&'a str),
    /// The agent answers for its user, or no person is there.
    Unattended,
}

/// The last word on a call: a question stays one only where a person sees it.
pub(super) fn settle(
    site: &EventSite<'_, '_>,
    call: &ToolCall,
    answer: Answer,
    markers: &Markers,
) -> Decision {
    let Answer { decision, rules, .. } = answer;
    let refusal = match decision.verdict {
        Verdict::Abstain => return decision,
        Verdict::Deny => Some(Refusal::BySettings),
        Verdict::Ask => unasked(site, markers),
    };
    let code = code(call, &site.cwd);
    let note = decision.note.clone().unwrap_or_default();
    let is_open = refusal.is_none() && Markers::may_ask_ignored(site.dialect.agent);
    let logged_calls =
        if refusal.is_some() || is_open { site.process.logged_calls() } else { Vec::new() };
    let mut is_allowed = false;
    let noted = site.with_ledger(|ledger| {
        is_allowed = ledger.use_allowance(&code, call.id.as_deref());
        if !is_allowed && (refusal.is_some() || is_open) {
            ledger.called_by(&logged_calls);
            let (code, why, at) = (code.clone(), note.clone(), site.process.now);
            ledger.refuse(Refused { code, call: named(call), why, at });
        }
    });
    let is_noted = noted.is_ok();
    site.quiet(noted);
    if is_allowed {
        return Decision::note(format!("{note}\nallowed once, in a terminal"));
    }
    let Some(refusal) = refusal else {
        let once = is_noted && is_open;
        let asked = |note| if once { format!("{note}\n{}", unseen(&code)) } else { note };
        return Decision { note: decision.note.map(asked), ..decision };
    };
    let advice = advice(refusal, is_noted.then_some(&*code), &rules);
    Decision { verdict: Verdict::Deny, note: Some(format!("{note}\n{advice}")), tell: None }
}

/// Why no person would see a question, if so. The agent's settings are read last: only a call that
/// would be asked about comes here.
fn unasked(site: &EventSite<'_, '_>, markers: &Markers) -> Option<Refusal<'static>> {
    unasked_in(site.dialect, site.context.mode.as_deref(), markers)
        .or_else(|| agent_answers(site).then_some(Refusal::Unattended))
}

/// The reason as far as it is known without the agent's settings.
fn unasked_in(
    dialect: &'static Dialect,
    mode: Option<&str>,
    markers: &Markers,
) -> Option<Refusal<'static>> {
    if !dialect.asks {
        return Some(Refusal::NoQuestion(dialect.title));
    }
    let is_unattended =
        markers.unattended(dialect.agent) || mode.is_some_and(|mode| !agent::asks_in(mode));
    is_unattended.then_some(Refusal::Unattended)
}

/// The last word on a call as [`settle`] has it, without any file: a permission that the user gave is not found,
/// and none is offered.
pub(super) fn settle_late(
    dialect: &'static Dialect,
    mode: Option<&str>,
    markers: &Markers,
    answer: Answer,
) -> Decision {
    let Answer { decision, rules, .. } = answer;
    let refusal = match decision.verdict {
        Verdict::Abstain => return decision,
        Verdict::Deny => Some(Refusal::BySettings),
        Verdict::Ask => unasked_in(dialect, mode, markers),
    };
    let Some(refusal) = refusal else { return decision };
    let note = decision.note.unwrap_or_default();
    let advice = advice(refusal, None, &rules);
    Decision { verdict: Verdict::Deny, note: Some(format!("{note}\n{advice}")), tell: None }
}

/// Whether the agent's own settings say that it answers for its user.
fn agent_answers(site: &EventSite<'_, '_>) -> bool {
    let row = install::ROWS.iter().find(|row| row.agent == site.dialect.name);
    row.is_some_and(|row| install::answers_for_user(row, site.process, &site.cwd))
}

/// The call in words: a command line whole, for anything else the tool and its paths.
fn named(call: &ToolCall) -> String {
    match &call.intent {
        Intent::Run { command, .. } => command.clone(),
        Intent::Write(paths) | Intent::Edit(paths) => {
            let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
            let words: Vec<String> = std::iter::once(call.tool.clone()).chain(paths).collect();
            words.join(" ")
        }
        Intent::Unknown(tool) => tool.summary(),
        Intent::Read => call.tool.clone(),
    }
}

/// The same command in another directory destroys other files, and is another call.
fn code(call: &ToolCall, cwd: &Path) -> String {
    let (cwd, named) = (cwd.as_os_str().as_encoded_bytes(), named(call));
    hash_name(&[cwd, call.tool.as_bytes(), named.as_bytes()])[..CODE_DIGITS].to_owned()
}

/// What goes with a question that the agent turns into a refusal where no person is asked.
fn unseen(code: &str) -> String {
    format!(
        "(where no user can be asked, the user can still allow this one call in a terminal of their \
         own, with `beforehand allow --once {}`)",
        ui::escape(code.as_bytes())
    )
}

/// What the model is to do now, and how the person allows the call: once by its `code`, if it could
/// be noted, and for good by the settings `rules`.
fn advice(refusal: Refusal<'_>, code: Option<&str>, rules: &[&str]) -> String {
    let quoted = |value: &str| {
        let rules: Vec<String> =
            rules.iter().map(|rule| format!("`{rule} = \"{value}\"`")).collect();
        rules.join(" and ")
    };
    let why = match refusal {
        Refusal::BySettings => "refused by beforehand's settings".to_owned(),
        Refusal::NoQuestion(title) => format!("refused, because {title} cannot ask you"),
        Refusal::Unattended => "refused, because this session has no user to ask".to_owned(),
    };
    let once = code.map_or_else(String::new, |code| {
        let code = ui::escape(code.as_bytes());
        format!(
            "this one call in a terminal of their own, with `beforehand allow --once {code}`, or "
        )
    });
    format!(
        "{why}. Do not try another way: leave it, or tell the user. The user can allow {once}all \
         calls like it with the setting {}",
        quoted("note")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_and_how_it_is_allowed() {
        let told = advice(Refusal::Unattended, Some("12ab34cd"), &["cannot_hold"]);
        assert_eq!(
            told,
            "refused, because this session has no user to ask. Do not try another way: leave it, \
             or tell the user. The user can allow this one call in a terminal of their own, with \
             `beforehand allow --once 12ab34cd`, or all calls like it with the setting \
             `cannot_hold = \"note\"`"
        );
        let told = advice(Refusal::NoQuestion("Codex"), None, &["cannot_hold", "self_defence"]);
        assert!(told.starts_with("refused, because Codex cannot ask you. "), "{told}");
        assert!(!told.contains("--once"), "{told}");
        assert!(told.ends_with("`cannot_hold = \"note\"` and `self_defence = \"note\"`"), "{told}");
    }
}
