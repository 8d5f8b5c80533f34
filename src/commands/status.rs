//! `turnback status`: what is protected, where, and how much room that takes.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

use super::{Desk, places, print, print_json};
use crate::{
    error::Result,
    journal::{self, Line, LineKind},
    model::{Checkpoint, ContentId, Kind, Place as ModelPlace, Scope, Settings, Tree},
    process::{Exit, Process},
    snapshot,
    store::objects::Objects,
    ui::{self, Clock, Column, Cut, Style, Table},
};

/// How far back trouble is worth a word.
const TROUBLE_DAYS: i64 = 7;
/// Directories nested deeper are not ours.
const DEPTH_MAX: usize = 8;

/// Show what is protected, and how much room that takes.
///
/// This project comes first. Exits 1 while it is not protected.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print an object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &Args) -> Result<Exit> {
    let desk = Desk::open(process, None)?;
    let status = Status::of(process, &desk)?;
    let is_protected = status.places.first().is_some_and(|here| here.standing == "protected");
    if args.json {
        let value = status.json(&desk.settings);
        print_json(process, &value)?;
    } else {
        let text = status.words(process, &desk);
        print(process, &text)?;
    }
    Ok(if is_protected { Exit::Ok } else { Exit::Failed })
}

/// One root as it stands.
struct Place {
    path: PathBuf,
    kind: &'static str,
    /// Why its repository is not used.
    why: Option<String>,
    checkpoints: usize,
    last: Option<DateTime<Utc>>,
    /// Bytes of what is ours alone; what a repository holds is not among it.
    size: u64,
    standing: &'static str,
}

struct Status {
    /// This root first.
    places: Vec<Place>,
    /// Bytes of everything of ours, content shared by all roots included.
    total: u64,
    trouble: Option<Line>,
    troubles: usize,
}

impl Status {
    fn of(process: &Process<'_>, desk: &Desk) -> Result<Self> {
        let mut places = vec![Place::of(desk)?];
        for known in places::known(&desk.state)? {
            if known.path == desk.root.path() {
                continue;
            }
            if known.gone {
                places.push(Place::gone(&known, process)?);
            } else {
                // One that cannot be opened must not hide the others.
                places.extend(known.desk(process).and_then(|desk| Place::of(&desk)).ok());
            }
        }
        let since = process.now - TimeDelta::days(TROUBLE_DAYS);
        let mut lines = journal::read(&desk.state);
        lines.retain(|line| line.kind == LineKind::Trouble && line.at > since);
        let troubles = lines.len();
        let total = size_of(desk.state.dir(), 0);
        Ok(Self { places, total, trouble: lines.pop(), troubles })
    }

    fn words(&self, process: &Process<'_>, desk: &Desk) -> String {
        let clock = Clock::local(process.now);
        let home = desk.home.as_deref();
        let mut table = Table::new([
            Column::cut("", Cut::Middle),
            Column::left(""),
            Column::left(""),
            Column::right(""),
            Column::left(""),
            Column::left(""),
        ]);
        for place in &self.places {
            let path = ui::path(&place.path, home).into_owned();
            let count = ui::count(place.checkpoints as u64, "checkpoint");
            let last = place.last.map(|last| clock.when(last)).unwrap_or_default();
            let standing = match &place.why {
                Some(why) => format!("{} ({why})", place.standing),
                None => place.standing.to_owned(),
            };
            let size = ui::size(place.size);
            table.row([
                path.into(),
                place.kind.into(),
                count.into(),
                size.into(),
                last.into(),
                standing.into(),
            ]);
        }
        let mut text = table.show(process.terminal.columns, Style::stdout(process));
        text.push_str(&format!(
            "\n{} of {} outside repositories, in {}\n",
            ui::size(self.total),
            ui::size(desk.settings.max_total_size),
            ui::path(desk.state.dir(), home),
        ));
        text.push_str(&self.trouble_words(&clock));
        text
    }

    fn trouble_words(&self, clock: &Clock) -> String {
        let Some(last) = &self.trouble else {
            return format!("no trouble in the last {TROUBLE_DAYS} days\n");
        };
        let (when, text) = (clock.when(last.at), ui::escape(last.text.as_bytes()));
        let more = self.troubles - 1;
        let more = if more == 0 {
            String::new()
        } else {
            format!(" (and {more} more in the last {TROUBLE_DAYS} days)")
        };
        format!("last trouble {when}: {text}{more}\n")
    }

    fn json(&self, settings: &Settings) -> Value {
        let trouble = self
            .trouble
            .as_ref()
            .map(|line| json!({ "time": moment(line.at), "root": line.root, "text": line.text }));
        json!({
            "roots": self.places.iter().map(Place::json).collect::<Vec<_>>(),
            "size": self.total,
            "max_total_size": settings.max_total_size,
            "trouble": trouble,
            "troubles": self.troubles,
        })
    }
}

impl Place {
    fn of(desk: &Desk) -> Result<Self> {
        let checkpoints = desk.store.list()?;
        let (kind, why) = snapshot::keeper(desk.store.root(), desk.settings.store);
        let standing = if desk.scope == Scope::Named {
            "not protected: too wide to be held as a whole"
        } else if !desk.settings.enabled {
            "not protected: switched off"
        } else {
            "protected"
        };
        Ok(Self {
            path: desk.root.path().to_owned(),
            kind,
            why: why.map(str::to_owned),
            checkpoints: checkpoints.len(),
            last: checkpoints.first().map(|newest| newest.taken_at),
            size: size_of(desk.state.root(&desk.root).dir(), 0)
                + held_size(desk, kind, &checkpoints),
            standing,
        })
    }

    fn gone(known: &places::Known, process: &Process<'_>) -> Result<Self> {
        let checkpoints = known.checkpoints(process)?;
        let desk = known.desk(process)?;
        Ok(Self {
            path: known.path.clone(),
            kind: if known.was_git { "git" } else { "files" },
            why: None,
            checkpoints: checkpoints.len(),
            last: checkpoints.first().map(|newest| newest.taken_at),
            size: size_of(known.state.dir(), 0) + held_size(&desk, "files", &checkpoints),
            standing: "gone",
        })
    }

    fn json(&self) -> Value {
        json!({
            "path": self.path.to_string_lossy(),
            "store": self.kind,
            "store_reason": self.why,
            "checkpoints": self.checkpoints,
            "last": self.last.map(moment),
            "size": self.size,
            "status": self.standing,
        })
    }
}

/// The room of the contents these checkpoints hold in turnback's own store. Roots may share some.
fn held_size(desk: &Desk, kind: &str, checkpoints: &[Checkpoint]) -> u64 {
    let mut held = HeldSize { desk, is_copy: kind != "git", seen: HashSet::new(), bytes: 0 };
    for checkpoint in checkpoints {
        // What cannot be read is for `check` to say.
        if let Ok(tree) = desk.store.tree(checkpoint.id) {
            held.tree(&tree);
        }
    }
    held.bytes
}

struct HeldSize<'a> {
    desk: &'a Desk,
    /// Whether everything is in turnback's own store, or only what is private.
    is_copy: bool,
    seen: HashSet<ContentId>,
    bytes: u64,
}

impl HeldSize<'_> {
    fn tree(&mut self, tree: &Tree) {
        let entries = tree.besides.values().chain(tree.outside.values());
        for content in entries.filter_map(|entry| entry.content) {
            if content.place == ModelPlace::Private || self.is_copy {
                self.object(&content.id);
            }
        }
        let mut open: Vec<ContentId> = tree.top.into_iter().filter(|_| self.is_copy).collect();
        while let Some(id) = open.pop() {
            if !self.object(&id) {
                continue;
            }
            for entry in self.desk.store.directory(&id).unwrap_or_default().into_values() {
                match (entry.kind, entry.content) {
                    (Kind::Directory, Some(content)) => open.push(content.id),
                    (_, Some(content)) => {
                        self.object(&content.id);
                    }
                    (_, None) => (),
                }
            }
        }
    }

    /// Counts an object, and says whether it had not been.
    fn object(&mut self, id: &ContentId) -> bool {
        let is_new = self.seen.insert(*id);
        if is_new {
            let path = Objects::new(self.desk.state.objects()).path(id);
            self.bytes += fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512);
        }
        is_new
    }
}

fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The room everything below a directory takes, as far as it can be seen.
fn size_of(dir: &Path, depth: usize) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let each = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() && depth < DEPTH_MAX => size_of(&entry.path(), depth + 1),
        // What is really taken: a small file is a whole block.
        Ok(found) => found.blocks() * 512,
        Err(_) => 0,
    });
    each.sum()
}
