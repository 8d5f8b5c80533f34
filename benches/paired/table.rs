//! The table of the results: a row of Markdown for each operation in each tree.

use std::{fs, io, path::Path};

use crate::{
    operation::{Operation, Round},
    place::Usage,
    tree::Tree,
};

/// The table stands between these lines of a document.
const BEGIN: &str = "<!-- begin: cargo bench --bench paired -->";
const END: &str = "<!-- end: cargo bench --bench paired -->";

pub(crate) const HEAD: &str = "| operation | tree | floor, ms | beforehand, ms | × its floor \
    | × others | peak memory | adds to the disk | system calls |\n|---|---|---|---|---|---|---|---|---|\n";

/// What was found out about an operation in a tree.
pub(crate) struct Row {
    pub(crate) operation: Operation,
    pub(crate) tree: Tree,
    pub(crate) rounds: Vec<Round>,
    pub(crate) added: Usage,
    pub(crate) peak_kb: Option<u64>,
    pub(crate) calls: Option<u64>,
    /// Instructions in user space.
    pub(crate) instructions: Option<u64>,
}

impl Row {
    /// The row; bold is what misses its goal.
    pub(crate) fn line(&self) -> String {
        let (operation, tree) = (self.operation, self.tree);
        let of = |value: fn(&Round) -> f64| self.rounds.iter().map(value).collect::<Vec<_>>();
        let ratio = median(of(|round| round.ours / round.floor));
        let mut calls = self.calls.map_or_else(String::new, |calls| {
            marked(grouped(calls), operation.calls_max().is_some_and(|most| calls > most))
        });
        if let Some(instructions) = self.instructions {
            calls += &format!(", {} instructions", grouped(instructions));
        }
        format!(
            "| {operation} | {tree} | {} | {} | {} | {} | {} | {} | {calls} |\n",
            spread(of(|round| round.floor)),
            spread(of(|round| round.ours)),
            marked(format!("{ratio:.2}"), operation.goal().is_some_and(|goal| ratio > goal)),
            self.others(),
            self.peak(),
            self.disk(),
        )
    }

    fn others(&self) -> String {
        let Some(first) = self.rounds.first() else { return String::new() };
        let names = first.others.iter().map(|(name, _)| *name).enumerate();
        let words = names.map(|(at, name)| {
            let ratio =
                median(self.rounds.iter().map(|round| round.ours / round.others[at].1).collect());
            let goal = self.operation.goal_to(self.tree, name);
            format!(
                "{} {name}",
                marked(format!("{ratio:.2}"), goal.is_some_and(|goal| ratio > goal))
            )
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn peak(&self) -> String {
        let Some(peak) = self.peak_kb else { return String::new() };
        let most = match self.tree {
            Tree::Real(79_000) => 24,
            Tree::Synthetic => 64,
            Tree::Ignored
            | Tree::Held
            | Tree::Loose
            | Tree::Refs
            | Tree::Untracked
            | Tree::Plain
            | Tree::Large
            | Tree::Many
            | Tree::Real(_) => 10,
        };
        let megabytes = peak as f64 / 1024.0;
        marked(format!("{megabytes:.1} MB"), megabytes > f64::from(most))
    }

    fn disk(&self) -> String {
        let Usage { bytes, inodes, links } = self.added;
        if bytes + inodes + links == 0 {
            return "nothing".to_owned();
        }
        let is_over = self.operation.inodes_max(self.tree).is_some_and(|most| inodes > most);
        let mut text =
            format!("{} KB, {} inodes", grouped(bytes / 1024), marked(grouped(inodes), is_over));
        if links > 0 {
            text += &format!(", {} links", grouped(links));
        }
        text
    }
}

/// Replaces the row of the same operation and tree in a document; other rows stay.
pub(crate) fn write(path: &Path, row: &Row) -> io::Result<()> {
    let text = fs::read_to_string(path)?;
    let ends = || io::Error::other(format!("{}: no line `{BEGIN}` or `{END}`", path.display()));
    let (before, rest) = text.split_once(BEGIN).ok_or_else(ends)?;
    let (old, after) = rest.split_once(END).ok_or_else(ends)?;
    let mut lines = vec![row.line()];
    let stays = |line: &&str| {
        let rank = rank(line);
        rank.is_some() && rank != Some((row.operation, row.tree))
    };
    lines.extend(old.lines().filter(stays).map(|line| format!("{line}\n")));
    lines.sort_by_key(|line| rank(line));
    let table = format!("{before}{BEGIN}\n{HEAD}{}{END}{after}", lines.concat());
    let beside = path.with_extension("new");
    fs::write(&beside, table)?;
    fs::rename(beside, path)
}

/// Where a line belongs; `None` if it is no row.
fn rank(line: &str) -> Option<(Operation, Tree)> {
    let mut cells = line.strip_prefix("| ")?.split(" | ");
    let (operation, tree) = (cells.next()?, cells.next()?);
    let operation = Operation::ALL.into_iter().find(|known| known.to_string() == operation)?;
    Some((operation, Tree::ALL.into_iter().find(|known| known.to_string() == tree)?))
}

fn marked(text: String, is_missed: bool) -> String {
    if is_missed { format!("**{text}**") } else { text }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median, and the least and the most.
fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let show = |time: f64| if time < 10.0 { format!("{time:.2}") } else { format!("{time:.0}") };
    let last = times.len() - 1;
    format!("{} [{}–{}]", show(times[times.len() / 2]), show(times[0]), show(times[last]))
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
