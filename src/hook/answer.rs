//! What the hook answers: whether the call may go on, what the user is told, and what the journal
//! keeps of it.

use std::path::{Path, PathBuf};

use super::{
    judged::JudgedCall,
    notes::{Notes, told},
    site::{EventSite, said},
    targets::{CommandTargets, Unprotected},
};
use crate::{
    guard::{self, GuardContext},
    journal::LineKind,
    model::{Decision, Effect, Notify, Settings, Spares, TroubleAnswer, Verdict},
    reach::AtRisk,
    snapshot, ui,
};

/// An answer, before it is known whether a person sees a question.
pub(super) struct Answer {
    pub(super) decision: Decision,
    /// The settings by which the call is asked about or refused.
    pub(super) rules: Vec<&'static str>,
    /// What the journal keeps of it.
    journal: Vec<String>,
}

impl Answer {
    pub(super) const NEUTRAL: Self =
        Self { decision: Decision::NEUTRAL, rules: Vec::new(), journal: Vec::new() };

    /// The answer to a call that was seen to.
    pub(super) fn of(notes: &Notes, effect: &Effect, site: &EventSite<'_, '_>) -> Self {
        let Settings { cannot_hold, notify, .. } = *site.settings();
        let is_named = notes.unheld.iter().any(|unheld| !unheld.is_guess);
        let verdict = if is_named { verdict(cannot_hold) } else { Verdict::Abstain };
        let is_told = verdict != Verdict::Abstain;
        let rules = if is_told { vec!["cannot_hold"] } else { Vec::new() };
        // What a question is about is said every time.
        let told = if is_told { told(effect, &site.cwd, &notes.unheld) } else { Vec::new() };
        let missing = told.into_iter().filter(|line| !notes.lines.contains(line));
        let lines: Vec<String> =
            missing.chain(notes.lines.iter().chain(&notes.deeds).cloned()).collect();
        let has_trouble = !notes.lines.is_empty();
        let journal = has_trouble.then(|| notes.lines.join("; ")).into_iter().collect();
        if notify == Notify::Never && !is_told {
            return Self { decision: Decision::NEUTRAL, rules, journal };
        }
        let note = (!lines.is_empty()).then(|| format!("beforehand: {}", lines.join("\n")));
        Self { decision: Decision { verdict, note, tell: None }, rules, journal }
    }

    /// The answer to a call that nothing is held for.
    pub(super) fn of_trouble(
        Unprotected { why, at_risk }: &Unprotected,
        effect: &Effect,
        site: &EventSite<'_, '_>,
    ) -> Self {
        let text = format!(
            "warning: could not save a checkpoint ({}); this call is NOT protected",
            said(why)
        );
        let text = ui::escape_line(text.as_bytes()).into_owned();
        let lost = snapshot::unheld_at_risk(at_risk);
        let Settings { on_trouble, cannot_hold, .. } = *site.settings();
        let cannot_hold = if lost.is_empty() { TroubleAnswer::Note } else { cannot_hold };
        let rules = [("on_trouble", on_trouble), ("cannot_hold", cannot_hold)].into_iter();
        let rules = rules.filter(|(_, wanted)| *wanted != TroubleAnswer::Note);
        let mut note = format!("beforehand: {text}");
        for line in told(effect, &site.cwd, &lost) {
            note.push('\n');
            note.push_str(&line);
        }
        let verdict = verdict(stricter(on_trouble, cannot_hold));
        Self {
            decision: Decision { verdict, ..Decision::note(note) },
            rules: rules.map(|(rule, _)| rule).collect(),
            journal: vec![text],
        }
    }

    /// The answer to a call that reaches for beforehand itself: a person decides.
    pub(super) fn defended(self, why: &str, self_defence: TroubleAnswer) -> Self {
        let Self { decision, mut rules, mut journal } = self;
        let why = ui::escape_line(why.as_bytes());
        let line = format!("beforehand: this call reaches for beforehand itself: {why}");
        journal.push(line.clone());
        if self_defence != TroubleAnswer::Note {
            rules.push("self_defence");
        }
        let verdict = match self_defence {
            TroubleAnswer::Note => decision.verdict,
            TroubleAnswer::Ask if decision.verdict == Verdict::Deny => Verdict::Deny,
            TroubleAnswer::Ask => Verdict::Ask,
            TroubleAnswer::Deny => Verdict::Deny,
        };
        let note = match decision.note {
            Some(note) => format!("{line}\n{note}"),
            None => line,
        };
        Self { decision: Decision { verdict, note: Some(note), tell: None }, rules, journal }
    }

    /// Writes down what the journal keeps of it.
    pub(super) fn journalled(self, site: &EventSite<'_, '_>) -> Self {
        self.journal.iter().for_each(|line| site.write_journal(LineKind::Trouble, line));
        self
    }
}

/// Why a command reaches for beforehand itself, if it does.
pub(super) fn command_threat(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    targets: &CommandTargets,
) -> Option<String> {
    let (root, _) = targets.around.as_ref()?;
    // What is copied over a directory, or unpacked in it, leaves all that it does not have itself.
    let is_part = |risk: &&AtRisk| {
        matches!(risk.spares, Spares::NotIn(_) | Spares::NotPacked(_)) && risk.path.is_dir()
    };
    let named = targets.at_risk.iter().filter(|risk| !risk.is_guess && !is_part(risk));
    let places: Vec<PathBuf> = named.map(|risk| risk.path.clone()).collect();
    threat(site, judged, root.path(), &places)
}

/// Why an edit reaches for beforehand itself, if it does. It says all there is to say about its paths.
pub(super) fn edit_threat(site: &EventSite<'_, '_>, judged: &JudgedCall<'_>) -> Option<String> {
    threat(site, judged, &site.cwd, &[])
}

fn threat(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    root: &Path,
    places: &[PathBuf],
) -> Option<String> {
    let state = site.loaded.state().ok()?;
    let ours = GuardContext {
        process: site.process,
        agent: site.dialect.name,
        cwd: &site.cwd,
        state: state.dir(),
        settings: &site.loaded.places,
        root,
        real: &site.real,
    };
    guard::threat(&ours, &judged.call.intent, &judged.effect, places)
}

/// The answer where beforehand is switched off. If it is by the environment that the agent was started
/// with, the user hears that, once.
pub(super) fn switched_off(site: &EventSite<'_, '_>) -> Decision {
    if !site.loaded.set_by_environment().any(|(key, _)| key == "enabled") {
        return Decision::NEUTRAL;
    }
    let line = "beforehand: switched off in the environment (BEFOREHAND); nothing is protected";
    let mut is_news = false;
    let noted = site.with_ledger(|ledger| is_news = ledger.is_news(line));
    let quiet = site.quiet(noted);
    if is_news {
        site.write_journal(LineKind::Trouble, line);
        return Decision::note(line.to_owned());
    }
    quiet
}

fn stricter(one: TroubleAnswer, other: TroubleAnswer) -> TroubleAnswer {
    match (one, other) {
        (TroubleAnswer::Deny, _) | (_, TroubleAnswer::Deny) => TroubleAnswer::Deny,
        (TroubleAnswer::Ask, _) | (_, TroubleAnswer::Ask) => TroubleAnswer::Ask,
        (TroubleAnswer::Note, TroubleAnswer::Note) => TroubleAnswer::Note,
    }
}

/// What the settings want.
fn verdict(wanted: TroubleAnswer) -> Verdict {
    match wanted {
        TroubleAnswer::Note => Verdict::Abstain,
        TroubleAnswer::Ask => Verdict::Ask,
        TroubleAnswer::Deny => Verdict::Deny,
    }
}
