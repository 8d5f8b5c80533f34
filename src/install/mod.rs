//! Where each agent keeps its hooks, and the smallest change that puts ours in or takes them out.
//!
//! Read, plan, show, write: a [`Plan`] is computed from the texts of the files and what an earlier
//! install wrote down, and nothing else; [`Plan::apply`] does it, file by file, each replaced
//! whole. Every byte that is not ours stays.

mod arguments;
mod block;
mod edit;
mod jsonc;
mod line;
mod merge;
mod other_hooks;
mod packages;
mod program;
mod record;
mod registered;
mod rows;
mod start;
mod switches;
#[cfg(test)]
mod tests;
mod trust;
mod version;
#[cfg(test)]
mod written_tests;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

pub use arguments::{can_be_off_by_arguments, off_by_arguments};
pub use merge::HookEntry;
pub use other_hooks::{OtherHook, other_hooks};
pub use packages::package;
pub use program::{OurPrograms, ProgramPath};
pub use registered::registrations_at;
pub use rows::{InstallRow, ROWS, Site};
pub use start::{HookStart, starts_before_call};
pub use switches::{Off, answers_for_user, off, switches_at};
pub use trust::{ends_a_session, untrusted};

use crate::{
    error::{Error, Result},
    fs::{read_small, remove_left_beside, replace_with},
    state::StateDir,
    ui,
};
use block::BlockFormat;
use jsonc::JsonError;
use record::{InstallRecord, PriorFile};
use rows::Edit;

/// No settings of an agent come near it.
const SIZE_MAX_BYTES: u64 = 2 << 20;

/// What is to be done to the files of some agents.
#[derive(Debug, Default)]
pub struct Plan {
    /// What changes.
    pub changes: Vec<FileEdit>,
    /// What is right as it is.
    pub unchanged: Vec<Site>,
    /// What cannot be done, and why.
    pub refused: Vec<(Site, Error)>,
    /// The program that is written into them.
    program: Option<ProgramPath>,
    /// What could be done and is not, since the hooks of the same agent were refused.
    pub withheld: Vec<Site>,
    /// Files that were written down and have nothing of ours any more.
    gone: Vec<PathBuf>,
}

/// What becomes of one file.
#[derive(Debug)]
pub struct FileEdit {
    /// Where.
    pub site: Site,
    /// What is there; `None` if nothing is.
    pub old: Option<String>,
    /// What will be there.
    pub new: Option<String>,
    /// Its permission bits.
    pub permissions: u32,
    purpose: Purpose,
    /// The file itself, if the path is a link to it.
    target: PathBuf,
}

/// Whether we come or go.
#[derive(Debug)]
enum Purpose {
    /// We come, and this was there before us.
    Come(Option<String>),
    /// We go.
    Go,
}

/// What is at a place now.
#[derive(Clone, Debug)]
struct CurrentFile {
    text: Option<String>,
    permissions: u32,
    target: PathBuf,
}

impl Plan {
    /// What would put our hooks into these places.
    pub fn install(sites: Vec<Site>, program: &ProgramPath, state: &StateDir) -> Self {
        let record = InstallRecord::open(state);
        let ours = record.ours();
        let mut plan =
            Self::of(sites, |site, found| put(site, found, program, &ours, &record, state));
        plan.withhold();
        Self { program: Some(program.clone()), ..plan }
    }

    /// All or nothing for each agent: commands without hooks would promise what is not there.
    fn withhold(&mut self) {
        let refused: Vec<_> = self
            .refused
            .iter()
            .filter(|(site, _)| site.is_hook())
            .map(|(site, _)| site.agent)
            .collect();
        let (kept, withheld): (Vec<_>, Vec<_>) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition(|change| !refused.contains(&change.site.agent));
        self.changes = kept;
        self.withheld = withheld.into_iter().map(|change| change.site).collect();
    }

    /// What would take them out, and those of the program that is running now, which may be one
    /// that are not written down.
    pub fn uninstall(sites: Vec<Site>, running: Option<&ProgramPath>, state: &StateDir) -> Self {
        let record = InstallRecord::open(state);
        let ours = ours(&record, running);
        let mut plan = Self::of(sites, |site, found| take(site, found, &ours, &record, state));
        plan.gone = plan.unchanged.iter().map(target).collect();
        plan
    }

    /// What would note in Codex's `config.toml`, which `site` is, that its user approves of the
    /// hooks in `hooks`.
    pub fn approve(site: Site, hooks: &Path, entries: &[HookEntry], state: &StateDir) -> Self {
        let record = InstallRecord::open(state);
        Self::of(vec![site], |site, found| {
            let old = found.text.as_deref().unwrap_or_default();
            let new = trust::approve(old, hooks, entries).map_err(fault(&site.path))?;
            let before = match record.before(state, &found.target, old.as_bytes()) {
                PriorFile::Bytes(bytes) => String::from_utf8(bytes).ok(),
                PriorFile::Missing => None,
                PriorFile::Unknown => {
                    let now = found.text.as_deref();
                    now.map(BlockFormat::take).transpose().map_err(fault(&site.path))?
                }
            };
            Ok(Some(FileEdit::come(site, found, new, before)))
        })
    }

    fn of(sites: Vec<Site>, plan: impl Fn(&Site, CurrentFile) -> Result<Option<FileEdit>>) -> Self {
        let mut whole = Self::default();
        for site in sites {
            match find(&site).and_then(|found| plan(&site, found)) {
                Ok(Some(change)) => whole.changes.push(change),
                Ok(None) => whole.unchanged.push(site),
                Err(err) => whole.refused.push((site, err)),
            }
        }
        whole
    }

    /// Removes what an earlier one that was killed has left, whether or not a file changes now.
    ///
    /// # Errors
    ///
    /// Fails if what was written down of earlier installs cannot be.
    pub fn tidy(&self, state: &StateDir) -> Result<()> {
        for site in self.unchanged.iter().chain(self.changes.iter().map(|change| &change.site)) {
            remove_left_beside(&target(site));
        }
        if self.gone.is_empty() {
            return Ok(());
        }
        let mut record = InstallRecord::open_to_write(state)?;
        self.gone.iter().for_each(|path| record.forget(state, path));
        record.close(state)
    }

    /// Does it. What was there is kept in the state directory first.
    ///
    /// # Errors
    ///
    /// Fails at the first file that has changed since it was read, or cannot be written. Agents
    /// before it are done; the files of its own agent are as they were.
    pub fn apply(&self, state: &StateDir) -> Result<()> {
        let mut record = InstallRecord::open_to_write(state)?;
        if let Some(program) = &self.program {
            record.note_program(program);
        }
        let mut done = Ok(());
        for changes in self.changes.chunk_by(|one, next| one.site.agent == next.site.agent) {
            let before = record.clone();
            for (at, change) in changes.iter().enumerate() {
                done = change.apply(state, &mut record);
                if done.is_err() {
                    changes[..at].iter().rev().for_each(FileEdit::revert);
                    record.back_to(state, before);
                    return done.and(record.close(state));
                }
            }
        }
        done.and(record.close(state))
    }
}

/// The file that a place leads to.
fn target(site: &Site) -> PathBuf {
    fs::canonicalize(&site.path).unwrap_or_else(|_| site.path.clone())
}

impl FileEdit {
    fn come(site: &Site, found: CurrentFile, new: String, before: Option<String>) -> Self {
        let CurrentFile { text: old, permissions, target } = found;
        let purpose = Purpose::Come(before);
        Self { site: site.clone(), old, new: Some(new), permissions, purpose, target }
    }

    fn apply(&self, state: &StateDir, record: &mut InstallRecord) -> Result<()> {
        let now = find(&self.site)?;
        if now.text != self.old || now.target != self.target {
            let path = ui::escape_path(&self.site.path).into_owned();
            return Err(Error::other(format!("`{path}` has changed meanwhile"), "run this again"));
        }
        match (&self.purpose, &self.new) {
            (Purpose::Come(before), Some(new)) => {
                let before = before.as_deref().map(str::as_bytes);
                record.note(state, &self.target, new.as_bytes(), before)?;
                if let Some(dir) = self.target.parent() {
                    record.make_dirs(dir)?;
                }
                replace_with(&self.target, new.as_bytes(), self.permissions)
            }
            (Purpose::Go, Some(new)) => {
                replace_with(&self.target, new.as_bytes(), self.permissions)?;
                record.forget(state, &self.target);
                Ok(())
            }
            (_, None) => {
                fs::remove_file(&self.target).map_err(Error::io("remove", &self.target))?;
                crate::crash::point("removed-file");
                record.forget(state, &self.target);
                Ok(())
            }
        }
    }

    /// Puts back what was there, as far as that can be done: another file of the agent has failed.
    fn revert(&self) {
        let _as_far_as_it_goes = match &self.old {
            Some(old) => replace_with(&self.target, old.as_bytes(), self.permissions).is_ok(),
            None => fs::remove_file(&self.target).is_ok(),
        };
    }
}

/// Reads what is at a place: a regular file of a sensible size, or nothing.
fn find(site: &Site) -> Result<CurrentFile> {
    let path = &site.path;
    let is_script = matches!(site.edit, Edit::Script(_));
    let permissions = match (site.within.is_some(), is_script) {
        (true, true) => 0o755,
        (true, false) => 0o644,
        (false, true) => 0o700,
        (false, false) => 0o600,
    };
    if path.symlink_metadata().is_err() {
        stays_within(site, path)?;
        return Ok(CurrentFile { text: None, permissions, target: path.clone() });
    }
    let target = fs::canonicalize(path).map_err(Error::io("follow", path))?;
    stays_within(site, &target)?;
    let bytes = read_small(&target, SIZE_MAX_BYTES)?.unwrap_or_default();
    let found = fs::metadata(&target).map_err(Error::io("look at", &target))?;
    let text = String::from_utf8(bytes).map_err(|err| {
        let before = &err.as_bytes()[..err.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        refusal(path, &format!("line {line}: it is not UTF-8"))
    })?;
    let permissions = found.permissions().mode() & 0o7777;
    Ok(CurrentFile { text: Some(text), permissions, target })
}

/// A project must not lead us to a file outside it.
fn stays_within(site: &Site, target: &Path) -> Result<()> {
    let Some(root) = &site.within else { return Ok(()) };
    let real = target.ancestors().find_map(|above| fs::canonicalize(above).ok());
    let root = fs::canonicalize(root).map_err(Error::io("find", root))?;
    if real.is_some_and(|real| real.starts_with(root)) {
        return Ok(());
    }
    Err(refusal(&site.path, "it leads out of the project"))
}

fn refusal(path: &Path, why: &str) -> Error {
    let path = ui::escape_path(path);
    let why = ui::escape(why.as_bytes());
    Error::other(format!("`{path}` is left as it is: {why}"), "put it right, then run this again")
}

fn fault(path: &Path) -> impl FnOnce(JsonError) -> Error {
    let path = path.to_owned();
    move |fault| refusal(&path, &fault.to_string())
}

fn put(
    site: &Site,
    found: CurrentFile,
    program: &ProgramPath,
    ours: &OurPrograms,
    record: &InstallRecord,
    state: &StateDir,
) -> Result<Option<FileEdit>> {
    let ours = &ours.and(program);
    let old = found.text.as_deref();
    let known = record.before(state, &found.target, old.unwrap_or_default().as_bytes());
    let new = match site.edit {
        Edit::Merge(entries) => {
            let old = old.unwrap_or_default();
            let new = entries.put(old, program, ours).map_err(fault(&site.path))?;
            entries.check_dialect(old).map_err(fault(&site.path))?;
            new
        }
        Edit::HookDir(setting) => {
            setting.put(old.unwrap_or_default()).map_err(fault(&site.path))?
        }
        Edit::Lines(block) => {
            block.put(old.unwrap_or_default(), program).map_err(fault(&site.path))?
        }
        Edit::Whole(_) | Edit::Script(_)
            if known == PriorFile::Unknown
                && old.is_some_and(|old| program_of_file(site.edit, old, ours).is_none()) =>
        {
            return Err(refusal(&site.path, "it is not beforehand's"));
        }
        Edit::Whole(template) => template.filled(program).ok_or_else(|| {
            refusal(&site.path, "the path of beforehand has characters that cannot stand there")
        })?,
        Edit::Script(agent) => line::script(program, agent),
    };
    if old == Some(&*new) {
        return Ok(None);
    }
    let before = match known {
        PriorFile::Bytes(bytes) => String::from_utf8(bytes).ok(),
        PriorFile::Missing => None,
        PriorFile::Unknown => without_ours(site.edit, old, ours).map_err(fault(&site.path))?,
    };
    Ok(Some(FileEdit::come(site, found, new, before)))
}

/// The program in a file that is ours alone; `None` if it is not ours.
fn program_of_file(edit: Edit, text: &str, ours: &OurPrograms) -> Option<PathBuf> {
    match edit {
        Edit::Whole(template) => template.program_in(text, ours).map(PathBuf::from),
        Edit::Script(agent) => line::program_in_script(text, agent, ours),
        Edit::Merge(_) | Edit::HookDir(_) | Edit::Lines(_) => None,
    }
}

/// What was in a file before us, by what is in it now; `None` if it is ours alone.
fn without_ours(
    edit: Edit,
    now: Option<&str>,
    ours: &OurPrograms,
) -> Result<Option<String>, JsonError> {
    let Some(now) = now else { return Ok(None) };
    match edit {
        Edit::Merge(entries) => entries.take(now, ours).map(Some),
        Edit::HookDir(setting) => setting.take(now).map(Some),
        Edit::Lines(_) => BlockFormat::take(now).map(Some),
        Edit::Whole(_) | Edit::Script(_) => Ok(None),
    }
}

fn take(
    site: &Site,
    found: CurrentFile,
    ours: &OurPrograms,
    record: &InstallRecord,
    state: &StateDir,
) -> Result<Option<FileEdit>> {
    let Some(old) = found.text else { return Ok(None) };
    let new = match (record.before(state, &found.target, old.as_bytes()), site.edit) {
        (PriorFile::Missing, _) => None,
        (PriorFile::Bytes(bytes), _) => String::from_utf8(bytes).ok(),
        (PriorFile::Unknown, Edit::Merge(entries)) => {
            // What is no JSON has nothing of ours that the agent would run.
            let is_named = ours.may_be_in(&old);
            let text = match entries.take(&old, ours) {
                Ok(text) => text,
                Err(_) if !is_named => return Ok(None),
                Err(err) => return Err(fault(&site.path)(err)),
            };
            let is_bare = record.made(&found.target) && entries.is_bare(&text);
            Some(text).filter(|_| !is_bare)
        }
        (PriorFile::Unknown, Edit::HookDir(setting)) => {
            // What is no JSON names nothing that the agent would read.
            let Ok(text) = setting.take(&old) else { return Ok(None) };
            let is_bare = record.made(&found.target) && text.trim() == "{}";
            Some(text).filter(|_| !is_bare)
        }
        (PriorFile::Unknown, Edit::Lines(_)) => {
            let text = BlockFormat::take(&old).map_err(fault(&site.path))?;
            let is_bare = record.made(&found.target) && text.trim().is_empty();
            Some(text).filter(|_| !is_bare)
        }
        (PriorFile::Unknown, Edit::Whole(_) | Edit::Script(_)) => {
            match program_of_file(site.edit, &old, ours) {
                Some(_) => None,
                None => return Ok(None),
            }
        }
    };
    if new.as_deref() == Some(&*old) {
        return Ok(None);
    }
    let CurrentFile { permissions, target, .. } = found;
    let (site, old) = (site.clone(), Some(old));
    Ok(Some(FileEdit { site, old, new, permissions, purpose: Purpose::Go, target }))
}

/// What stands in one place now, for a look at it.
#[derive(Debug)]
pub enum HookStatus {
    /// There is nothing of ours.
    Nothing,
    /// Entries in a settings file, and the events we ask for that have none.
    Entries(Vec<HookEntry>, Vec<String>),
    /// A file of ours that runs this program.
    Whole(PathBuf),
    /// The agent's settings name the directory of our hooks.
    HookDir,
}

/// The programs that are beforehand: those that installs wrote down, and the one that is running.
pub fn ours_of(state: &StateDir, running: Option<&ProgramPath>) -> OurPrograms {
    ours(&InstallRecord::open(state), running)
}

fn ours(record: &InstallRecord, running: Option<&ProgramPath>) -> OurPrograms {
    let written = record.ours();
    running.map_or(written.clone(), |running| written.and(running))
}

/// Whether an install wrote into one of these files, and no uninstall took it back.
pub fn wrote(state: &StateDir, sites: &[Site]) -> bool {
    let record = InstallRecord::open(state);
    sites.iter().any(|site| record.wrote(&site.path) || record.wrote(&target(site)))
}

/// Looks at one place, for what is of these programs.
///
/// # Errors
///
/// Fails if it cannot be read, or is no JSON where that is expected.
pub fn look(site: &Site, ours: &OurPrograms) -> Result<HookStatus> {
    let Some(text) = find(site)?.text else { return Ok(HookStatus::Nothing) };
    match site.edit {
        Edit::Merge(entries) => {
            let found = entries.look(&text, ours).map_err(fault(&site.path))?;
            entries.check_dialect(&text).map_err(fault(&site.path))?;
            Ok(hook_status(found, entries.events()))
        }
        Edit::HookDir(setting) => {
            let is_set = setting.is_set(&text).map_err(fault(&site.path))?;
            Ok(if is_set { HookStatus::HookDir } else { HookStatus::Nothing })
        }
        Edit::Lines(block) => {
            let found = block.look(&text, ours).map_err(fault(&site.path))?;
            Ok(hook_status(found, block.events()))
        }
        Edit::Whole(_) | Edit::Script(_) => {
            let program = program_of_file(site.edit, &text, ours);
            Ok(program.map_or(HookStatus::Nothing, HookStatus::Whole))
        }
    }
}

fn hook_status(found: Vec<HookEntry>, mut events: Vec<String>) -> HookStatus {
    if found.is_empty() {
        return HookStatus::Nothing;
    }
    events.retain(|event| !found.iter().any(|entry| entry.event == *event));
    HookStatus::Entries(found, events)
}

impl Site {
    /// Returns true for a file of a project, and false for one of the user's own.
    pub fn is_in_project(&self) -> bool {
        self.within.is_some()
    }

    /// Whether the agent runs the file itself.
    pub fn needs_permission(&self) -> bool {
        matches!(self.edit, Edit::Script(_))
    }

    /// Whether these are settings that only name the directory of the hooks.
    pub fn names_hooks(&self) -> bool {
        matches!(self.edit, Edit::HookDir(_))
    }

    /// Whether this is where the hooks are, not a command for people.
    pub fn is_hook(&self) -> bool {
        self.edit.is_hook()
    }
}
