//! `beforehand diff`: what has changed since a checkpoint, or between two.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    LaterTurns, Project,
    compare::{Comparison, Differing},
    print, print_json, restore,
};
use crate::{
    error::Result,
    model::{Checkpoint, Tree},
    plan::Picked,
    process::{Exit, Process},
    ui::{self, Cell, Column, Cut, DiffOptions, LineCounts, Paint, Style, Table},
};

/// How long one file may take before its difference need not be the shortest.
const FILE_TIME: Duration = Duration::from_millis(500);

/// Show what has changed since a checkpoint, or between two.
///
/// With one checkpoint: from there to the files as they are now. With two: from the first to the
/// second. Exits 0 whether or not anything differs.
#[derive(clap::Args, Default)]
pub(crate) struct DiffArgs {
    /// The checkpoint: a number from `beforehand list`, `latest`, or the start of an id
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) from: String,
    /// Compare with this one instead of with now
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) to: Option<String>,
    /// Show only how many lines of each file came and went
    #[arg(long, conflicts_with = "name_only")]
    pub(crate) stat: bool,
    /// Show only the names of files that differ
    #[arg(long)]
    pub(crate) name_only: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["stat", "name_only"])]
    pub(crate) json: bool,
    /// Only these files and directories
    #[arg(last = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &DiffArgs) -> Result<Exit> {
    let project = Project::open(process, None)?;
    let from = project.find(&args.from)?;
    let picked = restore::picked(process, &project, &args.paths)?;
    let to = args.to.as_ref().map(|to| project.find(to)).transpose()?;
    refuse_unknown(&project, &picked, std::iter::once(&from).chain(&to))?;
    let mut comparison = match &to {
        Some(to) => Comparison::between(&project, &from, to)?,
        None => Comparison::until_now(&project, process, &from)?,
    };
    comparison.pick(&picked);
    if args.json {
        return as_json(process, &comparison);
    }
    if comparison.found.is_empty() && comparison.unheld.is_empty() {
        let what = if args.to.is_some() { "between the two" } else { "since then" };
        let _ignored = writeln!(process.stderr, "nothing differs {what}");
    } else if comparison.found.is_empty() {
        // What could not be compared is named below.
    } else if args.name_only {
        let names = comparison.found.iter().map(Differing::name);
        let names: Vec<String> = names.map(|name| ui::escape(&name).into_owned()).collect();
        print(process, &(names.join("\n") + "\n"))?;
    } else if args.stat {
        stat(process, &comparison)?;
    } else {
        in_full(process, &comparison)?;
    }
    for line in restore::unheld_lines(&project, &comparison.unheld, &comparison.moved) {
        let _ignored = writeln!(process.stderr, "{line}");
    }
    let commits = args.to.is_none().then(|| restore::commits(&project, &from, &picked));
    for line in commits.into_iter().flatten() {
        let _ignored = writeln!(process.stderr, "{line}");
    }
    Ok(Exit::Ok)
}

/// Refuses a path that is neither there now nor at one of the checkpoints.
fn refuse_unknown<'c>(
    project: &Project,
    picked: &Picked,
    checkpoints: impl Iterator<Item = &'c Checkpoint>,
) -> Result<()> {
    let side = |one| Ok((one, project.tree_of(one, LaterTurns::Gone)?.tree));
    let sides: Vec<(&Checkpoint, Tree)> = checkpoints.map(side).collect::<Result<_>>()?;
    let sides: Vec<_> = sides.iter().map(|(one, tree)| (*one, tree)).collect();
    crate::restore::refuse_unknown(project, picked, &sides)
}

/// File by file, so that a long difference begins at once and takes no memory.
fn in_full(process: &mut Process<'_>, comparison: &Comparison<'_>) -> Result<()> {
    for differing in &comparison.found {
        let deadline = Some(Instant::now() + FILE_TIME);
        let look = DiffOptions { style: Style::stdout(process), deadline };
        print(process, &comparison.show(differing, look)?)?;
    }
    Ok(())
}

fn lines(comparison: &Comparison<'_>, differing: &Differing) -> Result<Option<LineCounts>> {
    comparison.lines(differing, Some(Instant::now() + FILE_TIME))
}

fn stat(process: &mut Process<'_>, comparison: &Comparison<'_>) -> Result<()> {
    let mut table = Table::new([Column::cut("", Cut::Middle), Column::left(""), Column::right("")]);
    let mut sum = LineCounts::default();
    for differing in &comparison.found {
        let lines = lines(comparison, differing)?;
        sum.added += lines.unwrap_or_default().added;
        sum.removed += lines.unwrap_or_default().removed;
        let shown = lines.map_or_else(|| "no text".to_owned(), |lines| lines.to_string());
        let name = String::from_utf8_lossy(&differing.name()).into_owned();
        table.row([name.into(), Cell::new(differing.word(), Paint::Dim), shown.into()]);
    }
    let columns = process.terminal.columns;
    let mut text = table.show(columns, Style::stdout(process));
    let files = ui::count(comparison.found.len() as u64, "file");
    text.push_str(&format!("{files}  {sum}\n"));
    print(process, &text)
}

fn as_json(process: &mut Process<'_>, comparison: &Comparison<'_>) -> Result<Exit> {
    let mut files = Vec::new();
    for differing in &comparison.found {
        let lines = lines(comparison, differing)?;
        files.push(json!({
            "path": String::from_utf8_lossy(&differing.name()),
            "change": differing.word(),
            "added": lines.map(|lines| lines.added),
            "removed": lines.map(|lines| lines.removed),
        }));
    }
    files.extend(comparison.unheld.iter().map(|out| {
        let path = String::from_utf8_lossy(&out.path);
        json!({ "path": path, "change": "not-held", "added": null, "removed": null })
    }));
    print_json(process, "diff", files.into())?;
    Ok(Exit::Ok)
}
