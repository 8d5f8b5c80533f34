//! The answer to a call when the hook is stuck: nothing is held. It is made before the first object
//! of ours is opened, and touches no file system.

use std::{path::PathBuf, time::Instant};

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

/// Answers a tool call in our place if we are stuck. A save may take as long as its deadline, and so may the
/// wait for another one before.
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
    let until: Instant = site.process.started + 2 * site.settings().deadline;
    site.process.watch(until, move || late.answer())
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
        let answer = self.dialect.answer(self.kind, &decision);
        let exit = if answer.exit == 0 { Exit::Ok } else { Exit::Denied };
        LateAnswer { stdout: answer.stdout, stderr: answer.stderr, exit: exit.code() }
    }
}
