//! `turnback check`: looks for damage in what is stored.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::{Value, json};

use super::{Desk, places, print, print_json};
use crate::{
    config as settings,
    error::Result,
    model::CheckpointId,
    process::{Exit, Process},
    store::Damage,
    ui,
};

/// Look for damage in the checkpoints of this project.
///
/// Without --read-data it looks whether everything is there; with it, every byte is read and
/// compared with its name. Exits 1 if anything is damaged.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Read every byte
    #[arg(long)]
    pub(crate) read_data: bool,
    /// Check every project
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// Print an array with an object for each damage
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let mut found = Vec::new();
    if args.everywhere {
        for known in places::known(&settings::state(process, None)?)? {
            if !known.gone {
                found.push(Checked::of(&known.desk(process)?, args.read_data)?);
            }
        }
    } else {
        found.push(Checked::of(&Desk::open(process, None)?, args.read_data)?);
    }
    let is_whole = found.iter().all(|checked| checked.damage.is_empty());
    if args.json {
        let values: Vec<Value> = found.iter().flat_map(Checked::json).collect();
        print_json(process, &values.into())?;
    } else {
        let home = process.var("HOME").map(PathBuf::from);
        let text: String = found.iter().map(|checked| checked.words(home.as_deref())).collect();
        print(process, &text)?;
    }
    Ok(if is_whole { Exit::Ok } else { Exit::Failed })
}

/// What came of looking at one root.
struct Checked {
    root: PathBuf,
    checkpoints: usize,
    damage: Vec<Damage>,
}

impl Checked {
    fn of(desk: &Desk, read_data: bool) -> Result<Self> {
        let checkpoints = desk.store.list()?.len();
        let damage = desk.store.check(read_data)?;
        Ok(Self { root: desk.root.path().to_owned(), checkpoints, damage })
    }

    fn words(&self, home: Option<&std::path::Path>) -> String {
        let root = ui::path(&self.root, home);
        let all = ui::count(self.checkpoints as u64, "checkpoint");
        if self.damage.is_empty() {
            return format!("{root}: {all}, all whole\n");
        }
        let mut text = format!("{root}: {}\n", ui::count(self.damage.len() as u64, "damage"));
        for damage in &self.damage {
            let id = damage.checkpoint.map_or_else(|| "    ".to_owned(), CheckpointId::short);
            let (what, why) =
                (ui::escape(damage.what.as_bytes()), ui::escape(damage.why.as_bytes()));
            text.push_str(&format!("  {id}  {what}: {why}\n"));
        }
        let spoiled: BTreeSet<_> =
            self.damage.iter().filter_map(|damage| damage.checkpoint).collect();
        let whole = self.checkpoints.saturating_sub(spoiled.len());
        text.push_str(&match whole {
            0 => "no checkpoint is whole; of each, what is not named here still restores\n"
                .to_owned(),
            whole => format!("{whole} of {all} are whole and restore in full\n"),
        });
        text
    }

    fn json(&self) -> Vec<Value> {
        let one = |damage: &Damage| {
            json!({
                "root": self.root.to_string_lossy(),
                "checkpoint": damage.checkpoint.map(|id| id.to_string()),
                "what": damage.what,
                "why": damage.why,
            })
        };
        self.damage.iter().map(one).collect()
    }
}
