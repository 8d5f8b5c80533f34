//! One row of the table of agents: where its hooks go, and the paths that this means on this machine.

use std::path::{Path, PathBuf};

use super::{
    block::{BlockFormat, hooks_are_there},
    merge::{Entries, HookDirSetting},
    packages::PackageNote,
    program::{Quoting, Template},
    version::NewerEvents,
};
use crate::{agent, fs::read_small, process::Process};

/// Where the hook files of one agent are installed.
#[derive(Clone, Copy, Debug)]
pub struct InstallRow {
    /// As in `--agent NAME`.
    pub agent: &'static str,
    /// The directory with the user's settings. If it exists, the agent counts as installed.
    pub(super) base: SettingsBase,
    /// The directory where it reads the user's hooks, if that is another one.
    pub(super) hooks_base: Option<SettingsBase>,
    /// Its programs. If one is on the `PATH`, the agent counts as installed.
    pub(super) programs: &'static [&'static str],
    /// The files below `hooks_base`.
    pub(super) user: &'static [InstallFile],
    /// Directories below the home, with the entries that each JSON file in them gets.
    pub(super) each: &'static [InstallFile],
    /// The directory in a project.
    pub(super) project_dir: &'static str,
    /// The files below it.
    pub(super) project: &'static [InstallFile],
    /// Other files below `base` in which users or older versions put hooks. Nothing is written there, but
    /// an agent's call that changes one is asked about.
    pub(super) watched: &'static [&'static str],
    /// Such files in a project.
    pub(super) watched_project: &'static [&'static str],
    /// The step that is left to the user.
    pub then: Option<&'static str>,
    /// Why `install` cannot do it, and the user's step instead.
    pub by_hand: Option<&'static str>,
    /// A second in the unit of the agent's timeouts: 1, or 1000 for milliseconds.
    pub second: u64,
    /// Events that only newer versions of it know.
    pub(super) newer: Option<NewerEvents>,
    /// How it notes that it has our package, if there is one for it.
    pub(super) package: Option<PackageNote>,
}

/// A directory below the user's home.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettingsBase {
    pub(super) dir: &'static str,
    /// A variable that says otherwise, and what is below that.
    pub(super) var: Option<(&'static str, &'static str)>,
}

/// One file.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstallFile {
    pub(super) path: &'static str,
    pub(super) edit: Edit,
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
    /// The edit, without events that the agent does not know.
    fn without(self, left_out: &'static [&'static str]) -> Self {
        match self {
            Self::Merge(entries) => Self::Merge(Entries { left_out, ..entries }),
            Self::HookDir(_) | Self::Lines(_) | Self::Whole(_) | Self::Script(_) => self,
        }
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
    pub(super) fn dir(&self, process: &Process<'_>) -> Option<PathBuf> {
        let told = self.var.and_then(|(name, below)| {
            let dir = PathBuf::from(process.var(name)?);
            dir.is_absolute().then(|| dir.join(below))
        });
        let home = || Some(process.home()?.join(self.dir));
        told.or_else(home).filter(|dir| dir.is_absolute())
    }
}

impl InstallRow {
    /// What people call the agent.
    pub fn title(&self) -> &'static str {
        agent::by_name(self.agent).map_or(self.agent, |dialect| dialect.title)
    }

    /// The agent's own directory.
    pub fn dir(&self, process: &Process<'_>) -> Option<PathBuf> {
        self.base.dir(process)
    }

    /// Where the agent reads the user's hooks.
    pub(super) fn hooks_base(&self) -> SettingsBase {
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
        let Some(dir) = self.hooks_base().dir(process) else { return Vec::new() };
        let left_out = self.newer.map_or(&[][..], |newer| newer.left_out(process, self.programs));
        let site = |path, edit: Edit| Site {
            agent: self.agent,
            path,
            within: None,
            edit: edit.without(left_out),
        };
        let named = self.user.iter().map(|file| site(dir.join(file.path), file.edit));
        let found = self.each.iter().zip(self.each_dirs(process)).flat_map(|(file, dir)| {
            json_files(&dir).into_iter().map(move |path| site(path, file.edit))
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
            edit: file.edit.without(left_out),
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
