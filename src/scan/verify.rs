//! Compares the last scan with the disk: one stat for each file, and no listing.

use crate::{
    cache::{DirRow, ScanTable, TableRow},
    fs::{Dir, DirCursor, c_name, is_gone},
    model::{DirPath, Kind, SkipReason, Stamp},
};

/// What may have changed since the last scan, as numbers of directories and entries in its table.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Directories in which names may have changed, in order.
    pub(super) relist: Vec<usize>,
    /// Files with possibly changed content: the directory, the entry, and the new stamp.
    pub(super) reread: Vec<(usize, usize, Stamp)>,
    /// Directories that no longer exist; each stands for everything below it.
    pub(super) gone: Vec<usize>,
}

impl Suspects {
    fn append(&mut self, mut other: Self) {
        self.relist.append(&mut other.relist);
        self.reread.append(&mut other.reread);
        self.gone.append(&mut other.gone);
    }
}

/// Below this many entries a second thread costs more than it saves (0.1 ms to start one).
const ENTRIES_FOR_TWO: usize = 800;

/// Compares every directory and file of `table` with what lies below `top`, which is on `device`.
pub(super) fn verify(top: &Dir, device: u64, table: &ScanTable) -> Suspects {
    let mut suspects = verify_all(&BaseComparison { top, device, table });
    suspects.relist.sort_unstable();
    suspects.relist.dedup();
    // The second thread may have started in the middle of a removed directory.
    let gone = suspects.gone.iter();
    let gone: Vec<_> = gone.map(|&it| DirPath(table.dir(it).path.to_vec())).collect();
    let is_there = |number: usize| !gone.iter().any(|gone| gone.contains(table.dir(number).path));
    suspects.relist.retain(|&number| is_there(number));
    suspects
}

/// What is compared.
struct BaseComparison<'a> {
    top: &'a Dir,
    /// The root's device. A directory on another one is a mount point and not part of the root.
    device: u64,
    table: &'a ScanTable,
}

fn verify_all(comparison: &BaseComparison<'_>) -> Suspects {
    let table = comparison.table;
    let dirs = table.dir_count();
    if table.entry_count() < ENTRIES_FOR_TWO {
        return verify_range(comparison, 0, dirs);
    }
    let middle = table_middle(table);
    std::thread::scope(|scope| {
        let second = std::thread::Builder::new()
            .spawn_scoped(scope, || verify_range(comparison, middle, dirs));
        let mut suspects = verify_range(comparison, 0, middle);
        match second.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => suspects.append(more),
            // A panic must not count as "nothing changed".
            Ok(Err(_)) => suspects.relist.extend(middle..dirs),
            Err(_) => suspects.append(verify_range(comparison, middle, dirs)),
        }
        suspects
    })
}

/// The first directory after the middle entry.
fn table_middle(table: &ScanTable) -> usize {
    let half = table.entry_count() / 2;
    table.dirs().position(|dir| dir.first() >= half).unwrap_or(table.dir_count())
}

fn verify_range(comparison: &BaseComparison<'_>, from: usize, to: usize) -> Suspects {
    let BaseComparison { top, device, table } = *comparison;
    let mut suspects = Suspects::default();
    let mut way = DirCursor::from(top);
    let mut number = from;
    while number < to {
        let dir = table.dir(number);
        match way.enter(dir.path).and_then(|dir| Ok((dir.stat()?, dir))) {
            Ok(((_, now_on), _)) if now_on != device => {
                // Something was mounted over it. That does not change the stamp of the directory
                // above, which has to be listed nevertheless.
                suspects.gone.push(number);
                suspects.relist.extend(above(table, number));
                number = skip_below(table, number, to);
            }
            Ok(((stamp, _), open)) => {
                if stamp != dir.stamp || dir.racy {
                    suspects.relist.push(number);
                }
                verify_files(&open, device, &dir, number, &mut suspects);
                number += 1;
            }
            Err(err) if is_gone(&err) => {
                suspects.gone.push(number);
                number = skip_below(table, number, to);
            }
            // Out of descriptors, or no permission: the directory exists and must not count as
            // deleted.
            Err(_) => {
                suspects.relist.push(number);
                number += 1;
            }
        }
    }
    suspects
}

/// The first directory after `number` that is not below it.
fn skip_below(table: &ScanTable, number: usize, to: usize) -> usize {
    let gone = DirPath(table.dir(number).path.to_vec());
    (number + 1..to).find(|&next| !gone.contains(table.dir(next).path)).unwrap_or(to)
}

/// The number of the directory that contains `number`.
fn above(table: &ScanTable, number: usize) -> Option<usize> {
    let path = DirPath(table.dir(number).path.to_vec());
    let (above, _) = path.split()?;
    (0..number).rev().find(|&other| table.dir(other).path == above.0)
}

fn verify_files(open: &Dir, device: u64, dir: &DirRow<'_>, number: usize, suspects: &mut Suspects) {
    for (entry, row) in (dir.first()..).zip(dir.rows()) {
        match wanted(&row) {
            EntryCheck::Away => (),
            EntryCheck::Again => suspects.relist.push(number),
            EntryCheck::Mounted => {
                let child = c_name(row.name).and_then(|name| open.open_child(&name)?.stat());
                if child.is_ok_and(|(_, now_on)| now_on == device) {
                    suspects.relist.push(number);
                }
            }
            EntryCheck::At => match open.stat_child(row.name) {
                Ok(stamp) if is_same(&row, &stamp) => (),
                // Whether it is made again is decided anew where all names are.
                Ok(_) if row.skipped == Some(SkipReason::MadeAgain) => {
                    suspects.relist.push(number);
                }
                Ok(stamp) => suspects.reread.push((number, entry, stamp)),
                Err(_) => suspects.relist.push(number),
            },
        }
    }
}

/// What to check to know whether an entry is unchanged.
enum EntryCheck {
    /// Nothing: its own directory tells, or its state does not matter.
    Away,
    /// Its stamp.
    At,
    /// List the whole directory: last time it could not be read.
    Again,
    /// Check whether something is still mounted there.
    Mounted,
}

fn wanted(row: &TableRow<'_>) -> EntryCheck {
    match (row.skipped, row.kind()) {
        // It was looked at and only not read, so it can be read now without listing anything.
        (Some(SkipReason::OutOfTime), Some(Kind::File | Kind::Link)) if is_only_unread(row) => {
            EntryCheck::At
        }
        // An ignore file governs others, even if it is ignored itself.
        (_, Some(Kind::File)) if row.name == super::rules::IGNORE_FILE => EntryCheck::At,
        (None, Some(Kind::Directory)) => EntryCheck::Away,
        // What did not fit in the budget may by now; what was made again may be another directory.
        (
            None
            | Some(
                SkipReason::TooLarge
                | SkipReason::Ignored
                | SkipReason::Output
                | SkipReason::MadeAgain,
            ),
            _,
        ) => EntryCheck::At,
        (
            Some(
                SkipReason::Unreadable
                | SkipReason::TooMany
                | SkipReason::OutOfTime
                | SkipReason::KeptChanging,
            ),
            _,
        ) => EntryCheck::Again,
        (Some(SkipReason::OtherFileSystem), _) => EntryCheck::Mounted,
        (
            Some(
                SkipReason::Excluded
                | SkipReason::TooDeep
                | SkipReason::UnknownKind
                | SkipReason::GitPrivate,
            ),
            _,
        ) => EntryCheck::Away,
    }
}

/// Whether nothing but its content is missing of what a scan wants to know. The budget decides anew about what is
/// ignored.
fn is_only_unread(row: &TableRow<'_>) -> bool {
    row.stamp.ctime_ns != 0 && !row.marks.ignored
}

fn is_same(row: &TableRow<'_>, stamp: &Stamp) -> bool {
    let is_known = row.content.is_some()
        || row.skipped.is_some_and(|reason| reason != SkipReason::OutOfTime)
        || !row.kind().is_some_and(Kind::has_content);
    row.stamp == *stamp && !row.marks.racy && is_known
}
