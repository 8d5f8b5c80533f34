//! `beforehand blame`: who wrote each line of a file, as far as that is known for certain.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{
    Project, json_time, print, print_json, print_text,
    rows::{agent_name, agent_title, on_one_line},
    say_text,
};
use crate::{
    error::{Error, Result},
    fs::without_dots,
    model::RelPath,
    process::{Exit, Process},
    restore::{BlamedLine, FileHistory, HistoryTurn, LineWriter, WriterCandidates},
    ui::{self, Align, Clock, Cut, Style},
};

/// Show which turn wrote each line of a file, or you, or that it was there before.
///
/// From what is held alone: nothing needs to be committed, and what commands changed counts as well.
/// Where more than one can have written a line, it is unknown, with those who can.
#[derive(clap::Args)]
pub(crate) struct BlameArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only these lines, as in `10,20`, `10,+5` or `10,`
    #[arg(short = 'L', value_name = "FROM,TO")]
    lines: Option<String>,
    /// Print an object with an array of the lines
    #[arg(long, conflicts_with = "porcelain")]
    json: bool,
    /// Print in the format of `git blame --porcelain`
    #[arg(long)]
    porcelain: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &BlameArgs) -> Result<Exit> {
    let range = args.lines.as_deref().map(LineRange::parse).transpose()?;
    let project = Project::open(process, None)?;
    let path = path_of(process, &project, &args.file)?;
    let history = FileHistory::of(&project)?;
    let lines = history.blame(&path)?;
    let range = match range {
        Some(range) => range.within(lines.len(), &path)?,
        None => 0..lines.len(),
    };
    let (project, history, path, now) = (&project, &history, &path, process.now);
    let shown = BlameView { project, history, path, now };
    let lines: Vec<(usize, &BlamedLine)> = range.map(|at| (at + 1, &lines[at])).collect();
    if args.json {
        print_json(process, "blame", shown.json(&lines))?;
    } else if args.porcelain {
        print(process, &shown.porcelain(&lines))?;
    } else {
        shown.words(process, &lines)?;
    }
    Ok(Exit::Ok)
}

/// The file the user means, as it is called below the root.
fn path_of(process: &Process<'_>, project: &Project, file: &Path) -> Result<RelPath> {
    let cwd = project.cwd.clone().or_else(|| process.cwd.clone());
    let absolute = without_dots(&cwd.unwrap_or_default().join(file));
    project.root.relative(&absolute).map_err(|_| {
        let (file, root) = (ui::escape_path(file), project.root.path());
        let root = ui::path(root, project.home.as_deref());
        Error::other(format!("`{file}` is no file of {root}"), "name a file of the project")
    })
}

/// Lines from one to another, from 1; without an end, to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineRange {
    from: usize,
    to: Option<usize>,
}

impl LineRange {
    fn parse(text: &str) -> Result<Self> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
        let (from, to) = text.split_once(',').unwrap_or((text, text));
        let from = if from.is_empty() { Some(1) } else { number(from) };
        let to = match (to.strip_prefix('+'), from) {
            _ if to.is_empty() => Some(None),
            (Some(count), Some(from)) => number(count).map(|count| Some(from + count - 1)),
            (Some(_), None) => None,
            (None, _) => number(to).map(Some),
        };
        match (from, to) {
            (Some(from), Some(to)) if to.is_none_or(|to| from <= to) => Ok(Self { from, to }),
            _ => Err(Error::usage(
                format!("`-L {}` is no range of lines", ui::escape(text.as_bytes())),
                "as in `-L 10,20`, the smaller number first",
            )),
        }
    }

    /// The same as places among so many lines.
    fn within(self, count: usize, path: &RelPath) -> Result<std::ops::Range<usize>> {
        if self.from > count {
            let path = ui::escape(path.as_bytes());
            return Err(Error::other(
                format!("`{path}` has only {}", ui::count(count as u64, "line")),
                "name lines that are there",
            ));
        }
        let to = self.to.unwrap_or(count).min(count);
        Ok((self.from - 1).min(to)..to)
    }
}

/// What is shown, and of what.
struct BlameView<'a> {
    project: &'a Project,
    history: &'a FileHistory<'a>,
    path: &'a RelPath,
    now: DateTime<Utc>,
}

impl BlameView<'_> {
    fn turn(&self, turn: usize) -> &HistoryTurn {
        &self.history.turns[turn]
    }

    /// A writer in a word or two.
    fn who(&self, writer: &LineWriter) -> String {
        match writer {
            LineWriter::Before => "before".to_owned(),
            LineWriter::User => "you".to_owned(),
            LineWriter::Unknown(_) => "unknown".to_owned(),
            LineWriter::Turn(turn) => turn_words(self.turn(*turn)),
        }
    }

    fn words(&self, process: &mut Process<'_>, lines: &[(usize, &BlamedLine)]) -> Result<()> {
        let (clock, is_read) = (Clock::local(process.now), process.terminal.stdout);
        let style = Style::stdout(process);
        let when = |writer: &LineWriter| match writer {
            LineWriter::Turn(turn) => clock.when(self.turn(*turn).at),
            LineWriter::Before | LineWriter::User | LineWriter::Unknown(_) => String::new(),
        };
        let width = |texts: Vec<String>| texts.iter().map(|it| ui::cells(it)).max().unwrap_or(0);
        let who = width(lines.iter().map(|(_, line)| self.who(&line.writer)).collect());
        let times = width(lines.iter().map(|(_, line)| when(&line.writer)).collect());
        let digits = lines.last().map_or(1, |(number, _)| number.to_string().len());
        let columns = process.terminal.stdout_columns().map(usize::from);
        let mut text = String::new();
        for (number, line) in lines {
            let head = format!(
                "{}  {}  {}  ",
                ui::pad(&self.who(&line.writer), who, Align::Left),
                ui::pad(&when(&line.writer), times, Align::Left),
                ui::pad(&number.to_string(), digits, Align::Right),
            );
            let room = columns.map(|columns| columns.saturating_sub(ui::cells(&head)));
            let code = ui::escape_line(&line.text);
            let code = room.map_or(code.clone(), |room| ui::fit(&code, room, Cut::End));
            let _infallible =
                writeln!(text, "{}", format!("{}{code}", style.dim(&head)).trim_end());
        }
        print(process, &text)?;
        let legend = self.legend(lines, &clock, columns);
        if is_read && !legend.is_empty() {
            print_text(process, &format!("\n{legend}"))?;
        } else {
            say_text(process, &legend);
        }
        Ok(())
    }

    /// What the writers of some lines are, a line each.
    fn legend(
        &self,
        lines: &[(usize, &BlamedLine)],
        clock: &Clock,
        columns: Option<usize>,
    ) -> String {
        let mut writers: Vec<&LineWriter> = Vec::new();
        for (_, line) in lines {
            if !writers.contains(&&line.writer) {
                writers.push(&line.writer);
            }
        }
        let rows =
            writers.iter().map(|writer| (self.who(writer), self.writer_words(writer, clock)));
        let rows: Vec<(String, String)> = rows.collect();
        let width = rows.iter().map(|(who, _)| ui::cells(who)).max().unwrap_or(0);
        let line = |(who, words): &(String, String)| {
            let line = format!("{}  {words}", ui::pad(who, width, Align::Left));
            format!(
                "{}\n",
                columns.map_or((&*line).into(), |columns| ui::fit(&line, columns, Cut::End))
            )
        };
        rows.iter().map(line).collect()
    }

    fn writer_words(&self, writer: &LineWriter, clock: &Clock) -> String {
        match writer {
            LineWriter::Before => {
                format!("before the first checkpoint, {}", clock.when(self.history.begins()))
            }
            LineWriter::User => "by no call of an agent".to_owned(),
            LineWriter::Turn(turn) => {
                let turn = self.turn(*turn);
                let agent = turn.by.as_ref().map_or("an agent", |by| agent_title(by.agent));
                let words = format!("{agent}, {}", clock.when(turn.at));
                match turn.by.as_ref().and_then(|by| by.prompt.as_deref()) {
                    Some(prompt) => {
                        let prompt = on_one_line(prompt);
                        format!("{words}: {}", ui::escape(prompt.as_bytes()))
                    }
                    None => words,
                }
            }
            LineWriter::Unknown(candidates) => self.candidates(candidates),
        }
    }

    fn candidates(&self, candidates: &WriterCandidates) -> String {
        if self.history.is_lost() {
            return "a part of the log of calls cannot be read".to_owned();
        }
        let turns = candidates.turns.iter().map(|turn| turn_words(self.turn(*turn)));
        let mut all: Vec<String> = turns.collect();
        all.extend(candidates.user.then(|| "you".to_owned()));
        match (all.is_empty(), candidates.any) {
            (true, _) if candidates.brought => "brought from a fork".to_owned(),
            (true, _) => "what was there meanwhile is not held".to_owned(),
            (false, false) => format!("one of: {}", all.join(", ")),
            (false, true) => format!("perhaps {}", all.join(", ")),
        }
    }

    fn json(&self, lines: &[(usize, &BlamedLine)]) -> Value {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = |(number, line): &(usize, &BlamedLine)| {
            let (who, turn, candidates) = match &line.writer {
                LineWriter::Before => ("before", None, None),
                LineWriter::User => ("you", None, None),
                LineWriter::Turn(turn) => ("turn", Some(*turn), None),
                LineWriter::Unknown(candidates) => ("unknown", None, Some(candidates)),
            };
            let candidates = candidates.map(|candidates| {
                let turns = candidates.turns.iter().map(|turn| self.turn_json(*turn));
                let you = candidates.user.then(|| json!("you"));
                turns.chain(you).collect::<Vec<_>>()
            });
            json!({
                "line": number,
                "writer": who,
                "turn": turn.map(|turn| self.turn_json(turn)),
                "candidates": candidates,
                "path": text(line.path.as_bytes()),
                "path_line": line.number,
                "since": line.since.map(json_time),
                "until": json_time(line.until.unwrap_or(self.now)),
                "text": text(&line.text),
            })
        };
        json!({
            "root": self.project.root.path().to_string_lossy(),
            "path": text(self.path.as_bytes()),
            "first": json_time(self.history.begins()),
            "lines": lines.iter().map(line).collect::<Vec<_>>(),
        })
    }

    fn turn_json(&self, turn: usize) -> Value {
        let HistoryTurn { number, checkpoint, at, by, .. } = self.turn(turn);
        let by = by.as_ref();
        json!({
            "number": number,
            "checkpoint": checkpoint.to_string(),
            "time": json_time(*at),
            "agent": by.map(|by| agent_name(by.agent)),
            "session": by.map(|by| &by.session.0),
            "turn": by.and_then(|by| Some(&by.turn.as_ref()?.0)),
            "prompt": by.and_then(|by| by.prompt.as_ref()),
        })
    }

    /// As `git blame --porcelain`: what is known of a writer is not said again with its next lines. A turn has its
    /// checkpoint's id with zeros behind; you have none but zeros, as what is not committed has in git.
    fn porcelain(&self, lines: &[(usize, &BlamedLine)]) -> String {
        let lines: Vec<_> = lines.iter().map(|(at, line)| self.porcelain_line(*at, line)).collect();
        let mut paths: BTreeMap<&str, BTreeSet<&RelPath>> = BTreeMap::new();
        for line in &lines {
            paths.entry(&line.id).or_default().insert(&line.of.path);
        }
        let mut told: BTreeMap<&str, &str> = BTreeMap::new();
        let mut text = String::new();
        for group in lines.chunk_by(PorcelainLine::goes_on) {
            let first = &group[0];
            // Where no writer is known, or only you, more can be known at one line than at another.
            let is_new = told.insert(&first.id, &first.about) != Some(&first.about);
            let about = if is_new { &*first.about } else { "" };
            let is_named = is_new || paths[&*first.id].len() > 1;
            let name = format!("filename {}\n", ui::escape(first.of.path.as_bytes()));
            let name = if is_named { &*name } else { "" };
            let count = group.len();
            let head = format!("{} {count}\n{about}{name}{}", first.numbers(), first.code());
            text.push_str(&head);
            for line in &group[1..] {
                let _infallible = write!(text, "{}\n{}", line.numbers(), line.code());
            }
        }
        text
    }

    fn porcelain_line<'l>(&self, number: usize, of: &'l BlamedLine) -> PorcelainLine<'l> {
        let (id, about) = (self.porcelain_id(&of.writer), self.porcelain_about(of));
        PorcelainLine { number, id, about, of }
    }

    fn porcelain_id(&self, writer: &LineWriter) -> String {
        match writer {
            LineWriter::Turn(turn) => format!("{:0<40}", self.turn(*turn).checkpoint.to_string()),
            LineWriter::User => "0".repeat(40),
            LineWriter::Before => format!("{:0>40}", 1),
            LineWriter::Unknown(_) => format!("{:0>40}", 2),
        }
    }

    /// What is known of who wrote a line.
    fn porcelain_about(&self, line: &BlamedLine) -> String {
        // When it was written is not known, only when it was there.
        let until = line.until.unwrap_or(self.now);
        let (author, at, summary) = match &line.writer {
            LineWriter::Turn(turn) => {
                let turn = self.turn(*turn);
                let agent = turn.by.as_ref().map_or("An agent", |by| agent_title(by.agent));
                let prompt = turn.by.as_ref().and_then(|by| by.prompt.as_deref());
                let summary = prompt.map_or_else(|| turn_words(turn), on_one_line);
                (agent, turn.at, summary)
            }
            LineWriter::User => ("You", until, "by no call of an agent".to_owned()),
            LineWriter::Before => {
                ("Before", self.history.begins(), "before the first checkpoint".to_owned())
            }
            LineWriter::Unknown(candidates) => ("Unknown", until, self.candidates(candidates)),
        };
        let mut text = String::new();
        for role in ["author", "committer"] {
            let _infallible = writeln!(text, "{role} {author}");
            let _infallible = writeln!(text, "{role}-mail <>");
            let _infallible = writeln!(text, "{role}-time {}", at.timestamp());
            let _infallible = writeln!(text, "{role}-tz +0000");
        }
        let _infallible = writeln!(text, "summary {}", ui::escape(summary.as_bytes()));
        if line.writer == LineWriter::Before {
            text.push_str("boundary\n");
        }
        text
    }
}

/// A line as `--porcelain` tells it.
struct PorcelainLine<'a> {
    /// Its number in the file, from 1.
    number: usize,
    id: String,
    /// What is known of who wrote it.
    about: String,
    of: &'a BlamedLine,
}

impl PorcelainLine<'_> {
    /// Whether the next line of the file belongs to the same group.
    fn goes_on(&self, next: &Self) -> bool {
        let is_same = |next: &Self| self.id == next.id && self.about == next.about;
        is_same(next) && self.of.path == next.of.path && self.of.number + 1 == next.of.number
    }

    fn numbers(&self) -> String {
        format!("{} {} {}", self.id, self.of.number, self.number)
    }

    fn code(&self) -> String {
        // Raw bytes would end the line elsewhere, or the terminal's good sense.
        format!("\t{}\n", ui::escape_text(&String::from_utf8_lossy(&self.of.text)))
    }
}

fn turn_words(turn: &HistoryTurn) -> String {
    match turn.number {
        Some(number) => format!("turn {number}"),
        None => format!("turn {}", turn.checkpoint.short()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_lines_is_read_as_git_reads_it() {
        let range = |text: &str| LineRange::parse(text).ok().map(|it| (it.from, it.to));
        assert_eq!(range("2,4"), Some((2, Some(4))));
        assert_eq!(range("2,+3"), Some((2, Some(4))));
        assert_eq!(range("2,"), Some((2, None)));
        assert_eq!(range(",4"), Some((1, Some(4))));
        assert_eq!(range("3"), Some((3, Some(3))));
        for bad in ["4,2", "0,1", "a", "1,b", "1,+0", "-1,2"] {
            assert_eq!(range(bad), None, "{bad}");
        }
        let path = RelPath::from_bytes(b"a").unwrap();
        let within = |text: &str, count| {
            let range = LineRange::parse(text).unwrap().within(count, &path);
            range.ok().map(|it| (it.start, it.end))
        };
        assert_eq!(within("2,4", 3), Some((1, 3)));
        assert_eq!(within("4,9", 3), None);
        assert_eq!(within("1,", 0), None, "as in git");
        assert_eq!(within("2,", 3), Some((1, 3)));
    }
}
