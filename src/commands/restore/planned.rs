//! A prepared restore with its request: the input of `show`, `unchanged` and `report`.

use super::head;
use crate::{
    commands::rows::{agent_title, on_one_line},
    model::{Agent, Entry, Kind, RelPath},
    plan::{Author, PlanStep, SessionTag},
    restore::{OtherSession, Prepared, Restore, is_ref},
    ui,
};

/// What is said of content that is in the store no more.
pub(super) const MISSING: &str = "its content is missing from the store";

/// A plan, and the restore it was made for.
#[derive(Clone, Copy)]
pub(super) struct PlannedRestore<'a> {
    pub(super) restore: Restore<'a>,
    pub(super) prepared: &'a Prepared,
    /// How wide its rows may be, in cells, if that is known.
    pub(super) columns: Option<usize>,
}

impl<'a> PlannedRestore<'a> {
    /// With rows as wide as they are.
    pub(super) fn of(restore: Restore<'a>, prepared: &'a Prepared) -> Self {
        Self { restore, prepared, columns: None }
    }
}

impl PlannedRestore<'_> {
    /// What the user is told of HEAD. Commits that are gone are among what is left.
    pub(super) fn head(self) -> Option<String> {
        head::words(&self.prepared.head, self.restore.checkpoint)
            .filter(|_| self.prepared.repositories.is_empty())
    }

    /// What the user is told of HEAD in repositories nested in the root.
    pub(super) fn nested_heads(&self) -> impl Iterator<Item = String> {
        let Restore { project, checkpoint, .. } = self.restore;
        let heads = self.prepared.nested_heads.iter();
        heads.map(move |nested| head::nested_words(project, nested, checkpoint))
    }

    /// Whether a path of the plan, in the root or outside it, is a ref of a bare repository.
    pub(super) fn is_ref(self, path: &RelPath) -> bool {
        is_ref(&self.restore.project.root.join(path)) || is_ref(&path.at_top())
    }

    /// What is said of the work of others that a path goes back to, if it does.
    pub(super) fn others_words(self, path: &RelPath) -> Option<String> {
        let words = match self.prepared.others_versions.get(path)?.author {
            Author::Unclear => format!("made since, perhaps not by {}", self.doer()),
            author => format!("made since{}", self.not_by(author)),
        };
        Some(words)
    }

    /// Another session, by what tells it from that of the checkpoint.
    fn session_words(self, session: SessionTag) -> String {
        let own = self.restore.checkpoint.cause.by.as_ref().map(|by| by.agent);
        let Some(OtherSession { by, summary }) = self.prepared.sessions.get(&session) else {
            return "another session".to_owned();
        };
        let name =
            by.prompt.as_deref().map(|name| format!("--name {}", ui::quote(name.as_bytes())));
        match (by.agent, name.or(summary.clone())) {
            (Agent::Program, Some(words)) => {
                format!("`beforehand run {}`", ui::escape(on_one_line(&words).as_bytes()))
            }
            (Agent::Program, None) => "`beforehand run`".to_owned(),
            (agent, _) if Some(agent) == own => "another session".to_owned(),
            (agent, _) => agent_title(agent).to_owned(),
        }
    }

    /// Who did what the restore takes back.
    pub(super) fn doer(self) -> &'static str {
        let by = self.restore.checkpoint.cause.by.as_ref();
        let is_program = by.is_some_and(|by| by.agent == Agent::Program);
        if is_program { "the program" } else { "the agent" }
    }

    /// The command that takes it back.
    pub(super) fn way_back(self) -> &'static str {
        if self.restore.request.verb == "undo" { "redo" } else { "undo" }
    }

    /// Whether one turn is taken back, and what came after it stays.
    pub(super) fn is_revert(self) -> bool {
        self.restore.request.turn().is_some()
    }

    /// What is said where a reverted turn, or a fork that is brought back, leaves nothing to do.
    pub(super) fn nothing_left_words(self) -> Option<String> {
        if self.brings().is_some() {
            return Some(format!("{} has changed nothing that is not here", self.fork_name()));
        }
        let number = self.restore.turn_number();
        self.is_revert()
            .then(|| format!("nothing that turn {number} changed in files is left to take back"))
    }

    /// Which turn builds on a reverted one at a path, and what may be done about it.
    pub(super) fn built_on_words(self, step: &PlanStep) -> String {
        let is_file = |entry: Option<Entry>| entry.is_some_and(|it| it.kind == Kind::File);
        let is_merged = is_file(step.then) && is_file(step.now) && !self.restore.request.markers;
        let advice = if is_merged { " (--merge marks what conflicts)" } else { "" };
        match self.later_turn(step) {
            Some(turn) => format!("{turn} builds on this{advice}"),
            None => format!("changed since, and conflicts with it{advice}"),
        }
    }

    /// The same of what the turn left by another name.
    pub(super) fn renamed_words(self, step: &PlanStep) -> String {
        match self.later_turn(step) {
            Some(turn) => format!("the turn left it, and {turn} renamed it since"),
            None => "it seems to be what the turn left, renamed since".to_owned(),
        }
    }

    /// The same where what the turn left is not held.
    pub(super) fn unheld_words(self, step: &PlanStep) -> String {
        let by = self.later_turn(step).map(|turn| format!(" by {turn}")).unwrap_or_default();
        let number = self.restore.turn_number();
        format!("changed since{by}, and what turn {number} left there is not held")
    }

    fn later_turn(self, step: &PlanStep) -> Option<String> {
        let by = self.prepared.built_on.get(&step.path)?;
        Some(by.turn.map_or_else(|| "a later turn".to_owned(), |turn| format!("turn {turn}")))
    }

    /// What is said of a merge.
    pub(super) fn merged_words(self) -> String {
        if self.brings().is_some() {
            return "with what was changed here".to_owned();
        }
        if self.is_revert() {
            return "with what was changed since".to_owned();
        }
        format!("with what was changed after {}", self.doer())
    }

    /// What changed since that another author made: what may be advised about it depends on the
    /// command and its options.
    pub(super) fn edited_words(self, author: Author) -> String {
        let request = self.restore.request;
        let advice = match (self.takes_merge(), request.options.merge, request.markers) {
            (false, ..) => " (use --force)",
            (true, false, _) => " (use --merge or --force)",
            (true, true, false) if self.takes_options() => {
                ", and conflicts with it (use --markers or --force)"
            }
            (true, true, false) => ", and conflicts with it (use --force)",
            (true, true, true) => ", and cannot be merged (use --force)",
        };
        format!("changed since{}{advice}", self.not_by(author))
    }

    /// What is said of something new that stays.
    pub(super) fn made_words(self, author: Author) -> String {
        match (self.restore.request.undone(), author) {
            _ if self.brings().is_some() => "not in the fork".to_owned(),
            (_, Author::Unknown | Author::Unclear) => "not known who made it".to_owned(),
            (_, Author::Restore) => "put there by a restore".to_owned(),
            (Some(_), _) => format!("made since{}", self.not_by(author)),
            (None, Author::Other) if self.is_revert() => "not made in this turn".to_owned(),
            (None, Author::Agent) => format!("made by {}", self.doer()),
            (None, Author::Session(session)) => format!("made by {}", self.session_words(session)),
            (None, Author::Other) => format!("not made by {}", self.doer()),
        }
    }

    /// What to say after `changed since` of another author. Of what was done after a restore that is
    /// taken back no more is known.
    pub(super) fn not_by(self, author: Author) -> String {
        let Restore { checkpoint, request, .. } = self.restore;
        match (request.undone(), author) {
            (Some(_), _) => {
                let verb = checkpoint.cause.tool.as_deref().unwrap_or("restore");
                format!(" the {}", ui::escape(verb.as_bytes()))
            }
            (None, Author::Session(session)) => format!(", by {}", self.session_words(session)),
            (None, _) => format!(", not by {}", self.doer()),
        }
    }

    /// What a row says of how something new goes after all: with an option, if the command takes it and
    /// the user has not said to keep what is new.
    pub(super) fn exact_words(self) -> &'static str {
        let is_advised = self.takes_options() && !self.restore.request.options.keep_new;
        if is_advised { " (--exact removes it)" } else { "" }
    }

    /// Whether the command takes `--merge`: an undo of a turn does, but not that of a restore, nor a redo.
    fn takes_merge(self) -> bool {
        let is_turn = self.restore.request.undone().is_none();
        self.takes_options() || self.restore.request.verb == "undo" && is_turn
    }

    /// Whether the command takes `--exact` and `--markers`. A step back or forth does not.
    pub(super) fn takes_options(self) -> bool {
        self.restore.request.verb == "restore"
    }
}
