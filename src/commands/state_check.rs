//! Checks our own files beside the checkpoints, and removes those that cannot be read. They hold no byte
//! of the user's: each is written again when it is needed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use crate::{
    attribution,
    cache::ScanTable,
    error::{Error, Result},
    fs::{clear_away, is_in_the_way, remove_if_there},
    ledger,
    maintenance::MaintenanceState,
    model::Root,
    restore_log::RestoreLog,
    state::{RootState, StateDir},
    store::{Damage, record, sweep},
    ui,
};

use super::stats::Stats;

/// The files of one root beside its checkpoints, and what they are called. Each is a regular file
/// or not there.
fn files_of(own: &RootState) -> Vec<(String, PathBuf)> {
    let left = |name: &str| own.attribution().join(name);
    let paths = [
        own.location(),
        own.lock(),
        own.anchor(),
        own.cache(),
        own.object_stamps(),
        own.stats(),
        own.warming(),
        own.restore_log(),
        own.restore_lock(),
        left("log"),
        left("log.old"),
    ];
    let contents = attribution::content_files(own);
    named(own.dir(), paths.into_iter().chain(contents).collect())
}

/// The same of what all roots share.
fn shared_files(state: &StateDir) -> Vec<(String, PathBuf)> {
    let mut paths = vec![
        state.objects().with_extension("lock"),
        state.maintenance_file(),
        state.maintenance_lock(),
        state.journal(),
        state.journal().with_extension("old"),
        state.installed(),
    ];
    let sessions = fs::read_dir(state.sessions()).into_iter().flatten().flatten();
    let is_ours = |path: &PathBuf| path.extension().is_some_and(|it| it == "json" || it == "lock");
    paths.extend(sessions.map(|entry| entry.path()).filter(is_ours));
    named(state.dir(), paths)
}

fn named(dir: &Path, paths: Vec<PathBuf>) -> Vec<(String, PathBuf)> {
    let name = |path: &Path| path.strip_prefix(dir).unwrap_or(path).to_string_lossy().into_owned();
    paths.into_iter().map(|path| (name(&path), path)).collect()
}

/// What stands in the way of files of ours: a directory, a pipe, a link.
fn in_the_way(files: &[(String, PathBuf)]) -> Vec<Damage> {
    let odd = files.iter().filter(|(_, path)| is_in_the_way(path));
    odd.map(|(name, _)| damage(name, "not a regular file; `--repair` clears it away")).collect()
}

/// Takes what stands in the way of the files of one root, and of those that all roots share, away
/// from there. Says what was done.
///
/// # Errors
///
/// Fails if something is still there.
pub(crate) fn clear_the_way(state: &StateDir, own: Option<&RootState>) -> Result<Vec<String>> {
    let files = own.map_or_else(|| shared_files(state), files_of);
    let odd = files.into_iter().filter(|(_, path)| is_in_the_way(path));
    odd.map(|(_, path)| clear_away(&path)).collect()
}

/// Adds what was found by reading a file, unless it is known to be no file at all.
fn add(found: &mut Vec<Damage>, read: Damage) {
    if !found.iter().any(|known| known.what == read.what) {
        found.push(read);
    }
}

/// What is wrong with the files of one root beside its checkpoints.
pub(crate) fn check(own: &RootState) -> Vec<Damage> {
    let mut found = in_the_way(&files_of(own));
    for read in read_all(own) {
        add(&mut found, read);
    }
    found
}

fn read_all(own: &RootState) -> Vec<Damage> {
    let mut found = Vec::new();
    if ScanTable::is_damaged(&own.cache()) {
        found.push(damage("cache", "it cannot be read; the next scan rebuilds it"));
    }
    if Stats::is_damaged(own) {
        found.push(damage("stats.json", "it cannot be read; the next list rebuilds it"));
    }
    let lines = attribution::damaged(own);
    if lines > 0 {
        let lines = ui::count(lines as u64, "line");
        let why = format!("{lines} cannot be read; who made the changes of that time is not known");
        found.push(damage("attribution/log", &why));
    }
    for (path, count) in attribution::damaged_contents(own) {
        let name = path.strip_prefix(own.dir()).unwrap_or(&path).display().to_string();
        let files = ui::count(count as u64, "file");
        let why = format!("{files} between steps of a turn cannot be read, and will not come back");
        found.push(damage(&name, &why));
    }
    if let Err(err) = RestoreLog::read(own) {
        found.push(damage("restore-log", &error_words(err)));
    }
    if let Err(err) = record::known_location(own) {
        found.push(damage("root.json", &lost_place(err)));
    }
    found.extend(record::quarantine_damage(own).unwrap_or_default());
    found
}

/// Removes what is made again, and writes down where the root is. Says what was done.
///
/// # Errors
///
/// Fails if something cannot be removed or written.
pub(crate) fn repair(own: &RootState, root: &Root, now: DateTime<Utc>) -> Result<Vec<String>> {
    let mut done = Vec::new();
    if ScanTable::is_damaged(&own.cache()) {
        remove_if_there(&own.cache())?;
        done.push("removed the damaged cache; the next scan rebuilds it".to_owned());
    }
    if Stats::is_damaged(own) {
        remove_if_there(&own.stats())?;
        done.push("removed the damaged stats.json; the next list rebuilds it".to_owned());
    }
    let lines = attribution::repair(own)?;
    if lines > 0 {
        let lines = ui::count(lines as u64, "line");
        done.push(format!("dropped {lines} of attribution/log that cannot be read"));
    }
    let contents = attribution::repair_contents(own)?;
    if contents > 0 {
        let files = ui::count(contents as u64, "file");
        done.push(format!("dropped {files} between steps of turns that cannot be read"));
    }
    if matches!(RestoreLog::read(own), Err(Error::Damaged { .. })) {
        // What it named may be of use to a person.
        let log = own.restore_log();
        let aside = log.with_extension("damaged");
        fs::rename(&log, &aside).map_err(Error::io("put aside", &log))?;
        done.push("put the damaged restore-log aside, as restore-log.damaged".to_owned());
    }
    let is_lost =
        !matches!(record::read_location(own), Ok(Some(_)) | Err(Error::FormatTooNew { .. }));
    // A root without checkpoints has no state, and needs none.
    if is_lost && own.checkpoints().is_dir() && root.path().is_dir() {
        let store = record::store_of(own)?;
        record::write_location(own, root, store.as_deref(), now)?;
        done.push("wrote root.json again".to_owned());
    }
    Ok(done)
}

/// What is wrong with what all roots share: the ledgers of sessions, packs, and what rounds
/// remember.
pub(crate) fn check_sessions(state: &StateDir) -> Vec<Damage> {
    let why = "it cannot be read; this costs one extra checkpoint";
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damaged = ledger::damaged(state);
    let mut found = in_the_way(&shared_files(state));
    for path in &damaged {
        add(&mut found, damage(&format!("sessions/{}", name(path)), why));
    }
    for err in sweep::damaged_packs(state).unwrap_or_else(|err| vec![err]) {
        let what = match &err {
            Error::Damaged { what, .. } => what.clone(),
            _ => "objects/packs".to_owned(),
        };
        found.push(damage(&what, &error_words(err)));
    }
    if MaintenanceState::is_damaged(state) {
        let why = "it cannot be read; to the next maintenance run, everything looks new";
        add(&mut found, damage("maintenance.json", why));
    }
    found
}

/// Removes ledgers, and what rounds remember, if they cannot be read, and puts packs aside. Says what
/// was done.
///
/// # Errors
///
/// Fails if one cannot be removed.
pub(crate) fn repair_sessions(state: &StateDir) -> Result<Vec<String>> {
    let damaged = ledger::damaged(state);
    damaged.iter().try_for_each(|path| remove_if_there(path).map(drop))?;
    let mut done = match damaged.len() {
        0 => Vec::new(),
        count => vec![format!("removed {}", ui::count(count as u64, "damaged ledger"))],
    };
    done.extend(sweep::put_packs_aside(state)?);
    if MaintenanceState::is_damaged(state) {
        remove_if_there(&state.maintenance_file())?;
        done.push(
            "removed the damaged maintenance.json; the next maintenance run writes it again"
                .to_owned(),
        );
    }
    Ok(done)
}

/// Roots of which nothing says where they are, but for the one at `here`, which was looked at.
///
/// # Errors
///
/// Fails if they cannot be listed.
pub(crate) fn check_places(state: &StateDir, here: Option<&RootState>) -> Result<Vec<Damage>> {
    let mut found = Vec::new();
    for own in record::all_roots(state)? {
        if let Err(err) = record::known_location(&own)
            && Some(&own) != here
        {
            let name = own.dir().file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(damage(&format!("roots/{name}/root.json"), &lost_place(err)));
        }
    }
    Ok(found)
}

/// Why nothing says where a root is, and what to do.
fn lost_place(err: Error) -> String {
    match err {
        err @ Error::FormatTooNew { .. } => error_words(err),
        err => format!(
            "{}; `beforehand check --repair` in the project writes it again",
            error_words(err)
        ),
    }
}

fn damage(what: &str, why: &str) -> Damage {
    Damage::new(None, what.to_owned(), why.to_owned())
}

fn error_words(err: Error) -> String {
    match err {
        Error::Damaged { why, .. } => why,
        Error::Io { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}
