//! Our own files beside the checkpoints: whether they can be read, and how to be rid of those that
//! cannot. Nothing here holds a byte of the user's: what is removed is made again.

use std::{fs, path::Path};

use chrono::{DateTime, Utc};

use crate::{
    cache::Table,
    error::{Error, Result},
    house::Memory,
    ledger,
    model::Root,
    restore_log::RestoreLog,
    state::{RootState, State},
    store::{Damage, record},
};

use super::stats::Stats;

/// What is wrong with the files of one root beside its checkpoints.
pub(crate) fn check(own: &RootState) -> Vec<Damage> {
    let mut found = Vec::new();
    if Table::is_damaged(&own.cache()) {
        found.push(damage("cache", "it cannot be read; the next scan makes it again"));
    }
    if Stats::is_damaged(own) {
        found.push(damage("stats.json", "it cannot be read; the next list makes it again"));
    }
    if let Err(err) = RestoreLog::read(own) {
        found.push(damage("restore-log", &told(err)));
    }
    if let Err(err) = record::read_place(own) {
        found.push(damage("root.json", &told(err)));
    }
    found.extend(record::damage_aside(own).unwrap_or_default());
    found
}

/// Removes what is made again, and writes down where the root is. Says what was done.
///
/// # Errors
///
/// Fails if something cannot be removed or written.
pub(crate) fn repair(own: &RootState, root: &Root, now: DateTime<Utc>) -> Result<Vec<String>> {
    let mut done = Vec::new();
    if Table::is_damaged(&own.cache()) {
        remove(&own.cache())?;
        done.push("removed the damaged cache; the next scan makes it again".to_owned());
    }
    if Stats::is_damaged(own) {
        remove(&own.stats())?;
        done.push("removed the damaged stats.json; the next list makes it again".to_owned());
    }
    if matches!(record::read_place(own), Err(Error::Damaged { .. })) && root.path().is_dir() {
        let store = record::store_of(own)?;
        record::write_place(own, root, store.as_deref(), now)?;
        done.push("wrote root.json again".to_owned());
    }
    Ok(done)
}

/// What is wrong with what all roots share: the ledgers of sessions, and what rounds remember.
pub(crate) fn check_sessions(state: &State) -> Vec<Damage> {
    let why = "it cannot be read; a call more is saved for want of it";
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damaged = ledger::damaged(state);
    let mut found: Vec<Damage> =
        damaged.iter().map(|path| damage(&format!("sessions/{}", name(path)), why)).collect();
    if Memory::is_damaged(state) {
        found.push(damage("house.json", "it cannot be read; to the next round all looks new"));
    }
    found
}

/// Removes ledgers, and what rounds remember, if they cannot be read. Says what was done.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub(crate) fn repair_sessions(state: &State) -> Result<Vec<String>> {
    let damaged = ledger::damaged(state);
    damaged.iter().try_for_each(|path| remove(path))?;
    let mut done = match damaged.len() {
        0 => Vec::new(),
        count => vec![format!("removed {}", crate::ui::count(count as u64, "damaged ledger"))],
    };
    if Memory::is_damaged(state) {
        remove(&state.house())?;
        done.push("removed the damaged house.json; the next round makes it again".to_owned());
    }
    Ok(done)
}

/// Roots of which nothing says where they are.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub(crate) fn check_places(state: &State) -> Result<Vec<Damage>> {
    let mut found = Vec::new();
    for own in record::all_roots(state)? {
        if let Err(err) = record::read_place(&own) {
            let name = own.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(damage(&format!("roots/{name}/root.json"), &told(err)));
        }
    }
    Ok(found)
}

fn damage(what: &str, why: &str) -> Damage {
    Damage { checkpoint: None, what: what.to_owned(), why: why.to_owned() }
}

fn told(err: Error) -> String {
    match err {
        Error::Damaged { why, .. } => why,
        Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(err))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
