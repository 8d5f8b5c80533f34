//! Draws the files of a plan, their hunks, and what the marked part would do. Pure.

use ratatui::layout::Rect;

use super::{
    layout::FILES_HEAD_ROWS,
    model::{FileMark, FilesOffer, Model, OfferedFile, PickerGoal},
    view::{Canvas, back_to, under, words},
};
use crate::ui::{Align, Cut, Paint, cells, count, fit, pad};

/// As wide as the longest verb.
const VERB_COLUMNS: usize = 8;

impl Canvas<'_> {
    /// The files of a plan, each with its mark.
    pub(super) fn files(&mut self, area: Rect, model: &Model, at: usize, top: usize) {
        let Some(offer) = &model.offer else { return };
        self.put_both(area, 0, Paint::Bold, &heading(model, offer), &offer.marked_words());
        let area = under(area, FILES_HEAD_ROWS);
        match &offer.files {
            None => self.put(area, 0, Paint::Dim, "finding out what that would do …"),
            Some(Err(why)) => self.put(area, 0, Paint::Plain, why),
            Some(Ok(files)) => {
                let shown = files.iter().enumerate().skip(top).take(usize::from(area.height));
                for (row, (n, file)) in (0..).zip(shown) {
                    self.file(area, row, (file, offer, n), n == at);
                }
            }
        }
    }

    fn file(
        &mut self,
        area: Rect,
        row: u16,
        (file, offer, n): (&OfferedFile, &FilesOffer, usize),
        is_chosen: bool,
    ) {
        let (cursor, paint) = if is_chosen { ("›", Paint::Bold) } else { (" ", Paint::Plain) };
        let mark = match offer.marks.get(n) {
            Some(FileMark::Whole) => "[x]",
            Some(FileMark::Hunks(_)) => "[~]",
            Some(FileMark::Unmarked) | None => "[ ]",
        };
        let head = format!("{cursor} {mark} {} ", pad(&file.verb, VERB_COLUMNS, Align::Left));
        let mut said = file.lines.map_or_else(|| file.why.clone(), |lines| lines.to_string());
        if let (Some(FileMark::Hunks(_)), Some((marked, all))) =
            (offer.marks.get(n), offer.hunks_marked(n))
        {
            said = format!("{marked} of {} · {said}", count(all as u64, "hunk"));
        }
        // The name has what the rest leaves, and half of the room in any case.
        let room = usize::from(area.width).saturating_sub(cells(&head) + 2);
        let said = fit(&said, room.saturating_sub(room / 2), Cut::End).into_owned();
        let name = fit(&file.name, room.saturating_sub(cells(&said)), Cut::Middle);
        self.put_both(area, row, paint, &format!("{head}{name}"), &said);
    }

    /// The hunks of a file one below the other, each with its mark.
    pub(super) fn hunks(
        &mut self,
        area: Rect,
        model: &Model,
        (file, at): (usize, usize),
        top: usize,
    ) {
        let Some(offer) = &model.offer else { return };
        let name = offer.known().get(file).map_or("", |file| &file.name);
        let pieces = offer.pieces.get(&file).map_or(&[][..], |pieces| pieces);
        let marked = offer.hunks_marked(file).unwrap_or_default();
        let said = match pieces.len() {
            0 => String::new(),
            n => format!("{} of {n} · {} marked", at + 1, marked.0),
        };
        let room = usize::from(area.width).saturating_sub(cells(&said) + 2);
        self.put_both(area, 0, Paint::Bold, &fit(name, room, Cut::Middle), &said);
        let area = under(area, FILES_HEAD_ROWS);
        if pieces.is_empty() {
            return self.put(area, 0, Paint::Dim, "reading it …");
        }
        let mark = offer.marks.get(file);
        let mut lines = Vec::new();
        for (n, sheet) in pieces.iter().enumerate() {
            for (row, (paint, line)) in sheet.from(0, sheet.len()).into_iter().enumerate() {
                // However long the chosen one is, each line of it shows that it is.
                let cursor = match (n == at, row) {
                    (true, 0) => "›",
                    (true, _) => "│",
                    (false, _) => " ",
                };
                let is_marked = mark.is_some_and(|mark| mark.has(n));
                lines.push(match (row, is_marked) {
                    (0, true) => (paint, format!("{cursor} [x] {line}")),
                    (0, false) => (paint, format!("{cursor} [ ] {line}")),
                    (_, _) => (paint, format!("{cursor} {line}")),
                });
            }
        }
        for (row, (paint, line)) in (0..area.height).zip(lines.into_iter().skip(top)) {
            self.put(area, row, paint, &line);
        }
    }

    /// What the marked part would do.
    pub(super) fn part(&mut self, area: Rect, model: &Model, top: usize) {
        let Some(offer) = &model.offer else { return };
        self.put_both(area, 0, Paint::Bold, &heading(model, offer), &offer.marked_words());
        let area = under(area, FILES_HEAD_ROWS);
        match &offer.part {
            None => self.put(area, 0, Paint::Dim, "finding out what that would do …"),
            Some(Err(why)) => self.put(area, 0, Paint::Plain, why),
            Some(Ok(plan)) => self.lines(area, plan, top),
        }
    }
}

fn heading(model: &Model, offer: &FilesOffer) -> String {
    let Some(turn) = model.turns.get(offer.id.turn) else { return String::new() };
    match offer.id.goal {
        PickerGoal::Before => back_to(turn),
        PickerGoal::Turn => format!("Take back turn {}: {}", turn.number, words(turn)),
    }
}
