//! One row of the table of agents: where its hooks go, and the paths that this means on this machine.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
};

use super::{
    block::{BlockFormat, hooks_are_there},
    merge::{Entries, HookDirSetting},
    program::{Quoting, Template},
};
use crate::{
    agent::{AgentFiles, DIALECTS, Dialect, FileKind, InstallFile, SettingsBase},
    fs::read_small,
    process::Process,
};

/// An agent, and where its hooks go on this machine. Derefs to the names in its row.
#[derive(Clone, Copy, Debug)]
pub struct InstallRow {
    /// As in `--agent NAME`.
    pub agent: &'static str,
    dialect: &'static Dialect,
}

/// Every agent, in the order of [`DIALECTS`].
pub const ROWS: &[InstallRow] = &rows();

const fn rows() -> [InstallRow; DIALECTS.len()] {
    let mut rows = [InstallRow::of(&DIALECTS[0]); DIALECTS.len()];
    let mut at = 1;
    while at < rows.len() {
        rows[at] = InstallRow::of(&DIALECTS[at]);
        at += 1;
    }
    rows
}

impl Deref for InstallRow {
    type Target = AgentFiles;

    fn deref(&self) -> &AgentFiles {
        &self.dialect.files
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Edit {
    /// Our entries are put into its JSON.
    Merge(Entries<'static>),
    /// Its JSON names the directory of our hooks.
    HookDir(HookDirSetting),
    /// Our lines are put at its end.
    Lines(BlockFormat),
    /// It is ours alone.
    Whole(Template<'static>),
    /// It is ours alone and a program, which runs the hook of this agent.
    Script(&'static str),
}

impl Edit {
    /// The edit of a file, without events that the agent does not know.
    fn of(dialect: &'static Dialect, kind: FileKind, left_out: &'static [&'static str]) -> Self {
        let agent = dialect.name;
        let hooks = &dialect.hooks;
        let entries = Entries { agent, hooks, holder: hooks.holder, left_out };
        match kind {
            FileKind::Entries(holder) => {
                Self::Merge(Entries { holder: holder.or(hooks.holder), ..entries })
            }
            FileKind::TomlTables => Self::Lines(BlockFormat::Toml(entries)),
            FileKind::TomlList(event_key) => {
                Self::Lines(BlockFormat::TomlList { agent, hooks, event_key })
            }
            FileKind::Yaml => Self::Lines(BlockFormat::Yaml { agent, hooks }),
            FileKind::Setting(path, value) => Self::HookDir(HookDirSetting { path, value }),
            FileKind::Plugin(text) => {
                Self::whole(text, ("\"beforehand\"", "\nconst WAIT_MS"), Quoting::Script)
            }
            FileKind::Command(text) => Self::whole(text, ("beforehand", " slash"), Quoting::Bare),
            FileKind::Advice(text) => Self::whole(text, ("beforehand", " list"), Quoting::Bare),
            FileKind::Script => Self::Script(agent),
        }
    }

    fn whole(text: &'static str, hole: (&'static str, &'static str), quoting: Quoting) -> Self {
        Self::Whole(Template { text, hole, quoting })
    }

    /// Whether this is where the hooks are, not a command for people.
    pub(super) fn is_hook(&self) -> bool {
        match self {
            Self::Merge(_) | Self::HookDir(_) | Self::Lines(_) | Self::Script(_) => true,
            Self::Whole(template) => template.quoting == Quoting::Script,
        }
    }
}

/// A place where something of ours goes, in this world.
#[derive(Clone, Debug)]
pub struct Site {
    /// As in `--agent NAME`.
    pub agent: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The project it must be in.
    pub(super) within: Option<PathBuf>,
    pub(super) edit: Edit,
}

impl SettingsBase {
    /// The directory, as the environment has it.
    pub(super) fn place(&self, process: &Process<'_>) -> Option<PathBuf> {
        let told = self.var.and_then(|(name, below)| {
            let dir = PathBuf::from(process.var(name)?);
            dir.is_absolute().then(|| dir.join(below))
        });
        let home = || Some(process.home()?.join(self.dir));
        told.or_else(home).filter(|dir| dir.is_absolute())
    }
}

impl InstallRow {
    const fn of(dialect: &'static Dialect) -> Self {
        Self { agent: dialect.name, dialect }
    }

    /// The agent.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// What people call the agent.
    pub fn title(&self) -> &'static str {
        self.dialect.title
    }

    /// The edit of a file, with every event.
    #[cfg(test)]
    pub(super) fn edit(&self, file: &InstallFile) -> Edit {
        Edit::of(self.dialect, file.kind, &[])
    }

    /// The agent's own directory.
    pub fn dir(&self, process: &Process<'_>) -> Option<PathBuf> {
        self.base.place(process)
    }

    /// Where the agent reads the user's hooks.
    pub(super) fn hooks_dir(&self) -> SettingsBase {
        self.hooks_base.unwrap_or(self.base)
    }

    /// Whether the agent is there: its directory, or its program.
    pub fn is_there(&self, process: &Process<'_>) -> bool {
        self.dir(process).is_some_and(|dir| dir.is_dir())
            || self.programs.iter().any(|name| process.which(name).is_some())
    }

    /// Where we would write now. Codex reads hooks from one of two files: from the one in which
    /// its user has some.
    pub fn sites_to_write(&self, process: &Process<'_>) -> Vec<Site> {
        let mut sites = self.sites(process);
        if self.agent == "codex"
            && let Some(dir) = self.dir(process)
        {
            let read = |name: &str| read_small(&dir.join(name), TOML_MAX_BYTES).ok().flatten();
            let text = read("config.toml").and_then(|bytes| String::from_utf8(bytes).ok());
            let is_toml =
                read("hooks.json").is_none() && text.is_some_and(|text| hooks_are_there(&text));
            sites.retain(|site| match site.edit {
                Edit::Lines(_) => is_toml,
                Edit::Merge(_) => !is_toml,
                Edit::HookDir(_) | Edit::Whole(_) | Edit::Script(_) => true,
            });
        }
        sites
    }

    /// Everywhere of the user's that something of ours can be.
    pub fn sites(&self, process: &Process<'_>) -> Vec<Site> {
        let Some(dir) = self.hooks_dir().place(process) else { return Vec::new() };
        let left_out = self.newer.map_or(&[][..], |newer| newer.left_out(process, self.programs));
        let site = |path, kind: FileKind| Site {
            agent: self.agent,
            path,
            within: None,
            edit: Edit::of(self.dialect, kind, left_out),
        };
        let named = self.user.iter().map(|file| site(dir.join(file.path), file.kind));
        let found = self.each.iter().zip(self.each_dirs(process)).flat_map(|(file, dir)| {
            json_files(&dir).into_iter().map(move |path| site(path, file.kind))
        });
        named.chain(found).collect()
    }

    /// The directories in which each JSON file is the user's.
    pub(super) fn each_dirs(&self, process: &Process<'_>) -> impl Iterator<Item = PathBuf> {
        let home = process.home().filter(|home| home.is_absolute());
        self.each.iter().filter_map(move |file| Some(home.as_ref()?.join(file.path)))
    }

    /// Whether each of the user's files must have our hooks, since the agent reads those of one.
    pub fn is_per_file(&self) -> bool {
        !self.each.is_empty()
    }

    /// What we would write into a project: for any version of the agent, since others work there too.
    pub fn project_sites(&self, root: &Path) -> Vec<Site> {
        let left_out = self.newer.map_or(&[][..], |newer| newer.events);
        let place = |file: &InstallFile| Site {
            agent: self.agent,
            path: root.join(self.project_dir).join(file.path),
            within: Some(root.to_owned()),
            edit: Edit::of(self.dialect, file.kind, left_out),
        };
        self.project.iter().map(place).collect()
    }
}

/// The JSON files in a directory, by name; none if it cannot be read.
pub(super) fn json_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(is_json).collect();
    found.sort();
    found
}

/// Larger than any configuration a person wrote.
const TOML_MAX_BYTES: u64 = 2 << 20;
