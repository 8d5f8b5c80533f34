//! The answer when the hook is stuck: nothing is held, or what happened is not logged. It is made before the first
//! object of ours is opened, and touches no file system.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    answer::{Answer, AnswerRules},
    consent,
    judged::JudgedCall,
    notes::Notes,
    site::EventSite,
    targets::CallTargets,
};
use crate::{
    agent::{Dialect, EventKind, Markers},
    model::{Decision, Effect, Verdict},
    process::{Exit, LateAnswer, Watch},
    snapshot::Unheld,
};

/// The note for the user.
const TROUBLE: &str = "warning: could not save a checkpoint (beforehand was stuck until its deadline; \
                       `beforehand status` tells more); this call is NOT protected";

/// The note for the user about an event that no answer stops.
const NOT_LOGGED: &str = "beforehand: warning: beforehand was stuck until its deadline (`beforehand status` tells \
                          more); `undo` may not know whose changes there are";

/// How long before an agent gives up on a hook it is answered.
const MARGIN: Duration = Duration::from_secs(1);

/// A call whose answer may come late.
struct LateCall {
    dialect: &'static Dialect,
    kind: EventKind,
    rules: AnswerRules,
    markers: Markers,
    mode: Option<String>,
    effect: Effect,
    cwd: PathBuf,
    /// The files that the call names and can destroy, whether they exist or not.
    named: Vec<PathBuf>,
}

/// The moment of a late answer: before the agent gives up. A save may take as long as its deadline, and so may the
/// wait for another one before.
fn until(site: &EventSite<'_, '_>, kind: EventKind) -> Instant {
    let ours = 2 * site.settings().deadline;
    let theirs = site.dialect.waits(kind).map(|waits| waits.saturating_sub(MARGIN));
    site.process.started + theirs.map_or(ours, |theirs| ours.min(theirs))
}

/// Answers an event that no answer stops with `act`; in our place, if we are stuck in it.
pub(super) fn watched<'h, 'p>(
    site: &EventSite<'h, 'p>,
    kind: EventKind,
    act: impl FnOnce(&EventSite<'h, 'p>) -> Decision,
) -> Decision {
    let dialect = site.dialect;
    let mut watch = site.process.watch(until(site, kind), move || {
        late_answer(dialect, kind, &Decision::note(NOT_LOGGED.to_owned()))
    });
    let decision = act(site);
    watch.claim();
    decision
}

fn late_answer(dialect: &Dialect, kind: EventKind, decision: &Decision) -> LateAnswer {
    let answer = dialect.answer(kind, decision);
    let exit = if answer.exit == 0 { Exit::Ok } else { Exit::Denied };
    LateAnswer { stdout: answer.stdout, stderr: answer.stderr, exit: exit.code() }
}

/// Answers a tool call in our place if we are stuck.
pub(super) fn watch(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    targets: &CallTargets,
    markers: &Markers,
    kind: EventKind,
) -> Watch {
    let edited = judged.call.intent.edited().unwrap_or_default();
    let named = targets.at_risk().iter().filter(|risk| !risk.is_guess);
    let named = named.map(|risk| risk.path.clone());
    let late = LateCall {
        dialect: site.dialect,
        kind,
        rules: AnswerRules::of(site.settings()),
        markers: markers.clone(),
        mode: site.context.mode.clone(),
        effect: judged.effect.clone(),
        cwd: site.cwd.clone(),
        named: edited.iter().map(|path| site.cwd.join(path)).chain(named).collect(),
    };
    site.process.watch(until(site, kind), move || late.answer())
}

impl LateCall {
    fn answer(self) -> LateAnswer {
        let unheld = self.named.into_iter().map(|path| Unheld {
            path,
            size: 0,
            why: "nothing could be saved",
            is_guess: false,
        });
        let notes = Notes { unheld: unheld.collect(), ..Notes::default() };
        let trouble = Some(TROUBLE.to_owned());
        let answer = Answer::by(self.rules, trouble, notes, &self.effect, &self.cwd);
        let decision = match self.kind {
            EventKind::ToolCall => {
                consent::settle_late(self.dialect, self.mode.as_deref(), &self.markers, answer)
            }
            // No answer stops it.
            _ => Decision { verdict: Verdict::Abstain, ..answer.decision },
        };
        late_answer(self.dialect, self.kind, &decision)
    }
}
