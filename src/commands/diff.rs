//! `beforehand diff`: what has changed since a checkpoint, or between two.

use std::{
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Project,
    compare::{Comparison, Differing},
    meant_a_path, print, print_json, restore, say, table_text,
};
use crate::{
    error::{Error, Result},
    model::Tree,
    plan::Picked,
    process::{Exit, Process},
    restore::{NamedState, TurnSteps, step_named},
    ui::{self, Cell, Column, Cut, DiffOptions, LineCounts, Paint, Style, Table},
};

/// How long one file may take before its difference need not be the shortest.
const FILE_TIME: Duration = Duration::from_millis(500);

/// Show what has changed since a checkpoint, or between two.
///
/// With one checkpoint: from there to the files as they are now. With two: from the first to the
/// second. Exits 0 whether or not anything differs.
#[derive(clap::Args, Default)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct DiffArgs {
    /// The checkpoint: a number from `beforehand list`, a step of a turn as in 2.3, `latest`, the start of
    /// an id, a message of `create -m`, or a time, which names the last state at or before it
    #[arg(value_name = "CHECKPOINT", default_value = "1")]
    pub(crate) from: String,
    /// Compare with this one instead of with the current files
    #[arg(value_name = "CHECKPOINT")]
    pub(crate) to: Option<String>,
    /// Show what one step of a turn did by itself, from right before it to right after it
    #[arg(long, conflicts_with = "to")]
    pub(crate) step: bool,
    /// Show only the number of added and removed lines of each file
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
    let picked = restore::picked(process, &project, &args.paths)?;
    if args.step {
        return of_step(process, project, args, &picked);
    }
    let found = NamedState::find(process, &project, &args.from);
    let from = found.map_err(|err| meant_a_path(&project, &args.from, err, "diff"))?;
    let to = args.to.as_ref().map(|to| NamedState::find(process, &project, to)).transpose()?;
    let states: Vec<&NamedState> = std::iter::once(&from).chain(&to).collect();
    let project = project.holding(states.iter().flat_map(|state| state.contents()).collect());
    let trees: Vec<Tree> =
        states.iter().map(|state| state.tree(&project)).collect::<Result<_>>()?;
    let sides: Vec<_> = states.iter().map(|it| &it.checkpoint).zip(&trees).collect();
    crate::restore::refuse_unknown(&project, &picked, &sides)?;
    let mut comparison = match &sides[..] {
        [from, to] => Comparison::between_states(&project, *from, *to)?,
        _ => Comparison::state_until_now(&project, process, sides[0])?,
    };
    comparison.pick(&picked);
    let exit = show(process, &comparison, args, &[])?;
    if args.json {
        return Ok(exit);
    }
    for line in restore::unheld_lines(&project, &comparison.unheld, &comparison.moved) {
        say(process, &line);
    }
    for (path, why) in states.iter().flat_map(|state| state.gaps()) {
        say(process, &format!("note: {}: {}", ui::escape(path.as_bytes()), why.words()));
    }
    // Where HEAD was before a step between two checkpoints is not known.
    let has_head = args.to.is_none() && from.step.is_none();
    let commits = has_head.then(|| restore::commits(&project, &from.checkpoint, &picked));
    for line in commits.into_iter().flatten() {
        say(process, &line);
    }
    Ok(exit)
}

/// Shows what one step of a turn did, from right before it to right after it.
fn of_step(
    process: &mut Process<'_>,
    project: Project,
    args: &DiffArgs,
    picked: &Picked,
) -> Result<Exit> {
    let (of, mut made) = {
        let (turn, number) = step_named(&args.from).ok_or_else(|| {
            Error::usage(
                "--step is about one step of a turn, as in 2.3",
                "`beforehand list --steps 2`",
            )
        })?;
        let turn = TurnSteps::of(&project, turn)?;
        let step = turn.step(number)?;
        let changes = turn.changes(step).ok_or_else(|| {
            Error::other(
                format!("what step {} did is not known: it was not seen to end", args.from),
                format!("`beforehand diff {}` shows all that changed since", args.from),
            )
        })?;
        (step.of, changes)
    };
    let project = project.holding(std::mem::take(&mut made.contents));
    let mut comparison = Comparison::of_changes(&project, of, (&made.changes, &made.outside));
    comparison.pick(picked);
    made.unknown.retain(|path| picked.has(path));
    made.unknown_outside.retain(|path| picked.has_outside(path));
    let unknown: Vec<PathBuf> = made.unknown_paths().collect();
    let exit = show(process, &comparison, args, &unknown)?;
    for path in &unknown {
        let path = ui::escape_path(path);
        say(process, &format!("note: {path}: changed, and not held"));
    }
    Ok(exit)
}

/// Shows what differs. Of the `unknown` paths it is only known that they do.
fn show(
    process: &mut Process<'_>,
    comparison: &Comparison<'_>,
    args: &DiffArgs,
    unknown: &[PathBuf],
) -> Result<Exit> {
    if args.json {
        return as_json(process, comparison, unknown);
    }
    if comparison.found.is_empty() && comparison.unheld.is_empty() && unknown.is_empty() {
        let what = match (args.step, &args.to) {
            (true, _) => "that step changed no file",
            (false, Some(_)) => "nothing differs between the two",
            (false, None) => "nothing differs since then",
        };
        say(process, what);
    } else if comparison.found.is_empty() {
        // What could not be compared is named below.
    } else if args.name_only {
        let names = comparison.found.iter().map(Differing::name);
        let names: Vec<String> = names.map(|name| ui::escape(&name).into_owned()).collect();
        print(process, &(names.join("\n") + "\n"))?;
    } else if args.stat {
        stat(process, comparison)?;
    } else {
        in_full(process, comparison)?;
    }
    Ok(Exit::Ok)
}

/// File by file, so that a long difference begins at once and takes no memory.
pub(super) fn in_full(process: &mut Process<'_>, comparison: &Comparison<'_>) -> Result<()> {
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
        sum += lines.unwrap_or_default();
        let shown = lines.map_or_else(|| "no text".to_owned(), |lines| lines.to_string());
        let name = ui::escape(&differing.name()).into_owned();
        table.row([name.into(), Cell::new(differing.word(), Paint::Dim), shown.into()]);
    }
    let mut text = table_text(process, &table);
    text.push_str(&format!("{}  {sum}\n", counted(&comparison.found)));
    print(process, &text)
}

/// How many files differ, and what else there is of directories and repositories.
fn counted(found: &[Differing]) -> String {
    let count = |is_it: &dyn Fn(&Differing) -> bool, thing| {
        let count = found.iter().filter(|differing| is_it(differing)).count() as u64;
        (count > 0).then(|| ui::count(count, thing))
    };
    let told = [
        count(&|it| it.is_file() && !it.is_repository(), "file"),
        count(&|it| !it.is_file() && !it.is_repository(), "directory"),
        count(&Differing::is_repository, "repository"),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    if told.is_empty() { ui::count(0, "file") } else { told.join(", ") }
}

fn as_json(
    process: &mut Process<'_>,
    comparison: &Comparison<'_>,
    unknown: &[PathBuf],
) -> Result<Exit> {
    let mut files = files_json(comparison)?;
    files.extend(unknown.iter().map(|path| not_held(path.as_os_str().as_bytes())));
    print_json(process, "diff", files.into())?;
    Ok(Exit::Ok)
}

/// What differs, for scripts.
pub(super) fn files_json(comparison: &Comparison<'_>) -> Result<Vec<Value>> {
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
    files.extend(comparison.unheld.iter().map(|out| not_held(&out.path)));
    Ok(files)
}

fn not_held(path: &[u8]) -> Value {
    let path = String::from_utf8_lossy(path);
    json!({ "path": path, "change": "not-held", "added": null, "removed": null })
}
