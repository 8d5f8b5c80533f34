//! The state of the picker, and the effect of each key. Pure: a state and a key yield the next
//! state and a request.

mod files;
mod steps;

use std::{collections::BTreeMap, ops::Range};

use super::{keys::KeyPress, sheet::Sheet};
use crate::ui::{LineCounts, count, escape, number};

pub(super) use files::FilesOffer;
pub use files::{FileMark, OfferedFile, PartId, PickerGoal};
pub use steps::PickerPlace;

/// One turn in the list, or a step of one. The model makes texts printable when it receives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickerTurn {
    /// As in `beforehand list`: 1 is the newest.
    pub number: usize,
    /// As many digits of its id as are needed.
    pub id: String,
    /// When it was, in words.
    pub when: String,
    /// The agent of the turn, or the owner of the checkpoint.
    pub who: String,
    /// The user's words that began it.
    pub prompt: Option<String>,
    /// What the checkpoint was taken before, in words.
    pub trigger: String,
    /// A note, if the checkpoint is incomplete.
    pub badges: Vec<String>,
    /// Whether its agent's conversation can be restored too.
    pub with_conversation: bool,
    /// Whether a turn began with it, which can be taken back alone.
    pub is_turn: bool,
    /// Which step of the turn it is, from 1; `None` for the turn itself.
    pub step: Option<usize>,
}

/// What can be done with the chosen turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Restore the files.
    Files,
    /// Restore the files and fork the conversation.
    Conversation,
    /// Fork the conversation and leave the files as they are.
    ConversationOnly,
    /// Choose among the files that would be restored, and among their hunks.
    Parts,
    /// Take back what the turn did and keep what came after it.
    Revert,
    /// Show the difference first.
    Diff,
    /// Do nothing.
    Cancel,
}

/// What a key leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickerEffect {
    /// Nothing; what is shown may have changed.
    Nothing,
    /// Something is to be found out.
    Wish(DetailRequest),
    /// Execute it: the user has seen the plan and confirmed it.
    Do(usize, Choice),
    /// The same of what was chosen among files.
    DoPart(PartId),
    /// Suspend the process until the shell continues it.
    Suspend,
    /// Redraw everything.
    Redraw,
    /// Leave without doing anything.
    Leave,
}

/// A request to the thread that finds things out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DetailRequest {
    /// The difference between this turn and now, and then the plan.
    Look(usize),
    /// The plan for restoring this turn, before anything else.
    Plan(usize),
    /// What becomes of the conversation of this turn.
    ConversationFork(usize),
    /// The plan for taking back this turn alone.
    Revert(usize),
    /// A plan to choose from, which gets this number.
    Offer(u32, usize, PickerGoal),
    /// What can be chosen of a file of that plan.
    Open(u32, usize),
    /// The same, with one of its hunks split into smaller ones.
    Split(u32, usize, usize),
    /// The steps of this turn.
    Steps(usize),
    /// What these marks would do, of the files by their position.
    Part(PartId, Vec<(usize, FileMark)>),
}

/// A result that has arrived. Turns are identified by their position in the list, from 0, and steps by
/// those that follow, in the order in which they arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// What a turn did, in a few words.
    Did(usize, String),
    /// The difference between a turn and now follows.
    Begins(usize),
    /// The difference of one more file.
    File(usize, String, Option<LineCounts>),
    /// The difference is complete, or as much as is shown; with the number of files omitted.
    Ends(usize, usize),
    /// The plan for restoring a turn.
    Planned(usize, PickerPlan),
    /// What becomes of the conversation of a turn, or why it cannot be forked.
    Talked(usize, Result<String, String>),
    /// The plan for taking back a turn alone, or why it cannot be.
    Reverts(usize, Result<PickerPlan, String>),
    /// The files of a plan, by its number, or why there is nothing to choose.
    Offered(u32, Result<Vec<OfferedFile>, String>),
    /// What can be chosen of a file, each with a first line that names it.
    Opened(u32, usize, Vec<String>),
    /// The same, with one hunk split as far as it can be.
    Split(u32, usize, usize, Vec<String>),
    /// The steps of a turn, the first one first, or why there are none.
    Steps(usize, Result<Vec<PickerTurn>, String>),
    /// What the chosen part would do, by the part's number, or why it cannot be done.
    Parted(u32, Result<String, String>),
    /// A request failed.
    Trouble(usize, String),
}

/// The plan for restoring a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickerPlan {
    /// The plan, a line for each path.
    pub text: String,
    /// How many paths are kept because others changed them.
    pub conflicts: usize,
}

/// What is known of one turn.
#[derive(Debug, Default)]
pub(super) struct TurnDetails {
    pub(super) did: Option<String>,
    pub(super) diff: Sheet,
    pub(super) files: u64,
    pub(super) lines: LineCounts,
    pub(super) is_whole: bool,
    pub(super) plan: Option<Sheet>,
    pub(super) conflicts: usize,
    /// What becomes of the conversation, or why it cannot be forked.
    pub(super) talk: Option<Result<String, String>>,
    /// Why it cannot be told what a restore would do.
    pub(super) trouble: Option<String>,
    /// The plan for taking back the turn alone, or why it cannot be.
    pub(super) revert: Option<Result<Sheet, String>>,
}

/// The current view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PickerView {
    /// Among the turns.
    Turns,
    /// In the difference of the chosen turn, with the scroll position.
    Diff { top: usize },
    /// At the choices, with the scroll position in the plan.
    Choices { at: usize, top: usize },
    /// Among the files of a plan, with the scroll position.
    Files { at: usize, top: usize },
    /// Among the hunks of a file, with the scroll position in their lines.
    Hunks { file: usize, at: usize, top: usize },
    /// At what the chosen part would do, with the scroll position.
    Part { top: usize },
}

/// Everything the picker shows.
#[derive(Debug)]
pub struct Model {
    pub(super) title: String,
    /// The turns, and behind them the steps of those that were unfolded.
    pub(super) turns: Vec<PickerTurn>,
    /// How many of them are turns.
    pub(super) count: usize,
    /// The steps of the turns that were unfolded, and whether they are shown.
    pub(super) steps: BTreeMap<usize, (Range<usize>, bool)>,
    pub(super) step: PickerView,
    /// The search text; `None` while there is no search.
    pub(super) search: Option<String>,
    /// The turns that fit the search.
    pub(super) fitting: Vec<usize>,
    /// Which of those is chosen.
    pub(super) at: usize,
    /// Which of those is the first on the screen.
    pub(super) top: usize,
    pub(super) known: BTreeMap<usize, TurnDetails>,
    /// The plan that is chosen from, and what is chosen.
    pub(super) offer: Option<FilesOffer>,
    /// The last number given to a plan or a part of one.
    pub(super) last_number: u32,
    /// A message that is shown until the next key.
    pub(super) note: Option<String>,
    /// Cells of the terminal: columns and rows.
    pub(super) size: (u16, u16),
}

/// Said where a choice is made before it is known what it would do.
pub(super) const STILL: &str = "still finding out what that would do";

/// How many differences are kept; others are computed again.
const DIFFS_MAX: usize = 16;
/// More are never looked for.
const SEARCH_MAX_CHARS: usize = 200;

impl Model {
    /// The picker as it opens, with the newest turn chosen.
    pub fn new(title: &str, turns: &[PickerTurn]) -> Self {
        let turns: Vec<PickerTurn> = turns.iter().map(printable).collect();
        Self {
            title: printed(title),
            fitting: (0..turns.len()).collect(),
            count: turns.len(),
            steps: BTreeMap::new(),
            turns,
            step: PickerView::Turns,
            search: None,
            at: 0,
            top: 0,
            known: BTreeMap::new(),
            offer: None,
            last_number: 0,
            note: None,
            size: (80, 24),
        }
    }

    /// The chosen turn, if any fits.
    pub fn chosen(&self) -> Option<usize> {
        self.fitting.get(self.at).copied()
    }

    /// What can be done with the chosen turn.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let turn = self.chosen().map(|n| &self.turns[n]);
        let mut choices = vec![Choice::Files];
        if turn.is_some_and(|turn| turn.with_conversation) {
            choices.extend([Choice::Conversation, Choice::ConversationOnly]);
        }
        choices.push(Choice::Parts);
        if turn.is_some_and(|turn| turn.is_turn) {
            choices.push(Choice::Revert);
        }
        choices.extend([Choice::Diff, Choice::Cancel]);
        choices
    }

    /// Stores the size of the terminal.
    pub fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.keep_in_sight();
    }

    /// What a key does.
    pub fn press(&mut self, key: KeyPress) -> PickerEffect {
        self.note = None;
        let effect = match (&key, self.step) {
            (KeyPress::Interrupt, _) => PickerEffect::Leave,
            (KeyPress::Suspend, _) => PickerEffect::Suspend,
            (KeyPress::Redraw, _) => PickerEffect::Redraw,
            (_, PickerView::Turns) => self.among_turns(key),
            (_, PickerView::Diff { top }) => self.in_diff(&key, top),
            (_, PickerView::Choices { at, top }) => self.before_choices(&key, at, top),
            (_, PickerView::Files { at, top }) => self.among_files(&key, at, top),
            (_, PickerView::Hunks { file, at, top }) => self.among_hunks(&key, file, at, top),
            (_, PickerView::Part { top }) => self.before_part(&key, top),
        };
        self.keep_in_sight();
        effect
    }

    fn among_turns(&mut self, key: KeyPress) -> PickerEffect {
        let page = super::layout::turns_on(self.size);
        match key {
            KeyPress::Up => self.move_to(self.at.saturating_sub(1)),
            KeyPress::Down => self.move_to(self.at + 1),
            KeyPress::PageUp => self.move_to(self.at.saturating_sub(page)),
            KeyPress::PageDown => self.move_to(self.at + page),
            KeyPress::Home => self.move_to(0),
            KeyPress::End => self.move_to(usize::MAX),
            KeyPress::Right if self.chosen().is_some() => {
                self.step = PickerView::Diff { top: 0 };
                PickerEffect::Nothing
            }
            KeyPress::Enter => self.open_choices(),
            KeyPress::Tab => self.unfold(),
            KeyPress::Esc if self.search.is_some() => self.look_for(None),
            KeyPress::Esc => PickerEffect::Leave,
            KeyPress::Char('j') if self.search.is_none() => self.move_to(self.at + 1),
            KeyPress::Char('k') if self.search.is_none() => self.move_to(self.at.saturating_sub(1)),
            KeyPress::Char('/') if self.search.is_none() => self.look_for(Some(String::new())),
            KeyPress::Char(c) => self.type_more(&c.to_string()),
            KeyPress::Pasted(text) => self.type_more(&text),
            KeyPress::Backspace | KeyPress::BackWord | KeyPress::BackAll => self.type_less(&key),
            KeyPress::Left
            | KeyPress::Right
            | KeyPress::Interrupt
            | KeyPress::Suspend
            | KeyPress::Redraw => PickerEffect::Nothing,
        }
    }

    fn move_to(&mut self, at: usize) -> PickerEffect {
        let at = at.min(self.fitting.len().saturating_sub(1));
        if at == self.at {
            return PickerEffect::Nothing;
        }
        self.at = at;
        self.wanted()
    }

    /// The difference between the chosen turn and now is computed each time, because files may have
    /// changed.
    fn wanted(&self) -> PickerEffect {
        self.chosen().map_or(PickerEffect::Nothing, |n| PickerEffect::Wish(DetailRequest::Look(n)))
    }

    fn open_choices(&mut self) -> PickerEffect {
        let Some(chosen) = self.chosen() else { return PickerEffect::Nothing };
        self.step = PickerView::Choices { at: 0, top: 0 };
        // A confirmation must apply to the present state.
        self.offer = None;
        if let Some(known) = self.known.get_mut(&chosen) {
            (known.plan, known.talk, known.trouble, known.revert) = (None, None, None, None);
        }
        PickerEffect::Wish(DetailRequest::Plan(chosen))
    }

    fn type_more(&mut self, text: &str) -> PickerEffect {
        let mut search = self.search.clone().unwrap_or_default();
        let text = text.replace(char::is_control, " ");
        search.extend(escape(text.as_bytes()).chars());
        self.look_for(Some(search.chars().take(SEARCH_MAX_CHARS).collect()))
    }

    fn type_less(&mut self, key: &KeyPress) -> PickerEffect {
        let Some(mut search) = self.search.clone() else { return PickerEffect::Nothing };
        match key {
            // If there is nothing left to delete, this ends the search.
            KeyPress::Backspace if search.pop().is_none() => return self.look_for(None),
            KeyPress::BackWord => {
                let word = search.trim_end().rfind(' ').map_or(0, |at| at + 1);
                search.truncate(word);
            }
            KeyPress::BackAll => search.clear(),
            _ => (),
        }
        self.look_for(Some(search))
    }

    /// Narrows the list, and keeps the chosen turn chosen where it fits.
    fn look_for(&mut self, search: Option<String>) -> PickerEffect {
        self.search = search;
        self.arrange()
    }

    /// Makes the list anew: the turns that fit the search, each with its steps if they are shown.
    fn arrange(&mut self) -> PickerEffect {
        let chosen = self.chosen();
        let words = self.search.as_deref().unwrap_or_default().to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let fits = |turn: &PickerTurn| {
            let text = searched(turn).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let fitting = (0..self.count).filter(|n| fits(&self.turns[*n]));
        let steps = |n: usize| match self.steps.get(&n) {
            Some((steps, true)) => steps.clone(),
            Some((_, false)) | None => 0..0,
        };
        self.fitting = fitting.flat_map(|n| std::iter::once(n).chain(steps(n))).collect();
        let at = |wanted: Option<usize>| self.fitting.iter().position(|n| Some(*n) == wanted);
        let turn = chosen.map(|n| self.turn_of(n));
        self.at = at(chosen).or_else(|| at(turn)).unwrap_or(0);
        if self.chosen() == chosen { PickerEffect::Nothing } else { self.wanted() }
    }

    fn in_diff(&mut self, key: &KeyPress, top: usize) -> PickerEffect {
        let page = super::layout::diff_rows(self.size);
        let length = self.chosen().and_then(|n| self.known.get(&n)).map_or(0, |k| k.diff.len());
        let last = length.saturating_sub(page);
        let top = match key {
            KeyPress::Char('b') => top.saturating_sub(page),
            KeyPress::Char(' ') => top + page,
            KeyPress::Enter => return self.open_choices(),
            KeyPress::Esc | KeyPress::Left | KeyPress::Char('q') => {
                self.step = PickerView::Turns;
                return PickerEffect::Nothing;
            }
            _ => moved(key, top, page, last),
        };
        self.step = PickerView::Diff { top: top.min(last) };
        PickerEffect::Nothing
    }

    fn before_choices(&mut self, key: &KeyPress, at: usize, top: usize) -> PickerEffect {
        let choices = self.choices();
        let last = choices.len() - 1;
        let digit = |c: &char| c.to_digit(10).map(|n| n as usize);
        let (at, top) = match key {
            KeyPress::Up | KeyPress::Char('k') => (at.checked_sub(1).unwrap_or(last), top),
            KeyPress::Down | KeyPress::Char('j') => (if at == last { 0 } else { at + 1 }, top),
            KeyPress::Home => (0, top),
            KeyPress::End => (last, top),
            KeyPress::PageUp => (at, top.saturating_sub(super::layout::PLAN_STEP)),
            KeyPress::PageDown => (at, top + super::layout::PLAN_STEP),
            KeyPress::Char(c) if digit(c).is_some_and(|n| (1..=last + 1).contains(&n)) => {
                (digit(c).unwrap_or(1) - 1, top)
            }
            KeyPress::Enter => return self.choose(choices[at]),
            KeyPress::Char(' ') => return self.open_files(choices[at]),
            KeyPress::Esc | KeyPress::Left | KeyPress::Char('q') => {
                return self.choose(Choice::Cancel);
            }
            _ => (at, top),
        };
        let known = self.chosen().and_then(|n| self.known.get(&n));
        let plan = known.and_then(|known| known.plan_of(choices[at])).map_or(0, Sheet::len);
        self.step = PickerView::Choices { at, top: top.min(plan.saturating_sub(1)) };
        self.wanted_for(choices[at])
    }

    /// What a choice needs to know and the others do not: only those who want it wait for it.
    fn wanted_for(&self, choice: Choice) -> PickerEffect {
        let Some(chosen) = self.chosen() else { return PickerEffect::Nothing };
        let known = self.known.get(&chosen);
        let is_talk = choice.has_conversation() && known.is_none_or(|it| it.talk.is_none());
        let is_revert = choice == Choice::Revert && known.is_none_or(|it| it.revert.is_none());
        match (is_talk, is_revert) {
            (true, _) => PickerEffect::Wish(DetailRequest::ConversationFork(chosen)),
            (_, true) => PickerEffect::Wish(DetailRequest::Revert(chosen)),
            (false, false) => PickerEffect::Nothing,
        }
    }

    fn choose(&mut self, choice: Choice) -> PickerEffect {
        let Some(chosen) = self.chosen() else { return PickerEffect::Nothing };
        match choice {
            Choice::Cancel => self.step = PickerView::Turns,
            Choice::Diff => self.step = PickerView::Diff { top: 0 },
            Choice::Parts => return self.open_files(choice),
            Choice::Files | Choice::Conversation | Choice::ConversationOnly | Choice::Revert => {
                return self.agree(chosen, choice);
            }
        }
        self.wanted()
    }

    /// A confirmation counts only for what has been shown.
    fn agree(&mut self, chosen: usize, choice: Choice) -> PickerEffect {
        let known = self.known.get(&chosen);
        let talk = known.and_then(|known| known.talk.as_ref());
        let still = || Some(STILL.to_owned());
        let plan = match known.and_then(|known| known.plan_of(choice)) {
            _ if choice == Choice::ConversationOnly => None,
            Some(_) => None,
            None => known.and_then(|known| known.why_not(choice)).cloned().or_else(still),
        };
        let talk = match talk {
            _ if !choice.has_conversation() => None,
            Some(talk) => talk.as_ref().err().cloned(),
            None => still(),
        };
        self.note = plan.or(talk);
        if self.note.is_some() { PickerEffect::Nothing } else { PickerEffect::Do(chosen, choice) }
    }

    /// Takes a result.
    pub fn learn(&mut self, news: News) {
        match news {
            News::Did(turn, words) => {
                self.known_of(turn).did = Some(printed(&words));
            }
            News::Begins(turn) => {
                self.forget_others(turn);
                let known = self.known_of(turn);
                (known.diff, known.files) = (Sheet::default(), 0);
                (known.lines, known.is_whole) = (LineCounts::default(), false);
            }
            News::File(turn, text, lines) => {
                let known = self.known_of(turn);
                known.files += 1;
                known.lines += lines.unwrap_or_default();
                known.diff.add_diff(&text);
            }
            News::Ends(turn, more) => {
                let known = self.known_of(turn);
                known.is_whole = true;
                known.files += more as u64;
                if more > 0 {
                    let more = count(more as u64, "file");
                    known.diff.add_note(&format!("… and {more} more: beforehand diff shows all"));
                }
            }
            News::Planned(turn, planned) => {
                let known = self.known_of(turn);
                known.conflicts = planned.conflicts;
                known.plan = Some(Sheet::of_text(&planned.text));
            }
            News::Talked(turn, talk) => {
                let talk = talk.map(|said| printed(&said)).map_err(|why| printed(&why));
                self.known_of(turn).talk = Some(talk);
            }
            News::Reverts(turn, plan) => {
                let plan = plan.map(|plan| Sheet::of_text(&plan.text));
                self.known_of(turn).revert = Some(plan.map_err(|why| printed(&why)));
            }
            News::Offered(number, files) => self.learn_files(number, files),
            News::Opened(number, file, pieces) => self.learn_pieces(number, file, &pieces),
            News::Split(number, file, at, pieces) => self.learn_split(number, file, at, &pieces),
            News::Steps(turn, steps) => self.learn_steps(turn, steps),
            News::Parted(number, text) => self.learn_part(number, text),
            News::Trouble(turn, text) => {
                let known = self.known_of(turn);
                known.is_whole = true;
                known.diff.add_note(&text);
                known.trouble = Some(first_line(&text));
            }
        }
        self.keep_in_sight();
    }

    fn known_of(&mut self, turn: usize) -> &mut TurnDetails {
        self.known.entry(turn).or_default()
    }

    /// Keeps the differences of a few turns only; their short summaries all stay.
    fn forget_others(&mut self, turn: usize) {
        let with_diff = self.known.iter().filter(|(_, known)| known.diff.len() > 0);
        let others: Vec<usize> = with_diff.map(|(n, _)| *n).filter(|n| *n != turn).collect();
        for n in others.iter().take(others.len().saturating_sub(DIFFS_MAX)) {
            if let Some(known) = self.known.get_mut(n) {
                let did = known.did.take();
                *known = TurnDetails { did, ..TurnDetails::default() };
            }
        }
    }

    /// Scrolls so that the chosen turn is visible, and not beyond the end of a difference.
    fn keep_in_sight(&mut self) {
        let page = super::layout::turns_on(self.size);
        let last = self.fitting.len().saturating_sub(page);
        self.top = self.top.min(self.at).max((self.at + 1).saturating_sub(page)).min(last);
        self.keep_files_in_sight();
        let Some(known) = self.chosen().and_then(|n| self.known.get(&n)) else { return };
        if let PickerView::Diff { top } = self.step
            && known.is_whole
        {
            let last = known.diff.len().saturating_sub(super::layout::diff_rows(self.size));
            self.step = PickerView::Diff { top: top.min(last) };
        }
    }
}

impl Choice {
    /// Whether everything is restored that the plan says.
    pub fn has_files(self) -> bool {
        matches!(self, Self::Files | Self::Conversation)
    }

    /// Whether the conversation is forked.
    pub fn has_conversation(self) -> bool {
        matches!(self, Self::Conversation | Self::ConversationOnly)
    }

    /// What is chosen from if not all of it is wanted.
    pub(super) fn goal(self) -> Option<PickerGoal> {
        match self {
            Self::Files | Self::Parts => Some(PickerGoal::Before),
            Self::Revert => Some(PickerGoal::Turn),
            Self::Conversation | Self::ConversationOnly | Self::Diff | Self::Cancel => None,
        }
    }
}

impl TurnDetails {
    /// The plan that a choice carries out, or a part of it.
    pub(super) fn plan_of(&self, choice: Choice) -> Option<&Sheet> {
        match choice {
            Choice::Revert => self.revert.as_ref()?.as_ref().ok(),
            Choice::ConversationOnly => None,
            _ => self.plan.as_ref(),
        }
    }

    /// Why there is none, if that is known.
    pub(super) fn why_not(&self, choice: Choice) -> Option<&String> {
        match choice {
            Choice::Revert => self.revert.as_ref()?.as_ref().err(),
            _ => self.trouble.as_ref(),
        }
    }

    /// How much lies between the turn and now, as far as it is known.
    pub(super) fn since(&self) -> String {
        match (self.files, self.is_whole) {
            (0, true) => "nothing has changed since".to_owned(),
            (0, false) => "looking …".to_owned(),
            (files, is_whole) => {
                let dots = if is_whole { "" } else { " …" };
                format!("since then: {}  {}{dots}", count(files, "file"), self.lines)
            }
        }
    }

    /// The conflicts, if there are any, in words.
    pub(super) fn conflict_words(&self) -> Option<String> {
        match self.conflicts {
            0 => None,
            1 => Some("1 conflict".to_owned()),
            n => Some(format!("{} conflicts", number(n as u64))),
        }
    }
}

/// Where a key leads in a list or text that ends at `last`: not further than that is the caller's to see.
fn moved(key: &KeyPress, at: usize, page: usize, last: usize) -> usize {
    match key {
        KeyPress::Up | KeyPress::Char('k') => at.saturating_sub(1),
        KeyPress::Down | KeyPress::Char('j') => at + 1,
        KeyPress::PageUp => at.saturating_sub(page),
        KeyPress::PageDown => at + page,
        KeyPress::Home | KeyPress::Char('g') => 0,
        KeyPress::End | KeyPress::Char('G') => last,
        _ => at,
    }
}

/// The first line of what the user is told of an error, which is printable.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A text that may have any characters.
pub(super) fn printed(text: &str) -> String {
    escape(text.as_bytes()).into_owned()
}

fn printable(turn: &PickerTurn) -> PickerTurn {
    PickerTurn {
        id: printed(&turn.id),
        when: printed(&turn.when),
        who: printed(&turn.who),
        prompt: turn.prompt.as_deref().map(printed),
        trigger: printed(&turn.trigger),
        badges: turn.badges.iter().map(|badge| printed(badge)).collect(),
        ..*turn
    }
}

/// Where words of a search may be.
fn searched(turn: &PickerTurn) -> String {
    let number = turn.number.to_string();
    let prompt = turn.prompt.as_deref().unwrap_or_default();
    let texts = [&number, &turn.id, &turn.when, &turn.who, prompt, &turn.trigger];
    format!("{} {}", texts.join(" "), turn.badges.join(" "))
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
