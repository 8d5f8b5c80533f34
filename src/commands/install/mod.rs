//! `beforehand install` and `beforehand uninstall`: our hooks, into the settings of agents and out.

mod trust;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{error_text, print, print_json, print_text, root_here, say, say_text};
use crate::{
    config,
    error::{Error, Result},
    install::{self, FileEdit, InstallRow, Plan, ProgramPath, ROWS, Site},
    process::{Exit, Process},
    state::StateDir,
    ui::{self, DiffOptions, DiffSide, Style},
};

/// Put beforehand's hooks into the settings of your agents.
///
/// Shows the exact change of each file and asks before anything is written. Every byte that is not
/// beforehand's stays as it is, and what was there is kept.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct InstallArgs {
    /// The agents, as in `claude-code`; by default, all that are found here
    #[arg(value_name = "AGENT")]
    pub(crate) agents: Vec<String>,
    /// In this project's settings instead of your own
    #[arg(long)]
    pub(crate) project: bool,
    /// Show the changes and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Also record the approval that Codex would otherwise ask for in `/hooks`
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is done, in words.
struct InstallAction {
    is_install: bool,
    verb: &'static str,
    done: &'static str,
    nothing: &'static str,
}

const INSTALL: InstallAction = InstallAction {
    is_install: true,
    verb: "write",
    done: "wrote",
    nothing: "nothing to do: every hook is where it belongs",
};
const UNINSTALL: InstallAction = InstallAction {
    is_install: false,
    verb: "change",
    done: "changed",
    nothing: "nothing to do: these settings have nothing of beforehand's",
};

pub(crate) fn install(process: &mut Process<'_>, args: &InstallArgs) -> Result<Exit> {
    let state = config::state(process, None)?;
    let found = process.program().map_err(Error::io("find", Path::new("beforehand")))?;
    let program = ProgramPath::new(&found)?;
    let rows = rows(args, |row| row.is_there(process))?;
    if rows.is_empty() {
        return Err(Error::other(
            "no agent was found here",
            "name one, as in `beforehand install claude-code`",
        ));
    }
    let sites = sites(process, args, &rows, |row| row.sites_to_write(process))?;
    // A team's files go to machines where the program is elsewhere.
    let written = if args.project { ProgramPath::on_path() } else { program.clone() };
    let plan = Plan::install(sites, &written, &state);
    let exit = carry_out(process, args, &rows, &plan, &state, &INSTALL, &[])?;
    let left = trust::settle(process, args, &rows, &state)?;
    if !args.json {
        advise(process, args, &rows);
        if args.project {
            advise_a_path(process, &program);
        } else {
            advise_a_place(process, &program);
        }
        for advice in left {
            say(process, &format!("note: Codex: {advice}"));
        }
    }
    Ok(exit)
}

pub(crate) fn uninstall(process: &mut Process<'_>, args: &InstallArgs) -> Result<Exit> {
    let state = config::state(process, None)?;
    let rows = rows(args, |_| true)?;
    let running = running(process);
    let sites = sites(process, args, &rows, |row| row.sites(process))?;
    let left =
        if args.project { Vec::new() } else { left_in_projects(process, &rows, &state, &sites) };
    let plan = Plan::uninstall(sites, running.as_ref(), &state);
    carry_out(process, args, &rows, &plan, &state, &UNINSTALL, &left)
}

/// The files with hooks in projects, which stay when the user's own settings lose theirs.
fn left_in_projects(
    process: &Process<'_>,
    rows: &[&InstallRow],
    state: &StateDir,
    own: &[Site],
) -> Vec<PathBuf> {
    let root = root_here(process);
    let ours = install::ours_of(state, running(process).as_ref());
    let mut left = Vec::new();
    for row in rows {
        left.extend(install::files_in_projects(row, state, root.as_deref(), &ours));
    }
    left.retain(|file| !own.iter().any(|site| site.path == *file));
    left
}

/// The program that is running now, if it could stand in a settings file.
pub(crate) fn running(process: &Process<'_>) -> Option<ProgramPath> {
    process.program().ok().and_then(|path| ProgramPath::new(&path).ok())
}

/// The agents that were named, or those that are there.
fn rows(
    args: &InstallArgs,
    is_there: impl Fn(&InstallRow) -> bool,
) -> Result<Vec<&'static InstallRow>> {
    if args.agents.is_empty() {
        return Ok(ROWS.iter().filter(|row| is_there(row)).collect());
    }
    let named = |name: &String| {
        ROWS.iter().find(|row| row.agent == name).ok_or_else(|| {
            let known: Vec<_> = ROWS.iter().map(|row| row.agent).collect();
            let name = ui::escape(name.as_bytes());
            Error::usage(format!("no agent `{name}`"), format!("known are {}", known.join(", ")))
        })
    };
    args.agents.iter().map(named).collect()
}

fn sites(
    process: &Process<'_>,
    args: &InstallArgs,
    rows: &[&InstallRow],
    places: impl Fn(&InstallRow) -> Vec<Site>,
) -> Result<Vec<Site>> {
    if !args.project {
        return Ok(rows.iter().flat_map(|row| places(row)).collect());
    }
    let root = root_here(process).ok_or_else(|| {
        Error::other("this directory is no project", "change to one, or leave out `--project`")
    })?;
    Ok(rows.iter().flat_map(|row| row.project_sites(&root)).collect())
}

/// Shows, asks, does.
fn carry_out(
    process: &mut Process<'_>,
    args: &InstallArgs,
    rows: &[&InstallRow],
    plan: &Plan,
    state: &StateDir,
    deed: &InstallAction,
    left: &[PathBuf],
) -> Result<Exit> {
    let home = process.home();
    if !args.json {
        show(process, rows, plan, deed, home.as_deref())?;
    }
    let is_done = is_wanted(process, args, plan, deed);
    if is_done {
        plan.apply(state)?;
    }
    if !args.dry_run {
        plan.tidy(state)?;
    }
    if args.json {
        print_json(process, "install", as_json(plan, is_done, left))?;
    } else {
        close(process, plan, deed, is_done, home.as_deref());
        for file in left {
            let file = ui::path(file, home.as_deref());
            let line = format!(
                "note: {file} still has hooks: run `beforehand uninstall --project` in that project"
            );
            say(process, &line);
        }
    }
    let is_refused = !plan.refused.is_empty();
    let is_left = !is_done && !args.dry_run && !plan.changes.is_empty();
    if is_left && !process.terminal.stdin {
        let hint = "run this again with `--yes`, or in a terminal";
        return Err(Error::other("nothing was changed without a yes", hint));
    }
    Ok(if is_refused || is_left { Exit::Failed } else { Exit::Ok })
}

fn is_wanted(
    process: &mut Process<'_>,
    args: &InstallArgs,
    plan: &Plan,
    deed: &InstallAction,
) -> bool {
    if plan.changes.is_empty() || args.dry_run {
        return false;
    }
    let files = ui::count(plan.changes.len() as u64, "file");
    args.yes || ui::ask(process, &format!("{} {files}?", deed.verb))
}

fn show(
    process: &mut Process<'_>,
    rows: &[&InstallRow],
    plan: &Plan,
    deed: &InstallAction,
    home: Option<&Path>,
) -> Result<()> {
    let look = DiffOptions { style: Style::stdout(process), deadline: None };
    print_text(process, &summary(rows, plan, deed, home))?;
    let mut text = String::new();
    for change in &plan.changes {
        let path = ui::path(&change.site.path, home).into_owned();
        let (old, new) = (side(change, change.old.as_deref()), side(change, change.new.as_deref()));
        let shown = ui::FileDiff { path: path.as_bytes(), old, new };
        text.push_str(&shown.show(look));
        text.push('\n');
    }
    print(process, &text)
}

/// One line for each agent: what becomes of its files. Nothing, if nothing becomes of any.
fn summary(rows: &[&InstallRow], plan: &Plan, deed: &InstallAction, home: Option<&Path>) -> String {
    if plan.changes.is_empty() && plan.refused.is_empty() {
        return String::new();
    }
    let lines = rows.iter().filter_map(|row| {
        let told = of_agent(row, plan, deed, home)?;
        Some((row.title(), told))
    });
    let lines: Vec<_> = lines.collect();
    let width = lines.iter().map(|(title, _)| title.len()).max().unwrap_or(0);
    let line = |(title, told): (&str, String)| format!("{title:<width$}  {told}\n");
    lines.into_iter().map(line).chain(["\n".to_owned()]).collect()
}

/// What becomes of the files of one agent; `None` where there is nothing to say.
fn of_agent(
    row: &InstallRow,
    plan: &Plan,
    deed: &InstallAction,
    home: Option<&Path>,
) -> Option<String> {
    let refused = || plan.refused.iter().filter(|(site, _)| site.agent == row.agent);
    if let Some((site, _)) = refused().find(|(site, _)| site.is_hook()) {
        return Some(format!("nothing: {} is refused, see below", ui::path(&site.path, home)));
    }
    let (hooks, commands): (Vec<_>, Vec<_>) = plan
        .changes
        .iter()
        .filter(|change| change.site.agent == row.agent)
        .partition(|change| change.site.is_hook());
    let hooks = match &hooks[..] {
        [] => None,
        [one] => Some(ui::path(&one.site.path, home).into_owned()),
        [first, ..] => {
            let dir = first.site.path.parent().unwrap_or(&first.site.path);
            let files = ui::count(hooks.len() as u64, "file");
            Some(format!("{files} in {}", ui::path(dir, home)))
        }
    };
    let commands = (!commands.is_empty()).then(|| ui::count(commands.len() as u64, "command"));
    let parts: Vec<_> = hooks.into_iter().chain(commands).collect();
    let taken = refused().count();
    let but = match taken {
        0 => String::new(),
        some => format!(", but not {}, see below", ui::count(some as u64, "command")),
    };
    match (parts.is_empty(), taken, deed.is_install) {
        (false, ..) => Some(format!("{} {}{but}", deed.verb, parts.join(" and "))),
        (true, 0, false) => None,
        (true, 0, true) if row.by_hand.is_some() => Some("by hand, see below".to_owned()),
        (true, 0, true) => Some("nothing to do".to_owned()),
        (true, _, _) => Some(format!("nothing{but}")),
    }
}

fn side<'a>(change: &FileEdit, text: Option<&'a str>) -> DiffSide<'a> {
    match text {
        Some(text) => DiffSide::File { bytes: text.as_bytes(), permissions: change.permissions },
        None => DiffSide::Missing,
    }
}

fn close(
    process: &mut Process<'_>,
    plan: &Plan,
    deed: &InstallAction,
    is_done: bool,
    home: Option<&Path>,
) {
    let style = Style::stderr(process);
    let mut text = String::new();
    if plan.changes.is_empty() && plan.refused.is_empty() {
        text.push_str(&format!("{}\n", deed.nothing));
    }
    for change in plan.changes.iter().filter(|_| is_done) {
        let verb = if change.new.is_none() { "removed" } else { deed.done };
        text.push_str(&format!("{verb} {}\n", ui::path(&change.site.path, home)));
    }
    for (_, err) in &plan.refused {
        text.push_str(&error_text(err, style));
    }
    for site in &plan.withheld {
        let path = ui::path(&site.path, home);
        text.push_str(&format!("note: {path} is not written without the hooks of its agent\n"));
    }
    say_text(process, &text);
}

/// What is left for the user to do.
fn advise(process: &mut Process<'_>, args: &InstallArgs, rows: &[&InstallRow]) {
    for row in rows {
        let title = row.title();
        let by_hand = row.by_hand.filter(|_| !args.project);
        for advice in by_hand.into_iter().chain(row.then) {
            say(process, &format!("note: {title}: {advice}"));
        }
    }
}

/// Hooks of a project find the program on the `PATH`.
fn advise_a_path(process: &mut Process<'_>, program: &ProgramPath) {
    let told = "these files run the `beforehand` on the `PATH`, and do nothing where there is none";
    say(process, &format!("note: {told}"));
    let found = process.which("beforehand").and_then(|path| path.canonicalize().ok());
    if found != program.path().canonicalize().ok() {
        let path = ui::path(program.path(), process.home().as_deref()).into_owned();
        say(process, &format!("note: on your `PATH`, `beforehand` is not {path}: put it there"));
    }
}

/// `npx` and `uvx` run a program from a cache, which may be emptied.
fn advise_a_place(process: &mut Process<'_>, program: &ProgramPath) {
    let home = process.home();
    let cache = process.var("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(home.as_ref()?.join(".cache")));
    let is_npx = program.path().components().any(|part| part.as_os_str() == "_npx");
    if is_npx || cache.is_some_and(|cache| program.path().starts_with(cache)) {
        let path = ui::path(program.path(), home.as_deref()).into_owned();
        let told =
            "is in a cache, which may be emptied: install beforehand for good, then run this again";
        say(process, &format!("note: {path} {told}"));
    }
}

fn as_json(plan: &Plan, is_done: bool, left: &[PathBuf]) -> Value {
    let change = |change: &FileEdit| {
        json!({
            "agent": change.site.agent,
            "path": change.site.path.to_string_lossy(),
            "old": change.old,
            "new": change.new,
        })
    };
    let refused = |(site, err): &(Site, Error)| {
        json!({
            "agent": site.agent,
            "path": site.path.to_string_lossy(),
            "error": err.to_string(),
        })
    };
    json!({
        "done": is_done,
        "changes": plan.changes.iter().map(change).collect::<Vec<_>>(),
        "unchanged": plan.unchanged.iter().map(|site| site.path.to_string_lossy()).collect::<Vec<_>>(),
        "refused": plan.refused.iter().map(refused).collect::<Vec<_>>(),
        "withheld": plan.withheld.iter().map(|site| site.path.to_string_lossy()).collect::<Vec<_>>(),
        "left_in_projects": left.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
    })
}
