//! Calls that affect beforehand itself, and agents that were started with it switched off.

use super::{Hook, quiet, trouble::write_journal, with_ledger};
use crate::{
    guard::{self, GuardContext},
    journal::LineKind,
    model::{Decision, Effect, TroubleAnswer, Verdict},
    reach, ui,
};

impl Hook<'_, '_> {
    /// Why the call reaches for beforehand itself, if it does. Notes on the way what is at stake.
    pub(super) fn threat(&mut self) -> Option<String> {
        let state = self.loaded.state().ok()?;
        let context = &self.call.context;
        // An edit says all there is to say about its paths.
        let (root, places) = match &self.effect {
            Effect::None | Effect::Touches(_) => (self.cwd.clone(), Vec::new()),
            Effect::Destroys(_) | Effect::Unknown(_) => {
                let around = reach::root_around(&self.cwd, &self.surroundings(&state))?;
                let (root, _) = self.around.insert(around);
                let what = (&self.call.intent, &self.effect);
                let at_risk = reach::at_risk(&self.cwd, context, what, root);
                let named = at_risk.iter().filter(|risk| !risk.is_guess);
                let places = named.map(|risk| risk.path.clone()).collect();
                self.at_risk = at_risk;
                (root.path().to_owned(), places)
            }
        };
        let ours = GuardContext {
            process: self.process,
            agent: self.dialect.name,
            cwd: &self.cwd,
            state: state.dir(),
            settings: &self.loaded.places,
            root: &root,
            real: &self.real,
        };
        guard::threat(&ours, &self.call.intent, &self.effect, &places)
    }

    /// The answer to a call that reaches for beforehand itself: a person decides.
    pub(super) fn defend(&mut self, why: &str, decision: Decision) -> Decision {
        let why = ui::escape_line(why.as_bytes());
        let line = format!("beforehand: this call reaches for beforehand itself: {why}");
        self.write_trouble(&line);
        if self.settings().self_defence != TroubleAnswer::Note {
            self.rules.push("self_defence");
        }
        let verdict = match self.settings().self_defence {
            TroubleAnswer::Note => decision.verdict,
            TroubleAnswer::Ask if decision.verdict == Verdict::Deny => Verdict::Deny,
            TroubleAnswer::Ask => Verdict::Ask,
            TroubleAnswer::Deny => Verdict::Deny,
        };
        let note = match decision.note {
            Some(note) => format!("{line}\n{note}"),
            None => line,
        };
        Decision { verdict, note: Some(note), tell: None }
    }

    /// The agent was started with us switched off: the user hears that, once.
    pub(super) fn say_if_switched_off(&mut self) -> Decision {
        let by_environment = self.loaded.set_by_environment().any(|(key, _)| key == "enabled");
        if self.settings().enabled || !by_environment {
            return Decision::NEUTRAL;
        }
        let line = "beforehand: switched off in the environment (BEFOREHAND); nothing is protected";
        let mut is_news = false;
        let noted = with_ledger(self.process, self.dialect, &self.call.context, |ledger| {
            is_news = ledger.is_news(line);
        });
        let quiet = quiet(self.process, &self.call.context, noted);
        if is_news {
            write_journal(self.process, Some(&self.cwd), LineKind::Trouble, line);
            return Decision::note(line.to_owned());
        }
        quiet
    }
}
