//! `beforehand check`: looks for damage in what is stored, and repairs what holds no data.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::{Value, json};

use super::{Project, known_roots, print_json, print_text, say, state_check};
use crate::{
    config as settings,
    error::Result,
    model::CheckpointId,
    process::{Exit, Process},
    state::{RootState, StateDir},
    store::{Damage, record},
    ui,
};

/// Look for damage in the checkpoints of this project.
///
/// Without --read-data it looks whether everything is there, and what HEAD and the refs of
/// repositories lead to; with it, every byte is read and compared with its name, and all history is
/// walked. Exits 1 if anything is damaged. A note costs no checkpoint anything.
///
/// --repair makes again what can be made again (caches, refs of checkpoints that are still there,
/// records of which enough is left), puts other damaged records aside and drops entries that lead
/// nowhere. It never touches a checkpoint's data.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct CheckArgs {
    /// Read every byte
    #[arg(long)]
    pub(crate) read_data: bool,
    /// Rebuild caches, refs and damaged records, and drop dangling entries
    #[arg(long)]
    pub(crate) repair: bool,
    /// Check all projects, including deleted ones
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &CheckArgs) -> Result<Exit> {
    let state = settings::state(process, None)?;
    let mut found = Vec::new();
    if args.repair {
        // First of all: what stands in the place of a lock keeps everything else from its work.
        tell(process, state_check::clear_the_way(&state, None)?);
    }
    let mut lost = None;
    if args.everywhere {
        lost = lost_here(process);
        let known = known_roots::known(&state)?;
        let projects =
            known.iter().map(|known| known.project(process)).collect::<Result<Vec<_>>>()?;
        for project in lost.iter().chain(&projects) {
            found.push(RootCheck::of(process, project, args)?);
        }
    } else {
        found.push(RootCheck::of(process, &Project::open(process, None)?, args)?);
    }
    let lost = lost.map(|project| project.state.root(&project.root));
    found.push(RootCheck::of_shared(process, &state, lost.as_ref(), args)?);
    let is_whole = found.iter().all(RootCheck::is_whole);
    if args.json {
        let values: Vec<Value> = found.iter().flat_map(RootCheck::json).collect();
        print_json(process, "check", values.into())?;
    } else {
        let home = process.home();
        let text: String = found.iter().map(|checked| checked.words(home.as_deref())).collect();
        print_text(process, &text)?;
    }
    Ok(if is_whole { Exit::Ok } else { Exit::Failed })
}

/// The project around the current directory, if it has checkpoints and nothing says where it is: it is
/// not among those that are known.
fn lost_here(process: &Process<'_>) -> Option<Project> {
    let project = Project::open(process, None).ok()?;
    let is_lost = record::known_location(&project.state.root(&project.root)).is_err();
    is_lost.then_some(project)
}

/// What is said where only the names and sizes of contents were looked at.
const UNREAD: &str = "contents were not read (--read-data reads every byte)";

/// What came of looking at one root, or at what belongs to none.
struct RootCheck {
    /// `None` for what all roots share.
    root: Option<PathBuf>,
    /// Those that are listed: what was put aside is none.
    checkpoints: BTreeSet<CheckpointId>,
    damage: Vec<Damage>,
    /// Whether every byte was read.
    is_read: bool,
}

impl RootCheck {
    fn of(process: &mut Process<'_>, project: &Project, args: &CheckArgs) -> Result<Self> {
        let own = project.state.root(&project.root);
        if args.repair {
            let now = process.now;
            tell(process, state_check::clear_the_way(&project.state, Some(&own))?);
            tell(process, project.store.repair()?);
            tell(process, state_check::repair(&own, &project.root, now)?);
        }
        let checkpoints = project.store.list()?.into_iter().map(|it| it.id).collect();
        let mut damage = project.store.check(args.read_data)?;
        damage.extend(state_check::check(&own));
        let root = Some(project.root.path().to_owned());
        Ok(Self { root, checkpoints, damage, is_read: args.read_data })
    }

    /// What all roots share. `lost` was looked at although nothing says where it is.
    fn of_shared(
        process: &mut Process<'_>,
        state: &StateDir,
        lost: Option<&RootState>,
        args: &CheckArgs,
    ) -> Result<Self> {
        if args.repair {
            tell(process, state_check::repair_sessions(state)?);
        }
        let mut damage = state_check::check_sessions(state);
        if args.everywhere {
            damage.extend(state_check::check_places(state, lost)?);
        }
        Ok(Self { root: None, checkpoints: BTreeSet::new(), damage, is_read: args.read_data })
    }

    fn is_whole(&self) -> bool {
        self.damage.iter().all(|damage| damage.is_note)
    }

    fn words(&self, home: Option<&std::path::Path>) -> String {
        let all = ui::count(self.checkpoints.len() as u64, "checkpoint");
        let name = match &self.root {
            Some(root) if root.is_dir() => ui::path(root, home).into_owned(),
            Some(root) => format!("{} (gone)", ui::path(root, home)),
            None if self.damage.is_empty() => return String::new(),
            None => "what all projects share".to_owned(),
        };
        let damages = self.damage.iter().filter(|damage| !damage.is_note).count();
        let mut text = match damages {
            0 if self.is_read => format!("{name}: {all}, all whole\n"),
            0 => format!("{name}: {all}, nothing missing; {UNREAD}\n"),
            damages => format!("{name}: {}\n", ui::count(damages as u64, "damage")),
        };
        for damage in &self.damage {
            let id = damage.checkpoint.map_or_else(|| "    ".to_owned(), CheckpointId::short);
            let (what, why) =
                (ui::escape(damage.what.as_bytes()), ui::escape(damage.why.as_bytes()));
            let note = if damage.is_note { "note: " } else { "" };
            text.push_str(&format!("  {id}  {note}{what}: {why}\n"));
        }
        if self.root.is_some() && damages > 0 {
            text.push_str(&self.whole(&all));
        }
        text
    }

    fn whole(&self, all: &str) -> String {
        let damages = self.damage.iter().filter(|damage| !damage.is_note);
        let spoiled: BTreeSet<_> = damages.filter_map(|damage| damage.checkpoint).collect();
        match (self.checkpoints.difference(&spoiled).count(), self.is_read) {
            (0, true) => {
                "every checkpoint is damaged; all files not named here can still be restored\n"
                    .to_owned()
            }
            (whole, true) => format!("{whole} of {all} are whole and restore in full\n"),
            (0, false) => format!("every checkpoint is damaged; {UNREAD}\n"),
            (whole, false) => format!("{whole} of {all} lack nothing; {UNREAD}\n"),
        }
    }

    fn json(&self) -> Vec<Value> {
        let one = |damage: &Damage| {
            json!({
                "root": self.root.as_ref().map(|root| root.to_string_lossy()),
                "checkpoint": damage.checkpoint.map(|id| id.to_string()),
                "what": damage.what,
                "why": damage.why,
                "note": damage.is_note,
            })
        };
        self.damage.iter().map(one).collect()
    }
}

/// What was repaired is talk: the result is what is left.
fn tell(process: &mut Process<'_>, done: Vec<String>) {
    for line in done {
        say(process, &ui::escape(line.as_bytes()));
    }
}
