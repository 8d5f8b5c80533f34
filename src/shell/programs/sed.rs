//! `sed`: its options, and the few commands of its language that write or run.

use super::closed;
use crate::model::{Level, Target, TargetAction};
use crate::shell::flags::{Field, FlagMark};
use crate::shell::names;
use crate::shell::verdict::{CommandCall, CommandVerdict, destroys, reads, unknown};
use crate::shell::walk::ShellWalk;

const FLAGS: &str = "-nErsuzal -e: -f: -l: --expression= --file= --quiet --silent --regexp-extended --null-data \
    --separate --unbuffered --posix --debug --sandbox --line-length= --follow-symlinks --zero-terminated !-i? !--in-place? \
    !-I? %--help %--version";

/// Judges `sed`.
pub(in crate::shell) fn sed(walk: &mut ShellWalk<'_>, call: &CommandCall<'_>) -> CommandVerdict {
    let (mut parsed, _) = closed(walk, FLAGS, call.args());
    if let Some(flag) = &parsed.stray {
        return unknown(format!("has a flag we do not know: `{flag}`"));
    }
    if parsed.talks() {
        return reads("only tells about the program");
    }
    let mut scripts: Vec<Field> = parsed
        .hits
        .iter()
        .filter(|hit| hit.name == "-e" || hit.name == "--expression")
        .filter_map(|hit| hit.value.clone())
        .collect();
    let has_file = parsed.has(&["-f", "--file"]);
    if scripts.is_empty() && !has_file && !parsed.operands.is_empty() {
        scripts.push(parsed.operands.remove(0));
    }
    let mut targets = Vec::new();
    let mut level = Level::ReadOnly;
    if parsed.hits.iter().any(|hit| hit.mark == FlagMark::InPlace) {
        level = Level::Destroys;
        for operand in parsed.operands.iter().filter(|operand| !operand.text.is_empty()) {
            targets.push(walk.target(operand, TargetAction::Modify, "sed -i rewrites it"));
        }
    }
    if has_file {
        level = Level::Unknown;
    }
    for script in &scripts {
        level = level.max(script_level(walk, script, &mut targets));
    }
    match level {
        Level::ReadOnly => reads("prints the edited text"),
        Level::Creates | Level::Destroys => destroys("sed writes to files", targets),
        Level::Unknown => {
            CommandVerdict { targets, ..unknown("its script may write or run something") }
        }
    }
}

fn script_level(walk: &ShellWalk<'_>, script: &Field, targets: &mut Vec<Target>) -> Level {
    let Some(text) = script.literal() else { return Level::Unknown };
    let mut files = Vec::new();
    let mut reader = Script { text, at: 0, is_loose: false, goes_on: false };
    if reader.commands(&mut files).is_none() {
        return Level::Unknown;
    }
    let files: Vec<Field> = files.iter().map(|file| Field::exact(file)).collect();
    let mut level = Level::ReadOnly;
    for file in files.iter().filter(|file| names::is_file(file)) {
        level = Level::Destroys;
        targets.push(walk.target(file, TargetAction::Overwrite, "its script writes to it"));
    }
    level
}

/// A reader of sed's language; `None` is what it does not understand, or what runs something.
struct Script<'a> {
    text: &'a str,
    at: usize,
    /// Whether a label ended before its line did, which it does not to every sed.
    is_loose: bool,
    /// Whether a text went on over a line's end.
    goes_on: bool,
}

impl Script<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, bytes: &[u8]) {
        while self.peek().is_some_and(|byte| bytes.contains(&byte)) {
            self.at += 1;
        }
    }

    fn line(&mut self) -> String {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at += line.len();
        line.trim().to_owned()
    }

    fn commands(&mut self, files: &mut Vec<String>) -> Option<()> {
        loop {
            self.skip(b" \t\n;}");
            if self.peek().is_none() {
                // What is a text to one may be a command to the other.
                return (!(self.is_loose && self.goes_on)).then_some(());
            }
            self.address()?;
            self.command(files)?;
        }
    }

    fn address(&mut self) -> Option<()> {
        loop {
            self.skip(b" \t");
            match self.peek()? {
                b'0'..=b'9' | b'$' | b',' | b'~' | b'+' | b'!' => self.at += 1,
                b'/' => {
                    self.at += 1;
                    self.until(b'/')?;
                    self.skip(b"IM");
                }
                b'\\' => {
                    self.at += 1;
                    let delimiter = self.next()?;
                    self.until(delimiter)?;
                    self.skip(b"IM");
                }
                _ => return Some(()),
            }
        }
    }

    /// Goes past the next delimiter that is not escaped. One inside of brackets ends the pattern for
    /// some and not for others, so we do not understand it.
    fn until(&mut self, delimiter: u8) -> Option<()> {
        let mut bracket = None;
        loop {
            let at = self.at;
            match self.next()? {
                byte if byte == delimiter => return bracket.is_none().then_some(()),
                b'\\' => {
                    self.next()?;
                }
                b'[' if bracket.is_none() => {
                    let negated = usize::from(self.peek() == Some(b'^'));
                    bracket = Some(at + 1 + negated);
                }
                b']' if bracket.is_some_and(|first| at > first) => bracket = None,
                _ => {}
            }
        }
    }

    fn command(&mut self, files: &mut Vec<String>) -> Option<()> {
        match self.next()? {
            b'{' | b'=' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'p' | b'P'
            | b'x' | b'z' | b'F' => {}
            b'q' | b'Q' | b'l' | b'L' => self.skip(b" 0123456789"),
            b'#' => drop(self.line()),
            b':' | b'b' | b't' | b'T' | b'v' => {
                while self.peek().is_some_and(|byte| !b";\n}".contains(&byte)) {
                    self.at += 1;
                }
                self.is_loose |= self.peek().is_some_and(|byte| byte != b'\n');
            }
            b'a' | b'i' | b'c' => self.appended()?,
            b'r' | b'R' => drop(self.line()),
            b'w' | b'W' => files.push(self.line()),
            b's' => {
                let delimiter = self.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
                self.substitution_flags(files)?;
            }
            b'y' => {
                let delimiter = self.next()?;
                self.until(delimiter)?;
                self.until(delimiter)?;
            }
            // `e` runs a command; anything else is not sed.
            _ => return None,
        }
        Some(())
    }

    /// A text on the same line, or, behind nothing but a backslash, on the next. Where else it goes
    /// on is not the same to every sed.
    fn appended(&mut self) -> Option<()> {
        let first = self.line();
        if first != "\\" {
            return (!first.ends_with('\\')).then_some(());
        }
        self.goes_on = true;
        self.next();
        (!self.line().ends_with('\\')).then_some(())
    }

    fn substitution_flags(&mut self, files: &mut Vec<String>) -> Option<()> {
        loop {
            match self.peek() {
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => self.at += 1,
                Some(b'w') => {
                    self.at += 1;
                    files.push(self.line());
                    return Some(());
                }
                Some(b' ' | b'\t' | b';' | b'\n' | b'}' | b'#') | None => return Some(()),
                Some(_) => return None,
            }
        }
    }
}
