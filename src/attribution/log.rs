//! The log file: many processes append to it at once, and an unreadable line counts as a lost event.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{LogEvent, LogLine};
use crate::{
    error::{Error, Result},
    fs::{
        Lock, create_private_dirs, hand_over, is_lost, now_ns, open_options, open_to_append,
        read_small, stamp_of,
    },
    model::CheckpointId,
    state::RootState,
};

/// Some 30,000 lines; one older log of that size is kept beside it.
const LOG_MAX_BYTES: u64 = 4 << 20;
/// The last append may exceed the limit, which is checked before it.
const READ_MAX_BYTES: u64 = 2 * LOG_MAX_BYTES;
/// A call waits no longer to rotate the log: a save holds the root's lock for a moment. After that it
/// appends to the large log, and a later call rotates it.
const ROTATION_WAIT: Duration = Duration::from_millis(100);

/// Adds lines, if there are any, all at once.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub fn append(place: &RootState, lines: &[LogLine]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = log(place);
    let file = open_or_make(&path)?;
    write_bounded(file, place, &text_of(lines)).map_err(Error::io("write", &path))
}

/// Adds lines if a log exists, even if only the older file does. Otherwise does nothing.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub(super) fn append_again(place: &RootState, lines: &[LogLine]) -> Result<()> {
    let path = log(place);
    match open_log(&path, false) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            let is_any = files(place).iter().any(|path| path.exists());
            if is_any { append(place, lines) } else { Ok(()) }
        }
        opened => opened
            .and_then(|file| write_bounded(file, place, &text_of(lines)))
            .map_err(Error::io("write", &path)),
    }
}

fn text_of(lines: &[LogLine]) -> Vec<u8> {
    // A line that a killed process left unfinished must not swallow the next one.
    let mut bytes = vec![b'\n'];
    for line in lines {
        serde_json::to_writer(&mut bytes, line).expect("strings and numbers always serialize");
        bytes.push(b'\n');
    }
    bytes
}

/// Appends to a file, and makes it if needed.
///
/// # Errors
///
/// Fails if it cannot be written.
pub(super) fn append_to(path: &Path, bytes: &[u8]) -> Result<()> {
    open_or_make(path)?.write_all(bytes).map_err(Error::io("write", path))
}

fn open_or_make(path: &Path) -> Result<File> {
    let opened = match open_log(path, true) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), create_private_dirs)?;
            open_log(path, true)
        }
        opened => opened,
    };
    opened.map_err(Error::io("write", path))
}

fn open_log(path: &Path, makes: bool) -> io::Result<File> {
    let file = open_to_append(path, makes)?;
    if makes {
        hand_over(&file, path);
    }
    Ok(file)
}

/// Appends to the log, which is `file` or has become the older file since that was opened.
fn write_bounded(mut file: File, place: &RootState, bytes: &[u8]) -> io::Result<()> {
    if stamp_of(&file)?.size > LOG_MAX_BYTES {
        rotate(place);
        file = open_log(&log(place), true)?;
    }
    file.write_all(bytes)
}

/// Renames the log to the older file if it is too large. Of several processes that found it so, the first
/// to get the lock renames it; the others find a new log.
fn rotate(place: &RootState) {
    let [older, newer] = files(place);
    // Best effort: a log that is too large is still read.
    let Ok(_lock) = Lock::acquire(&place.lock(), Instant::now() + ROTATION_WAIT) else { return };
    if log_size(place) > LOG_MAX_BYTES {
        fs::rename(&newer, &older).ok();
    }
}

/// Every line, oldest first. Where one cannot be read, [`LogEvent::Lost`] stands for it.
pub fn read(place: &RootState) -> Vec<LogLine> {
    parse(&unparsed(place))
}

/// The lines since shortly before the first call that a checkpoint covers; all of them if the log has no
/// such call.
pub fn read_since(place: &RootState, checkpoint: CheckpointId) -> Vec<LogLine> {
    /// The lines noted together with the beginning of a call stand right before it.
    const MARGIN_BYTES: usize = 64 << 10;
    let bytes = unparsed(place);
    let first = memchr::memmem::find(&bytes, checkpoint.to_string().as_bytes());
    let begin = first.map_or(0, |first| first.saturating_sub(MARGIN_BYTES));
    let begin = bytes[..begin].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    parse(&bytes[begin..])
}

/// The bytes of both files.
fn unparsed(place: &RootState) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in files(place) {
        match read_small(&path, READ_MAX_BYTES) {
            Ok(read) => bytes.extend(read.unwrap_or_default()),
            // A file that cannot be read counts as one line that cannot.
            Err(_) => bytes.extend(b"\n?"),
        }
        bytes.push(b'\n');
    }
    bytes
}

/// How large the file is that is added to, in bytes; 0 if there is none.
pub fn log_size(place: &RootState) -> u64 {
    fs::metadata(log(place)).map_or(0, |found| found.len())
}

/// The older file, and the one that is added to.
fn files(place: &RootState) -> [PathBuf; 2] {
    let path = log(place);
    [path.with_extension("old"), path]
}

/// The lines in some bytes.
pub(crate) fn parse(bytes: &[u8]) -> Vec<LogLine> {
    let mut next = i64::MAX;
    let mut lines: Vec<LogLine> = Vec::new();
    for bytes in bytes.split(|&byte| byte == b'\n').rev().filter(|it| !is_blank(it)) {
        let line = serde_json::from_slice(bytes).unwrap_or_else(|_| lost(next));
        next = line.at;
        lines.push(line);
    }
    lines.reverse();
    lines
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// Something that was noted before `until` is lost.
fn lost(until: i64) -> LogLine {
    LogLine { at: until, by: String::new(), what: LogEvent::Lost { until } }
}

/// How many lines cannot be read, but for what a power cut took.
pub fn damaged(place: &RootState) -> usize {
    let bytes = |path: &PathBuf| read_small(path, READ_MAX_BYTES).ok().flatten();
    let count = |bytes: Vec<u8>| damaged_in(&bytes).len();
    files(place).iter().filter_map(bytes).map(count).sum()
}

/// Where in some bytes the lines are that cannot be read.
fn damaged_in(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut at = 0;
    let lines = bytes.split(|&byte| byte == b'\n').map(|line| {
        let start = at;
        at += line.len() + 1;
        (start, line)
    });
    let is_damaged = |line: &[u8]| {
        !is_blank(line) && !is_lost(line) && serde_json::from_slice::<LogLine>(line).is_err()
    };
    lines.filter(|(_, line)| is_damaged(line)).collect()
}

/// Overwrites every unreadable line with blanks, after it has noted that something was lost. All other lines stay
/// in place, because calls append meanwhile. Returns the number of overwritten lines.
///
/// # Errors
///
/// Fails if the log cannot be written.
pub fn repair(place: &RootState) -> Result<usize> {
    let mut count = 0;
    let until = |line: &LogLine| match line.what {
        LogEvent::Lost { until } => Some(until),
        _ => None,
    };
    let Some(until) = read(place).iter().filter_map(until).max() else { return Ok(0) };
    if damaged(place) > 0 {
        append(place, &[LogLine { at: now_ns(), ..lost(until.min(now_ns())) }])?;
    }
    for path in files(place) {
        let Some(bytes) = read_small(&path, READ_MAX_BYTES)? else { continue };
        let file = open_options().write(true).open(&path).map_err(Error::io("open", &path))?;
        for (at, line) in damaged_in(&bytes) {
            let blank = vec![b' '; line.len()];
            file.write_all_at(&blank, at as u64).map_err(Error::io("write", &path))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Lets go of the older file if all of it was noted before `time` (nanoseconds since 1970), and has
/// the newer one take its place. So the log goes back at most twice as far as that, and no line moves
/// while a call adds its own. Does nothing while another process holds the root's lock: a call may be
/// rotating the log.
///
/// # Errors
///
/// Fails if a file cannot be removed or renamed.
pub fn drop_before(place: &RootState, time: i64) -> Result<()> {
    let [older, newer] = files(place);
    if !older.exists() && !newer.exists() {
        return Ok(());
    }
    let Some(_lock) = Lock::acquire_if_free(&place.lock(), Instant::now())? else { return Ok(()) };
    let is_missing = |err: &io::Error| err.kind() == io::ErrorKind::NotFound;
    match tail(&older) {
        Err(err) if is_missing(&err) => (),
        // What cannot be read may be new.
        Err(_) => return Ok(()),
        Ok(bytes) => {
            if parse(&bytes).last().is_some_and(|last| last.at >= time) {
                return Ok(());
            }
        }
    }
    match fs::remove_file(&older) {
        Err(err) if !is_missing(&err) => return Err(Error::io("remove", &older)(err)),
        Ok(()) | Err(_) => (),
    }
    match fs::rename(&newer, &older) {
        Err(err) if !is_missing(&err) => Err(Error::io("rename", &newer)(err)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// What of the log a call may have added while it ran, beside others.
const RECENT_BYTES: i64 = 64 << 10;

/// The last lines of the log.
pub(super) fn recent(place: &RootState) -> Vec<LogLine> {
    parse(&recent_bytes(place))
}

/// When each session last began a call, by its name in the log, in nanoseconds since 1970. Only the
/// last lines of the log are read.
pub fn last_calls(place: &RootState) -> BTreeMap<String, i64> {
    // The first line may be cut, and counts as none.
    let mut lines = recent(place);
    lines.retain(|line| matches!(line.what, LogEvent::Began { .. }));
    lines.into_iter().map(|line| (line.by, line.at)).collect()
}

pub(super) fn recent_bytes(place: &RootState) -> Vec<u8> {
    let [older, newer] = files(place);
    let bytes = tail(&newer).unwrap_or_default();
    let is_all = bytes.len() as u64 >= RECENT_BYTES.unsigned_abs();
    // The newer file may have been begun while the call ran.
    if is_all { bytes } else { [tail(&older).unwrap_or_default(), b"\n".to_vec(), bytes].concat() }
}

/// The lines since a time (nanoseconds since 1970), and some before it, unparsed: no more is read than is needed for that.
pub(super) fn unparsed_since(place: &RootState, time: i64) -> Vec<u8> {
    let [_, newer] = files(place);
    let is_before = |line: &[u8]| {
        let line = serde_json::from_slice::<LogLine>(line);
        line.is_ok_and(|line| line.at < time)
    };
    let mut length = RECENT_BYTES;
    while length.unsigned_abs() < LOG_MAX_BYTES {
        let bytes = last_bytes(&newer, length).unwrap_or_default();
        // The first line may be cut.
        if bytes
            .split(|&byte| byte == b'\n')
            .skip(1)
            .find(|it| !is_blank(it))
            .is_some_and(is_before)
        {
            return bytes;
        }
        length *= 8;
    }
    unparsed(place)
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    last_bytes(path, RECENT_BYTES)
}

/// The last bytes of a file.
fn last_bytes(path: &Path, length: i64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut file = open_options().read(true).open(path)?;
    let _from_the_start_if_short = file.seek(SeekFrom::End(-length));
    file.take(length.unsigned_abs()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn log(place: &RootState) -> PathBuf {
    place.attribution().join("log")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::StateDir;

    /// A log that is too large by less than what the threads of a test add, with the number of its lines.
    fn full_log(name: &str) -> (PathBuf, RootState, usize) {
        let dir = std::env::temp_dir().join(format!("beforehand-{name}-{}", std::process::id()));
        let place = StateDir::new(dir.clone()).root_at(Path::new("/project"));
        let line = numbered(0);
        let length = text_of(std::slice::from_ref(&line)).len() - 1;
        let count = usize::try_from(LOG_MAX_BYTES).unwrap() / length + 1;
        append(&place, &vec![line; count]).unwrap();
        assert!(log_size(&place) > LOG_MAX_BYTES);
        (dir, place, count)
    }

    fn numbered(at: i64) -> LogLine {
        let what = LogEvent::Done { call: format!("{at:0>90}"), moved_head: None };
        LogLine { at, by: "s".to_owned(), what }
    }

    #[test]
    fn a_process_that_comes_too_late_to_rotate_appends_to_the_new_log() {
        let (dir, place, count) = full_log("late");
        let late = open_log(&log(&place), false).unwrap();
        append(&place, &[numbered(1)]).unwrap();
        write_bounded(late, &place, &text_of(&[numbered(2)])).unwrap();
        let found: Vec<i64> = read(&place).iter().map(|line| line.at).collect();
        assert_eq!((found.len(), &found[count..]), (count + 2, &[1, 2][..]));
        let _gone = crate::fs::remove_tree(&dir);
    }

    #[test]
    fn threads_that_rotate_at_once_lose_no_line() {
        const THREADS: i64 = 16;
        let (dir, place, count) = full_log("crowd");
        let barrier = std::sync::Barrier::new(THREADS.try_into().unwrap());
        std::thread::scope(|scope| {
            for thread in 1..=THREADS {
                let (barrier, place) = (&barrier, &place);
                scope.spawn(move || {
                    let file = open_log(&log(place), false).unwrap();
                    // All of them have opened the log that is too large.
                    barrier.wait();
                    write_bounded(file, place, &text_of(&[numbered(thread)])).unwrap();
                });
            }
        });
        let mut found: Vec<i64> = read(&place).iter().map(|line| line.at).collect();
        found.sort_unstable();
        let added: Vec<i64> = (1..=THREADS).collect();
        assert_eq!((found.len(), &found[count..]), (count + added.len(), &added[..]));
        let _gone = crate::fs::remove_tree(&dir);
    }

    #[test]
    fn while_a_save_holds_the_lock_the_log_grows() {
        let (dir, place, count) = full_log("held");
        let lock = Lock::acquire(&place.lock(), Instant::now()).unwrap();
        append(&place, &[numbered(1)]).unwrap();
        let [older, _] = files(&place);
        assert!(!older.exists());
        drop_before(&place, i64::MAX).unwrap();
        assert_eq!(read(&place).len(), count + 1);
        drop(lock);
        append(&place, &[numbered(2)]).unwrap();
        assert!(older.exists() && log_size(&place) < 1_000);
        assert_eq!(read(&place).len(), count + 2);
        let _gone = crate::fs::remove_tree(&dir);
    }

    #[test]
    fn no_more_is_read_than_is_asked_for_and_no_less() {
        let dir = std::env::temp_dir().join(format!("beforehand-log-{}", std::process::id()));
        let place = StateDir::new(dir.clone()).root_at(Path::new("/project"));
        append(&place, &(0..5_000).map(numbered).collect::<Vec<_>>()).unwrap();
        for since in [-1, 0, 1, 2_500, 4_900, 4_999, 5_000] {
            let bytes = unparsed_since(&place, since);
            let found: Vec<i64> = parse(&bytes).iter().map(|line| line.at).collect();
            let wanted: Vec<i64> = (since.max(0)..5_000).collect();
            assert!(found.ends_with(&wanted), "{since}");
            assert_eq!(since > 4_600, bytes.len() <= 64 << 10, "{since}: {}", bytes.len());
        }
        let _gone = crate::fs::remove_tree(&dir);
    }
}
