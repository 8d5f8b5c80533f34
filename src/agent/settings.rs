//! The parts of a row about settings: in which files an agent reads settings and hooks, and which keys
//! keep its hooks from running.
//!
//! Names only. `install` reads the files, of all agents in one way.

/// A file, by where its path begins. A `*` stands for any part of one name; of the files that it stands
/// for, the last by name wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFile {
    /// For the whole machine, below `/`; elsewhere, if this variable says so.
    System(&'static str, Option<&'static str>),
    /// Below the project.
    Project(&'static str),
    /// Below the agent's own directory.
    User(&'static str),
    /// Below the agent's own directory, a copy of what an organisation has set.
    Managed(&'static str),
    /// Below the user's home.
    Home(&'static str),
}

/// A key with the value that keeps hooks from running.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The key, from the outside in.
    pub key: &'static [&'static str],
    /// The value that counts.
    pub when: SwitchValue,
    /// True if the key counts only where an administrator has set it.
    pub is_managed: bool,
}

/// Which value of a key counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchValue {
    /// This one; the first file that has the key decides.
    Is(bool),
    /// A list with our hook in it, in any of the files.
    NamesUs,
    /// `true`, or a list or table with hooks in it: then only packages may bring some.
    LocksHooks,
}

pub(super) const fn system(path: &'static str) -> SettingsFile {
    SettingsFile::System(path, None)
}

/// A file of the whole machine that a variable can move.
pub(super) const fn system_or(path: &'static str, variable: &'static str) -> SettingsFile {
    SettingsFile::System(path, Some(variable))
}

pub(super) const fn project(path: &'static str) -> SettingsFile {
    SettingsFile::Project(path)
}

pub(super) const fn user(path: &'static str) -> SettingsFile {
    SettingsFile::User(path)
}

pub(super) const fn managed(path: &'static str) -> SettingsFile {
    SettingsFile::Managed(path)
}

pub(super) const fn in_home(path: &'static str) -> SettingsFile {
    SettingsFile::Home(path)
}

/// The key has this value.
pub(super) const fn is_set(key: &'static [&'static str], value: bool) -> Switch {
    Switch { key, when: SwitchValue::Is(value), is_managed: false }
}

/// An administrator has set the key to this value.
pub(super) const fn is_set_by_admin(key: &'static [&'static str], value: bool) -> Switch {
    Switch { key, when: SwitchValue::Is(value), is_managed: true }
}

/// The list names our hooks.
pub(super) const fn names_our_hooks(key: &'static [&'static str]) -> Switch {
    Switch { key, when: SwitchValue::NamesUs, is_managed: false }
}

/// An administrator has locked hooks that no package brings.
pub(super) const fn locks_hooks(key: &'static [&'static str]) -> Switch {
    Switch { key, when: SwitchValue::LocksHooks, is_managed: true }
}
