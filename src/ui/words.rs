//! Formats counts, sizes, durations and times as text.

use std::{collections::BTreeMap, fmt::Display, time::Duration};

use chrono::{DateTime, Local, TimeZone, Utc};

use super::escape;
use crate::model::{SkipReason, Skipped};

/// A number with a comma every three digits: `1,204`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() <= 3 {
        return digits;
    }
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun: `1 file`, `1,204 files`, `2 directories`.
pub fn count(n: u64, thing: &str) -> String {
    let before_y = thing.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    let (stem, end) = match before_y {
        _ if n == 1 => (thing, ""),
        Some(stem) => (stem, "ies"),
        None if thing.ends_with(['s', 'x']) || thing.ends_with("ch") => (thing, "es"),
        None => (thing, "s"),
    };
    let mut words = number(n);
    for part in [" ", stem, end] {
        words.push_str(part);
    }
    words
}

/// A size in bytes: `312 bytes`, `12 KB`, `14.0 MB`, `2.1 GB`; units of a thousand.
pub fn size(bytes: u64) -> String {
    if bytes < 1000 {
        return count(bytes, "byte");
    }
    // Rounded to the displayed precision, so that 999,999 bytes are 1 MB and not 1000 KB.
    let kilobytes = bytes.saturating_add(500) / 1000;
    if kilobytes < 1000 {
        return format!("{kilobytes} KB");
    }
    let mut tenths = (u128::from(bytes) + 50_000) / 100_000;
    for unit in ["MB", "GB", "TB"] {
        if tenths < 10_000 {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        tenths = (tenths + 500) / 1000;
    }
    format!("{}.{} PB", tenths / 10, tenths % 10)
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// How long something takes: `1.1 ms`, `340 ms`, `2.4 s`, `3 minutes`, `14 days`.
pub fn duration(time: Duration) -> String {
    let micros = time.as_micros();
    match time.as_secs() {
        0 if micros < 10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        0 => format!("{} ms", micros / 1000),
        1..MINUTE => format!("{}.{} s", time.as_secs(), time.subsec_millis() / 100),
        secs @ MINUTE.. => whole(secs),
    }
}

/// The largest unit with a value of at least one.
fn whole(secs: u64) -> String {
    match secs {
        0..MINUTE => count(secs, "second"),
        MINUTE..HOUR => count(secs / MINUTE, "minute"),
        HOUR..DAY => count(secs / HOUR, "hour"),
        DAY.. => count(secs / DAY, "day"),
    }
}

/// How long ago something was: `just now`, `2 minutes ago`, `9 days ago`.
pub fn ago(time: Duration) -> String {
    match time.as_secs() {
        0..5 => "just now".to_owned(),
        secs @ 5.. => format!("{} ago", whole(secs)),
    }
}

/// The present time and the time zone.
#[derive(Clone, Copy, Debug)]
pub struct Clock<Tz: TimeZone = Local> {
    /// The present moment.
    pub now: DateTime<Utc>,
    /// The user's time zone.
    pub zone: Tz,
}

impl Clock {
    /// The local time zone of this machine, at `now`.
    pub fn local(now: DateTime<Utc>) -> Self {
        Self { now, zone: Local }
    }
}

impl<Tz: TimeZone<Offset: Display>> Clock<Tz> {
    /// When something was or will be: relative up to a day, then a local date; the future always
    /// relative, as in `in 5 days`.
    pub fn when(&self, then: DateTime<Utc>) -> String {
        match (self.now - then).to_std() {
            Ok(past) if past.as_secs() < DAY => ago(past),
            Ok(_) => self.format(then, "%Y-%m-%d %H:%M"),
            Err(_) => match (then - self.now).to_std().map_or(0, |ahead| ahead.as_secs()) {
                // The clocks of two machines, or one clock before and after it was set, can differ.
                0..5 => "just now".to_owned(),
                secs @ 5.. => format!("in {}", whole(secs)),
            },
        }
    }

    /// When something was, as commands take it for a name: the time on the clock for a day, then with
    /// the date.
    pub fn named(&self, then: DateTime<Utc>) -> String {
        match (self.now - then).to_std() {
            Ok(past) if past.as_secs() < DAY => self.format(then, "%H:%M"),
            Ok(_) | Err(_) => self.format(then, "%Y-%m-%d %H:%M"),
        }
    }

    /// The exact local time: `2026-11-20 14:02:11`.
    pub fn exact(&self, then: DateTime<Utc>) -> String {
        self.format(then, "%Y-%m-%d %H:%M:%S")
    }

    fn format(&self, then: DateTime<Utc>, format: &str) -> String {
        then.with_timezone(&self.zone).format(format).to_string()
    }
}

/// From this number on, files of one directory left out for one reason are described by the
/// directory.
const TOGETHER_MIN: usize = 3;

/// One line for each part of `skipped`, the most important first: `data/ (12 files, 3.4 GB, over
/// …)`.
pub fn left_out(skipped: &[Skipped]) -> Vec<String> {
    let mut groups: BTreeMap<(bool, &[u8], SkipReason), Vec<&Skipped>> = BTreeMap::new();
    for one in skipped {
        let key = (!one.reason.matters(), directory_of(&one.path), one.reason);
        groups.entry(key).or_default().push(one);
    }
    let mut lines = Vec::new();
    for ((_, directory, reason), group) in groups {
        let is_told_together = group.len() >= TOGETHER_MIN && !directory.is_empty();
        if !is_told_together {
            lines.extend(group.iter().map(|one| line(&one.path, None, one.size, reason)));
            continue;
        }
        let bytes = group.iter().fold(0_u64, |sum, one| sum.saturating_add(one.size));
        lines.push(line(&[directory, b"/"].concat(), Some(group.len()), bytes, reason));
    }
    lines
}

/// The first `max` of some lines, and in the place of the others what `more` says of their number.
pub fn at_most(
    mut lines: Vec<String>,
    max: usize,
    more: impl FnOnce(u64) -> String,
) -> Vec<String> {
    let left = lines.len().saturating_sub(max);
    lines.truncate(max);
    lines.extend((left > 0).then(|| more(left as u64)));
    lines
}

fn line(path: &[u8], files: Option<usize>, bytes: u64, reason: SkipReason) -> String {
    let mut said = Vec::new();
    said.extend(files.map(|files| count(files as u64, "path")));
    said.extend((bytes > 0).then(|| size(bytes)));
    said.push(reason.words().to_owned());
    format!("{} ({})", escape(path), said.join(", "))
}

fn directory_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(&[], |at| &path[..at])
}

#[cfg(test)]
mod tests {
    use chrono::{FixedOffset, TimeDelta};

    use super::*;

    #[test]
    fn counts_read_like_a_sentence() {
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(count(1_204, "file"), "1,204 files");
        assert_eq!(count(2, "directory"), "2 directories");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(2, "branch"), "2 branches");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!(number(100), "100");
    }

    #[test]
    fn sizes_are_rounded_to_what_is_shown() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (312, "312 bytes"),
            (12_345, "12 KB"),
            (999_499, "999 KB"),
            (999_500, "1.0 MB"),
            (999_999, "1.0 MB"),
            (1_049_999, "1.0 MB"),
            (1_050_000, "1.1 MB"),
            (14_000_000, "14.0 MB"),
            (999_949_999, "999.9 MB"),
            (999_950_000, "1.0 GB"),
            (2_100_000_000, "2.1 GB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(size(bytes), shown, "{bytes}");
        }
    }

    #[test]
    fn durations_keep_two_digits() {
        for (micros, shown) in [
            (0, "0.0 ms"),
            (1_149, "1.1 ms"),
            (340_000, "340 ms"),
            (2_450_000, "2.4 s"),
            (180_000_000, "3 minutes"),
            (14 * 86_400_000_000, "14 days"),
        ] {
            assert_eq!(duration(Duration::from_micros(micros)), shown);
        }
    }

    #[test]
    fn a_moment_is_relative_for_a_day() {
        let now = DateTime::from_timestamp(1_795_183_331, 0).unwrap();
        let clock = Clock { now, zone: FixedOffset::east_opt(3_600).unwrap() };
        let when = |secs| clock.when(now - TimeDelta::seconds(secs));
        assert_eq!(when(0), "just now");
        assert_eq!(when(30), "30 seconds ago");
        assert_eq!(when(119), "1 minute ago");
        assert_eq!(when(3_600), "1 hour ago");
        assert_eq!(when(86_399), "23 hours ago");
        assert_eq!(when(86_400), "2026-11-19 15:02");
        assert_eq!(when(-2), "just now");
        assert_eq!(when(-5 * 86_400), "in 5 days");
        assert_eq!(clock.exact(now), "2026-11-20 15:02:11");
    }

    #[test]
    fn many_files_of_a_directory_are_one_line() {
        let one = |path: &str, reason, size| Skipped { path: path.into(), reason, size };
        let mut skipped = vec![
            one("node_modules", SkipReason::MadeAgain, 0),
            one("a.db", SkipReason::TooLarge, 3_000_000_000),
            one("b\n.db", SkipReason::Ignored, 0),
        ];
        for number in 0..4 {
            skipped.push(one(&format!("data/{number}"), SkipReason::Ignored, 10_000_000));
        }
        skipped.push(one("data/big", SkipReason::TooLarge, 100_000_000));
        assert_eq!(
            left_out(&skipped),
            [
                "b\\n.db (ignored, and over the limits)",
                "a.db (3.0 GB, too large to hold unless a call names it)",
                "data/ (4 paths, 40.0 MB, ignored, and over the limits)",
                "data/big (100.0 MB, too large to hold unless a call names it)",
                "node_modules (can be made again)",
            ]
        );
    }
}
