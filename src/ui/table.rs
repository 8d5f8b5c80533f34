//! Lays out rows in columns, measured in cells, within a given width.

use super::{Align, Cut, Paint, Style, cells, escape, fit, width::spaces, wrap};

/// The format of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What stands above it; nothing is fine.
    pub title: &'static str,
    /// On which side its texts stand.
    pub align: Align,
    /// Where its texts may be shortened if the table is too wide; `None` for nowhere.
    pub cut: Option<Cut>,
    /// Whether a text that does not fit is shown whole, below its row. For the last column alone.
    pub below: bool,
}

impl Column {
    /// A column of words.
    pub const fn left(title: &'static str) -> Self {
        Self { title, align: Align::Left, cut: None, below: false }
    }

    /// A column of numbers.
    pub const fn right(title: &'static str) -> Self {
        Self { title, align: Align::Right, cut: None, below: false }
    }

    /// A column that is shortened if the table is too wide.
    pub const fn cut(title: &'static str, cut: Cut) -> Self {
        Self { title, align: Align::Left, cut: Some(cut), below: false }
    }

    /// A last column of sentences: one that does not fit is shown whole, below its row.
    pub const fn below(title: &'static str) -> Self {
        Self { title, align: Align::Left, cut: None, below: true }
    }
}

/// One text in a table. It is escaped when it is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// A text with a style.
    pub fn new(text: &str, paint: Paint) -> Self {
        Self { text: escape(text.as_bytes()).into_owned(), paint }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Paint::Plain)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(&text, Paint::Plain)
    }
}

/// A table. Indented, without lines, two spaces between columns, none at the end of a line.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// What stands before each line.
const INDENT: usize = 2;

/// What stands between two columns.
const GAP: usize = 2;

/// No column is shortened below this width.
const CUT_MIN: usize = 8;

/// A shorter text stays in its row: other columns are shortened for it.
const BELOW_MIN: usize = 12;

/// Where a text begins that is shown below its row.
const BELOW_INDENT: usize = 6;

impl Table {
    /// An empty table.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; extra cells are dropped.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(cells.into());
    }

    /// The table as text, each line ended. If `columns` is known, shortens columns as needed.
    pub fn show(&self, columns: Option<u16>, style: Style) -> String {
        let has_titles = self.columns.iter().any(|column| !column.title.is_empty());
        let title = |column: &Column| Cell::new(column.title, Paint::Dim);
        let titles: Vec<Cell> = self.columns.iter().map(title).filter(|_| has_titles).collect();
        let titles = Some(titles).filter(|titles| !titles.is_empty());
        let rows: Vec<&[Cell]> = titles.iter().chain(&self.rows).map(Vec::as_slice).collect();
        let widths = self.widths(&rows, columns.map(usize::from));
        let mut shown = String::new();
        for row in rows {
            let below = columns.and_then(|columns| self.below(row, &widths, columns.into()));
            let row = if below.is_some() { &row[..row.len() - 1] } else { row };
            self.push_line(&mut shown, row, &widths, style);
            if let Some((cell, columns)) = below {
                let text = wrap(&cell.text, columns, BELOW_INDENT);
                let text = style.paint(cell.paint, &text);
                shown.push_str(&format!("{:BELOW_INDENT$}{text}\n", ""));
            }
        }
        shown
    }

    /// The last cell of a row if it must be shown below it, and the width that the text may have.
    fn below<'r>(
        &self,
        row: &'r [Cell],
        widths: &[usize],
        columns: usize,
    ) -> Option<(&'r Cell, usize)> {
        let column = self.columns.last().filter(|_| row.len() == self.columns.len())?;
        let (cell, (_, others)) = (row.last()?, widths.split_last()?);
        let begins = INDENT + others.iter().map(|width| width + GAP).sum::<usize>();
        (column.below && begins + cells(&cell.text) > columns).then_some((cell, columns))
    }

    /// The rows for what is no terminal, a line each: every cell as it is, two spaces between them,
    /// and nothing to fill a column up. What stands above the columns comes first.
    pub fn lines(&self) -> (String, String) {
        let line = |texts: Vec<&str>| {
            let told: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
            format!("{}\n", told.join("  "))
        };
        let titles = line(self.columns.iter().map(|column| column.title).collect());
        let rows = self.rows.iter().map(|row| line(row.iter().map(|cell| &*cell.text).collect()));
        (titles, rows.collect())
    }

    fn widths(&self, rows: &[&[Cell]], width: Option<usize>) -> Vec<usize> {
        let widest =
            |n: usize| rows.iter().filter_map(|row| row.get(n)).map(|cell| cells(&cell.text)).max();
        let mut widths: Vec<_> = (0..self.columns.len()).map(|n| widest(n).unwrap_or(0)).collect();
        let gaps = INDENT + GAP * widths.len().saturating_sub(1);
        let needed = self
            .columns
            .iter()
            .zip(&widths)
            .map(|(column, &width)| if column.below { width.min(BELOW_MIN) } else { width });
        let all = gaps + needed.sum::<usize>();
        for _ in 0..all.saturating_sub(width.unwrap_or(all)) {
            // The widest one gives way.
            let may_be_cut = self.columns.iter().zip(&mut widths).filter(|it| it.0.cut.is_some());
            match may_be_cut.map(|(_, width)| width).max() {
                Some(width) if *width > CUT_MIN => *width -= 1,
                Some(_) | None => break,
            }
        }
        widths
    }

    fn push_line(&self, line: &mut String, row: &[Cell], widths: &[usize], style: Style) {
        let mut held_back = INDENT;
        for ((cell, column), width) in row.iter().zip(&self.columns).zip(widths) {
            let text = match column.cut {
                Some(cut) => fit(&cell.text, *width, cut),
                None => (&cell.text).into(),
            };
            let (before, behind) = spaces(&text, *width, column.align);
            let begins = text.trim_start_matches(' ');
            let shown = begins.trim_end_matches(' ');
            held_back += before + text.len() - begins.len();
            // Spaces are held back until something follows them.
            if !shown.is_empty() {
                line.extend(std::iter::repeat_n(' ', held_back));
                line.push_str(&style.paint(cell.paint, shown));
                held_back = 0;
            }
            held_back += begins.len() - shown.len() + behind + GAP;
        }
        line.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Table {
        let mut table = Table::new([
            Column::right("#"),
            Column::left("id"),
            Column::left("when"),
            Column::cut("what", Cut::End),
            Column::left("changed since"),
        ]);
        let bright = |id| Cell::new(id, Paint::Bold);
        table.row([
            "1".into(),
            bright("cfa2"),
            "2 minutes ago".into(),
            "before Bash rm -rf build && npm i".into(),
            "4 files  +12 −230".into(),
        ]);
        table.row(["10".into(), bright("b81c"), "1 hour ago".into(), "日本\u{1b}[2J\n".into()]);
        table.row(["11".into(), bright("e07d"), "".into(), "".into(), "no files".into()]);
        table
    }

    #[test]
    fn a_table_is_as_wide_as_what_is_in_it() {
        let shown = turns().show(None, Style::PLAIN);
        insta::assert_snapshot!(format!("free:\n{shown}"), @r"
        free:
           #  id    when           what                               changed since
           1  cfa2  2 minutes ago  before Bash rm -rf build && npm i  4 files  +12 −230
          10  b81c  1 hour ago     日本\u{1b}[2J\n
          11  e07d                                                    no files
        ");
    }

    #[test]
    fn a_table_gives_way_where_it_may() {
        let shown = turns().show(Some(70), Style::PLAIN);
        insta::assert_snapshot!(format!("70 cells:\n{shown}"), @r"
        70 cells:
           #  id    when           what                      changed since
           1  cfa2  2 minutes ago  before Bash rm -rf buil…  4 files  +12 −230
          10  b81c  1 hour ago     日本\u{1b}[2J\n
          11  e07d                                           no files
        ");
        // Never below what still says something.
        assert_eq!(turns().show(Some(1), Style::PLAIN), turns().show(Some(54), Style::PLAIN));
    }

    #[test]
    fn the_widest_column_gives_way_and_a_sentence_goes_below_its_row() {
        let columns = [Column::cut("", Cut::Middle), Column::cut("", Cut::End), Column::below("")];
        let mut table = Table::new(columns);
        table.row(["~/a/very/long/path".into(), "short".into(), "gone".into()]);
        table.row(["~/b".into(), "middling".into(), "not protected: it lies elsewhere".into()]);
        let shown = table.show(Some(34), Style::PLAIN);
        insta::assert_snapshot!(format!("34 cells:\n{shown}"), @r"
        34 cells:
          ~/a…path  short     gone
          ~/b       middling
              not protected: it lies
              elsewhere
        ");
        assert!(shown.lines().all(|line| cells(line) <= 34), "{shown}");
    }

    #[test]
    fn what_is_no_terminal_gets_no_padding() {
        let (titles, lines) = turns().lines();
        assert_eq!(titles, "#  id  when  what  changed since\n");
        insta::assert_snapshot!(lines, @r"
        1  cfa2  2 minutes ago  before Bash rm -rf build && npm i  4 files  +12 −230
        10  b81c  1 hour ago  日本\u{1b}[2J\n
        11  e07d  no files
        ");
    }

    #[test]
    fn colour_changes_no_width() {
        let colour = turns().show(Some(70), Style::COLOUR);
        let plain = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"]
            .iter()
            .fold(colour, |text, code| text.replace(code, ""));
        assert_eq!(plain, turns().show(Some(70), Style::PLAIN));
    }

    #[test]
    fn without_titles_there_is_no_title_line() {
        let mut table = Table::new([Column::left(""), Column::left("")]);
        table.row(["restore".into(), "src/cart.ts".into()]);
        assert_eq!(table.show(None, Style::PLAIN), "  restore  src/cart.ts\n");
    }
}
