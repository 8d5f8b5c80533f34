//! Compares the last scan with the disk, one stat a file and nothing listed.

use std::io;

use crate::{
    cache::{DirRow, Row, Table},
    fs::{Dir, c_name},
    model::{Kind, SkipReason, Stamp},
};

/// What may have changed since the last scan, by the numbers of a table.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Directories whose names may have changed.
    pub(super) relist: Vec<usize>,
    /// Files whose bytes may have changed, with their directories.
    pub(super) reread: Vec<(usize, usize)>,
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

/// Compares every directory and file of `table` with what lies below `top`.
pub(super) fn verify(top: &Dir, table: &Table) -> Suspects {
    let dirs = table.dir_count();
    if table.entry_count() < ENTRIES_FOR_TWO {
        return verify_range(top, table, 0, dirs);
    }
    let middle = table_middle(table);
    std::thread::scope(|scope| {
        let second = std::thread::Builder::new()
            .spawn_scoped(scope, || verify_range(top, table, middle, dirs));
        let mut suspects = verify_range(top, table, 0, middle);
        match second.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(more)) => suspects.append(more),
            // A panic must not pass for "nothing changed".
            Ok(Err(_)) => suspects.relist.extend(middle..dirs),
            Err(_) => suspects.append(verify_range(top, table, middle, dirs)),
        }
        suspects
    })
}

/// The first directory behind the middle entry.
fn table_middle(table: &Table) -> usize {
    let half = table.entry_count() / 2;
    table.dirs().position(|dir| dir.first() >= half).unwrap_or(table.dir_count())
}

fn verify_range(top: &Dir, table: &Table, from: usize, to: usize) -> Suspects {
    let mut suspects = Suspects::default();
    let mut way = Way { top, open: Vec::new() };
    let mut number = from;
    while number < to {
        let dir = table.dir(number);
        match way.enter(dir.path).and_then(|dir| Ok((dir.stat()?.0, dir))) {
            Ok((stamp, open)) => {
                if stamp != dir.stamp || dir.racy {
                    suspects.relist.push(number);
                }
                verify_files(open, &dir, number, &mut suspects);
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
    let gone = crate::model::DirPath(table.dir(number).path.to_vec());
    (number + 1..to).find(|&next| !gone.contains(table.dir(next).path)).unwrap_or(to)
}

fn verify_files(open: &Dir, dir: &DirRow<'_>, number: usize, suspects: &mut Suspects) {
    for (entry, row) in (dir.first()..).zip(dir.rows()) {
        match wanted(&row) {
            Look::Away => (),
            Look::Again => suspects.relist.push(number),
            Look::At => match c_name(row.name).and_then(|name| open.stat_child(&name)) {
                Ok(stamp) if is_same(&row, &stamp) => (),
                Ok(_) => suspects.reread.push((number, entry)),
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
}

fn wanted(row: &Row<'_>) -> Look {
    match (row.skipped, row.kind()) {
        // An ignore file governs others, even if it is ignored itself.
        (_, Some(Kind::File)) if row.name == super::rules::IGNORE_FILE => Look::At,
        (None, Some(Kind::Directory)) => Look::Away,
        (None | Some(SkipReason::TooLarge), _) => Look::At,
        (
            Some(
                SkipReason::Unreadable
                | SkipReason::TooMany
                | SkipReason::OutOfTime
                | SkipReason::KeptChanging,
            ),
            _,
        ) => Look::Again,
        (
            Some(
                SkipReason::Ignored
                | SkipReason::MadeAgain
                | SkipReason::Excluded
                | SkipReason::OtherFileSystem
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

/// The directories from the root to where we are, held open.
struct Way<'a> {
    top: &'a Dir,
    /// Each with the length of its path.
    open: Vec<(usize, Dir, Vec<u8>)>,
}

impl Way<'_> {
    /// Goes to the directory at `path`, through its parents, and stands in it.
    fn enter(&mut self, path: &[u8]) -> io::Result<&Dir> {
        if path.is_empty() {
            self.open.clear();
            self.open.push((0, self.top.again()?, Vec::new()));
        }
        while self.open.last().is_some_and(|(_, _, at)| !is_above(at, path)) {
            self.open.pop();
        }
        if self.open.is_empty() {
            self.open.push((0, self.top.again()?, Vec::new()));
        }
        let mut done = self.open.last().map_or(0, |(length, _, _)| *length);
        while done < path.len() {
            let start = if done == 0 { 0 } else { done + 1 };
            let end = path[start..].iter().position(|&byte| byte == b'/');
            let end = end.map_or(path.len(), |at| start + at);
            let (_, above, _) = self.open.last().expect("the root was pushed above");
            let next = above.stand_in(&c_name(&path[start..end])?)?;
            self.open.push((end, next, path[..end].to_vec()));
            done = end;
        }
        let (_, here, _) = self.open.last().expect("the root was pushed above");
        Ok(here)
    }
}

/// Whether `path` is `above`, or lies below it.
fn is_above(above: &[u8], path: &[u8]) -> bool {
    above.is_empty() || path.strip_prefix(above).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}
