//! Compares the last scan with the disk, one stat a file and nothing listed.

use std::io;

use crate::{
    cache::{DirRow, Row, Table},
    fs::{Dir, Way, c_name},
    model::{DirPath, Kind, SkipReason, Stamp},
};

/// What may have changed since the last scan, by the numbers of a table.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Directories whose names may have changed, in order.
    pub(super) relist: Vec<usize>,
    /// Files whose bytes may have changed: the directory, the entry, and what the system says now.
    pub(super) reread: Vec<(usize, usize, Stamp)>,
    /// Directories that are gone, each standing for everything below it.
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
pub(super) fn verify(top: &Dir, device: u64, table: &Table) -> Suspects {
    let mut suspects = verify_all(&Ground { top, device, table });
    suspects.relist.sort_unstable();
    suspects.relist.dedup();
    // Where one thread began in the middle of what is gone.
    let gone = suspects.gone.iter();
    let gone: Vec<_> = gone.map(|&it| DirPath(table.dir(it).path.to_vec())).collect();
    let is_there = |number: usize| !gone.iter().any(|gone| gone.contains(table.dir(number).path));
    suspects.relist.retain(|&number| is_there(number));
    suspects
}

/// What is compared.
struct Ground<'a> {
    top: &'a Dir,
    /// What is on another device is mounted there, and none of the root.
    device: u64,
    table: &'a Table,
}

fn verify_all(ground: &Ground<'_>) -> Suspects {
    let table = ground.table;
    let dirs = table.dir_count();
    if table.entry_count() < ENTRIES_FOR_TWO {
        return verify_range(ground, 0, dirs);
    }
    let middle = table_middle(table);
    std::thread::scope(|scope| {
        let second =
            std::thread::Builder::new().spawn_scoped(scope, || verify_range(ground, middle, dirs));
        let mut suspects = verify_range(ground, 0, middle);
        match second.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => suspects.append(more),
            // A panic must not pass for "nothing changed".
            Ok(Err(_)) => suspects.relist.extend(middle..dirs),
            Err(_) => suspects.append(verify_range(ground, middle, dirs)),
        }
        suspects
    })
}

/// The first directory behind the middle entry.
fn table_middle(table: &Table) -> usize {
    let half = table.entry_count() / 2;
    table.dirs().position(|dir| dir.first() >= half).unwrap_or(table.dir_count())
}

fn verify_range(ground: &Ground<'_>, from: usize, to: usize) -> Suspects {
    let Ground { top, device, table } = *ground;
    let mut suspects = Suspects::default();
    let mut way = Way::from(top);
    let mut number = from;
    while number < to {
        let dir = table.dir(number);
        match way.enter(dir.path).and_then(|dir| Ok((dir.stat()?, dir))) {
            Ok(((_, now_on), _)) if now_on != device => {
                // Something was mounted over it. The directory it is in does not change by that,
                // and has to be asked all the same.
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
            // Out of descriptors, no permission: it is there, and must not pass for deleted.
            Err(_) => {
                suspects.relist.push(number);
                number += 1;
            }
        }
    }
    suspects
}

/// Whether there is no such directory any more.
fn is_gone(err: &io::Error) -> bool {
    use rustix::io::Errno;
    Errno::from_io_error(err)
        .is_some_and(|errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP))
}

/// The first directory after `number` that is not below it.
fn skip_below(table: &Table, number: usize, to: usize) -> usize {
    let gone = DirPath(table.dir(number).path.to_vec());
    (number + 1..to).find(|&next| !gone.contains(table.dir(next).path)).unwrap_or(to)
}

/// The directory that `number` is in.
fn above(table: &Table, number: usize) -> Option<usize> {
    let path = DirPath(table.dir(number).path.to_vec());
    let (above, _) = path.split()?;
    (0..number).rev().find(|&other| table.dir(other).path == above.0)
}

fn verify_files(open: &Dir, device: u64, dir: &DirRow<'_>, number: usize, suspects: &mut Suspects) {
    for (entry, row) in (dir.first()..).zip(dir.rows()) {
        match wanted(&row) {
            Look::Away => (),
            Look::Again => suspects.relist.push(number),
            Look::Mounted => {
                let child = c_name(row.name).and_then(|name| open.open_child(&name)?.stat());
                if child.is_ok_and(|(_, now_on)| now_on == device) {
                    suspects.relist.push(number);
                }
            }
            Look::At => match c_name(row.name).and_then(|name| open.stat_child(&name)) {
                Ok(stamp) if is_same(&row, &stamp) => (),
                // What is in it decides whether it is left out.
                Ok(_) if row.skipped == Some(SkipReason::MadeAgain) => {
                    suspects.relist.push(number);
                }
                Ok(stamp) => suspects.reread.push((number, entry, stamp)),
                Err(_) => suspects.relist.push(number),
            },
        }
    }
}

/// What has to be looked at to know whether an entry is as it was.
enum Look {
    /// Nothing: its own directory tells, or nobody wants to know.
    Away,
    /// Its stamp.
    At,
    /// The whole directory: last time it could not be had.
    Again,
    /// Whether something is still mounted there.
    Mounted,
}

fn wanted(row: &Row<'_>) -> Look {
    match (row.skipped, row.kind()) {
        // An ignore file governs others, even if it is ignored itself.
        (_, Some(Kind::File)) if row.name == super::rules::IGNORE_FILE => Look::At,
        (None, Some(Kind::Directory)) => Look::Away,
        // What did not fit in the budget may by now.
        (
            None
            | Some(
                SkipReason::TooLarge
                | SkipReason::Ignored
                | SkipReason::Output
                | SkipReason::MadeAgain,
            ),
            _,
        ) => Look::At,
        (
            Some(
                SkipReason::Unreadable
                | SkipReason::TooMany
                | SkipReason::OutOfTime
                | SkipReason::KeptChanging,
            ),
            _,
        ) => Look::Again,
        (Some(SkipReason::OtherFileSystem), _) => Look::Mounted,
        (
            Some(
                SkipReason::Excluded
                | SkipReason::TooDeep
                | SkipReason::UnknownKind
                | SkipReason::GitPrivate,
            ),
            _,
        ) => Look::Away,
    }
}

fn is_same(row: &Row<'_>, stamp: &Stamp) -> bool {
    let is_known = row.content.is_some()
        || row.skipped.is_some()
        || !row.kind().is_some_and(Kind::has_content);
    row.stamp == *stamp && !row.marks.racy && is_known
}
