//! Asks the user a question in the terminal.

use std::io::Read;

use super::wrap_lines;
use crate::process::Process;

/// Enough for a yes or no.
const ANSWER_MAX: usize = 64;

/// Asks a yes-or-no question on the terminal. Everything except a clear yes is a no: no terminal,
/// end of input, an error, an empty line. `question` must be printable.
pub fn ask(process: &mut Process<'_>, question: &str) -> bool {
    let answer = keys(process, &format!("{question} [y/N]")).unwrap_or_default();
    answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

/// Asks for a short text on the terminal. `None` without a terminal, at the end of input and for an
/// empty line. `question` must be printable; the answer is not made so.
pub fn answer(process: &mut Process<'_>, question: &str) -> Option<String> {
    keys(process, question).filter(|answer| !answer.is_empty())
}

/// Asks for keys on the terminal: a line of them, which may be empty. `None` without a terminal and at the
/// end of input. `question` must be printable; what was typed is not made so.
pub fn keys(process: &mut Process<'_>, question: &str) -> Option<String> {
    if !process.terminal.stdin {
        return None;
    }
    pose(process, question)?;
    let typed = line(process.stdin)?;
    Some(String::from_utf8_lossy(typed.trim_ascii()).into_owned())
}

/// Prints a question. `None` if it cannot be printed.
fn pose(process: &mut Process<'_>, question: &str) -> Option<()> {
    let columns = process.terminal.stderr_columns();
    let question = columns.map_or(question.into(), |columns| wrap_lines(question, columns.into()));
    write!(process.stderr, "{question} ").and_then(|()| process.stderr.flush()).ok()
}

/// One line, byte by byte: what follows it belongs to the next reader. `None` if the input had ended before it.
fn line(input: &mut (impl Read + ?Sized)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < ANSWER_MAX {
        match input.read(&mut byte) {
            Ok(1) if byte == *b"\n" => return Some(line),
            Ok(1) => line.push(byte[0]),
            Ok(_) | Err(_) => return Some(line).filter(|line| !line.is_empty()),
        }
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Instant};

    use super::*;
    use crate::process::Terminal;

    fn answer(input: &str, stdin: bool) -> (bool, String, String) {
        let (mut input, mut stderr) = (input.as_bytes(), Vec::new());
        let yes = ask(
            &mut Process {
                args: Vec::new(),
                cwd: None,
                env: BTreeMap::new(),
                now: chrono::DateTime::UNIX_EPOCH,
                started: Instant::now(),
                stdin: &mut input,
                stdout: &mut Vec::new(),
                stderr: &mut stderr,
                terminal: Terminal { stdin, ..Terminal::default() },
                aside: &(),
            },
            "restore 3 files?",
        );
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (yes, text(input), text(&stderr))
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y\n", "Y\r\n", "yes\n", " YES \n", "y"] {
            assert!(answer(yes, true).0, "{yes:?}");
        }
        for no in ["", "\n", "n\n", "no\n", "yep\n", "\ny\n", "\u{fffd}\n", &"y".repeat(1000)] {
            assert!(!answer(no, true).0, "{no:?}");
        }
        assert_eq!(
            answer("y\nrest", true),
            (true, "rest".into(), "restore 3 files? [y/N] ".into())
        );
    }

    #[test]
    fn without_a_terminal_no_question_is_asked() {
        assert_eq!(answer("y\n", false), (false, "y\n".into(), String::new()));
    }
}
