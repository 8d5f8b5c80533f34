//! The difference of two texts as hunks that can be taken one by one: any subset of them applies.
//!
//! A hunk is a run of replaced lines with the unchanged ones around it. Hunks never overlap, so what
//! is taken of one does not depend on the others.

use std::{ops::Range, time::Duration};

use similar::DiffOp;

use super::{AROUND, HunkWriter, LineMark, compare, is_binary, is_large, push_raw, split};
use crate::ui::Style;

/// How long the shortest difference is looked for. Any other one applies as well.
const COMPARING: Duration = Duration::from_secs(1);

/// One line, with its line feed.
type Line = Vec<u8>;

/// What leads from one text to another, in hunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    old: Vec<Line>,
    hunks: Vec<Hunk>,
}

/// A run of replacements that are taken together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    replaced: Vec<Replaced>,
    /// What the user made of it in an editor.
    edited: Option<Vec<Replaced>>,
    taken: Option<bool>,
}

/// Lines of the old text, and what comes in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replaced {
    old: Range<usize>,
    new: Vec<Line>,
}

/// Why an edited hunk is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// No line is left in it.
    Empty,
    /// A line begins with none of ` `, `-`, `+`, `#` and `\`.
    Sign,
    /// Its unchanged and deleted lines are not those of the file.
    Context,
    /// A line without a line feed is not the last of the file.
    Unended,
    /// It changes lines that another edited hunk changes.
    Overlap,
}

impl Unfit {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Empty => "no line is left in it",
            Self::Sign => "a line begins with none of ` `, `-`, `+` and `#`",
            Self::Context => "its ` ` and `-` lines are not those of the file",
            Self::Unended => "only the last line of a file can be without a line feed",
            Self::Overlap => "it changes lines that another edited hunk changes",
        }
    }
}

impl Patch {
    /// The difference of two texts; `None` where there are no lines to choose: in a binary or large
    /// file, and in two equal ones.
    pub fn of(old: &[u8], new: &[u8]) -> Option<Self> {
        if old == new || [old, new].into_iter().any(|text| is_binary(text) || is_large(text)) {
            return None;
        }
        let (old, new) = (split(old), split(new));
        let deadline = std::time::Instant::now() + COMPARING;
        let mut all: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        let ops = compare(&old, &new, Some(deadline));
        for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            let (minus, plus) = (op.old_range(), op.new_range());
            match all.last_mut() {
                Some((old, new)) if old.end == minus.start && new.end == plus.start => {
                    (old.end, new.end) = (minus.end, plus.end);
                }
                _ => all.push((minus, plus)),
            }
        }
        let owned = |lines: &[&[u8]]| lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
        let mut hunks: Vec<Hunk> = Vec::new();
        for (minus, plus) in all {
            let replaced = Replaced { old: minus, new: owned(&new[plus]) };
            match hunks.last_mut() {
                Some(hunk) if replaced.old.start <= hunk.range().end + 2 * AROUND => {
                    hunk.replaced.push(replaced);
                }
                _ => hunks.push(Hunk { replaced: vec![replaced], edited: None, taken: None }),
            }
        }
        Some(Self { old: owned(&old), hunks })
    }

    /// How many hunks there are. At least one.
    pub fn count(&self) -> usize {
        self.hunks.len()
    }

    /// Whether a hunk is taken; `None` if that is not decided yet.
    pub fn is_taken(&self, hunk: usize) -> Option<bool> {
        self.hunks[hunk].taken
    }

    /// Whether anything is taken.
    pub fn is_any_taken(&self) -> bool {
        self.hunks.iter().any(|hunk| hunk.taken == Some(true))
    }

    /// Decides whether a hunk is taken. One that was edited is taken as it was edited.
    pub fn take(&mut self, hunk: usize, taken: bool) {
        self.hunks[hunk].taken = Some(taken);
    }

    /// Into how many smaller ones a hunk can be split.
    pub fn parts(&self, hunk: usize) -> usize {
        if self.hunks[hunk].edited.is_some() { 1 } else { self.hunks[hunk].replaced.len() }
    }

    /// Splits a hunk where lines in it are unchanged. What was decided of it is open again.
    pub fn split(&mut self, hunk: usize) {
        let whole = self.hunks.remove(hunk);
        let one = |replaced| Hunk { replaced: vec![replaced], edited: None, taken: None };
        self.hunks.splice(hunk..hunk, whole.replaced.into_iter().map(one));
    }

    /// The old text with the hunks that are taken.
    pub fn result(&self) -> Vec<u8> {
        let taken = self.hunks.iter().filter(|hunk| hunk.taken == Some(true));
        let mut replaced: Vec<&Replaced> = taken.flat_map(Hunk::present).collect();
        // Of two insertions at one place, the one of the earlier hunk comes first.
        replaced.sort_by_key(|replaced| replaced.old.start);
        let (mut text, mut at) = (Vec::new(), 0);
        for Replaced { old, new } in replaced {
            text.extend(self.old[at..old.start].iter().flatten());
            text.extend(new.iter().flatten());
            at = old.end;
        }
        text.extend(self.old[at..].iter().flatten());
        text
    }

    /// A hunk as a difference shows it, without the names of the file.
    pub fn show(&self, hunk: usize, style: Style) -> String {
        let mut shown = String::new();
        let new = self.hunks.iter().flat_map(Hunk::present).flat_map(|it| &it.new);
        let is_crlf = self.old.iter().chain(new).all(|line| line.ends_with(b"\r\n"));
        let mut sheet = HunkWriter { shown: &mut shown, style, is_crlf };
        sheet.put(&style.dim(self.header(hunk).trim_end()));
        for (mark, line) in self.lines(hunk) {
            sheet.lines(mark, &[line]);
        }
        shown
    }

    /// A hunk as it is edited: raw bytes, whatever they are.
    pub fn text(&self, hunk: usize) -> Vec<u8> {
        let mut text = self.header(hunk).into_bytes();
        for (mark, line) in self.lines(hunk) {
            push_raw(&mut text, mark, line);
        }
        text
    }

    /// Takes a hunk as it was edited: what [`Patch::text`] gave, with `+` lines added, changed or removed,
    /// and `-` lines turned into unchanged ones or back.
    ///
    /// # Errors
    ///
    /// Says why it cannot be taken, and changes nothing then.
    pub fn edit(&mut self, hunk: usize, text: &[u8]) -> Result<(), Unfit> {
        let replaced = self.read(hunk, text)?;
        let others = self.hunks.iter().enumerate().filter(|(n, _)| *n != hunk);
        let mut others = others.flat_map(|(_, hunk)| hunk.present());
        let overlaps = |it: &Replaced| {
            replaced.iter().any(|new| new.old.start < it.old.end && it.old.start < new.old.end)
        };
        if others.any(overlaps) {
            return Err(Unfit::Overlap);
        }
        let hunk = &mut self.hunks[hunk];
        (hunk.edited, hunk.taken) = (Some(replaced), Some(true));
        Ok(())
    }

    fn read(&self, hunk: usize, text: &[u8]) -> Result<Vec<Replaced>, Unfit> {
        let lines = marked(text)?;
        let range = self.shown(hunk);
        let mut replaced: Vec<Replaced> = Vec::new();
        let mut at = range.start;
        for (mark, line) in &lines {
            if !matches!(mark, LineMark::Added) {
                let is_it = at < range.end && self.old[at] == *line;
                if !is_it {
                    return Err(Unfit::Context);
                }
            }
            let last = replaced.last_mut().filter(|last| last.old.end == at);
            match (mark, last) {
                (LineMark::Same, _) => (),
                (LineMark::Removed, Some(last)) => last.old.end += 1,
                (LineMark::Removed, None) => {
                    replaced.push(Replaced { old: at..at + 1, new: Vec::new() });
                }
                (LineMark::Added, Some(last)) => last.new.push(line.clone()),
                (LineMark::Added, None) => {
                    replaced.push(Replaced { old: at..at, new: vec![line.clone()] });
                }
            }
            at += usize::from(!matches!(mark, LineMark::Added));
        }
        if at != range.end {
            return Err(Unfit::Context);
        }
        // Something comes after a line that has no line feed, or it is no more the last.
        let is_ended = |line: &Line| line.ends_with(b"\n");
        let after = |it: &Replaced| &self.old[it.old.end..];
        let is_unfit = |it: &Replaced| {
            let ends = it.new.iter().rev().skip(usize::from(after(it).is_empty()));
            let before = it.old.start.checked_sub(1).map(|at| &self.old[at]);
            let follows = !it.new.is_empty() && before.is_some_and(|line| !is_ended(line));
            !ends.clone().all(is_ended) || follows
        };
        if replaced.iter().any(is_unfit) { Err(Unfit::Unended) } else { Ok(replaced) }
    }

    /// The lines of the old text that are shown with a hunk: some around it, up to the next ones.
    fn shown(&self, hunk: usize) -> Range<usize> {
        let range = self.hunks[hunk].range();
        let before = hunk.checked_sub(1).map_or(0, |before| self.hunks[before].range().end);
        let after = self.hunks.get(hunk + 1).map_or(self.old.len(), |after| after.range().start);
        let start = range.start.saturating_sub(AROUND).max(before);
        start..(range.end + AROUND).min(after)
    }

    fn lines(&self, hunk: usize) -> Vec<(LineMark, &[u8])> {
        let (range, mut lines) = (self.shown(hunk), Vec::new());
        let mut at = range.start;
        for Replaced { old, new } in self.hunks[hunk].present() {
            lines.extend(self.old[at..old.start].iter().map(|line| (LineMark::Same, &line[..])));
            lines.extend(self.old[old.clone()].iter().map(|line| (LineMark::Removed, &line[..])));
            lines.extend(new.iter().map(|line| (LineMark::Added, &line[..])));
            at = old.end;
        }
        lines.extend(self.old[at..range.end].iter().map(|line| (LineMark::Same, &line[..])));
        lines
    }

    /// `@@ -1,3 +1,4 @@`, where each hunk is counted as if all before it were taken.
    fn header(&self, hunk: usize) -> String {
        let old = self.shown(hunk);
        let grown = |hunk: &Hunk| {
            hunk.present()
                .iter()
                .fold((0, 0), |(plus, minus), it| (plus + it.new.len(), minus + it.old.len()))
        };
        let (mut plus, mut minus) = (0, 0);
        for hunk in &self.hunks[..hunk] {
            let (more, less) = grown(hunk);
            (plus, minus) = (plus + more, minus + less);
        }
        let start = old.start + plus - minus;
        let (more, less) = grown(&self.hunks[hunk]);
        let new = start..start + old.len() + more - less;
        format!("@@ -{} +{} @@\n", super::range_words(&old), super::range_words(&new))
    }
}

impl Hunk {
    /// As it was edited, if it was.
    fn present(&self) -> &[Replaced] {
        self.edited.as_ref().unwrap_or(&self.replaced)
    }

    /// From its first replaced line to behind the last.
    fn range(&self) -> Range<usize> {
        let (first, last) = (self.replaced.first(), self.replaced.last());
        first.map_or(0, |it| it.old.start)..last.map_or(0, |it| it.old.end)
    }
}

/// Reads the lines of an edited hunk.
fn marked(text: &[u8]) -> Result<Vec<(LineMark, Line)>, Unfit> {
    let mut lines: Vec<(LineMark, Line)> = Vec::new();
    for line in split(text) {
        let (mark, rest) = match line.first() {
            // An editor may have removed the blank at the end of what was a blank alone.
            Some(b'\n') => (LineMark::Same, line),
            Some(b' ') => (LineMark::Same, &line[1..]),
            Some(b'-') => (LineMark::Removed, &line[1..]),
            Some(b'+') => (LineMark::Added, &line[1..]),
            Some(b'#' | b'@') | None => continue,
            Some(b'\\') => {
                if let Some((_, last)) = lines.last_mut() {
                    last.pop_if(|byte| *byte == b'\n');
                }
                continue;
            }
            Some(_) => return Err(Unfit::Sign),
        };
        let mut rest = rest.to_vec();
        // An editor may have left the last line without a line feed.
        if !rest.ends_with(b"\n") {
            rest.push(b'\n');
        }
        lines.push((mark, rest));
    }
    if lines.is_empty() { Err(Unfit::Empty) } else { Ok(lines) }
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
