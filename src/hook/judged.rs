//! A call with what it can do to files.

use std::{borrow::Cow, path::Path};

use super::site::EventSite;
use crate::{
    attribution::Begins,
    fs,
    ledger::Ledger,
    model::{CheckpointId, Effect, Finding, Intent, Level, Reach, ToolCall},
    process::Process,
    shell,
    state::RootState,
    transcript,
};

/// A call that is judged.
pub(super) struct JudgedCall<'h> {
    pub(super) call: &'h ToolCall,
    /// Its effect on files.
    pub(super) effect: Effect,
    /// Why a part of the settings is not used.
    pub(super) setting_notes: Vec<String>,
}

impl<'h> JudgedCall<'h> {
    /// Judges a call. A line that looks harmless counts as unknown if an earlier line of the same shell may
    /// have given its words another meaning, or if another program's hook may rewrite it.
    pub(super) fn of(site: &EventSite<'_, '_>, call: &'h ToolCall) -> Self {
        let (scope, refused) = shell_scope(site);
        let mut effect = shell::effect(&call.intent, &scope);
        if let Intent::Run { command, language } = &call.intent
            && matches!(effect, Effect::None | Effect::Touches(_))
            && is_unproved(site)
        {
            let finding = shell::classify(command, *language, &scope);
            effect = Effect::Unknown(Finding { level: Level::Unknown, ..finding });
        }
        let setting_notes = site.loaded.notes.iter().cloned().chain(refused).collect();
        Self { call, effect, setting_notes }
    }

    pub(super) fn what(&self) -> (&Intent, &Effect) {
        (&self.call.intent, &self.effect)
    }

    /// Whether it names the files that it changes, and changes no others.
    pub(super) fn is_edit(&self) -> bool {
        matches!(self.effect, Effect::None | Effect::Touches(_))
    }

    /// Whether later lines of the same shell may mean something else.
    pub(super) fn changes_shell(&self) -> bool {
        match &self.effect {
            Effect::Destroys(finding) | Effect::Unknown(finding) => finding.changes_shell,
            Effect::None | Effect::Touches(_) => false,
        }
    }

    /// The call as it begins in the root at `place`, covered by the checkpoint `of`.
    pub(super) fn begins<'b>(
        &'b self,
        cwd: &'b Path,
        (place, reach): (&'b RootState, &'b Reach),
        ledger: &Ledger,
        of: CheckpointId,
    ) -> Begins<'b> {
        let (call, effect, tells) = (self.call, &self.effect, ledger.tells_ends());
        Begins { place, call, effect, reach, of, cwd, is_held: false, tells, compared: false }
    }
}

/// Whether the judgement of a harmless line proves nothing in this session: an earlier line may have changed
/// the meaning of its words, or another program's hook may rewrite it.
fn is_unproved(site: &EventSite<'_, '_>) -> bool {
    let keeps_shell = site.dialect.keeps_shell;
    // Without a state directory there is no ledger that could have recorded earlier lines.
    let Ok(state) = site.loaded.state() else { return keeps_shell || site.has_other_hooks() };
    let (agent, session) = site.session();
    let doubts = Ledger::doubts(&state, agent, session);
    keeps_shell && doubts.shell_changed
        || doubts.may_be_rewritten.unwrap_or_else(|| site.has_other_hooks())
}

/// The judgement of a command line.
pub(super) fn finding(site: &EventSite<'_, '_>, intent: &Intent) -> Finding {
    let Intent::Run { command, language } = intent else { return Finding::default() };
    shell::classify(command, *language, &shell_scope(site).0)
}

/// The context for judging, and a note if a pattern in the settings is invalid. The other patterns stay
/// in use.
fn shell_scope(site: &EventSite<'_, '_>) -> (shell::ShellContext, Option<String>) {
    let home = site.process.shell_home().and_then(|home| home.to_str()).map(str::to_owned);
    let scripts = shell::ScriptReader { dir: site.cwd.clone(), read: script_text };
    let wanted = &site.settings().shell;
    let (rules, refused) = match shell::Patterns::parse(&wanted.always, &wanted.never) {
        Ok(rules) => (rules, None),
        Err(why) => (
            shell::Patterns::parse(&wanted.always, &[]).unwrap_or_default(),
            Some(format!("settings: `shell`: {why}; `shell.never` is left out")),
        ),
    };
    (shell::ShellContext { home, rules, scripts: Some(scripts), script: None }, refused)
}

/// A larger script is not read: its judging would take long.
const SCRIPT_MAX_BYTES: u64 = 64 << 10;

fn script_text(path: &Path) -> Option<String> {
    String::from_utf8(fs::read_small(path, SCRIPT_MAX_BYTES).ok()??).ok()
}

/// The call with its true places: a command with the directory that only the transcript names, an edit
/// also with the paths below the home that `~` may stand for. Some agents expand `~`, for others it is a
/// name.
pub(super) fn placed<'c>(process: &Process<'_>, call: &'c ToolCall) -> Cow<'c, ToolCall> {
    let paths = match &call.intent {
        Intent::Run { .. } => return with_directory(call),
        Intent::Write(paths) | Intent::Edit(paths) => paths,
        Intent::Read | Intent::Unknown(_) => return Cow::Borrowed(call),
    };
    let below_home = paths.iter().filter_map(|path| path.strip_prefix("~").ok());
    let home = process.home().filter(|_| paths.iter().any(|path| path.starts_with("~")));
    let Some(home) = home else { return Cow::Borrowed(call) };
    let mut all = paths.clone();
    all.extend(below_home.map(|path| home.join(path)));
    let intent = match call.intent {
        Intent::Write(_) => Intent::Write(all),
        Intent::Read | Intent::Edit(_) | Intent::Run { .. } | Intent::Unknown(_) => {
            Intent::Edit(all)
        }
    };
    Cow::Owned(ToolCall { intent, ..call.clone() })
}

fn with_directory(call: &ToolCall) -> Cow<'_, ToolCall> {
    match transcript::workdir(call) {
        Some(dir) => {
            let intent = call.intent.clone().run_in(&dir);
            Cow::Owned(ToolCall { intent, ..call.clone() })
        }
        None => Cow::Borrowed(call),
    }
}
