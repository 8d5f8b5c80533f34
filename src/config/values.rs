//! Parses and prints setting values: sizes, durations, words and lists.
//!
//! For every type, `parse` reads what `show` prints.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

use serde::Serialize;

use crate::{
    error::is_plain,
    model::{BeforeShell, Dedupe, FreeSpace, Notify, SessionEnd, StoreChoice, TroubleAnswer},
};

/// A value as written. Displays as TOML, without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Number(i64),
    /// Text, which may have the form of another type.
    Text(String),
    /// Several texts.
    List(Vec<String>),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => on.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => quote(text, f),
            Self::List(items) => {
                f.write_char('[')?;
                for (n, item) in items.iter().enumerate() {
                    f.write_str(if n == 0 { "" } else { ", " })?;
                    quote(item, f)?;
                }
                f.write_char(']')
            }
        }
    }
}

fn quote(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            _ if is_plain(c) => f.write_char(c)?,
            _ if u32::from(c) > 0xffff => write!(f, "\\U{:08x}", u32::from(c))?,
            _ => write!(f, "\\u{:04x}", u32::from(c))?,
        }
    }
    f.write_char('"')
}

/// The parsed value, or a description of what is expected.
pub(super) type ParsedValue<T> = Result<T, String>;

fn expected<T>(what: &str, found: &SettingValue) -> ParsedValue<T> {
    let mut found = found.to_string();
    // A very long value is shortened in messages.
    if found.chars().count() > 60 {
        found = found.chars().take(60).chain(['…']).collect();
    }
    Err(format!("expected {what}, found `{found}`"))
}

/// A type of setting.
pub(super) trait Setting: Sized {
    /// Reads it.
    fn parse(value: &SettingValue) -> ParsedValue<Self>;
    /// Writes it.
    fn show(&self) -> SettingValue;
}

impl Setting for bool {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        match value {
            SettingValue::Switch(on) => Ok(*on),
            // Text in a file may be meant either way: the default stands, and the user gets a note.
            SettingValue::Text(_) | SettingValue::Number(_) | SettingValue::List(_) => {
                expected("`true` or `false`", value)
            }
        }
    }

    fn show(&self) -> SettingValue {
        SettingValue::Switch(*self)
    }
}

/// Reads a count; zero would mean "nothing is held", which is what `enabled` is for.
fn count(value: &SettingValue) -> ParsedValue<u64> {
    let number = match value {
        SettingValue::Number(number) => u64::try_from(*number).ok(),
        SettingValue::Text(text) => text.replace(['_', ','], "").parse().ok(),
        SettingValue::Switch(_) | SettingValue::List(_) => None,
    };
    match number {
        Some(number @ 1..) => Ok(number),
        Some(0) | None => expected("a whole number from 1", value),
    }
}

fn show_number(number: u64) -> SettingValue {
    SettingValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

impl Setting for u32 {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        count(value).map(|number| Self::try_from(number).unwrap_or(Self::MAX))
    }

    fn show(&self) -> SettingValue {
        show_number(u64::from(*self))
    }
}

impl Setting for u64 {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        count(value)
    }

    fn show(&self) -> SettingValue {
        show_number(*self)
    }
}

/// A size in bytes, as in `10 MB`.
pub(super) struct Size(pub(super) u64);

/// The largest first, and of equal names for one size the one we write.
const SIZES: [(&str, u64); 13] = [
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("K", 1_000),
    ("B", 1),
];

impl Setting for Size {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        let size = match value {
            SettingValue::Number(number) => u64::try_from(*number).ok(),
            SettingValue::Text(text) => size_of(text),
            SettingValue::Switch(_) | SettingValue::List(_) => None,
        };
        // Zero is "nothing" to some programs and "no limit" to others.
        match size {
            Some(size @ 1..) => Ok(Self(size)),
            Some(0) | None => expected("a size, as in `10 MB`", value),
        }
    }

    fn show(&self) -> SettingValue {
        let whole = |(_, unit): &&(&str, u64)| self.0 >= *unit && self.0.is_multiple_of(*unit);
        match SIZES[..8].iter().find(whole) {
            Some((name, unit)) => SettingValue::Text(format!("{} {name}", self.0 / unit)),
            None => show_number(self.0),
        }
    }
}

fn size_of(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let unit = match unit {
        "" | "byte" | "bytes" => 1,
        _ => SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    times(number, unit)
}

/// Divides `1.5 GB` into its number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '_')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Multiplies a decimal number by a unit, exactly; `None` if it is none, or too large to mean.
fn times(number: &str, unit: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, part) = number.split_once('.').unwrap_or((&number, "0"));
    let digits = u32::try_from(part.len()).ok().filter(|digits| *digits <= 9)?;
    let part = part.parse::<u128>().ok()? * u128::from(unit) / 10_u128.pow(digits);
    let all = u128::from(whole.parse::<u64>().ok()?).checked_mul(u128::from(unit))? + part;
    // TOML has no larger number, so neither would come back.
    i64::try_from(all).ok().and_then(|all| u64::try_from(all).ok())
}

/// In milliseconds. The ones we write first, the largest before the others.
const TIMES: [(&str, u64); 22] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1_000),
    ("ms", 1),
    ("m", 60_000),
    ("w", 604_800_000),
    ("week", 604_800_000),
    ("weeks", 604_800_000),
    ("day", 86_400_000),
    ("days", 86_400_000),
    ("hour", 3_600_000),
    ("hours", 3_600_000),
    ("minute", 60_000),
    ("minutes", 60_000),
    ("mins", 60_000),
    ("sec", 1_000),
    ("secs", 1_000),
    ("second", 1_000),
    ("seconds", 1_000),
    ("millisecond", 1),
    ("milliseconds", 1),
];

/// A hundred years, so that no sum of times ever overflows.
const LONGEST_MS: u64 = 100 * 366 * 86_400_000;

impl Setting for Duration {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        let time = match value {
            SettingValue::Text(text) => time_of(text),
            SettingValue::Number(_) | SettingValue::Switch(_) | SettingValue::List(_) => None,
        };
        match time {
            Some(ms @ 1..=LONGEST_MS) => Ok(Self::from_millis(ms)),
            Some(_) | None => expected("a time with its unit, as in `3s`, `24h` or `14d`", value),
        }
    }

    fn show(&self) -> SettingValue {
        let ms = u64::try_from(self.as_millis()).unwrap_or(LONGEST_MS);
        let whole = |(_, unit): &&(&str, u64)| ms >= *unit && ms.is_multiple_of(*unit);
        let (name, unit) = TIMES[..5].iter().find(whole).unwrap_or(&TIMES[4]);
        SettingValue::Text(format!("{}{name}", ms / unit))
    }
}

fn time_of(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let (_, unit) = TIMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    times(number, *unit)
}

impl Setting for FreeSpace {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        let what = "a size, a share or both, as in `2 GB or 5 %`";
        let mut floor = Self { bytes: None, percent: None };
        let text = match value {
            SettingValue::Text(text) => text.clone(),
            SettingValue::Number(number) => number.to_string(),
            SettingValue::Switch(_) | SettingValue::List(_) => return expected(what, value),
        };
        for part in text.split(" or ") {
            let percent = part.trim().strip_suffix('%').map(|share| share.trim().parse().ok());
            match (percent, size_of(part)) {
                (Some(Some(percent @ 0..=99)), _) => floor.percent = Some(percent),
                (None, Some(bytes)) => floor.bytes = Some(bytes),
                (Some(_), _) | (None, None) => return expected(what, value),
            }
        }
        Ok(floor)
    }

    fn show(&self) -> SettingValue {
        let bytes = self.bytes.map(|bytes| match Size(bytes).show() {
            SettingValue::Text(text) => text,
            SettingValue::Number(number) => format!("{number} bytes"),
            SettingValue::Switch(_) | SettingValue::List(_) => {
                unreachable!("a size is text or a number")
            }
        });
        let percent = self.percent.map(|percent| format!("{percent} %"));
        let parts: Vec<_> = [bytes, percent].into_iter().flatten().collect();
        SettingValue::Text(if parts.is_empty() { "0 %".to_owned() } else { parts.join(" or ") })
    }
}

impl Setting for Vec<String> {
    fn parse(value: &SettingValue) -> ParsedValue<Self> {
        match value {
            SettingValue::List(items) => Ok(items.clone()),
            SettingValue::Text(text) => Ok(vec![text.clone()]),
            SettingValue::Switch(_) | SettingValue::Number(_) => {
                expected("a list of patterns", value)
            }
        }
    }

    fn show(&self) -> SettingValue {
        SettingValue::List(self.clone())
    }
}

/// Gives a type of a few words its two directions from one list.
macro_rules! words {
    ($type:ty: $($name:literal = $value:path),+) => {
        impl Setting for $type {
            fn parse(value: &SettingValue) -> ParsedValue<Self> {
                const NAMES: &[&str] = &[$($name),+];
                match value {
                    $(SettingValue::Text(text) if text.eq_ignore_ascii_case($name) => Ok($value),)+
                    SettingValue::Text(_) | SettingValue::Switch(_) | SettingValue::Number(_) | SettingValue::List(_) => {
                        expected(&one_of(NAMES), value)
                    }
                }
            }

            fn show(&self) -> SettingValue {
                match self {
                    $($value => SettingValue::Text($name.to_owned())),+
                }
            }
        }
    };
}

words!(BeforeShell:
    "mutating" = Self::Mutating, "destructive" = Self::Destructive, "never" = Self::Never);
words!(Dedupe: "turn" = Self::Turn, "strict" = Self::Strict, "call" = Self::Call);
words!(TroubleAnswer: "note" = Self::Note, "ask" = Self::Ask, "deny" = Self::Deny);
words!(Notify: "trouble" = Self::Trouble, "always" = Self::Always, "never" = Self::Never);
words!(StoreChoice: "auto" = Self::Auto, "files" = Self::Files);
words!(SessionEnd: "keep" = Self::Keep, "prune" = Self::Prune);

fn one_of(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> SettingValue {
        SettingValue::Text(text.to_owned())
    }

    #[test]
    fn sizes_are_read_exactly() {
        let size = |given: &str| Size::parse(&text(given)).ok().map(|size| size.0);
        for (given, bytes) in [
            ("10 MB", 10_000_000),
            ("64MB", 64_000_000),
            ("1 GiB", 1 << 30),
            ("1.5 kb", 1_500),
            ("0.1 GB", 100_000_000),
            ("312", 312),
            ("312 bytes", 312),
            ("1_000", 1_000),
        ] {
            assert_eq!(size(given), Some(bytes), "{given}");
        }
        for bad in [
            "", "0", "0 MB", "MB", "-1", "10 mega", "1.2.3 MB", "99999999 TB", "1e9", ". MB",
            "１ MB",
        ] {
            assert_eq!(size(bad), None, "{bad}");
        }
        assert!(Size::parse(&SettingValue::Number(-1)).is_err());
    }

    #[test]
    fn times_are_read_exactly() {
        let ms = |given: &str| Duration::parse(&text(given)).ok().map(|time| time.as_millis());
        for (given, expected) in [
            ("3s", 3_000),
            ("500ms", 500),
            ("24h", 86_400_000),
            ("14 days", 14 * 86_400_000),
            ("1.5 h", 5_400_000),
            ("2 weeks", 14 * 86_400_000),
            ("1m", 60_000),
        ] {
            assert_eq!(ms(given), Some(expected), "{given}");
        }
        for bad in ["", "3", "s", "0s", "-3s", "3 parsecs", "999999999999d"] {
            assert_eq!(ms(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for bytes in [1, 312, 999, 1_000, 1_024, 10_000_000, 1 << 30, 3 << 40, 1_500_000] {
            assert_eq!(Size::parse(&Size(bytes).show()).ok().map(|size| size.0), Some(bytes));
            let floor = FreeSpace { bytes: Some(bytes), percent: Some(5) };
            assert_eq!(FreeSpace::parse(&floor.show()), Ok(floor));
        }
        for ms in [1, 999, 1_000, 90_000, 3_600_000, 86_400_000, 14 * 86_400_000] {
            let time = Duration::from_millis(ms);
            assert_eq!(Duration::parse(&time.show()), Ok(time));
        }
        for percent in [0, 5, 99] {
            let floor = FreeSpace { bytes: None, percent: Some(percent) };
            assert_eq!(FreeSpace::parse(&floor.show()), Ok(floor));
        }
    }

    #[test]
    fn a_value_is_printable_toml() {
        let value = SettingValue::List(vec!["a\u{1b}\"\\".to_owned(), "\u{e0041}\n".to_owned()]);
        let shown = value.to_string();
        assert_eq!(shown, r#"["a\u001b\"\\", "\U000e0041\u000a"]"#);
        let toml: toml::Table = format!("x = {shown}").parse().unwrap();
        assert_eq!(toml["x"][1].as_str(), Some("\u{e0041}\n"));
    }

    #[test]
    fn a_bad_value_says_what_is_expected() {
        assert_eq!(
            BeforeShell::parse(&text("mutatin")),
            Err("expected `mutating`, `destructive` or `never`, found `\"mutatin\"`".to_owned())
        );
    }
}
