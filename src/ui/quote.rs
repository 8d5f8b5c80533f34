//! Quotes words so that a printed command line can be copied.

/// Quotes a word for a shell, and makes it printable: other characters are written in the form
/// `$'…'`, which bash, zsh and ksh read.
pub fn quote(word: &[u8]) -> String {
    match str::from_utf8(word) {
        Ok(text) if text.chars().all(crate::error::is_plain) => {
            shell_words::quote(text).into_owned()
        }
        Ok(_) | Err(_) => escaped(word),
    }
}

fn escaped(word: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for byte in word {
        match byte {
            b'\'' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted + "'"
}

/// A path that a restore takes, as text that is no pattern.
pub fn literal_pick(path: &[u8]) -> Vec<u8> {
    if !path.iter().any(|byte| b"*?[".contains(byte)) {
        return path.to_vec();
    }
    let escape = |&byte: &u8| {
        let before = b"*?[\\".contains(&byte).then_some(b'\\');
        before.into_iter().chain([byte])
    };
    path.iter().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_a_shell_and_cannot_draw() {
        assert_eq!(quote(b"src/cart.ts"), "src/cart.ts");
        assert_eq!(quote("日本 it's".as_bytes()), r"'日本 it'\''s'");
        assert_eq!(quote(b"a\x1b[2J'\\\n"), r"$'a\033[2J\'\\\012'");
        assert_eq!(quote("\u{202e}x".as_bytes()), r"$'\342\200\256x'");
        assert_eq!(quote(b"\xff"), r"$'\377'");
        assert_eq!(quote(b""), "''");
    }
}
