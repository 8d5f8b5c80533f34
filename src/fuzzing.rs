//! What fuzz/ feeds with bytes from anywhere: one function for each reader of what others may have
//! written, the whole of it. Nothing in the program calls these.

use std::path::PathBuf;

use crate::{
    agent::{self, DIALECTS, EventKind, Markers},
    attribution,
    cache::ScanTable,
    ledger,
    model::{ContentId, Decision, Storage},
    restore_log::RestoreLog,
    store::{directory, listing, objects, record},
};

pub use crate::store::git::fuzzing::{IndexRoundTrip, parts, tree};

/// A payload, in every dialect, and the answer to it.
pub fn payload(bytes: &[u8]) {
    let markers = Markers::read(|_| None);
    for dialect in DIALECTS {
        let event = dialect.parse(bytes, &markers);
        let kind = event.as_ref().map_or(EventKind::Other, EventKind::from);
        let told = event.map_or_else(|bad| bad.to_string(), |event| format!("{event:?}"));
        let answer = dialect.answer(kind, &Decision::note(told));
        assert_eq!(answer.exit, 0, "a note denies nothing");
    }
}

/// A patch envelope. What it names are paths that can exist.
pub fn patch(text: &str) {
    for path in agent::patched(text).unwrap_or_default() {
        let bytes = path.as_os_str().as_encoded_bytes();
        assert!(!bytes.is_empty() && !bytes.contains(&0), "{} cannot exist", path.display());
    }
}

/// The bytes of a cache with the right checksum: everything in it is looked at.
pub fn cache(bytes: Vec<u8>) {
    let Some(table) = ScanTable::parse(bytes) else { return };
    let _facts = (table.facts(), table.top());
    for dir in table.dirs() {
        let _found = table.find_dir(dir.path).map(|found| found.first());
        for row in dir.rows() {
            let _found = dir.row(row.name).map(|row| row.to_found());
        }
    }
    let _found = table.find_dir(b"no/such/directory");
    for number in 0..table.entry_count() {
        let _kind = table.row(number).kind();
    }
}

/// Records, places, ledgers, logs, listings and directories of the private store. What is outside a
/// root is absolute, and a listing has one spelling.
pub fn records(bytes: &[u8]) {
    record::parse_any(bytes);
    ledger::parse_any(bytes);
    let _lines = attribution::parse(bytes);
    if let Ok(log) = RestoreLog::parse("x", bytes) {
        assert!(log.outside.iter().all(|path| path.is_absolute()), "{log:?}");
    }
    let id = ContentId::new(&[]);
    let _damaged = directory::parse(&id, bytes);
    objects::read_any(bytes);
    if let Ok(lines) = listing::parse(&id, bytes, Storage::Files) {
        assert_eq!(listing::to_text(&lines).as_bytes(), bytes);
        let _below = listing::below(&id, &lines);
        let outside = listing::outside(&id, &lines).unwrap_or_default();
        assert!(outside.keys().all(|path: &PathBuf| path.is_absolute()), "{outside:?}");
    }
}
