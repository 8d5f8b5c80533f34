//! All settings, with their defaults.

use std::time::Duration;

/// Everything that can be set, as it holds for one directory.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether hooks take checkpoints.
    pub enabled: bool,
    /// What makes us take one.
    pub triggers: Triggers,
    /// What the user knows better about command lines.
    pub shell: ShellPatterns,
    /// How often one turn is checkpointed.
    pub dedupe: Dedupe,
    /// How long every checkpoint is kept.
    pub retention: Duration,
    /// How long the first checkpoint of each turn is kept.
    pub keep_turns: Duration,
    /// How long the first checkpoint of each session is kept.
    pub keep_sessions: Duration,
    /// The largest untracked file that is held with its root, in bytes.
    pub max_file_size: u64,
    /// The largest file that is held because a command names it, in bytes.
    pub max_victim_size: u64,
    /// How many files a checkpoint may hold.
    pub max_files: u64,
    /// What all checkpoints of all roots may take, in bytes.
    pub max_total_size: u64,
    /// Untracked paths that are never held with their root. Gitignore patterns.
    pub exclude: Vec<String>,
    /// What to answer when a checkpoint could not be taken.
    pub on_trouble: TroubleAnswer,
    /// How long one hook call may take.
    pub deadline: Duration,
    /// When to say something to the user.
    pub notify: Notify,
    /// Whether limits are enforced without being asked.
    pub auto_prune: bool,
    /// The least time between two maintenance runs.
    pub prune_interval: Duration,
    /// Whether checkpoints of deleted directories are dropped.
    pub delete_orphans: bool,
    /// Names of files that never enter a repository's objects. Gitignore patterns.
    pub private: Vec<String>,
    /// How much of the disk stays free.
    pub free_space_floor: FreeSpace,
    /// What to answer when a call would destroy what cannot be held. Where no person can answer,
    /// `Ask` means `Deny`; that is the caller's to know.
    pub cannot_hold: TroubleAnswer,
    /// Where checkpoints of git repositories are kept.
    pub store: StoreChoice,
    /// What to answer when a call reaches for beforehand itself.
    pub self_defence: TroubleAnswer,
    /// What becomes of a session's checkpoints when it ends.
    pub on_session_end: SessionEnd,
    /// Whether the model is told, with the next prompt, which files a restore put back.
    pub tell_model: bool,
    /// When to tell the user how much a command has just done.
    pub notice: Notice,
}

/// When a command has done more than a person expects of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// It changed or deleted more files than this; 0 for never.
    pub files: u32,
    /// It deleted a file that git does not track.
    pub untracked: bool,
}

/// What makes us take a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// A tool is about to write a file.
    pub before_write: bool,
    /// A tool is about to edit a file.
    pub before_edit: bool,
    /// A command is about to run.
    pub before_shell: BeforeShell,
    /// A session begins.
    pub session_start: bool,
}

/// Which commands are worth a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeShell {
    /// All that are not proven to be read-only.
    Mutating,
    /// Those that are known to destroy something.
    Destructive,
    /// None.
    Never,
}

/// Patterns over command lines, as in `git *`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellPatterns {
    /// Commands that always count as destructive.
    pub always: Vec<String>,
    /// Commands that never count.
    pub never: Vec<String>,
}

/// How often one turn is checkpointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dedupe {
    /// Before the first change, and again before what was changed since is destroyed.
    Turn,
    /// Before the first change only.
    Strict,
    /// Before every call that can change files.
    Call,
}

/// What we do about trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleAnswer {
    /// Say so, and let the call run.
    Note,
    /// Ask the user.
    Ask,
    /// Refuse the call.
    Deny,
}

/// When a hook says something to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// When something is not as it should be.
    Trouble,
    /// After each checkpoint too.
    Always,
    /// Not at all.
    Never,
}

/// Where checkpoints of git repositories are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreChoice {
    /// In the repository's own objects, where that can be done.
    Auto,
    /// In beforehand's own store.
    Files,
}

/// What becomes of a session's checkpoints when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// They stay until the limits say otherwise.
    Keep,
    /// All but the newest go.
    Prune,
}

/// How much of a disk stays free. With both, the smaller one: on a small disk a share of it, on
/// a large one a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSpace {
    /// In bytes.
    pub bytes: Option<u64>,
    /// In hundredths of the disk.
    pub percent: Option<u8>,
}

impl FreeSpace {
    /// The bytes that must stay free on a disk of `disk` bytes.
    pub fn of(self, disk: u64) -> u64 {
        let share = self.percent.map(|percent| disk / 100 * u64::from(percent));
        [self.bytes, share].into_iter().flatten().min().unwrap_or(0)
    }
}

/// A thousand bytes times a thousand, as disks are sold.
const MB: u64 = 1_000_000;

/// One day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Settings {
    fn default() -> Self {
        Self {
            enabled: true,
            triggers: Triggers::default(),
            shell: ShellPatterns::default(),
            dedupe: Dedupe::Turn,
            retention: 14 * DAY,
            keep_turns: 30 * DAY,
            keep_sessions: 90 * DAY,
            max_file_size: 10 * MB,
            max_victim_size: 64 * MB,
            // To see that nothing has changed in so many takes 0.15 s: more would be felt, once a turn.
            max_files: 500_000,
            max_total_size: 1000 * MB,
            exclude: Vec::new(),
            on_trouble: TroubleAnswer::Note,
            // The shortest limit any agent gives a hook is 5 seconds.
            deadline: Duration::from_secs(3),
            notify: Notify::Trouble,
            auto_prune: true,
            prune_interval: DAY,
            delete_orphans: true,
            private: PRIVATE.map(str::to_owned).into(),
            free_space_floor: FreeSpace { bytes: Some(2000 * MB), percent: Some(5) },
            cannot_hold: TroubleAnswer::Ask,
            store: StoreChoice::Auto,
            self_defence: TroubleAnswer::Ask,
            on_session_end: SessionEnd::Keep,
            tell_model: false,
            notice: Notice { files: 50, untracked: true },
        }
    }
}

impl Default for Triggers {
    fn default() -> Self {
        Self {
            before_write: true,
            before_edit: true,
            before_shell: BeforeShell::Mutating,
            session_start: true,
        }
    }
}

/// What people keep secrets in. A name too many costs nothing: the file is held all the same.
const PRIVATE: [&str; 16] = [
    ".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_*", ".netrc",
    ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "*.tfvars", "*.tfstate*",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_lesser_of_size_and_share() {
        let floor = Settings::default().free_space_floor;
        assert_eq!(floor.of(10_000 * MB), 500 * MB);
        assert_eq!(floor.of(1_000_000 * MB), 2000 * MB);
        assert_eq!(FreeSpace { bytes: None, percent: None }.of(MB), 0);
    }
}
