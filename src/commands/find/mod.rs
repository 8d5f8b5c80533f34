//! `beforehand find`: which checkpoint or step holds which version of a file, and the command that brings
//! it back. For "where did my file go?".

mod show;
mod text;
mod versions;
mod what;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use serde_json::Value;

use self::{
    text::{FirstMatches, Passed, TextSearch},
    versions::Versions,
    what::FileQuery,
};
use super::{Project, known_roots, print_json, print_text, say};
use crate::{
    config as settings,
    error::{Error, Result},
    process::{Exit, Process},
    ui,
};

/// Files shown without `--limit`.
const FILES_MAX: usize = 20;

/// Find a file in the checkpoints: each version once, when it was seen, how to get it back.
///
/// WHAT is a name (`cart.ts`), the end of a path (`src/cart.ts`), a place (`./cart.ts`,
/// `/tmp/x`), or, if nothing is called so, a pattern over names (`*.ts`) or paths (`src/**/*.ts`).
/// Exits 1 when nothing is found.
#[derive(clap::Args)]
pub(crate) struct FindArgs {
    /// A name (`cart.ts`), a path (`src/cart.ts`, `/tmp/x`) or a pattern (`*.ts`, `src/**/*.ts`); optional with --text
    #[arg(value_name = "WHAT", required_unless_present = "text")]
    what: Option<OsString>,
    /// Only versions that contain this text; skips binary files
    #[arg(long, value_name = "TEXT")]
    text: Option<OsString>,
    /// Search every project
    #[arg(long, conflicts_with = "root")]
    everywhere: bool,
    /// The project around this directory, which may be deleted
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// At most this many files [default: 20, or all with --json]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one root has.
struct RootVersions {
    project: Project,
    /// Whether `restore` finds this root without being told.
    is_here: bool,
    versions: Versions,
    /// Where the text stands, if one is looked for.
    places: Option<FirstMatches>,
}

pub(crate) fn run(process: &mut Process<'_>, args: &FindArgs) -> Result<Exit> {
    let cwd = process.cwd.clone().unwrap_or_default();
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let wanted = args.what.as_deref().map_or(FileQuery::ALL, |given| FileQuery::of(given, &cwd));
    let interrupted = process.heed_interrupt();
    let text = args.text.as_deref().map(std::os::unix::ffi::OsStrExt::as_bytes);
    let mut search = text.map(|text| TextSearch::new(text, &interrupted));
    let mut parts = Vec::new();
    for (project, is_here) in projects(process, args)? {
        let mut versions = match Versions::find(&project, &wanted) {
            Ok(versions) => versions,
            Err(err) if args.everywhere => {
                warn(process, project.root.path(), &err);
                continue;
            }
            Err(err) => return Err(err),
        };
        for (checkpoint, err) in &versions.unread {
            let id = checkpoint.id.short();
            say(process, &format!("warning: checkpoint {id} is left out: {err}"));
        }
        let project = project.holding(std::mem::take(&mut versions.contents));
        let places = search.as_mut().map(|search| search.narrow(&project, &mut versions));
        parts.push(RootVersions { project, is_here, versions, places });
    }
    if parts.iter().any(|part| part.has_as_written(&wanted)) {
        for RootVersions { project, versions, .. } in &mut parts {
            versions.of.retain(|spot, _| spot.is_as_written(&wanted, project.root.path()));
        }
    }
    parts.retain(|part| !part.versions.of.is_empty());
    tell(process, args, &parts)?;
    if let Some(search) = &search {
        say_passed(process, search.passed);
    }
    if parts.is_empty() {
        say_nothing_found(process, args);
        return Ok(Exit::Failed);
    }
    Ok(Exit::Ok)
}

impl RootVersions {
    /// Whether there is a file by the very name that was typed.
    fn has_as_written(&self, wanted: &FileQuery) -> bool {
        let root = self.project.root.path();
        self.versions.of.keys().any(|spot| spot.is_as_written(wanted, root))
    }
}

/// Where to look, and whether that is where the user stands.
fn projects(process: &mut Process<'_>, args: &FindArgs) -> Result<Vec<(Project, bool)>> {
    let here = Project::open(process, None);
    if !args.everywhere {
        let project = match &args.root {
            Some(root) => Project::open(process, Some(root))?,
            None => return Ok(vec![(here?, true)]),
        };
        let is_here = here.is_ok_and(|here| here.root.path() == project.root.path());
        return Ok(vec![(project, is_here)]);
    }
    let here = here.ok().map(|project| project.root.path().to_owned());
    let mut projects = Vec::new();
    for known in known_roots::known(&settings::state(process, None)?)? {
        match Project::open(process, Some(&known.path)) {
            Ok(project) => {
                let is_here = here.as_deref() == Some(project.root.path());
                projects.push((project, is_here));
            }
            Err(err) => warn(process, &known.path, &err),
        }
    }
    Ok(projects)
}

fn warn(process: &mut Process<'_>, path: &Path, err: &Error) {
    let home = process.home();
    let path = ui::path(path, home.as_deref()).into_owned();
    say(process, &format!("warning: {path}: {err}"));
}

fn tell(process: &mut Process<'_>, args: &FindArgs, parts: &[RootVersions]) -> Result<()> {
    let mut room = match (args.limit, args.json) {
        (Some(limit), _) => limit,
        (None, true) => usize::MAX,
        (None, false) => FILES_MAX,
    };
    let all: usize = parts.iter().map(|part| part.versions.of.len()).sum();
    if args.json {
        let files: Vec<Value> = parts.iter().flat_map(show::json).take(room).collect();
        return print_json(process, "find", files.into());
    }
    for (n, part) in parts.iter().enumerate() {
        let gap = if n > 0 && room > 0 { "\n" } else { "" };
        let shown = show::words(process, part, args.everywhere, room);
        print_text(process, &format!("{gap}{shown}"))?;
        room = room.saturating_sub(part.versions.of.len());
    }
    let shown = args.limit.unwrap_or(FILES_MAX).min(all);
    if shown < all {
        let more = ui::count((all - shown) as u64, "file");
        say(process, &format!("… and {more} more: --limit {all} shows them all"));
    }
    Ok(())
}

fn say_passed(process: &mut Process<'_>, passed: Passed) {
    let Passed { binary, large, unread, is_cut } = passed;
    let mut said = Vec::new();
    for (n, why) in [(binary, "binary"), (large, "too large"), (unread, "not readable")] {
        if n > 0 {
            said.push(format!("{} {why}", ui::number(n)));
        }
    }
    if !said.is_empty() {
        let said = said.join(", ");
        say(process, &format!("note: versions not looked into: {said}"));
    }
    if is_cut {
        say(process, "note: interrupted; there may be more");
    }
}

/// Says that there is nothing, and what else to try.
fn say_nothing_found(process: &mut Process<'_>, args: &FindArgs) {
    let given = |given: &OsString| ui::escape_path(Path::new(given)).into_owned();
    let mut wanted = args.what.as_ref().map(|what| format!("`{}`", given(what)));
    if let Some(text) = &args.text {
        let what = wanted.map_or_else(|| "a file".to_owned(), |what| format!("a file {what}"));
        wanted = Some(format!("{what} with `{}` in it", given(text)));
    }
    let place = if args.everywhere { "no project has" } else { "no checkpoint here has" };
    let said = format!("{place} {}", wanted.unwrap_or_default());
    let hint = match (args.everywhere, &args.text) {
        (false, None) => "--everywhere looks in every project, --text inside of files",
        (false, Some(_)) => "--everywhere looks in every project",
        (true, None) => "--text looks inside of files",
        (true, Some(_)) => "`beforehand list --everywhere` shows every checkpoint there is",
    };
    say(process, &format!("{said}\nhint: {hint}"));
}
