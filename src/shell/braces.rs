//! Brace expansion on words as written: `{a,b}` and `{1..3}`, quotes respected.

/// More words than this from one are not spelled out.
const WORDS_MAX: usize = 64;

/// The words that one word stands for, or `None` if there are too many to say.
pub(super) fn expand(raw: &str) -> Option<Vec<String>> {
    if !raw.contains('{') {
        return Some(vec![raw.to_owned()]);
    }
    let mut done = Vec::new();
    let mut open = vec![raw.to_owned()];
    // Every step replaces one word by its alternatives; the limit bounds both lists.
    for _ in 0..WORDS_MAX * 4 {
        let Some(word) = open.pop() else { return Some(done) };
        match alternatives(&word) {
            Some((start, end, inner)) => {
                let (head, tail) = (&word[..start], &word[end..]);
                open.extend(inner.iter().rev().map(|part| format!("{head}{part}{tail}")));
            }
            None => done.push(word),
        }
        if done.len() + open.len() > WORDS_MAX {
            return None;
        }
    }
    None
}

/// A pattern for every word that a word with too many braces stands for, if it has no other
/// meaning to the shell.
pub(super) fn as_glob(raw: &str) -> Option<String> {
    let mut glob = String::with_capacity(raw.len());
    let mut depth = 0_usize;
    for char in raw.chars() {
        match char {
            '$' | '`' | '\'' | '"' | '\\' => return None,
            '{' => {
                depth += 1;
                glob.push('*');
            }
            '}' => depth = depth.saturating_sub(1),
            // What the braces offer may reach into other directories.
            '/' if depth > 0 => return None,
            _ if depth > 0 => {}
            _ => glob.push(char),
        }
    }
    Some(glob)
}

/// The first brace expression: where it begins and ends, and what it offers.
fn alternatives(word: &str) -> Option<(usize, usize, Vec<String>)> {
    let mut from = 0;
    while let Some(start) = next_brace(word, from) {
        if let Some((end, commas)) = close(word, start) {
            if !commas.is_empty() {
                let mut parts = Vec::new();
                let mut at = start + 1;
                for comma in commas.into_iter().chain([end - 1]) {
                    parts.push(word[at..comma].to_owned());
                    at = comma + 1;
                }
                return Some((start, end, parts));
            }
            if let Some(parts) = sequence(&word[start + 1..end - 1]) {
                return Some((start, end, parts));
            }
        }
        from = start + 1;
    }
    None
}

/// Where the next unquoted `{` that is not `${` stands.
fn next_brace(word: &str, from: usize) -> Option<usize> {
    let mut found = None;
    unquoted(word, 0, |at, byte, before| {
        let is_it = at >= from && byte == b'{' && before != b'$';
        if is_it {
            found = Some(at);
        }
        !is_it
    });
    found
}

/// The end of the brace that opens at `start`, and the commas that belong to it.
fn close(word: &str, start: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut end = None;
    unquoted(word, start, |at, byte, _| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => commas.push(at),
            _ => {}
        }
        if depth == 0 {
            end = Some(at + 1);
        }
        depth > 0
    });
    end.map(|end| (end, commas))
}

/// Calls `see` with every byte outside quotes, `${…}` and `$(…)`, until it says stop.
fn unquoted(word: &str, start: usize, mut see: impl FnMut(usize, u8, u8) -> bool) {
    let mut quote = None;
    let mut before = 0;
    let mut at = start;
    let mut nested = 0_usize;
    let bytes = word.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        let opens = before == b'$' && matches!(byte, b'{' | b'(');
        match (quote, byte) {
            (None | Some(b'"'), b'\\') => at += 1,
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (None, b'{' | b'(') if opens || nested > 0 => nested += 1,
            (None, b'}' | b')') if nested > 0 => nested -= 1,
            (None, _) if nested > 0 => {}
            (None, _) => {
                if !see(at, byte, before) {
                    return;
                }
            }
        }
        before = byte;
        at += 1;
    }
}

fn sequence(inner: &str) -> Option<Vec<String>> {
    let (first, last) = inner.split_once("..")?;
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let span = usize::try_from(first.abs_diff(last)).ok()?;
        if span > WORDS_MAX {
            // More than the caller takes.
            return Some(vec![String::new(); WORDS_MAX + 1]);
        }
        let (low, high) = (first.min(last), first.max(last));
        return Some((low..=high).map(|number| number.to_string()).collect());
    }
    let (first, last) = (first.parse::<char>().ok()?, last.parse::<char>().ok()?);
    let is_letters = first.is_ascii_alphabetic() && last.is_ascii_alphabetic();
    is_letters.then(|| (first.min(last)..=first.max(last)).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(raw: &str) -> Vec<String> {
        expand(raw).unwrap_or_default()
    }

    #[test]
    fn braces_become_words() {
        assert_eq!(spelled("a{b,c{d,e}}f"), ["abf", "acdf", "acef"]);
        assert_eq!(spelled("f{1..3}"), ["f1", "f2", "f3"]);
        assert_eq!(spelled("a.txt{,.bak}"), ["a.txt", "a.txt.bak"]);
    }

    #[test]
    fn quoted_braces_and_parameters_stay() {
        assert_eq!(spelled("'{a,b}'"), ["'{a,b}'"]);
        assert_eq!(spelled("${a,b}"), ["${a,b}"]);
        assert_eq!(spelled("{}"), ["{}"]);
        assert_eq!(spelled("a{b"), ["a{b"]);
    }

    #[test]
    fn too_many_words_are_refused() {
        assert!(expand(&"{a,b}".repeat(40)).is_none());
        assert!(expand(&"{a,".repeat(3000)).is_some());
    }
}
