//! How an agent starts our hook before a call, from the file in which it is registered.

use std::ffi::OsString;

use super::{
    HookStatus, SIZE_MAX_BYTES, line, look,
    program::OurPrograms,
    rows::{Edit, Site},
    switches::hermes_hooks,
};
use crate::{error::Result, fs::read_small};

/// How an agent starts our hook: a program, and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookStart(Vec<OsString>);

impl HookStart {
    /// The program and its arguments.
    pub fn words(&self) -> &[OsString] {
        &self.0
    }

    /// The words of a line, as the agent splits it, or as its shell is started with it.
    fn of_line(line: &str, agent: &str) -> Option<Self> {
        if line::is_run_by_shell(agent) {
            return Some(Self(["/bin/sh", "-c", line].map(OsString::from).to_vec()));
        }
        let words = shell_words::split(line).ok().filter(|words| !words.is_empty())?;
        Some(Self(words.into_iter().map(OsString::from).collect()))
    }
}

/// Every way in which a file has its agent start our hook at `event`, which for an agent with a script
/// for each event is the name of the script.
///
/// # Errors
///
/// Fails if the file cannot be read, or is not what the agent reads.
pub fn starts_before_call(site: &Site, event: &str, ours: &OurPrograms) -> Result<Vec<HookStart>> {
    let lines: Vec<String> = match (look(site, ours)?, site.edit) {
        (HookStatus::Entries(entries, _), _) => {
            let mut entries = entries;
            entries.retain(|entry| entry.event == event);
            entries.into_iter().map(|entry| entry.command).collect()
        }
        (HookStatus::Whole(_), Edit::Lines(_)) => {
            let bytes = read_small(&site.path, SIZE_MAX_BYTES)?.unwrap_or_default();
            let mut hooks = hermes_hooks(&String::from_utf8_lossy(&bytes));
            hooks.retain(|(name, _)| name == event);
            hooks.into_iter().map(|(_, command)| command).collect()
        }
        (HookStatus::Whole(_), Edit::Script(_)) => {
            let is_it = site.path.file_name().is_some_and(|name| name == event);
            let start = HookStart(vec![site.path.clone().into()]);
            return Ok(is_it.then_some(start).into_iter().collect());
        }
        // A script in the agent's own language starts the program by itself.
        (HookStatus::Whole(program), _) => {
            let arguments = ["hook", "--agent", site.agent].map(OsString::from);
            let words = std::iter::once(program.into()).chain(arguments);
            return Ok(vec![HookStart(words.collect())]);
        }
        (HookStatus::Nothing | HookStatus::HookDir, _) => Vec::new(),
    };
    Ok(lines.iter().filter_map(|line| HookStart::of_line(line, site.agent)).collect())
}
