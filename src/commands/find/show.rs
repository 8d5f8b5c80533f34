//! What was found, for people and for scripts.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    RootVersions,
    versions::{FileVersion, Spot},
    what::FileQuery,
};
use crate::{
    commands::{json_time, table_text},
    fs::{Dir, c_name},
    model::{Content, Kind},
    process::Process,
    store::naming::has_same_bytes,
    ui::{self, Cell, Clock, Column, Cut, Paint, Style, Table},
};

/// Older versions of one file are counted; `--json` names them all.
const VERSIONS_MAX: usize = 8;
/// The size of a larger file is "over" this.
const SIZE_MAX_BYTES: u64 = 64 << 20;

/// How the file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    Gone,
    /// It is this version.
    Is(usize),
    /// It is there, and none of these.
    Other,
}

impl Now {
    fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Is(0) => "unchanged",
            Self::Is(_) | Self::Other => "changed",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Gone => "gone now",
            Self::Is(0) => "there now, unchanged",
            Self::Is(_) => "there now, like an older version",
            Self::Other => "there now, changed since",
        }
    }
}

/// Everything of one root, `room` files at most.
pub(super) fn words(
    process: &Process<'_>,
    part: &RootVersions,
    everywhere: bool,
    room: usize,
) -> String {
    let style = Style::stdout(process);
    let home = part.project.home.as_deref();
    let mut text = String::new();
    if everywhere && room > 0 {
        let gone = if part.project.is_gone { " — gone" } else { "" };
        let place = ui::path(part.project.root.path(), home);
        text.push_str(&format!("{}{gone}\n\n", style.bold(&place)));
    }
    for (n, (spot, versions)) in part.versions.of.iter().take(room).enumerate() {
        if n > 0 {
            text.push('\n');
        }
        let now = part.now(spot, versions);
        let slash = if is_directory(versions) { "/" } else { "" };
        let name = format!("{}{slash}", spot.shown(home));
        text.push_str(&format!("{} — {}\n", style.bold(&name), now.words()));
        text.push_str(&part.table(process, versions, now));
        if let Some(wanted) = part.wanted(now, versions) {
            text.push_str(&format!("  {}\n", part.command(spot, wanted, part.versions.digits)));
        }
    }
    text
}

fn is_directory(versions: &[FileVersion]) -> bool {
    versions.first().is_some_and(|version| version.kind == Kind::Directory)
}

/// Everything of one root, an object for each file.
pub(super) fn json(part: &RootVersions) -> Vec<Value> {
    let each = part.versions.of.iter();
    let root = part.project.root.path().to_string_lossy();
    let value = |(spot, versions): (&Spot, &Vec<FileVersion>)| {
        let now = part.now(spot, versions);
        let versions = versions.iter().map(|version| part.version_json(spot, version));
        json!({
            "root": root,
            "path": String::from_utf8_lossy(spot.bytes()),
            "outside": matches!(spot, Spot::Outside(_)),
            "now": now.name(),
            "versions": versions.collect::<Vec<_>>(),
        })
    };
    each.map(value).collect()
}

impl Spot {
    /// Whether it is called what was typed; `root` is where those below it are.
    pub(super) fn is_as_written(&self, wanted: &FileQuery, root: &Path) -> bool {
        match self {
            Self::Below(path) => wanted.is_as_written(Some(root), path),
            Self::Outside(path) => wanted.is_as_written(None, path),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Below(path) | Self::Outside(path) => path,
        }
    }

    fn shown(&self, home: Option<&Path>) -> String {
        match self {
            Self::Below(path) => ui::escape(path).into_owned(),
            Self::Outside(path) => ui::path(Path::new(OsStr::from_bytes(path)), home).into_owned(),
        }
    }
}

impl RootVersions {
    fn table(&self, process: &Process<'_>, versions: &[FileVersion], now: Now) -> String {
        let clock = Clock::local(process.now);
        let mut table = Table::new([
            Column::left("id"),
            Column::left("last seen"),
            Column::left("first seen"),
            Column::right("size"),
            Column::cut("", Cut::End),
        ]);
        for (n, version) in versions.iter().take(VERSIONS_MAX).enumerate() {
            table.row([
                Cell::new(&state_name(version, self.versions.digits), Paint::Bold),
                clock.when(version.last.at).into(),
                clock.when(version.first.at).into(),
                self.size_words(version).into(),
                self.note(version, now == Now::Is(n)).into(),
            ]);
        }
        let mut text = table_text(process, &table);
        let more = versions.len().saturating_sub(VERSIONS_MAX);
        if more > 0 {
            let more = ui::count(more as u64, "older version");
            text.push_str(&format!("  … and {more}; --json names them all\n"));
        }
        text
    }

    /// The version to bring back: the newest that is not there now and can be read.
    fn wanted<'v>(&self, now: Now, versions: &'v [FileVersion]) -> Option<&'v FileVersion> {
        let mut others = versions.iter().enumerate().filter(|(n, _)| now != Now::Is(*n));
        let can_be_read = |it: &FileVersion| it.kind != Kind::File || self.size(it).is_some();
        others.find(|(_, version)| can_be_read(version)).map(|(_, version)| version)
    }

    /// What is worth a word about a version.
    fn note(&self, version: &FileVersion, is_now: bool) -> String {
        let place = self.places.as_ref().and_then(|places| places.of(version));
        let place = place.map(|place| {
            format!("{}: {}", place.line, String::from_utf8_lossy(place.text.trim_ascii()))
        });
        let link = (version.kind == Kind::Link).then(|| {
            let text = version.content.and_then(|content| self.bytes(&content));
            format!("a symlink to {}", String::from_utf8_lossy(&text.unwrap_or_default()))
        });
        let now = is_now.then(|| "as it is now".to_owned());
        let many = version.count > 1;
        let count = many.then(|| ui::count(version.count as u64, "checkpoint"));
        let step = version.last.step.map(|_| "between two steps of a turn".to_owned());
        [now, link, place, count, step].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// A small content in full.
    fn bytes(&self, content: &Content) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.project.store.open(content).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn size(&self, version: &FileVersion) -> Option<u64> {
        let content = version.content.filter(|_| version.kind == Kind::File)?;
        let mut from = self.project.store.open(&content).ok()?.take(SIZE_MAX_BYTES + 1);
        std::io::copy(&mut from, &mut std::io::sink()).ok()
    }

    fn size_words(&self, version: &FileVersion) -> String {
        match (version.kind, self.size(version)) {
            (Kind::File, None) => "unreadable".to_owned(),
            (Kind::File, Some(size)) if size > SIZE_MAX_BYTES => {
                format!("over {}", ui::size(SIZE_MAX_BYTES))
            }
            (Kind::File, Some(size)) => ui::size(size),
            (_, _) => String::new(),
        }
    }

    fn version_json(&self, spot: &Spot, version: &FileVersion) -> Value {
        let place = self.places.as_ref().and_then(|places| places.of(version));
        let size = self.size(version).filter(|size| *size <= SIZE_MAX_BYTES);
        json!({
            "checkpoint": version.last.checkpoint.to_string(),
            "step": version.last.step.map(|_| state_name(version, 0)),
            "kind": kind_name(version.kind),
            "last_seen": json_time(version.last.at),
            "first_seen": json_time(version.first.at),
            "checkpoints": version.count,
            "size": size,
            "line": place.map(|place| place.line),
            "text": place.map(|place| String::from_utf8_lossy(&place.text)),
            "command": self.command(spot, version, 16),
        })
    }

    /// The very command that brings a version back, as a shell takes it.
    fn command(&self, spot: &Spot, version: &FileVersion, digits: usize) -> String {
        let mut words = vec!["beforehand restore".to_owned(), state_name(version, digits)];
        let root = self.project.root.path();
        if !self.is_here {
            words.push("--root".to_owned());
            words.push(ui::quote(root.as_os_str().as_bytes()));
        }
        match spot {
            Spot::Below(path) | Spot::Outside(path) => {
                words.push("--".to_owned());
                words.push(self.project.argument(Path::new(OsStr::from_bytes(path))));
            }
        }
        words.join(" ")
    }

    /// How the file is now, beside its versions. Read through no symlink.
    fn now(&self, spot: &Spot, versions: &[FileVersion]) -> Now {
        let path: PathBuf = match spot {
            Spot::Below(path) => self.project.root.path().join(OsStr::from_bytes(path)),
            Spot::Outside(path) => OsStr::from_bytes(path).into(),
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Now::Gone;
        };
        let (Ok(parent), Ok(name)) = (Dir::open(parent), c_name(name.as_bytes())) else {
            return Now::Gone;
        };
        let Ok(stamp) = parent.stat_child(&name) else { return Now::Gone };
        let is_same = |version: &FileVersion| match (version.kind, version.content) {
            (kind, _) if Some(kind) != stamp.kind() => false,
            (Kind::File, Some(content)) => {
                self.size(version) == Some(stamp.size)
                    && parent.open_file(&name).is_ok_and(|(file, _)| {
                        self.project
                            .store
                            .open(&content)
                            .is_ok_and(|held| has_same_bytes(file, held))
                    })
            }
            (Kind::Link, Some(content)) => parent.read_link(&name).ok() == self.bytes(&content),
            (_, _) => true,
        };
        let newest = versions.iter().take(VERSIONS_MAX).position(is_same);
        newest.map_or(Now::Other, Now::Is)
    }
}

/// What `restore` takes to go back to where a version was seen last.
fn state_name(version: &FileVersion, digits: usize) -> String {
    match version.last.step {
        Some((turn, step)) => format!("{turn}.{step}"),
        None => version.last.checkpoint.to_string()[..digits].to_owned(),
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Link => "link",
        Kind::Directory => "directory",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
        Kind::CharDevice | Kind::BlockDevice => "device",
    }
}
