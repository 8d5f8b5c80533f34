//! Computes the layout from the terminal's size alone.

use ratatui::layout::Rect;

/// The picker needs at least this many columns and rows.
pub(super) const COLUMNS_MIN: u16 = 30;
pub(super) const ROWS_MIN: u16 = 8;
/// From this width on, the difference is beside the turns.
const BESIDE_COLUMNS: u16 = 72;
/// From this height on, it is below them in a narrow terminal.
const BELOW_ROWS: u16 = 20;
/// The number of rows for each turn.
pub(super) const TURN_ROWS: u16 = 2;
/// The maximum number of rows above a difference, with and without enough space.
pub(super) const HEAD_ROWS: u16 = 6;
const SHORT_HEAD_ROWS: u16 = 2;
/// From this height on there is enough space.
const ROOMY_ROWS: u16 = 12;
/// How far a page scrolls in a plan.
pub(super) const PLAN_STEP: usize = 5;

/// The areas of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScreenLayout {
    /// Which project, how many turns.
    pub(super) title: Rect,
    /// What is searched for.
    pub(super) search: Rect,
    /// The turns.
    pub(super) turns: Rect,
    /// The difference between the chosen turn and now, if there is space beside or below.
    pub(super) pane: Option<Rect>,
    /// The whole middle, for views that need all of it.
    pub(super) body: Rect,
    /// The keys.
    pub(super) keys: Rect,
}

/// The layout for a terminal of this size; `None` if it is too small.
pub(super) fn layout((columns, rows): (u16, u16)) -> Option<ScreenLayout> {
    if columns < COLUMNS_MIN || rows < ROWS_MIN {
        return None;
    }
    let line = |y| Rect::new(1, y, columns - 2, 1);
    let body = Rect::new(1, 2, columns - 2, rows - 4);
    let (turns, pane) = if columns >= BESIDE_COLUMNS {
        let width = (columns * 2 / 5).clamp(30, 60);
        let left = body.x + width + 3;
        let pane = Rect::new(left, body.y, columns - 1 - left, body.height);
        (Rect { width, ..body }, Some(pane))
    } else if rows >= BELOW_ROWS {
        let height = body.height * 2 / 5 / TURN_ROWS * TURN_ROWS;
        let y = body.y + height + 1;
        let pane = Rect::new(body.x, y, body.width, body.bottom() - y);
        (Rect { height, ..body }, Some(pane))
    } else {
        (body, None)
    };
    Some(ScreenLayout { title: line(0), search: line(1), turns, pane, body, keys: line(rows - 1) })
}

/// How many turns are on the screen at once.
pub(super) fn turns_on(size: (u16, u16)) -> usize {
    layout(size).map_or(1, |layout| usize::from(layout.turns.height / TURN_ROWS).max(1))
}

/// The maximum number of rows above a difference in a pane of this height.
pub(super) fn head_rows(height: u16) -> u16 {
    if height < ROOMY_ROWS { SHORT_HEAD_ROWS } else { HEAD_ROWS }
}

/// How many lines of a difference are on the screen when it has all of it.
pub(super) fn diff_rows(size: (u16, u16)) -> usize {
    let rows = |height: u16| usize::from(height.saturating_sub(head_rows(height)));
    layout(size).map_or(1, |layout| rows(layout.body.height).max(1))
}

/// The rows above a list of files or hunks, and above what a part of them would do.
pub(super) const FILES_HEAD_ROWS: u16 = 2;

/// How many files, or lines of hunks, are on the screen at once.
pub(super) fn file_rows(size: (u16, u16)) -> usize {
    layout(size).map_or(1, |layout| usize::from(layout.body.height - FILES_HEAD_ROWS).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_place_at_every_size() {
        for columns in 0..200 {
            for rows in 0..70 {
                let Some(layout) = layout((columns, rows)) else { continue };
                let screen = Rect::new(0, 0, columns, rows);
                let pane = layout.pane.unwrap_or(layout.body);
                for part in [layout.title, layout.turns, pane, layout.body, layout.keys] {
                    assert_eq!(part.intersection(screen), part, "{columns}x{rows}: {part:?}");
                    assert!(!part.is_empty(), "{columns}x{rows}: {part:?}");
                }
                assert!(layout.turns.height >= TURN_ROWS, "{columns}x{rows}");
            }
        }
    }
}
