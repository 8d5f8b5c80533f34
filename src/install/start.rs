//! How an agent starts our hook before a call, from the file in which it is registered.

use std::{ffi::OsString, path::PathBuf};

use super::{
    HookStatus, line, look,
    program::OurPrograms,
    rows::{Edit, Site},
};
use crate::error::Result;

/// How an agent starts our hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookStart {
    /// As a program with arguments, which is given the payload.
    Words(Vec<OsString>),
    /// By a call of this plugin, in a process of the agent's own. The plugin starts the program.
    Plugin {
        /// The module.
        file: PathBuf,
        /// The program that is written into it.
        program: PathBuf,
    },
}

impl HookStart {
    /// The words of a line, as the agent splits it, or as its shell is started with it.
    fn of_line(line: &str, agent: &str) -> Option<Self> {
        if line::is_run_by_shell(agent) {
            return Some(Self::Words(["/bin/sh", "-c", line].map(OsString::from).to_vec()));
        }
        let words = shell_words::split(line).ok().filter(|words| !words.is_empty())?;
        Some(Self::Words(words.into_iter().map(OsString::from).collect()))
    }
}

/// Every way in which a file has its agent start our hook at `event`, which for an agent with a script
/// for each event is the name of the script.
///
/// # Errors
///
/// Fails if the file cannot be read, or is not what the agent reads.
pub fn starts_before_call(site: &Site, event: &str, ours: &OurPrograms) -> Result<Vec<HookStart>> {
    Ok(match (look(site, ours)?, site.edit) {
        (HookStatus::Entries(entries, _), _) => {
            let lines = entries.iter().filter(|entry| entry.event == event);
            lines.filter_map(|entry| HookStart::of_line(&entry.command, site.agent)).collect()
        }
        (HookStatus::Whole(_), Edit::Script(_)) => {
            let is_it = site.path.file_name().is_some_and(|name| name == event);
            let start = HookStart::Words(vec![site.path.clone().into()]);
            is_it.then_some(start).into_iter().collect()
        }
        (HookStatus::Whole(program), _) => {
            vec![HookStart::Plugin { file: site.path.clone(), program }]
        }
        (HookStatus::Nothing | HookStatus::HookDir, _) => Vec::new(),
    })
}
