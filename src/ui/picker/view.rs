//! Draws the picker's state. Pure; draws only inside the frame.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style as Attributes},
};

use super::{
    layout::{self, COLUMNS_MIN, ROWS_MIN, ScreenLayout, TURN_ROWS},
    model::{Choice, Model, PickerGoal, PickerTurn, PickerView, TurnDetails},
    sheet::Sheet,
};
use crate::ui::{Align, Cut, Paint, Style, cells, count, fit, number, pad};

/// Draws everything.
pub(super) fn view(frame: &mut Frame<'_>, model: &Model, style: Style) {
    let mut canvas = Canvas { buffer: frame.buffer_mut(), style };
    let Some(layout) = layout::layout(model.size) else { return canvas.too_small(model.size) };
    canvas.title(layout.title, model);
    canvas.keys(layout.keys, model);
    match model.step {
        PickerView::Turns => {
            canvas.turns(layout.turns, model);
            if let Some(pane) = layout.pane {
                canvas.divide(&layout, pane);
                canvas.since(pane, model, 0);
            }
        }
        PickerView::Diff { top } => canvas.since(layout.body, model, top),
        PickerView::Files { at, top } => canvas.files(layout.body, model, at, top),
        PickerView::Hunks { file, at, top } => canvas.hunks(layout.body, model, (file, at), top),
        PickerView::Part { top } => canvas.part(layout.body, model, top),
        PickerView::Choices { at, top } => match layout.pane {
            Some(pane) if pane.x > layout.turns.x && pane.width >= PLAN_COLUMNS => {
                canvas.turns(layout.turns, model);
                canvas.divide(&layout, pane);
                canvas.choices(pane, model, at, top);
            }
            Some(_) | None => canvas.choices(layout.body, model, at, top),
        },
    }
    let caret = canvas.search(layout.search, model);
    if let Some(caret) = caret.filter(|_| model.step == PickerView::Turns) {
        frame.set_cursor_position(caret);
    }
}

/// With fewer columns a plan has no space for reasons, so it takes the whole width.
const PLAN_COLUMNS: u16 = 72;

/// From this height on, blank rows set the choices apart.
const ROOMY_CHOICE_ROWS: u16 = 11;
/// So many rows of what a choice would do are shown at least.
const PLAN_ROWS_MIN: u16 = 2;

/// A frame's cells, and whether they may have colour.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    style: Style,
}

impl Canvas<'_> {
    fn attributes(&self, paint: Paint) -> Attributes {
        let plain = Attributes::default();
        if self.style == Style::PLAIN {
            return plain;
        }
        match paint {
            Paint::Plain => plain,
            Paint::Dim => plain.add_modifier(Modifier::DIM),
            Paint::Bold => plain.add_modifier(Modifier::BOLD),
            Paint::Red => plain.fg(Color::Red),
            Paint::Green => plain.fg(Color::Green),
        }
    }

    /// Writes a text into a row of `area`, cut to its width.
    pub(super) fn put(&mut self, area: Rect, row: u16, paint: Paint, text: &str) {
        if row < area.height {
            let width = usize::from(area.width);
            let text = fit(text, width, Cut::End);
            let attributes = self.attributes(paint);
            self.buffer.set_stringn(area.x, area.y + row, text, width, attributes);
        }
    }

    /// Writes a text and a second one at the right end, which is cut last.
    pub(super) fn put_both(&mut self, area: Rect, row: u16, paint: Paint, left: &str, right: &str) {
        let right = fit(right, usize::from(area.width), Cut::End);
        let taken = u16::try_from(cells(&right)).unwrap_or(0);
        let gap = if taken > 0 { 2 } else { 0 };
        let left_width = area.width.saturating_sub(taken + gap);
        self.put(Rect { width: left_width, ..area }, row, paint, left);
        let at = Rect { x: area.right() - taken, width: taken, ..area };
        self.put(at, row, Paint::Dim, &right);
    }

    fn too_small(&mut self, (columns, rows): (u16, u16)) {
        let area = self.buffer.area;
        let said = format!("this terminal is {columns}×{rows}");
        for (row, line) in
            [said, format!("{COLUMNS_MIN}×{ROWS_MIN} is needed"), "Esc leaves".to_owned()]
                .iter()
                .enumerate()
        {
            self.put(area, u16::try_from(row).unwrap_or(u16::MAX), Paint::Plain, line);
        }
    }

    fn title(&mut self, area: Rect, model: &Model) {
        let turns = count(model.count as u64, "turn");
        self.put_both(area, 0, Paint::Bold, &model.title, &turns);
    }

    /// The search text and the cursor.
    fn search(&mut self, area: Rect, model: &Model) -> Option<(u16, u16)> {
        let search = model.search.as_ref()?;
        let found = match model.fitting.iter().filter(|n| **n < model.count).count() {
            0 => "none".to_owned(),
            n => format!("{} of {}", number(n as u64), number(model.count as u64)),
        };
        // The end of it is what the user is typing.
        let room = usize::from(area.width).saturating_sub(2 + 2 + cells(&found) + 1);
        let mut shown = &search[..];
        while cells(shown) > room {
            shown = &shown[shown.chars().next().map_or(0, char::len_utf8)..];
        }
        let text = format!("/ {shown}");
        self.put_both(area, 0, Paint::Plain, &text, &found);
        Some((area.x + u16::try_from(cells(&text)).ok()?, area.y))
    }

    fn keys(&mut self, area: Rect, model: &Model) {
        if let Some(note) = &model.note {
            return self.put(area, 0, Paint::Bold, note);
        }
        let said = keys_of(model);
        // An item that does not fit is left out as a whole.
        let mut line = String::new();
        for said in said {
            let longer =
                if line.is_empty() { (*said).to_owned() } else { format!("{line} · {said}") };
            if cells(&longer) <= usize::from(area.width) {
                line = longer;
            }
        }
        self.put(area, 0, Paint::Dim, &line);
    }

    /// The line between the turns and what stands beside or below them.
    fn divide(&mut self, layout: &ScreenLayout, pane: Rect) {
        let attributes = self.attributes(Paint::Dim);
        if pane.x > layout.turns.x {
            for y in pane.top()..pane.bottom() {
                self.buffer.set_string(pane.x - 2, y, "│", attributes);
            }
        } else {
            let line = "─".repeat(usize::from(pane.width));
            self.buffer.set_string(pane.x, pane.y - 1, line, attributes);
        }
    }

    fn turns(&mut self, area: Rect, model: &Model) {
        if model.turns.is_empty() {
            self.put(area, 0, Paint::Plain, "no checkpoints yet");
            return;
        }
        if model.fitting.is_empty() {
            self.put(area, 0, Paint::Plain, "no turn fits the search");
            return;
        }
        let digits = number(model.count as u64).len();
        let page = usize::from(area.height / TURN_ROWS);
        let shown = model.fitting.iter().enumerate().skip(model.top).take(page);
        for (row, (n, &turn)) in shown.enumerate() {
            let y = area.y + u16::try_from(row).unwrap_or(0) * TURN_ROWS;
            let area = Rect { y, height: TURN_ROWS, ..area };
            let known = model.known.get(&turn);
            self.turn(area, &model.turns[turn], known, n == model.at, digits);
        }
    }

    fn turn(
        &mut self,
        area: Rect,
        turn: &PickerTurn,
        known: Option<&TurnDetails>,
        is_chosen: bool,
        digits: usize,
    ) {
        let mark = if is_chosen { "›" } else { " " };
        let paint = if is_chosen { Paint::Bold } else { Paint::Plain };
        // A step stands a little to the right of its turn.
        let number = match turn.step {
            None => pad(&turn.number.to_string(), digits, Align::Right),
            Some(step) => format!("{}  {}.{step}", " ".repeat(digits), turn.number),
        };
        let did = known.and_then(|known| known.did.as_deref()).unwrap_or_default();
        // The time matters most; the pane names the agent as well.
        let when = format!("{mark} {number}  {}", turn.when);
        let whole =
            if turn.step.is_none() { format!("{when} · {}", turn.who) } else { when.clone() };
        let lines = did.split_once("  ").map_or(did, |(_, lines)| lines);
        let fits = |left: &str, right| cells(left) + 2 + cells(right) <= usize::from(area.width);
        match (fits(&whole, did), fits(&when, did)) {
            (true, _) => self.put_both(area, 0, paint, &whole, did),
            (false, true) => self.put_both(area, 0, paint, &when, did),
            (false, false) => self.put_both(area, 0, paint, &when, lines),
        }
        let indent = u16::try_from(cells(&number)).unwrap_or(1) + 4;
        let below = Rect {
            x: area.x + indent.min(area.width),
            width: area.width.saturating_sub(indent),
            ..area
        };
        let badges = within(&badges(turn, known), usize::from(below.width) / 2);
        let second = if is_chosen { Paint::Plain } else { Paint::Dim };
        self.put_both(below, 1, second, words(turn), &badges);
    }

    /// The chosen turn, and what lies between it and now.
    fn since(&mut self, area: Rect, model: &Model, top: usize) {
        let Some(chosen) = model.chosen() else {
            if model.turns.is_empty() {
                self.put(area, 0, Paint::Dim, "an agent's hook takes them,");
                self.put(area, 1, Paint::Dim, "and `beforehand create`");
            }
            return;
        };
        let turn = &model.turns[chosen];
        let known = model.known.get(&chosen);
        let since = known.map_or_else(|| "looking …".to_owned(), TurnDetails::since);
        let badges = badges(turn, known);
        let who = match turn.step {
            None => turn.who.clone(),
            Some(step) => format!("before step {}.{step}", turn.number),
        };
        self.put_both(area, 0, Paint::Bold, &format!("{who} · {}", turn.when), &turn.id);
        let mut row = 1;
        if layout::head_rows(area.height) == layout::HEAD_ROWS {
            let prompt = turn.prompt.as_ref().map(|prompt| format!("\"{prompt}\""));
            let badges = (!badges.is_empty()).then(|| badges.join(" · "));
            for line in prompt.into_iter().chain([turn.trigger.clone(), since]).chain(badges) {
                self.put(area, row, Paint::Plain, &line);
                row += 1;
            }
            row += 1;
        } else {
            let room = usize::from(area.width).saturating_sub(cells(&since) + 2);
            self.put_both(area, row, Paint::Plain, &since, &within(&badges, room));
            row += 1;
        }
        if let Some(known) = known {
            self.lines(under(area, row), &known.diff, top);
        }
    }

    pub(super) fn lines(&mut self, area: Rect, sheet: &Sheet, top: usize) {
        for (row, (paint, line)) in (0..).zip(sheet.from(top, usize::from(area.height))) {
            self.put(area, row, paint, &line);
        }
    }

    /// The choices for the chosen turn, and what the one would do that is chosen.
    fn choices(&mut self, area: Rect, model: &Model, at: usize, top: usize) {
        let Some(chosen) = model.chosen() else { return };
        let turn = &model.turns[chosen];
        let choices = model.choices();
        let heading = match choices[at] {
            Choice::Revert => format!("Take back turn {}: {}", turn.number, words(turn)),
            _ => back_to(turn),
        };
        self.put(area, 0, Paint::Bold, &heading);
        let gap = u16::from(area.height > ROOMY_CHOICE_ROWS);
        // Where not all have room, those around the chosen one are shown, and something of the plan.
        let room = usize::from((area.height - 1 - 2 * gap).saturating_sub(PLAN_ROWS_MIN).max(1));
        let first = (at + 1).saturating_sub(room).min(choices.len().saturating_sub(room));
        let mut row = 1 + gap;
        for (n, choice) in choices.iter().enumerate().skip(first).take(room) {
            let (mark, paint) = if n == at { ("›", Paint::Bold) } else { (" ", Paint::Plain) };
            self.put(area, row, paint, &format!("{mark} {}  {}", n + 1, named(*choice)));
            row += 1;
        }
        let below = under(area, row + gap);
        self.effect(below, model.known.get(&chosen), choices[at], top);
    }

    /// What a choice would do.
    fn effect(&mut self, area: Rect, known: Option<&TurnDetails>, choice: Choice, top: usize) {
        let mut row = 0;
        if choice.has_conversation() {
            let said = match known.and_then(|known| known.talk.as_ref()) {
                Some(Ok(said) | Err(said)) => said,
                None => "reading the conversation …",
            };
            self.put(area, 0, Paint::Plain, said);
            row += 1;
        }
        if choice == Choice::ConversationOnly {
            return self.put(area, row, Paint::Plain, "the files stay as they are");
        }
        let plan = known.and_then(|known| known.plan_of(choice));
        let why = known.and_then(|known| known.why_not(choice));
        match (plan, why) {
            (Some(plan), _) => self.lines(under(area, row), plan, top),
            (None, Some(why)) => self.put(area, row, Paint::Plain, why),
            (None, None) => self.put(area, row, Paint::Dim, "finding out what that would do …"),
        }
    }
}

/// The keys that do something, those that matter most first.
fn keys_of(model: &Model) -> &'static [&'static str] {
    let has_files = |at: usize| model.choices().get(at).is_some_and(|it| it.goal().is_some());
    let is_revert = model.offer.as_ref().is_some_and(|it| it.id.goal == PickerGoal::Turn);
    match (model.step, &model.search) {
        (PickerView::Turns, None) => {
            &["↑↓ move", "Enter choose", "Esc leave", "→ diff", "Tab steps", "type to search"]
        }
        (PickerView::Turns, Some(_)) => {
            &["↑↓ move", "Enter choose", "Esc end search", "→ diff", "Tab steps"]
        }
        (PickerView::Diff { .. }, _) => &["↑↓ scroll", "Enter choose", "Esc back", "Space page"],
        (PickerView::Choices { at, .. }, _) if has_files(at) => {
            &["↑↓ move", "Enter do it", "Esc back", "Space choose files", "PgDn more"]
        }
        (PickerView::Choices { .. }, _) => &["↑↓ move", "Enter do it", "Esc back", "PgDn more"],
        (PickerView::Files { .. }, _) if is_revert => {
            &["Space mark", "r revert", "Enter hunks", "Esc back", "a all", "↑↓ move"]
        }
        (PickerView::Files { .. }, _) => {
            &["Space mark", "r restore", "Enter hunks", "Esc back", "a all", "↑↓ move"]
        }
        (PickerView::Hunks { .. }, _) if is_revert => {
            &["Space mark", "r revert", "Esc back", "s split", "a all", "↑↓ move", "PgDn more"]
        }
        (PickerView::Hunks { .. }, _) => {
            &["Space mark", "r restore", "Esc back", "s split", "a all", "↑↓ move", "PgDn more"]
        }
        (PickerView::Part { .. }, _) => &["Enter do it", "Esc back", "↑↓ scroll"],
    }
}

/// What of an area is below its first rows.
pub(super) fn under(area: Rect, rows: u16) -> Rect {
    Rect { y: (area.y + rows).min(area.bottom()), height: area.height.saturating_sub(rows), ..area }
}

/// Where a restore goes.
pub(super) fn back_to(turn: &PickerTurn) -> String {
    match turn.step {
        None => format!("Back to {}: {}", turn.number, turn.trigger),
        Some(step) => format!("Back to {}.{step}: {}", turn.number, turn.trigger),
    }
}

/// The user's message if known, else what the checkpoint was taken before.
pub(super) fn words(turn: &PickerTurn) -> &str {
    turn.prompt.as_deref().unwrap_or(&turn.trigger)
}

fn badges(turn: &PickerTurn, known: Option<&TurnDetails>) -> Vec<String> {
    let conflicts = known.and_then(TurnDetails::conflict_words);
    turn.badges.iter().cloned().chain(conflicts).collect()
}

/// As many badges as fit, and how many there are besides.
fn within(badges: &[String], width: usize) -> String {
    for shown in (1..=badges.len()).rev() {
        let mut text = badges[..shown].join(" · ");
        if shown < badges.len() {
            text.push_str(&format!(" +{}", badges.len() - shown));
        }
        if cells(&text) <= width {
            return text;
        }
    }
    String::new()
}

fn named(choice: Choice) -> &'static str {
    match choice {
        Choice::Files => "files only",
        Choice::Conversation => "files and conversation",
        Choice::ConversationOnly => "conversation only",
        Choice::Parts => "choose files and hunks",
        Choice::Revert => "this turn alone, and keep what came after it",
        Choice::Diff => "view the diff",
        Choice::Cancel => "cancel",
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
