//! What must hold before text reaches the parser, which recurses with its input and would take
//! the whole process down. Hides the thread the judging runs on.

use std::cell::Cell;
use std::panic;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::effort;

/// The longest line that is read at all. An agent's longest real lines are files in here-documents.
const SIZE_MAX_BYTES: usize = 64 * 1024;

/// The deepest nesting of brackets and keywords that is read. People nest below ten.
const NESTING_MAX: usize = 64;

/// How many brackets and keywords may open in all. A closing one between quotes can hide nesting
/// from [`NESTING_MAX`], and the parser overflows 8 MiB at about 2000; the stack is eight times that.
const OPENINGS_MAX: usize = 4000;

/// How many parentheses may open in a row: the parser tries every reading of `((`.
const PARENTHESES_MAX: usize = 8;

/// Address space for the parser's stack; only what is touched costs memory.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// What counts as short, and as flat.
const SMALL_MAX_BYTES: usize = 1024;
const SMALL_OPENINGS_MAX: usize = 6;

/// The longest a hook may wait for a verdict; real lines take well under one millisecond.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Says why a text must not be parsed, if so.
pub(super) fn refuse(text: &str) -> Option<&'static str> {
    if text.len() > SIZE_MAX_BYTES {
        return Some("longer than 64 KiB");
    }
    if text.contains('\0') {
        return Some("contains a NUL byte");
    }
    let mut depth = 0_usize;
    let mut openings = 0_usize;
    let mut row = 0_usize;
    for byte in text.bytes() {
        row = if byte == b'(' { row + 1 } else { 0 };
        match byte {
            b'(' | b'{' | b'[' => {
                depth += 1;
                openings += 1;
            }
            b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX || openings > OPENINGS_MAX || row > PARENTHESES_MAX {
            return Some("nested too deeply");
        }
    }
    if effort::is_endless(text) {
        return Some("nested too deeply");
    }
    if has_endless_document(text) {
        return Some("has a here-document that nothing ends");
    }
    keywords(text)
}

/// Whether a here-document has no line behind it, or nothing but quotes or blanks for its end, or an
/// expansion: the parser may read on forever then, and takes all memory there is (found by fuzz/, as
/// `cat <<'' #`, with a carriage return for a word, and with an open bracket behind).
fn has_endless_document(text: &str) -> bool {
    let mut from = 0;
    let mut quotes = Quotes::default();
    while let Some(found) = text[from..].find("<<") {
        let at = from + found;
        quotes.read(&text[from..at]);
        from = at + text[at..].bytes().take_while(|byte| *byte == b'<').count();
        let is_open = quotes.open.is_some_and(|quote| text[from..].contains(quote));
        if is_open && !quotes.is_doubtful {
            continue;
        }
        quotes.is_doubtful = true;
        let is_string = from - at == 3 && !text[..at].ends_with('\\');
        // Both in one: people do not write that.
        if from - at > 3 || !is_string && is_endless_document(&text[..at], &text[from..]) {
            return true;
        }
    }
    false
}

/// Whether a text has been read up to a place inside of quotes.
#[derive(Default)]
struct Quotes {
    open: Option<char>,
    is_escaped: bool,
    /// Whether something may have changed the meaning of quotes: an expansion, a comment, or a document.
    is_doubtful: bool,
}

impl Quotes {
    fn read(&mut self, text: &str) {
        for c in text.chars() {
            match (self.open, c) {
                _ if self.is_escaped => self.is_escaped = false,
                (Some('\''), _) if c != '\'' => (),
                (_, '\\') => self.is_escaped = true,
                (_, '$' | '`') | (None, '#') => self.is_doubtful = true,
                (Some(quote), _) if c == quote => self.open = None,
                (None, '\'' | '"') => self.open = Some(c),
                _ => (),
            }
        }
    }
}

fn is_endless_document(before: &str, behind: &str) -> bool {
    let is_quote = |c: char| matches!(c, '\'' | '"' | '\\');
    let expands = |text: &str| ["$(", "${", "$[", "`"].iter().any(|it| text.contains(it));
    let behind = behind.trim_start_matches('-');
    let word = behind.trim_start_matches([' ', '\t']);
    let named = word.split([' ', '\t', '\n', ';', '|', '&']).next().unwrap_or_default();
    if expands(named) || is_torn(word) {
        return true;
    }
    if !behind.contains('\n') {
        // Only in arithmetic it means something; there a number or a name follows.
        let is_shift = before.contains("((")
            && word.starts_with(|c: char| c.is_ascii_alphanumeric() || "$(_".contains(c));
        return !is_shift || expands(&behind.replace("$((", ""));
    }
    let word = match word.strip_prefix('$') {
        Some(quoted) if quoted.starts_with(is_quote) => quoted,
        Some(_) | None => word,
    };
    let rest = word.trim_start_matches(|c: char| {
        is_quote(c) || c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n')
    });
    let is_named = rest.starts_with(|c: char| !" \t\n;|&<>(){}[]`#$".contains(c));
    let is_shift = rest.len() == word.len() && rest.starts_with(['$', '(', '{']);
    !is_named && !is_shift && rest.len() < behind.len()
}

/// Whether a line ends inside of the word at the beginning of a text: people do not write an end of two
/// lines, and nothing but one would end there.
fn is_torn(word: &str) -> bool {
    let (mut quote, mut chars) = (None, word.chars());
    while let Some(c) = chars.next() {
        match (quote, c) {
            (_, '\n') => return quote.is_some(),
            (Some(open), _) if c == open => quote = None,
            (Some('"') | None, '\\') => {
                if chars.next() == Some('\n') {
                    return true;
                }
            }
            (Some(_), _) => (),
            (None, '\'' | '"') => quote = Some(c),
            (None, _) if " \t;|&<>()".contains(c) => return false,
            (None, _) => (),
        }
    }
    quote.is_some()
}

fn keywords(text: &str) -> Option<&'static str> {
    let mut depth = 0_usize;
    let mut openings = 0_usize;
    for word in text.split(|char: char| char.is_whitespace() || ";&|(){}`\"'".contains(char)) {
        match word {
            "if" | "while" | "until" | "for" | "case" | "select" | "coproc" | "time"
            | "function" | "elif" | "!" | "[[" => {
                depth += 1;
                openings += 1;
            }
            "fi" | "done" | "esac" | "]]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        // A plain `!`, `time` or `function` never closes, so the sum is allowed more than the depth.
        if depth > NESTING_MAX * 2 || openings > OPENINGS_MAX {
            return Some("nested too deeply");
        }
    }
    None
}

/// Whether a text is so short and so flat that the parser can neither overflow a stack nor take
/// long over it: most of what agents run. A thread would cost more than judging it.
pub(super) fn is_small(text: &str) -> bool {
    let openings = text.bytes().filter(|byte| b"({[<`".contains(byte)).count();
    let is_keyword = |word: &str| {
        matches!(word, "if" | "while" | "until" | "for" | "case" | "select" | "coproc" | "function")
    };
    let keywords = text.split_ascii_whitespace().filter(|word| is_keyword(word)).count();
    // Reading a here-document is a loop of its own, and not always one that ends.
    let is_flat = openings + keywords <= SMALL_OPENINGS_MAX && !text.contains("<<");
    text.len() <= SMALL_MAX_BYTES && is_flat
}

thread_local! {
    static JUDGING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is judging a line, so that a panic in it is an answer and not a bug.
pub(super) fn is_judging() -> bool {
    JUDGING.get()
}

/// Runs `judge` right here; `None` if it panics. For what [`is_small`].
pub(super) fn run_here<T>(judge: impl FnOnce() -> T) -> Option<T> {
    JUDGING.set(true);
    let judged = panic::catch_unwind(panic::AssertUnwindSafe(judge)).ok();
    JUDGING.set(false);
    judged
}

/// Runs `judge` where an overflow, a panic or an endless loop in the parser does no harm. After
/// 50 ms the thread is left to itself: a hook's process ends soon, and nothing waits for it.
pub(super) fn run<T: Send + 'static>(judge: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if cfg!(fuzzing) {
        // Left to itself, a thread that hangs would be found out while another line is judged.
        return run_here(judge);
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let body = move || {
        if let Some(answer) = run_here(judge) {
            // The caller may have given up waiting.
            drop(sender.send(answer));
        }
    };
    thread::Builder::new().name("shell".to_owned()).stack_size(STACK_BYTES).spawn(body).ok()?;
    receiver.recv_timeout(WAIT_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_overflow_the_parser_is_refused() {
        for text in ["{ ", "$(", "if ", "((", "[[ ! ", "a[", "coproc "] {
            assert!(refuse(&text.repeat(5000)).is_some(), "{text}");
        }
        assert!(refuse(&"x".repeat(SIZE_MAX_BYTES + 1)).is_some());
        assert!(refuse("if a; then b; fi; echo \"$(c {d,e} [f])\"").is_none());
    }

    #[test]
    fn a_here_document_that_nothing_ends_never_reaches_the_parser() {
        for text in [
            "a <<<<<\u{c}>b\n", "a \\<<<\r ", "cat <<'' #", "cat <<- \"\" x #y",
            "awk a <<  '' #at << b", "x <<''\"\" #", "a <<\r #", "a <<\r;#", "$(a <<\r\t#",
            "${a<<\r}", "a <<''$x", "$(a << \t", "$(a <<  b #", "a <<$'' #", "a <<\"\\\n\" #",
            "a <<\u{b}#", "$(<<\t\t'r\n'''&#", "a <<\"b\nc\" #", "a <<b\\\nc #", "a <<x'\n' #",
            "a <<'b",
        ] {
            assert!(refuse(text).is_some() && !is_small(text), "{text}");
        }
        for text in [
            "cat <<a #\nb\na\n",
            "cat <<'a b'\na b\n",
            "echo $((1 << 2)) $((1 << $x))",
            "a <<< ''",
            "a <<'b'\nb",
            "git commit -F - <<'it is' -- \"a\nb\"\nit is\n",
            "a <<\\b 'c\n'\nb",
        ] {
            assert!(refuse(text).is_none(), "{text}");
        }
        assert!(!is_small("cat <<a\na\n"), "it is judged where a hang does no harm");
    }

    #[test]
    fn a_panic_and_a_hang_are_no_answer() {
        // On a busy machine, the thread may begin too late.
        assert!((0..20).any(|_| run(|| 1) == Some(1)));
        assert_eq!(run(|| -> u8 { panic::resume_unwind(Box::new(())) }), None);
        let hang = || loop {
            thread::park();
        };
        assert_eq!(run(hang), None::<u8>);
    }
}
