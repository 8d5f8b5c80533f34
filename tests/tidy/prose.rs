//! The language of the source, as a ratchet: `prose.txt` records how often each file does what
//! our style avoids, and no file may do it more often than that.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use regex::Regex;

use crate::support::{dice::wished, temp::write};

/// The recorded counts: a line for each file, and one for all of them.
const RECORDED: &str = "tests/tidy/prose.txt";

/// How often a file does each thing of [`HABITS`].
type Counts = [usize; HABITS.len()];

/// The things that are counted, in the order of the columns.
const HABITS: [&str; 5] = [
    "doc comments that begin with \"What\", \"That of\", \"The same\", \"So many\" or \"Whether it\"",
    "times \"what\" in comments",
    "closures with names (`let x = |..|`)",
    "parallel lets (`let (a, b) = (x, y)`)",
    "tuple parameters (`(a, b): (A, B)`)",
];

/// The columns' names in the file, and the first word of the line with the sums.
const HEADER: &str = "# file begins what closures lets tuples";
const TOTAL: &str = "total";

/// Recorded or not, a file may have this many per 1,000 of its lines (of comments, of code).
const PER_THOUSAND: Counts = [0, 30, 3, 0, 0];

#[test]
fn no_file_is_harder_to_read_than_it_was() {
    let recorded = Record::read(&fs::read_to_string(RECORDED).unwrap());
    let found = measured();
    if wished("BEFOREHAND_TIDY_LOWER").is_some() {
        write(Path::new(RECORDED), recorded.lowered(&found).text());
    }
    let faults = recorded.faults(&found);
    assert!(
        faults.is_empty(),
        "{}\nWrite it in plain words and straight statements. If code has moved here, move its part \
         of the counts in {RECORDED} with it, so that no total grows; a total that grows needs a \
         reason that a reviewer accepts. `BEFOREHAND_TIDY_LOWER=1 cargo test --test beforehand \
         tidy::prose` lowers the counts of files that got better, and never raises one.",
        faults.join("\n"),
    );
}

#[test]
fn the_counts_go_down_and_never_up() {
    let file = |text: &str| Habits::new().in_file(text);
    let text = "//! What it is.\n//! What what.\n\n/// That of x.\n// What.\n/// The same.\n\
                fn f(&self, (a, mut b): (u8, u8)) {\n    let (c, mut d) = (1, 2);\n    \
                let mut e = move |x| x;\n    let g = what(|| 1);\n}\n#[cfg(test)]\nmod tests {\n// What.\n";
    let measured = file(text);
    assert_eq!(measured.counts, [3, 4, 1, 1, 1]);
    let worse = |counts: &str| {
        let recorded = Record::read(&format!("a.rs {counts}\ntotal {counts}\n"));
        recorded.faults(&BTreeMap::from([("a.rs".to_owned(), file(text))]))
    };
    assert_eq!(worse("3 4 1 1 1"), [""; 0]);
    assert_eq!(worse("9 9 9 9 9"), [""; 0], "better than it was");
    assert_eq!(worse("3 3 1 1 1"), ["a.rs: 4 times \"what\" in comments, and it had 3"]);
    assert_eq!(worse("2 4 0 0 1").len(), 2, "a closure is within the share of a small file");
    let found = BTreeMap::from([("b.rs".to_owned(), file("//! A.\n"))]);
    let recorded = Record::read("a.rs 1 0 0 0 0\ntotal 2 0 0 0 0\n");
    assert_eq!(recorded.faults(&found).len(), 2, "a file that is gone, and a wrong sum");
    let found = BTreeMap::from([("a.rs".to_owned(), file("/// What.\n/// What.\n"))]);
    let lowered = |recorded: &str| Record::read(recorded).lowered(&found).text();
    let kept = format!("{HEADER}\na.rs 1 2 0 0 0\ntotal 1 2 0 0 0\n");
    assert_eq!(lowered("a.rs 5 5 5 5 5\nb.rs 1 1 1 1 1\ntotal 6 6 6 6 6\n"), kept);
    assert_eq!(lowered("a.rs 0 1 0 0 0\ntotal 0 1 0 0 0\n"), kept.replace("1 2 0", "0 1 0"));
}

/// What is recorded of the files.
struct Record {
    files: BTreeMap<String, Counts>,
    total: Counts,
}

impl Record {
    fn read(text: &str) -> Self {
        let mut files = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let name = words.next().unwrap().to_owned();
            let counts: Vec<usize> = words.map(|word| word.parse().unwrap()).collect();
            let counts: Counts = counts.try_into().unwrap();
            assert!(files.insert(name, counts).is_none(), "twice in {RECORDED}: {line}");
        }
        let total = files.remove(TOTAL).unwrap_or_else(|| panic!("no total in {RECORDED}"));
        Self { files, total }
    }

    /// Each file that got worse, and each way in which the record contradicts itself.
    fn faults(&self, found: &BTreeMap<String, Measured>) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, measured) in found {
            let recorded = self.files.get(name).copied().unwrap_or_default();
            let share = measured.share();
            for (at, habit) in HABITS.iter().enumerate() {
                let count = measured.counts[at];
                if count > recorded[at].max(share[at]) {
                    faults.push(format!("{name}: {count} {habit}, and it had {}", recorded[at]));
                }
            }
        }
        let gone = self.files.keys().filter(|name| !found.contains_key(*name));
        faults.extend(gone.map(|name| format!("{RECORDED} has a line of {name}, which is gone")));
        let sum = sum(&self.files);
        if sum != self.total {
            faults.push(format!(
                "the total in {RECORDED} is {:?}, and its lines make {sum:?}",
                self.total
            ));
        }
        faults
    }

    /// The record with the counts of today where they are lower.
    fn lowered(&self, found: &BTreeMap<String, Measured>) -> Self {
        let mut files = BTreeMap::new();
        for (name, recorded) in &self.files {
            let Some(measured) = found.get(name) else { continue };
            let lower = std::array::from_fn(|at| recorded[at].min(measured.counts[at]));
            if lower != Counts::default() {
                files.insert(name.clone(), lower);
            }
        }
        Self { total: sum(&files), files }
    }

    fn text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        let total = TOTAL.to_owned();
        for (name, counts) in self.files.iter().chain([(&total, &self.total)]) {
            let [begins, what, closures, lets, tuples] = counts;
            writeln!(text, "{name} {begins} {what} {closures} {lets} {tuples}").unwrap();
        }
        text
    }
}

fn sum(files: &BTreeMap<String, Counts>) -> Counts {
    std::array::from_fn(|at| files.values().map(|counts| counts[at]).sum())
}

/// One file as it is today.
struct Measured {
    counts: Counts,
    comment_lines: usize,
    code_lines: usize,
}

impl Measured {
    /// Counts that any file of this size may have.
    fn share(&self) -> Counts {
        let lines = [
            self.comment_lines, self.comment_lines, self.code_lines, self.code_lines,
            self.code_lines,
        ];
        std::array::from_fn(|at| (lines[at] * PER_THOUSAND[at]).div_ceil(1000))
    }
}

/// Every file of the program, without tests.
fn measured() -> BTreeMap<String, Measured> {
    let habits = Habits::new();
    let mut found = BTreeMap::new();
    for (path, text) in super::sources(&["src"]) {
        let name = path.to_str().unwrap().to_owned();
        if !(name.ends_with("/tests.rs") || name.ends_with("_tests.rs")) {
            found.insert(name, habits.in_file(&text));
        }
    }
    found
}

struct Habits {
    beginning: Regex,
    what: Regex,
    closure: Regex,
    lets: Regex,
    tuple: Regex,
    tests: Regex,
}

impl Habits {
    fn new() -> Self {
        let regex = |pattern: &str| Regex::new(pattern).unwrap();
        Self {
            beginning: regex(r"^//[/!] (What|That of|The same|So many|Whether it)\b"),
            what: regex(r"(?i)\bwhat\b"),
            closure: regex(r"^let (mut )?\w+ = (move )?\|"),
            lets: regex(r"^let \((\w+|mut \w+)(, (\w+|mut \w+))+\) = \("),
            tuple: regex(r"(?m)(?:^\s+|[(,] ?)\((?:mut )?\w+(?:, (?:mut )?\w+)+\): \(&?"),
            tests: regex(r"(?m)^\s*#\[cfg\(test\)\]\n\s*(pub(\(crate\))? )?mod \w+ \{"),
        }
    }

    fn in_file(&self, text: &str) -> Measured {
        let end = self.tests.find(text).map_or(text.len(), |found| found.start());
        let text = &text[..end];
        let mut measured = Measured { counts: [0; HABITS.len()], comment_lines: 0, code_lines: 0 };
        let [begins, what, closures, lets, tuples] = &mut measured.counts;
        let mut is_doc_before = false;
        for line in text.lines().map(str::trim) {
            let is_doc = line.starts_with("///") || line.starts_with("//!");
            if line.starts_with("//") {
                measured.comment_lines += 1;
                *begins += usize::from(!is_doc_before && self.beginning.is_match(line));
                *what += self.what.find_iter(line).count();
            } else if !line.is_empty() {
                measured.code_lines += 1;
                *closures += usize::from(self.closure.is_match(line));
                *lets += usize::from(self.lets.is_match(line));
            }
            is_doc_before = is_doc;
        }
        *tuples = self.tuple.find_iter(text).count();
        measured
    }
}
