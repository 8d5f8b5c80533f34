//! Times as people write them: `12:00`, `yesterday 17:30`, `2h`, `2026-11-20 14:02`. Pure.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};

/// The last moment that is meant by `text`: the end of that minute, second or day. `None` if it is no
/// time.
pub fn moment<Tz: TimeZone>(text: &str, now: DateTime<Utc>, zone: &Tz) -> Option<DateTime<Utc>> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(ago) = ago(&text) {
        return now.checked_sub_signed(ago);
    }
    let today = now.with_timezone(zone).date_naive();
    // As in `2026-11-20T14:02`, which scripts write.
    let text = match text.split_once('t') {
        Some((date, time)) if date.ends_with(|c: char| c.is_ascii_digit()) => {
            format!("{date} {time}")
        }
        Some(_) | None => text,
    };
    let (day, time) = match text.split_once(' ') {
        Some((day, time)) => (day, Some(time.trim())),
        None => (text.as_str(), None),
    };
    let date = match day {
        "today" => today,
        "yesterday" => today.pred_opt()?,
        day => match NaiveDate::parse_from_str(day, "%Y-%m-%d") {
            Ok(date) => date,
            Err(_) if time.is_none() => return last_at(day, now, zone),
            Err(_) => return None,
        },
    };
    let end = match time {
        Some(time) => end_of(time)?,
        None => NaiveTime::from_hms_nano_opt(23, 59, 59, 999_999_999)?,
    };
    in_zone(date.and_time(end), zone)
}

/// The last time that a clock showed `time`.
fn last_at<Tz: TimeZone>(time: &str, now: DateTime<Utc>, zone: &Tz) -> Option<DateTime<Utc>> {
    let begin = begin_of(time)?;
    let today = now.with_timezone(zone).date_naive();
    let is_to_come = in_zone(today.and_time(begin), zone).is_none_or(|begin| begin > now);
    let date = if is_to_come { today.pred_opt()? } else { today };
    in_zone(date.and_time(end_of(time)?), zone)
}

fn begin_of(time: &str) -> Option<NaiveTime> {
    let seconds = NaiveTime::parse_from_str(time, "%H:%M:%S");
    seconds.or_else(|_| NaiveTime::parse_from_str(time, "%H:%M")).ok()
}

/// The end of the minute or second that `time` names.
fn end_of(time: &str) -> Option<NaiveTime> {
    let length_s = if time.matches(':').count() == 2 { 1 } else { 60 };
    let length = TimeDelta::seconds(length_s) - TimeDelta::nanoseconds(1);
    Some(begin_of(time)? + length)
}

/// A local time; the later one if clocks showed it twice.
fn in_zone<Tz: TimeZone>(local: NaiveDateTime, zone: &Tz) -> Option<DateTime<Utc>> {
    // In the hour that clocks skip in spring, no time was shown.
    let there = zone.from_local_datetime(&local).latest();
    let there = there.or_else(|| zone.from_local_datetime(&(local + TimeDelta::hours(1))).latest());
    there.map(|there| there.with_timezone(&Utc))
}

/// `2h`, `90 minutes`, `3d ago`.
fn ago(text: &str) -> Option<TimeDelta> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: i64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 60 * 60,
        "d" | "day" | "days" => 24 * 60 * 60,
        "w" | "week" | "weeks" => 7 * 24 * 60 * 60,
        _ => return None,
    };
    TimeDelta::try_seconds(number.checked_mul(seconds)?)
}

#[cfg(test)]
mod tests {
    use chrono::FixedOffset;

    use super::*;

    #[test]
    fn people_name_moments() {
        let zone = FixedOffset::east_opt(2 * 60 * 60).unwrap();
        let now = zone.with_ymd_and_hms(2026, 11, 20, 14, 2, 11).unwrap().with_timezone(&Utc);
        for (text, expected) in [
            ("12:00", "2026-11-20 12:00:59"),
            ("12:00:30", "2026-11-20 12:00:30"),
            ("14:02", "2026-11-20 14:02:59"),
            // It is not evening yet.
            ("17:30", "2026-11-19 17:30:59"),
            ("yesterday", "2026-11-19 23:59:59"),
            ("yesterday 17:30", "2026-11-19 17:30:59"),
            ("Today 9:05", "2026-11-20 09:05:59"),
            ("today", "2026-11-20 23:59:59"),
            ("2026-11-18", "2026-11-18 23:59:59"),
            ("2026-11-18 08:00", "2026-11-18 08:00:59"),
            ("2026-11-18T08:00:01", "2026-11-18 08:00:01"),
            ("2h", "2026-11-20 12:02:11"),
            ("90 minutes ago", "2026-11-20 12:32:11"),
            ("3d", "2026-11-17 14:02:11"),
        ] {
            let found = moment(text, now, &zone).unwrap_or_else(|| panic!("{text}"));
            let shown = found.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S").to_string();
            assert_eq!(shown, expected, "{text}");
        }
        for text in [
            "", "t", "before lunch", "25:00", "12", "12:0x", "2x", "h", "2026-13-01",
            "99999999999999d",
        ] {
            assert_eq!(moment(text, now, &zone), None, "{text}");
        }
    }
}
