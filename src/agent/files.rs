//! Where an agent keeps its hooks: directories and names, and nothing that opens one.

/// The files of one agent that concern us.
#[derive(Clone, Copy, Debug)]
pub struct AgentFiles {
    /// The directory with the user's settings. If it exists, the agent counts as installed.
    pub base: SettingsBase,
    /// The directory where it reads the user's hooks, if that is another one.
    pub hooks_base: Option<SettingsBase>,
    /// Its programs. If one is on the `PATH`, the agent counts as installed.
    pub programs: &'static [&'static str],
    /// The files below `hooks_base`.
    pub user: &'static [InstallFile],
    /// Directories below the home, with the entries that each JSON file in them gets.
    pub each: &'static [InstallFile],
    /// The directory in a project.
    pub project_dir: &'static str,
    /// The files below it.
    pub project: &'static [InstallFile],
    /// Other files below `base` in which users or older versions put hooks. Nothing is written there, but
    /// an agent's call that changes one is asked about.
    pub watched: &'static [&'static str],
    /// Such files in a project.
    pub watched_project: &'static [&'static str],
    /// The step that is left to the user.
    pub then: Option<&'static str>,
    /// Why `install` cannot do it, and the user's step instead.
    pub by_hand: Option<&'static str>,
    /// A second in the unit of the agent's timeouts: 1, or 1000 for milliseconds.
    pub second: u64,
    /// Events that only newer versions of it know.
    pub newer: Option<NewerEvents>,
    /// How it notes that it has our package, if there is one for it.
    pub package: Option<PackageNote>,
    /// The program that runs the lines of its hooks.
    pub runner: LineRunner,
}

/// A directory below the user's home.
#[derive(Clone, Copy, Debug)]
pub struct SettingsBase {
    /// Below the home.
    pub dir: &'static str,
    /// A variable with another place, and the directory below that.
    pub var: Option<(&'static str, &'static str)>,
}

/// One file.
#[derive(Clone, Copy, Debug)]
pub struct InstallFile {
    /// Below the directory.
    pub path: &'static str,
    /// How our part gets into it.
    pub kind: FileKind,
}

/// How our part gets into a file.
#[derive(Clone, Copy, Debug)]
pub enum FileKind {
    /// The hooks of the row are put into its JSON; below another key than the row's, if one is given.
    Entries(Option<&'static str>),
    /// The hooks of the row are put at its end, as tables of TOML with the shape of the JSON.
    TomlTables,
    /// The hooks of the row are put at its end, as a list of TOML. An entry names its event by this key.
    TomlList(&'static str),
    /// The hooks of the row are put at its end, as a mapping of YAML.
    Yaml,
    /// Its JSON has this value below these keys, without which the agent does not read our hooks.
    Setting(&'static [&'static str], &'static str),
    /// It is this plugin of ours.
    Plugin(&'static str),
    /// It is this slash command of ours.
    Command(&'static str),
    /// It is this text of ours for a model.
    Advice(&'static str),
    /// It is a program of ours, which runs the hook.
    Script,
}

impl FileKind {
    /// Returns true for a file of the user's that gets our hooks.
    pub fn is_settings(self) -> bool {
        match self {
            Self::Entries(_) | Self::TomlTables | Self::TomlList(_) | Self::Yaml => true,
            Self::Setting(..) | Self::Plugin(_) | Self::Script => false,
            Self::Command(_) | Self::Advice(_) => false,
        }
    }

    /// Whether this is where the hooks are, not a command for people.
    pub fn is_hook(self) -> bool {
        match self {
            Self::Entries(_) | Self::TomlTables | Self::TomlList(_) | Self::Yaml => true,
            Self::Setting(..) | Self::Plugin(_) | Self::Script => true,
            Self::Command(_) | Self::Advice(_) => false,
        }
    }
}

/// Major, minor and patch.
pub type AgentVersion = [u32; 3];

/// Events that an agent knows since a version. An older one may refuse the whole file for them.
#[derive(Clone, Copy, Debug)]
pub struct NewerEvents {
    /// The version.
    pub since: AgentVersion,
    /// The events.
    pub events: &'static [&'static str],
}

/// How an agent notes that it has our package.
#[derive(Clone, Copy, Debug)]
pub enum PackageNote {
    /// A file of the package itself, below the agent's directory.
    File(&'static str),
    /// Settings below the agent's directory, and the table in them with a member for each package.
    Member(&'static str, &'static [&'static str]),
    /// Settings below the agent's directory, and the list in them with each package.
    Item(&'static str, &'static str),
}

/// The program that runs the line of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRunner {
    /// A POSIX shell; `zsh` and `fish` run the same words.
    Shell,
    /// No shell: the agent splits the line into words, as a shell would, and starts the first one.
    Words,
}

/// The base of each row.
pub(super) const PLAIN: AgentFiles = AgentFiles {
    base: home(""),
    hooks_base: None,
    programs: &[],
    user: &[],
    each: &[],
    project_dir: "",
    project: &[],
    watched: &[],
    watched_project: &[],
    then: None,
    by_hand: None,
    second: 1,
    newer: None,
    package: None,
    runner: LineRunner::Shell,
};

pub(super) const fn home(dir: &'static str) -> SettingsBase {
    SettingsBase { dir, var: None }
}

pub(super) const fn home_or(
    dir: &'static str,
    name: &'static str,
    below: &'static str,
) -> SettingsBase {
    SettingsBase { dir, var: Some((name, below)) }
}

/// Settings that get the hooks of the row.
pub(super) const fn entries(path: &'static str) -> InstallFile {
    InstallFile { path, kind: FileKind::Entries(None) }
}

/// A file with a part that `kind` describes.
pub(super) const fn file(path: &'static str, kind: FileKind) -> InstallFile {
    InstallFile { path, kind }
}

macro_rules! plugin {
    ($path:literal, $file:literal) => {
        crate::agent::files::file(
            $path,
            crate::agent::files::FileKind::Plugin(include_str!(concat!("../../hooks/", $file))),
        )
    };
}

macro_rules! command {
    ($path:literal, $file:literal) => {
        crate::agent::files::file(
            $path,
            crate::agent::files::FileKind::Command(include_str!(concat!(
                "../../hooks/commands/", $file
            ))),
        )
    };
}

macro_rules! advice {
    ($path:literal, $file:literal) => {
        crate::agent::files::file(
            $path,
            crate::agent::files::FileKind::Advice(include_str!(concat!("../../hooks/", $file))),
        )
    };
}

pub(super) use {advice, command, plugin};
