//! What the hook answers: whether the call may go on, what the user is told, and what the journal
//! keeps of it.

use std::path::{Path, PathBuf};

use super::{
    judged::JudgedCall,
    notes::{Notes, told},
    protection::Protection,
    site::EventSite,
    targets::CallTargets,
};
use crate::{
    guard::{self, GuardContext},
    journal::LineKind,
    model::{Decision, Effect, Notify, Settings, Spares, TroubleAnswer, Verdict},
    reach::AtRisk,
    ui,
};

/// An answer, before it is known whether a person sees a question.
pub(super) struct Answer {
    pub(super) decision: Decision,
    /// The settings by which the call is asked about or refused.
    pub(super) rules: Vec<&'static str>,
    /// What the journal keeps of it.
    journal: Vec<String>,
    /// Whether nothing could be held for the call.
    is_unheld: bool,
}

/// The settings that an answer depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerRules {
    on_trouble: TroubleAnswer,
    cannot_hold: TroubleAnswer,
    notify: Notify,
}

impl AnswerRules {
    /// These settings of all.
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings { on_trouble, cannot_hold, notify, .. } = *settings;
        Self { on_trouble, cannot_hold, notify }
    }
}

impl Answer {
    pub(super) const NEUTRAL: Self = Self {
        decision: Decision::NEUTRAL,
        rules: Vec::new(),
        journal: Vec::new(),
        is_unheld: false,
    };

    /// The answer to a call, by whether what it can lose is held.
    pub(super) fn of(protection: Protection, effect: &Effect, site: &EventSite<'_, '_>) -> Self {
        let trouble = protection.trouble();
        let rules = AnswerRules::of(site.settings());
        Self::by(rules, trouble, protection.into_notes(), effect, &site.cwd)
    }

    /// The answer to a call in the directory `cwd`. `trouble` is why nothing is held, if that is so.
    pub(super) fn by(
        AnswerRules { on_trouble, cannot_hold, notify }: AnswerRules,
        trouble: Option<String>,
        notes: Notes,
        effect: &Effect,
        cwd: &Path,
    ) -> Self {
        let is_unheld = trouble.is_some();
        let loses_named = notes.unheld.iter().any(|unheld| !unheld.is_guess);
        let mut rules = Vec::new();
        let mut wanted = TroubleAnswer::Note;
        if trouble.is_some() && on_trouble != TroubleAnswer::Note {
            rules.push("on_trouble");
            wanted = on_trouble;
        }
        if loses_named && cannot_hold != TroubleAnswer::Note {
            rules.push("cannot_hold");
            wanted = stricter(wanted, cannot_hold);
        }
        let is_told = trouble.is_some() || wanted != TroubleAnswer::Note;
        // The losses that a question is about are named every time.
        let losses = if is_told { told(effect, cwd, &notes.unheld) } else { Vec::new() };
        let missing = losses.into_iter().filter(|line| !notes.lines.contains(line));
        let said = notes.lines.iter().chain(&notes.deeds).cloned();
        let lines: Vec<String> = trouble.iter().cloned().chain(missing).chain(said).collect();
        let kept: Vec<String> = trouble.into_iter().chain(notes.lines).collect();
        let journal = (!kept.is_empty()).then(|| kept.join("; ")).into_iter().collect();
        if notify == Notify::Never && !is_told {
            return Self { rules, journal, is_unheld, ..Self::NEUTRAL };
        }
        let note = (!lines.is_empty()).then(|| format!("beforehand: {}", lines.join("\n")));
        let decision = Decision { verdict: verdict(wanted), note, tell: None };
        Self { decision, rules, journal, is_unheld }
    }

    /// The answer to a call that reaches for beforehand itself: a person decides.
    pub(super) fn defended(self, why: &str, self_defence: TroubleAnswer) -> Self {
        let Self { decision, mut rules, mut journal, is_unheld } = self;
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
        let decision = Decision { verdict, note: Some(note), tell: None };
        Self { decision, rules, journal, is_unheld }
    }

    /// Writes down what the journal keeps of it.
    pub(super) fn journalled(self, site: &EventSite<'_, '_>) -> Self {
        let kind = if self.is_unheld { LineKind::Unheld } else { LineKind::Trouble };
        self.journal.iter().for_each(|line| site.write_journal(kind, line));
        self
    }
}

/// Why a command reaches for beforehand itself, if it does.
pub(super) fn command_threat(
    site: &EventSite<'_, '_>,
    judged: &JudgedCall<'_>,
    targets: &CallTargets,
) -> Option<String> {
    let root = targets.root()?;
    // What is copied over a directory, or unpacked in it, leaves all that it does not have itself.
    let is_part = |risk: &&AtRisk| {
        matches!(risk.spares, Spares::NotIn(_) | Spares::NotPacked(_)) && risk.path.is_dir()
    };
    let named = targets.at_risk().iter().filter(|risk| !risk.is_guess && !is_part(risk));
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
