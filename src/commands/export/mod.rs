//! `beforehand export`: what turns did, as commits on a new branch or as patches: one for each.

mod message;
mod patch;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    path::Path,
};

use serde_json::{Value, json};

use super::{Project, print, print_json, print_text, rows::agent_name, say, steps::turn_number};
use crate::{
    error::{Error, Result},
    fs::open_options,
    ledger,
    model::{RelPath, RootKind},
    process::{Exit, Process},
    restore::{
        FileChange, FileHistory, GitFile, HistoryTurn, LeftOfSeries, SeriesFiles, SeriesPart,
        TurnSeries, elsewhere, step_named,
    },
    scan::{ExportRules, GitAuthor, NotExported},
    snapshot,
    store::{
        GitStore,
        git::{NewCommit, NewFile},
        naming, record,
    },
    ui,
};

use message::CommitMessage;
use patch::{MailPatch, PatchNames};

/// So many of the files that are left out are named.
const NAMED_MAX: usize = 10;

/// Write what turns did as commits on a new branch, or as patches that `git am` takes.
///
/// One for each turn, by you, with the agent in a trailer. What changed between two turns in the same files is a
/// commit of its own, and so is what was not committed there before the first. Private and ignored files, and
/// those that no turn changed, are left out and named. HEAD, the index and the files stay as they are.
#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The turns, as in `5..2`; or one, as in `3`
    #[arg(value_name = "N..M")]
    turns: String,
    /// Create this branch from the commit that HEAD was at before the oldest turn; this or --patches is required
    #[arg(long, value_name = "NAME", conflicts_with = "patches")]
    branch: Option<String>,
    /// Write the patches to this directory, which must be new or empty
    #[arg(long, value_name = "DIR")]
    patches: Option<std::path::PathBuf>,
    /// Include your prompts in the messages
    #[arg(long)]
    prompts: bool,
    /// Print an object with an array of the commits or patches
    #[arg(long)]
    json: bool,
}

/// The directories below the root in which a checkpoint holds a repository of its own: it may be gone since.
fn nested(project: &Project) -> Result<BTreeSet<RelPath>> {
    let place = project.state.root(&project.root);
    let mut nested = BTreeSet::new();
    for one in project.store.list()? {
        let Ok(record) = record::read(&place, one.id) else { continue };
        let places = record.repositories.iter().map(|held| &held.path[..]);
        let pointers = record.pointers().map(|(path, _)| &path[..]);
        let git_dirs = places.chain(pointers).filter_map(|path| RelPath::from_bytes(path).ok());
        let named = git_dirs.filter(|path| path.name() == b".git");
        nested.extend(named.filter_map(|path| path.parent()));
    }
    Ok(nested)
}

pub(crate) fn run(process: &mut Process<'_>, args: &ExportArgs) -> Result<Exit> {
    if args.branch.is_none() && args.patches.is_none() {
        return Err(Error::usage(
            "no place to write to",
            "--branch NAME makes commits on a new branch, --patches DIR writes patches",
        ));
    }
    let project = Project::open(process, None)?;
    let range = turn_range(&project, &args.turns)?;
    let repository = project.store.git();
    if let Some(branch) = &args.branch {
        refuse_branch(&project, repository, branch)?;
    }
    let dir = args.patches.as_deref().map(|dir| patch_dir(process, &project, dir)).transpose()?;
    let author = author(process, &project)?;
    let history = FileHistory::of(&project)?;
    let turns = turns_in(process, &project, &history, range)?;
    let base = base(&project, &history, turns[0], repository)?;
    let user = snapshot::user_dirs(process);
    let rules = ExportRules::of(&project.root, &user, &project.settings, nested(&project)?);
    let mut files = ExportFiles { rules, repository, base: base.as_deref(), left: BTreeMap::new() };
    let series = history.series(&turns, &mut files)?;
    let left = files.left;
    let export =
        Export { args, project: &project, history: &history, turns, author, base, series, left };
    let names = match (&args.branch, &dir, repository) {
        (Some(branch), _, Some(repository)) => export.write_branch(repository, branch)?,
        (_, Some(dir), _) => export.write_patches(dir, repository)?,
        (_, _, _) => Vec::new(),
    };
    export.tell(process, dir.as_deref(), &names)?;
    Ok(if names.is_empty() { Exit::Failed } else { Exit::Ok })
}

/// The numbers of the newest and the oldest turn, in whatever order they are given.
fn turn_range(project: &Project, text: &str) -> Result<(usize, usize)> {
    let (one, other) = range_ends(text)?;
    let one = turn_number(project, Some(one))?;
    let other = turn_number(project, Some(other))?;
    Ok((one.min(other), one.max(other)))
}

/// The names of both ends of a range.
fn range_ends(text: &str) -> Result<(&str, &str)> {
    let (one, other) = text.split_once("..").unwrap_or((text, text));
    if [one, other].iter().any(|it| it.is_empty() || step_named(it).is_some()) {
        return Err(Error::usage(
            format!("`{}` names no turns", ui::escape(text.as_bytes())),
            "numbers from `beforehand list`, as in `5..2`",
        ));
    }
    Ok((one, other))
}

fn refuse_branch(project: &Project, repository: Option<&GitStore>, branch: &str) -> Result<()> {
    let Some(repository) = repository.filter(|_| is_git(project)) else {
        let path = ui::path(project.root.path(), project.home.as_deref()).into_owned();
        return Err(Error::other(
            format!("`{path}` is no git repository, and has no branches"),
            "--patches DIR works here",
        ));
    };
    repository.refuse_branch(branch).map_err(|why| {
        let branch = ui::escape(branch.as_bytes()).into_owned();
        Error::other(format!("branch `{branch}` {why}"), "nothing was written; name another one")
    })
}

fn is_git(project: &Project) -> bool {
    matches!(project.root.kind(), RootKind::Git { .. })
}

/// The directory for the patches, which is made when there is something to write.
fn patch_dir(process: &Process<'_>, project: &Project, dir: &Path) -> Result<std::path::PathBuf> {
    let dir = elsewhere::place(process, project, dir)?;
    elsewhere::refuse_full(&dir)?;
    Ok(dir)
}

fn author(process: &Process<'_>, project: &Project) -> Result<GitAuthor> {
    let variable = |name: &str| process.var(name).map(|it| it.to_string_lossy().into_owned());
    let author = GitAuthor::of(&project.root, &snapshot::user_dirs(process), &variable);
    author.ok_or_else(|| {
        Error::other(
            "git has no name and address for you, and each commit needs them",
            "git config --global user.name NAME, and user.email ADDRESS",
        )
    })
}

/// The turns of a range, the oldest first.
fn turns_in(
    process: &Process<'_>,
    project: &Project,
    history: &FileHistory<'_>,
    (newest, oldest): (usize, usize),
) -> Result<Vec<usize>> {
    let numbered = |number: usize| history.turns.iter().position(|it| it.number == Some(number));
    let turns: Vec<usize> = (newest..=oldest).rev().filter_map(numbered).collect();
    if turns.is_empty() {
        let hint = "`beforehand list` shows the turns";
        return Err(Error::other("no call of these turns is known", hint));
    }
    let running = ledger::running(&project.state, process.now);
    let is_running = |turn: &&usize| running.contains(&history.turns[**turn].checkpoint);
    if let Some(turn) = turns.iter().find(is_running) {
        let number = history.turns[*turn].number.unwrap_or_default();
        return Err(Error::other(
            format!("turn {number} is still running, or was interrupted"),
            "try again when the agent has finished",
        ));
    }
    if history.is_lost() {
        return Err(Error::other(
            "what the turns did is not known: a part of the log of calls cannot be read",
            "`beforehand diff` shows what differs between two of them",
        ));
    }
    Ok(turns)
}

/// The commit that HEAD was at before a turn; `None` on a branch without one, and where there is no repository.
fn base(
    project: &Project,
    history: &FileHistory<'_>,
    first: usize,
    repository: Option<&GitStore>,
) -> Result<Option<String>> {
    let of = history.turns[first].checkpoint;
    let checkpoint = project.store.list()?.into_iter().find(|one| one.id == of);
    let commit = checkpoint.and_then(|one| one.head).and_then(|head| head.commit);
    let Some((repository, commit)) = repository.filter(|_| is_git(project)).zip(commit) else {
        return Ok(None);
    };
    let any = RelPath::from_bytes(b".gitignore").expect("a name is a path");
    repository.committed(&commit, &any).map_err(|err| {
        let short = &commit[..commit.len().min(7)];
        Error::other(
            format!(
                "the repository no longer has commit {short}, on which the first turn began: {err}"
            ),
            "a later turn may begin on one that is there",
        )
    })?;
    Ok(Some(commit))
}

/// What belongs in an export.
struct ExportFiles<'a> {
    rules: ExportRules,
    repository: Option<&'a GitStore>,
    base: Option<&'a str>,
    /// What was left out, and why.
    left: BTreeMap<RelPath, NotExported>,
}

impl SeriesFiles for ExportFiles<'_> {
    fn has(&mut self, path: &RelPath) -> bool {
        let why = self.rules.keeps(path);
        self.left.extend(why.map(|why| (path.clone(), why)));
        why.is_none()
    }

    fn begins_with(&mut self, path: &RelPath, there: Option<&GitFile>) -> Result<Option<GitFile>> {
        let Some(repository) = self.repository else { return Ok(there.cloned()) };
        let Some(base) = self.base else { return Ok(None) };
        let file = repository.committed(base, path)?;
        Ok(file.map(|(mode, bytes)| GitFile { mode, bytes }))
    }

    fn begins_below(&mut self, path: &RelPath) -> Result<Vec<RelPath>> {
        match (self.repository, self.base) {
            (Some(repository), Some(base)) => repository.committed_below(base, path),
            (_, _) => Ok(Vec::new()),
        }
    }
}

/// What is exported.
struct Export<'a> {
    args: &'a ExportArgs,
    project: &'a Project,
    history: &'a FileHistory<'a>,
    /// By their places in the history, oldest first.
    turns: Vec<usize>,
    author: GitAuthor,
    /// The commit that the first one follows.
    base: Option<String>,
    series: TurnSeries,
    left: BTreeMap<RelPath, NotExported>,
}

impl Export<'_> {
    fn message(&self, part: &SeriesPart) -> CommitMessage {
        let turn = part.turn.map(|turn| &self.history.turns[turn]);
        CommitMessage::of(turn, &part.files, self.args.prompts)
    }

    /// Writes the commits, and gives their names.
    fn write_branch(&self, repository: &GitStore, branch: &str) -> Result<Vec<String>> {
        let GitAuthor { name, email } = &self.author;
        let author = format!("{name} <{email}>");
        let parts = &self.series.parts;
        let messages: Vec<String> = parts.iter().map(|part| self.message(part).text()).collect();
        let mut commits = Vec::new();
        for (part, message) in parts.iter().zip(&messages) {
            let files = part.files.iter();
            commits.push(NewCommit {
                message,
                author: &author,
                at: part.at.timestamp(),
                files: files.map(|(path, change)| new_file(path, change)).collect(),
            });
        }
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        repository.write_branch(branch, self.base.as_deref(), &commits)
    }

    /// Writes the patches, and gives their names.
    fn write_patches(&self, dir: &Path, repository: Option<&GitStore>) -> Result<Vec<String>> {
        let count = self.series.parts.len();
        let blob = |bytes: &[u8]| match repository {
            Some(repository) => repository.blob_name(bytes),
            None => naming::git_name(bytes),
        };
        let mut names = Vec::new();
        for (at, part) in self.series.parts.iter().enumerate() {
            let message = self.message(part);
            let mail = MailPatch {
                number: at + 1,
                count,
                author: &self.author,
                at: part.at,
                message: &message,
                names: PatchNames { blob: &blob },
            };
            let bytes = mail.write(part.files.iter())?;
            elsewhere::make(dir)?;
            let name = format!("{:04}-{}.patch", at + 1, file_name(&message.subject));
            let path = dir.join(&name);
            let file = open_options().write(true).create_new(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(&bytes));
            written.map_err(Error::io("write", &path))?;
            names.push(name);
        }
        Ok(names)
    }

    fn tell(&self, process: &mut Process<'_>, dir: Option<&Path>, names: &[String]) -> Result<()> {
        self.say_left_out(process);
        if self.args.json {
            return print_json(process, "export", self.json(dir, names));
        }
        if names.is_empty() {
            return print_text(process, "these turns changed nothing that can be exported\n");
        }
        let short = |id: &String| id[..id.len().min(7)].to_owned();
        let base = self.base.as_ref().map(short);
        for (name, part) in names.iter().zip(&self.series.parts) {
            let name = if dir.is_some() { name.clone() } else { short(name) };
            let subject = self.message(part).subject;
            let line = if dir.is_some() {
                name
            } else {
                format!("{name}  {}", ui::escape_line(subject.as_bytes()))
            };
            // A name of a patch is no subject, and stays whole.
            let columns = process.terminal.stdout_columns().filter(|_| dir.is_none());
            let line = columns.map_or(line.clone(), |columns| {
                ui::fit(&line, columns.into(), ui::Cut::End).into_owned()
            });
            print(process, &format!("{line}\n"))?;
        }
        match (&self.args.branch, dir) {
            (Some(branch), _) => {
                let commits = ui::count(names.len() as u64, "commit");
                let branch = ui::escape(branch.as_bytes());
                let on = base.map_or_else(String::new, |base| format!(" on top of {base}"));
                print_text(process, &format!("made branch {branch}: {commits}{on}\n"))
            }
            (None, Some(dir)) => {
                let count = names.len();
                let patches = if count == 1 { "patch" } else { "patches" };
                let place = ui::path(dir, self.project.home.as_deref());
                print_text(process, &format!("wrote {count} {patches} to {place}\n"))?;
                if is_git(self.project) {
                    let dir = ui::quote(dir.as_os_str().as_encoded_bytes());
                    let at = base.map_or_else(String::new, |base| format!("at {base}, "));
                    say(process, &format!("{at}take them with: git am {dir}/*.patch"));
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }

    /// Names what is not in it.
    fn say_left_out(&self, process: &mut Process<'_>) {
        let left = self.left.iter().map(|(path, why)| (path, why.words()));
        let left =
            left.chain(self.series.left.iter().map(|(path, why)| (path, left_in_words(*why))));
        let lines = left.map(|(path, why)| format!("{}: {why}", ui::escape(path.as_bytes())));
        let more = |more| format!("{} more; --json names them", ui::number(more));
        for line in ui::at_most(lines.collect(), NAMED_MAX, more) {
            say(process, &format!("note: left out: {line}"));
        }
        self.say_mixed(process);
        for turn in self.silent_turns() {
            let number = turn.number.unwrap_or_default();
            let why = if turn.is_undone {
                "was undone, and has no commit"
            } else {
                "left nothing that can be exported"
            };
            say(process, &format!("note: turn {number} {why}"));
        }
    }

    /// Names the files where what a turn left is in a commit of others.
    fn say_mixed(&self, process: &mut Process<'_>) {
        let line = |(path, turns): (&RelPath, &BTreeSet<usize>)| {
            let path = ui::escape(path.as_bytes());
            let what = match &self.numbers(turns)[..] {
                [] => "a state of it is not held".to_owned(),
                [one] => format!("what turn {one} left is not held"),
                all => {
                    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
                    format!("what turns {} left is not held", all.join(", "))
                }
            };
            format!("{path}: {what}: it is with what followed, between turns")
        };
        let lines = self.series.mixed.iter().map(line).collect();
        let more = |more| format!("{} more like these; --json names them", ui::number(more));
        for line in ui::at_most(lines, NAMED_MAX, more) {
            say(process, &format!("note: {line}"));
        }
    }

    fn numbers(&self, turns: &BTreeSet<usize>) -> Vec<usize> {
        turns.iter().filter_map(|turn| self.history.turns[*turn].number).collect()
    }

    /// The turns that have no change in the series.
    fn silent_turns(&self) -> impl Iterator<Item = &HistoryTurn> {
        let has = |turn: &usize| self.series.parts.iter().any(|part| part.turn == Some(*turn));
        let silent = self.turns.iter().filter(move |turn| !has(turn));
        silent.map(|turn| &self.history.turns[*turn]).filter(|turn| turn.number.is_some())
    }

    fn json(&self, dir: Option<&Path>, names: &[String]) -> Value {
        let text = |path: &RelPath| String::from_utf8_lossy(path.as_bytes()).into_owned();
        let file = |(path, change): (&RelPath, &FileChange)| json!({ "path": text(path), "change": change_word(change) });
        let part = |(name, part): (&String, &SeriesPart)| {
            let turn = part.turn.map(|turn| &self.history.turns[turn]);
            let by = turn.and_then(|turn| turn.by.as_ref());
            json!({
                "name": name,
                "subject": self.message(part).subject,
                "turn": turn.and_then(|turn| turn.number),
                "checkpoint": turn.map(|turn| turn.checkpoint.to_string()),
                "agent": by.map(|by| agent_name(by.agent)),
                "files": part.files.iter().map(file).collect::<Vec<_>>(),
            })
        };
        let left = self.left.iter().map(|(path, why)| (path, why.name()));
        let left = left.chain(self.series.left.iter().map(|(path, why)| (path, left_name(*why))));
        let left = left.map(|(path, why)| json!({ "path": text(path), "reason": why }));
        let mixed = self.series.mixed.iter();
        let mixed =
            mixed.map(|(path, turns)| json!({ "path": text(path), "turns": self.numbers(turns) }));
        let undone = self.silent_turns().filter(|turn| turn.is_undone);
        json!({
            "branch": self.args.branch,
            "dir": dir.map(|dir| dir.to_string_lossy()),
            "base": self.base,
            "commits": names.iter().zip(&self.series.parts).map(part).collect::<Vec<_>>(),
            "left_out": left.collect::<Vec<_>>(),
            "mixed": mixed.collect::<Vec<_>>(),
            "unchanged_turns": self.silent_turns().map(|it| it.number).collect::<Vec<_>>(),
            "undone_turns": undone.map(|it| it.number).collect::<Vec<_>>(),
        })
    }
}

fn new_file<'a>(path: &'a RelPath, change: &'a FileChange) -> NewFile<'a> {
    let content = change.after.as_ref().map(|file| (file.mode, &file.bytes[..]));
    NewFile { path, content }
}

fn left_in_words(why: LeftOfSeries) -> &'static str {
    match why {
        LeftOfSeries::Unheld => "not all of its states are held",
        LeftOfSeries::ByOthers => "none of these turns changed it",
        LeftOfSeries::TakenBack => "a restore took back what the turns did",
        LeftOfSeries::Conflict => "a file above or below it is left out",
    }
}

fn left_name(why: LeftOfSeries) -> &'static str {
    match why {
        LeftOfSeries::Unheld => "unheld",
        LeftOfSeries::ByOthers => "no-turn",
        LeftOfSeries::TakenBack => "taken-back",
        LeftOfSeries::Conflict => "conflict",
    }
}

fn change_word(change: &FileChange) -> &'static str {
    match (&change.before, &change.after) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(_), Some(_)) => "changed",
    }
}

/// A subject as a part of a file's name.
fn file_name(subject: &str) -> String {
    /// As git cuts them.
    const BYTES_MAX: usize = 52;
    let words = subject.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    name.chars().take(BYTES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_ends() {
        let ends = |text| range_ends(text).ok();
        assert_eq!(ends("5..2"), Some(("5", "2")));
        assert_eq!(ends("3"), Some(("3", "3")));
        assert_eq!(ends("yesterday..latest"), Some(("yesterday", "latest")));
        for bad in ["", "..", "5..", "3.1", "2..3.1"] {
            assert_eq!(ends(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_subject_becomes_a_name_of_a_file() {
        assert_eq!(file_name("Change src/cart.ts and 2 more"), "Change-src-cart-ts-and-2-more");
        assert_eq!(file_name("../../\u{1b} \u{e9}"), "");
    }
}
