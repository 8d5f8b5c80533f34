//! What we know of programs, a row each. Readable as documentation; compiled to static data. The
//! words of a flag list are explained in [`super::flags`].

mod develop;
mod files;
mod run;
mod system;
mod text;

use super::programs::git;
use super::row::{ProgramRow, Rule};

/// Finds the row of a program by its name without directory.
pub(super) fn find(name: &str) -> Option<&'static ProgramRow> {
    // `python3.12` and the like are their unnumbered selves.
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let tables = [text::ROWS, files::ROWS, system::ROWS, develop::ROWS, run::ROWS];
    let by = |name: &str| tables.iter().flat_map(|rows| rows.iter()).find(|row| row.is(name));
    let numbered = ["python", "pip", "ruby", "perl", "node", "pypy", "lua"];
    by(name).or_else(|| numbered.contains(&plain).then(|| by(plain)).flatten())
}

/// Every command of the tables, sub-commands included, with its list of options.
pub(super) fn every() -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    for rows in [text::ROWS, files::ROWS, system::ROWS, develop::ROWS, run::ROWS] {
        add(&mut found, "", rows);
    }
    add(&mut found, "git ", git::LOOKS);
    found
}

fn add(found: &mut Vec<(String, &'static str)>, before: &str, rows: &[ProgramRow]) {
    for row in rows {
        let separator = if row.names.contains(',') { ',' } else { ' ' };
        for name in row.names.split(separator).map(str::trim).filter(|name| !name.is_empty()) {
            found.push((format!("{before}{name}"), row.flags));
            if let Rule::Sub(rows) = row.rule {
                add(found, &format!("{before}{name} "), rows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check(rows: &[ProgramRow], seen: &mut HashSet<&'static str>) -> usize {
        let mut count = 0;
        for row in rows {
            assert!(!row.why.is_empty() && !row.why.ends_with('.'), "{}", row.names);
            let separator = if row.names.contains(',') { ',' } else { ' ' };
            for name in row.names.split(separator).filter(|name| !name.is_empty()) {
                assert!(seen.insert(name.trim()), "{name} has two rows");
                assert!(row.is(name.trim()), "{name} is found");
                count += 1;
            }
            let only_reads =
                matches!(row.rule, Rule::Reads | Rule::ReadsAtMost(_) | Rule::ReadsThenWrites(_));
            let is_open = row.flags.split_ascii_whitespace().any(|word| word == "*");
            assert!(!(only_reads && is_open), "{}: every harmless option is listed", row.names);
            if let Rule::Sub(rows) = row.rule {
                check(rows, &mut HashSet::new());
            }
        }
        count
    }

    /// Which of two readings of a letter counts would be told by their order.
    #[test]
    fn every_short_option_is_listed_once() {
        for (command, flags) in every() {
            let words: Vec<&str> = flags.split_ascii_whitespace().collect();
            let mut seen = HashSet::new();
            for word in words.iter().filter(|word| **word != "-#" && !words.contains(&"@")) {
                let name = word.trim_start_matches(['>', '+', '!', '%', '~']);
                let letters = name.strip_prefix('-').unwrap_or_default();
                for letter in letters.trim_end_matches([':', '=', '?']).chars() {
                    let is_news = letters.starts_with('-') || seen.insert(letter);
                    assert!(is_news, "{command}: -{letter}");
                }
            }
        }
    }

    #[test]
    fn every_program_has_one_row_and_a_reason() {
        let mut seen = HashSet::new();
        let mut count = 0;
        for rows in [text::ROWS, files::ROWS, system::ROWS, develop::ROWS, run::ROWS] {
            count += check(rows, &mut seen);
        }
        assert!(count > 200, "{count}");
    }
}
