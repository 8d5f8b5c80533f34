//! Choosing among the files of a plan and among the hunks of a file: what each key does there. Pure.

use std::collections::BTreeMap;

use super::{Choice, DetailRequest, Model, PickerEffect, PickerView, STILL, moved, printed};
use crate::ui::{
    LineCounts, number,
    picker::{keys::KeyPress, layout, sheet::Sheet},
};

/// What is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickerGoal {
    /// Everything since a turn began.
    Before,
    /// What a turn did, and nothing that came after it.
    Turn,
}

/// A file of a plan. Its texts are printable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedFile {
    /// Its path.
    pub name: String,
    /// What happens to it, as in `restore`.
    pub verb: String,
    /// Why, if that is worth a word.
    pub why: String,
    /// How many lines come and go, if that is known.
    pub lines: Option<LineCounts>,
}

/// What is chosen of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileMark {
    /// Nothing.
    Unmarked,
    /// All that happens to it.
    Whole,
    /// Some of its hunks: each, and whether it is chosen.
    Hunks(Vec<bool>),
}

/// Names a part of a plan that has been asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartId {
    /// The number of the plan.
    pub offer: u32,
    /// The number of the part. No two of them have the same.
    pub part: u32,
    /// Which turn it is about.
    pub turn: usize,
    /// What is taken back of it.
    pub goal: PickerGoal,
}

/// A plan to choose from.
#[derive(Debug)]
pub(in crate::ui::picker) struct FilesOffer {
    pub(in crate::ui::picker) id: PartId,
    /// `None` while it is not known yet.
    pub(in crate::ui::picker) files: Option<Result<Vec<OfferedFile>, String>>,
    /// One for each file.
    pub(in crate::ui::picker) marks: Vec<FileMark>,
    /// What can be chosen of a file, where that was looked at.
    pub(in crate::ui::picker) pieces: BTreeMap<usize, Vec<Sheet>>,
    /// Whether a hunk is being split: until it is known into how many, its file has other hunks than are shown.
    pub(in crate::ui::picker) is_splitting: bool,
    /// The file that was chosen last.
    at: usize,
    /// What the part would do that was asked about last.
    pub(in crate::ui::picker) part: Option<Result<Sheet, String>>,
}

/// The hunks of so many files are kept; others are fetched again.
const OPENED_MAX: usize = 16;

impl FileMark {
    /// Whether something of the file is chosen.
    pub(in crate::ui::picker) fn is_any(&self) -> bool {
        *self != Self::Unmarked
    }

    /// Whether a hunk is chosen.
    pub(in crate::ui::picker) fn has(&self, hunk: usize) -> bool {
        match self {
            Self::Unmarked => false,
            Self::Whole => true,
            Self::Hunks(taken) => taken.get(hunk).copied().unwrap_or(false),
        }
    }

    /// Marks a hunk of `count`, or takes its mark away.
    fn toggle(&self, hunk: usize, count: usize) -> Self {
        let taken: Vec<bool> = (0..count).map(|at| self.has(at) != (at == hunk)).collect();
        match (taken.iter().all(|it| *it), taken.iter().any(|it| *it)) {
            (true, _) => Self::Whole,
            (false, true) => Self::Hunks(taken),
            (false, false) => Self::Unmarked,
        }
    }
}

impl FilesOffer {
    /// The files, once they are known.
    pub(in crate::ui::picker) fn known(&self) -> &[OfferedFile] {
        self.files.as_ref().and_then(|files| files.as_ref().ok()).map_or(&[], |files| files)
    }

    /// Marks all of a file, or if it is marked already, takes the mark away.
    fn toggle_whole(&mut self, file: usize) {
        if let Some(mark) = self.marks.get_mut(file) {
            *mark = if *mark == FileMark::Whole { FileMark::Unmarked } else { FileMark::Whole };
        }
    }

    /// The choice that opens it.
    fn choice(&self) -> Choice {
        match self.id.goal {
            PickerGoal::Before => Choice::Parts,
            PickerGoal::Turn => Choice::Revert,
        }
    }

    /// How many files have a mark.
    fn marked(&self) -> usize {
        self.marks.iter().filter(|mark| mark.is_any()).count()
    }

    /// The same in words.
    pub(in crate::ui::picker) fn marked_words(&self) -> String {
        let count = self.known().len() as u64;
        format!("{} of {} marked", number(self.marked() as u64), number(count))
    }

    /// How many hunks of a file are marked, and of how many.
    pub(in crate::ui::picker) fn hunks_marked(&self, file: usize) -> Option<(usize, usize)> {
        let mark = self.marks.get(file)?;
        let count = match (mark, self.pieces.get(&file)) {
            (FileMark::Hunks(taken), _) => taken.len(),
            (_, pieces) => pieces?.len(),
        };
        Some(((0..count).filter(|at| mark.has(*at)).count(), count))
    }

    /// The lines that each hunk of a file takes on the screen: the first, and how many.
    fn places(&self, file: usize) -> Vec<(usize, usize)> {
        let mut first = 0;
        let pieces = self.pieces.get(&file).into_iter().flatten();
        let place = |sheet: &Sheet| {
            let place = (first, sheet.len());
            first += sheet.len();
            place
        };
        pieces.map(place).collect()
    }
}

impl Model {
    /// Opens the plan that a choice chooses from. What was marked in it before still is.
    pub(in crate::ui::picker) fn open_files(&mut self, choice: Choice) -> PickerEffect {
        let (Some(turn), Some(goal)) = (self.chosen(), choice.goal()) else {
            return self.refuse("this choice has no files to choose from".to_owned());
        };
        let is_it = |offer: &&FilesOffer| (offer.id.turn, offer.id.goal) == (turn, goal);
        if let Some(offer) = self.offer.as_ref().filter(is_it).filter(|it| !it.known().is_empty()) {
            self.step = PickerView::Files { at: offer.at, top: 0 };
            return PickerEffect::Nothing;
        }
        self.step = PickerView::Files { at: 0, top: 0 };
        let number = self.next_number();
        let (files, part) = (None, None);
        let id = PartId { offer: number, part: 0, turn, goal };
        let (marks, pieces) = (Vec::new(), BTreeMap::new());
        let is_splitting = false;
        self.offer = Some(FilesOffer { id, files, marks, pieces, is_splitting, at: 0, part });
        PickerEffect::Wish(DetailRequest::Offer(number, turn, goal))
    }

    fn next_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    pub(in crate::ui::picker) fn among_files(
        &mut self,
        key: &KeyPress,
        at: usize,
        top: usize,
    ) -> PickerEffect {
        let page = layout::file_rows(self.size);
        let Some(offer) = &mut self.offer else { return self.leave_files() };
        let last = offer.known().len().saturating_sub(1);
        let at = match key {
            KeyPress::Char(' ') => {
                offer.toggle_whole(at);
                at
            }
            KeyPress::Char('a') => {
                let is_all = offer.marks.iter().all(|mark| *mark == FileMark::Whole);
                let mark = if is_all { FileMark::Unmarked } else { FileMark::Whole };
                offer.marks.fill(mark);
                at
            }
            KeyPress::Enter | KeyPress::Right => return self.open_file(at),
            KeyPress::Char('r') => return self.ask_part(),
            KeyPress::Esc | KeyPress::Left | KeyPress::Char('q') => return self.leave_files(),
            _ => moved(key, at, page, last),
        };
        offer.at = at.min(last);
        self.step = PickerView::Files { at: offer.at, top };
        PickerEffect::Nothing
    }

    /// Back to the choices.
    fn leave_files(&mut self) -> PickerEffect {
        let choice = self.offer.as_ref().map_or(Choice::Parts, FilesOffer::choice);
        let at = self.choices().iter().position(|it| *it == choice).unwrap_or(0);
        self.step = PickerView::Choices { at, top: 0 };
        PickerEffect::Nothing
    }

    fn open_file(&mut self, file: usize) -> PickerEffect {
        let Some(offer) = self.offer.as_ref().filter(|offer| file < offer.known().len()) else {
            return PickerEffect::Nothing;
        };
        self.step = PickerView::Hunks { file, at: 0, top: 0 };
        if offer.pieces.contains_key(&file) {
            return PickerEffect::Nothing;
        }
        PickerEffect::Wish(DetailRequest::Open(offer.id.offer, file))
    }

    pub(in crate::ui::picker) fn among_hunks(
        &mut self,
        key: &KeyPress,
        file: usize,
        at: usize,
        top: usize,
    ) -> PickerEffect {
        let page = layout::file_rows(self.size);
        let Some(offer) = &mut self.offer else { return self.leave_files() };
        let places = offer.places(file);
        let last = places.len().saturating_sub(1);
        let length = places.last().map_or(0, |(first, length)| first + length);
        // The hunk that a line belongs to.
        let of_line =
            |line: usize| places.iter().rposition(|(first, _)| *first <= line).unwrap_or(0);
        let (at, top) = match key {
            KeyPress::Up | KeyPress::Char('k') => {
                shown_whole(&places, at.saturating_sub(1), top, page)
            }
            KeyPress::Down | KeyPress::Char('j') => {
                shown_whole(&places, (at + 1).min(last), top, page)
            }
            KeyPress::Home | KeyPress::Char('g') => shown_whole(&places, 0, top, page),
            KeyPress::End | KeyPress::Char('G') => shown_whole(&places, last, top, page),
            // The chosen hunk stays on the screen.
            KeyPress::PageUp => {
                let top = top.saturating_sub(page);
                (at.min(of_line(top + page.saturating_sub(1))), top)
            }
            KeyPress::PageDown => {
                let top = (top + page).min(length.saturating_sub(page)).max(top);
                (at.max(of_line(top)), top)
            }
            KeyPress::Char(' ') => {
                let is_known = at < places.len() && !offer.is_splitting;
                if let Some(mark) = offer.marks.get_mut(file).filter(|_| is_known) {
                    *mark = mark.toggle(at, places.len());
                }
                (at, top)
            }
            KeyPress::Char('a') => {
                offer.toggle_whole(file);
                (at, top)
            }
            KeyPress::Char('s') if at < places.len() && !offer.is_splitting => {
                offer.is_splitting = true;
                return PickerEffect::Wish(DetailRequest::Split(offer.id.offer, file, at));
            }
            KeyPress::Char('r') => return self.ask_part(),
            KeyPress::Esc | KeyPress::Left | KeyPress::Char('q') => {
                self.step = PickerView::Files { at: file, top: 0 };
                return PickerEffect::Nothing;
            }
            _ => (at, top),
        };
        self.step = PickerView::Hunks { file, at, top };
        PickerEffect::Nothing
    }

    /// Asks what the marked part would do.
    fn ask_part(&mut self) -> PickerEffect {
        let part = self.next_number();
        let Some(offer) = &mut self.offer else { return PickerEffect::Nothing };
        if offer.is_splitting {
            return self.refuse(STILL.to_owned());
        }
        let marked = offer.marks.iter().enumerate().filter(|(_, mark)| mark.is_any());
        let marks: Vec<(usize, FileMark)> = marked.map(|(at, mark)| (at, mark.clone())).collect();
        if marks.is_empty() {
            self.note = Some("nothing is marked: Space marks".to_owned());
            return PickerEffect::Nothing;
        }
        (offer.id.part, offer.part) = (part, None);
        self.step = PickerView::Part { top: 0 };
        PickerEffect::Wish(DetailRequest::Part(offer.id, marks))
    }

    pub(in crate::ui::picker) fn before_part(
        &mut self,
        key: &KeyPress,
        top: usize,
    ) -> PickerEffect {
        let Some(offer) = &self.offer else { return self.leave_files() };
        let length = match &offer.part {
            Some(Ok(sheet)) => sheet.len(),
            Some(Err(_)) | None => 0,
        };
        let page = layout::file_rows(self.size);
        let top = match key {
            KeyPress::Enter => {
                return match &offer.part {
                    Some(Ok(_)) => PickerEffect::DoPart(offer.id),
                    Some(Err(why)) => self.refuse(why.clone()),
                    None => self.refuse(STILL.to_owned()),
                };
            }
            KeyPress::Esc | KeyPress::Left | KeyPress::Char('q') => return self.leave_part(),
            _ => moved(key, top, page, length),
        };
        self.step = PickerView::Part { top: top.min(length.saturating_sub(page)) };
        PickerEffect::Nothing
    }

    fn refuse(&mut self, why: String) -> PickerEffect {
        self.note = Some(why);
        PickerEffect::Nothing
    }

    /// Back to the files. If the part could not be done, the plan is another one by now.
    fn leave_part(&mut self) -> PickerEffect {
        let stale = self.offer.take_if(|offer| matches!(offer.part, Some(Err(_))));
        if let Some(stale) = stale {
            return self.open_files(stale.choice());
        }
        let at = self.offer.as_ref().map_or(0, |offer| offer.at);
        self.step = PickerView::Files { at, top: 0 };
        PickerEffect::Nothing
    }

    /// The plan that was asked for last. Another one is wanted no more.
    fn offer_of(&mut self, number: u32) -> Option<&mut FilesOffer> {
        self.offer.as_mut().filter(|offer| offer.id.offer == number)
    }

    pub(in crate::ui::picker) fn learn_files(
        &mut self,
        number: u32,
        files: Result<Vec<OfferedFile>, String>,
    ) {
        if let Some(offer) = self.offer_of(number) {
            let count = files.as_ref().map_or(0, Vec::len);
            offer.marks = vec![FileMark::Unmarked; count];
            offer.files = Some(files.map_err(|why| printed(&why)));
        }
    }

    pub(in crate::ui::picker) fn learn_pieces(
        &mut self,
        number: u32,
        file: usize,
        pieces: &[String],
    ) {
        let Some(offer) = self.offer_of(number) else { return };
        while offer.pieces.len() >= OPENED_MAX && offer.pieces.pop_first().is_some() {}
        let sheet = |text: &String| {
            let mut sheet = Sheet::default();
            sheet.add_diff(text);
            sheet
        };
        offer.pieces.insert(file, pieces.iter().map(sheet).collect());
    }

    /// Each part of a hunk that was split has the mark it had.
    pub(in crate::ui::picker) fn learn_split(
        &mut self,
        number: u32,
        file: usize,
        at: usize,
        pieces: &[String],
    ) {
        let Some(offer) = self.offer_of(number) else { return };
        offer.is_splitting = false;
        let is_whole = offer.pieces.get(&file).is_some_and(|known| known.len() == pieces.len());
        if let Some(FileMark::Hunks(taken)) = offer.marks.get_mut(file)
            && let Some(mark) = taken.get(at).copied()
        {
            let more = pieces.len().saturating_sub(taken.len());
            taken.splice(at..at, std::iter::repeat_n(mark, more));
        }
        self.learn_pieces(number, file, pieces);
        if is_whole {
            self.note = Some("this hunk cannot be split".to_owned());
        }
    }

    pub(in crate::ui::picker) fn learn_part(&mut self, number: u32, text: Result<String, String>) {
        let offer = self.offer.as_mut().filter(|offer| offer.id.part == number);
        if let Some(offer) = offer {
            let part = text.map(|text| Sheet::of_text(&text)).map_err(|why| printed(&why));
            offer.part = Some(part);
        }
    }

    /// Scrolls so that the chosen file or hunk is visible.
    pub(in crate::ui::picker) fn keep_files_in_sight(&mut self) {
        let page = layout::file_rows(self.size);
        let Some(offer) = &self.offer else { return };
        if let PickerView::Files { at, top } = self.step {
            let count = offer.known().len();
            let at = at.min(count.saturating_sub(1));
            let last = count.saturating_sub(page);
            let top = top.min(at).max((at + 1).saturating_sub(page)).min(last);
            self.step = PickerView::Files { at, top };
        }
        if let PickerView::Hunks { file, at, top } = self.step {
            let length = offer.places(file).last().map_or(0, |(first, length)| first + length);
            let top = top.min(length.saturating_sub(page));
            self.step = PickerView::Hunks { file, at, top };
        }
    }
}

/// The hunk `at`, and a scroll position where all of it is visible, or, if it is too long, its start.
fn shown_whole(places: &[(usize, usize)], at: usize, top: usize, page: usize) -> (usize, usize) {
    let Some((first, length)) = places.get(at) else { return (at, top) };
    (at, top.max((first + length).saturating_sub(page)).min(*first))
}
