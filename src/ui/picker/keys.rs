//! Decodes the bytes of a terminal into keys.
//!
//! An arrow key begins with the same byte as Esc, and on a slow line the rest comes later. The
//! reader therefore waits [`Keys::PATIENCE`] before it takes a lone Esc as a key. Pasted text is
//! never a command: a line feed in it presses nothing.

use std::time::Duration;

/// What a person pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPress {
    /// A character.
    Char(char),
    /// Text that was pasted.
    Pasted(String),
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tab.
    Tab,
    /// Deletes a character.
    Backspace,
    /// Deletes a word.
    BackWord,
    /// Deletes everything typed.
    BackAll,
    /// An arrow key.
    Up,
    /// An arrow key.
    Down,
    /// An arrow key.
    Left,
    /// An arrow key.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the start.
    Home,
    /// To the end.
    End,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L: draw everything again.
    Redraw,
}

/// Decodes keys incrementally.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
}

const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// Longer sequences are not keys, and longer pastes are not searches.
const SEQUENCE_MAX_BYTES: usize = 64;
const PASTE_MAX_BYTES: usize = 64 << 10;

/// What the buffered bytes start with.
enum KeyRead {
    /// This key, or an unknown one, and its length in bytes.
    Whole(Option<KeyPress>, usize),
    /// An incomplete key.
    Half,
}

impl Keys {
    /// How long the rest of a key may take on a slow line.
    pub(super) const PATIENCE: Duration = Duration::from_millis(80);

    /// Adds what the terminal sent.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next key, if it is complete.
    pub(super) fn next(&mut self) -> Option<KeyPress> {
        while !self.bytes.is_empty() {
            let KeyRead::Whole(key, length) = read(&self.bytes) else { return None };
            drop(self.bytes.drain(..length));
            if key.is_some() {
                return key;
            }
        }
        None
    }

    /// Whether an incomplete key is buffered, so that the rest should come within
    /// [`Self::PATIENCE`].
    pub(super) fn is_half(&self) -> bool {
        !self.bytes.is_empty() && !self.bytes.starts_with(PASTE_BEGINS)
    }

    /// The rest did not come: each Esc counts as a key, and anything else is dropped.
    pub(super) fn settle(&mut self) -> Option<KeyPress> {
        if !self.is_half() {
            return None;
        }
        match self.bytes[..] {
            [ESC] => {
                self.bytes.clear();
                Some(KeyPress::Esc)
            }
            [ESC, ESC, ..] => {
                self.bytes.remove(0);
                Some(KeyPress::Esc)
            }
            _ => {
                self.bytes.clear();
                None
            }
        }
    }
}

fn read(bytes: &[u8]) -> KeyRead {
    match bytes {
        [ESC, rest @ ..] => sequence(bytes, rest),
        [b'\r' | b'\n', ..] => KeyRead::Whole(Some(KeyPress::Enter), 1),
        [first, ..] if *first < 0x20 || *first == 0x7f => KeyRead::Whole(control(*first), 1),
        _ => character(bytes),
    }
}

fn control(byte: u8) -> Option<KeyPress> {
    Some(match byte {
        0x02 => KeyPress::PageUp,
        0x03 => KeyPress::Interrupt,
        0x06 => KeyPress::PageDown,
        0x08 | 0x7f => KeyPress::Backspace,
        0x09 => KeyPress::Tab,
        0x0c => KeyPress::Redraw,
        0x0e => KeyPress::Down,
        0x10 => KeyPress::Up,
        0x15 => KeyPress::BackAll,
        0x17 => KeyPress::BackWord,
        0x1a => KeyPress::Suspend,
        _ => return None,
    })
}

/// Decodes a sequence that begins with Esc; `rest` follows it.
fn sequence(bytes: &[u8], rest: &[u8]) -> KeyRead {
    match rest {
        [] | [ESC] => KeyRead::Half,
        // With Alt held down, many terminals send an additional Esc first.
        [ESC, b'[' | b'O', ..] => match sequence(rest, &rest[1..]) {
            KeyRead::Whole(key, length) => KeyRead::Whole(key, length + 1),
            KeyRead::Half => KeyRead::Half,
        },
        [ESC, ..] => KeyRead::Whole(Some(KeyPress::Esc), 1),
        [b'[', ..] if bytes.starts_with(PASTE_BEGINS) => pasted(bytes),
        [b'[', b'[', tail @ ..] => tail.first().map_or(KeyRead::Half, |_| KeyRead::Whole(None, 4)),
        [b'[', tail @ ..] => csi(tail),
        [b'O', last, ..] => KeyRead::Whole(named(*last, b""), 3),
        [b'O'] => KeyRead::Half,
        // A letter with Alt, which has no meaning here.
        _ => match character(rest) {
            KeyRead::Whole(_, length) => KeyRead::Whole(None, length + 1),
            KeyRead::Half => KeyRead::Half,
        },
    }
}

/// `ESC [`, numbers, and a byte that says which key it is.
fn csi(tail: &[u8]) -> KeyRead {
    let Some(end) = tail.iter().position(|byte| matches!(byte, 0x40..=0x7e)) else {
        return if tail.len() < SEQUENCE_MAX_BYTES {
            KeyRead::Half
        } else {
            KeyRead::Whole(None, tail.len() + 2)
        };
    };
    KeyRead::Whole(named(tail[end], &tail[..end]), end + 3)
}

fn named(last: u8, numbers: &[u8]) -> Option<KeyPress> {
    let first = numbers.split(|byte| *byte == b';').next().unwrap_or_default();
    Some(match (last, first) {
        (b'A', _) => KeyPress::Up,
        (b'B', _) => KeyPress::Down,
        (b'C', _) => KeyPress::Right,
        (b'D', _) => KeyPress::Left,
        (b'H', _) | (b'~', b"1" | b"7") => KeyPress::Home,
        (b'F', _) | (b'~', b"4" | b"8") => KeyPress::End,
        (b'~', b"5") => KeyPress::PageUp,
        (b'~', b"6") => KeyPress::PageDown,
        (b'M', b"") => KeyPress::Enter,
        (b'u', b"27") => KeyPress::Esc,
        _ => return None,
    })
}

fn pasted(bytes: &[u8]) -> KeyRead {
    let text = &bytes[PASTE_BEGINS.len()..];
    let end = text.windows(PASTE_ENDS.len()).position(|window| window == PASTE_ENDS);
    match end {
        Some(end) => {
            let text = String::from_utf8_lossy(&text[..end]).into_owned();
            KeyRead::Whole(
                Some(KeyPress::Pasted(text)),
                PASTE_BEGINS.len() + end + PASTE_ENDS.len(),
            )
        }
        None if text.len() > PASTE_MAX_BYTES => KeyRead::Whole(None, bytes.len()),
        None => KeyRead::Half,
    }
}

/// Decodes one UTF-8 character; skips invalid bytes.
fn character(bytes: &[u8]) -> KeyRead {
    let length = match bytes[0] {
        0x00..0x80 => 1,
        0xc2..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0..0xf5 => 4,
        _ => return KeyRead::Whole(None, 1),
    };
    let Some(bytes) = bytes.get(..length) else { return KeyRead::Half };
    match str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) {
        Some(c) => KeyRead::Whole(Some(KeyPress::Char(c)), length),
        None => KeyRead::Whole(None, 1),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Decodes all keys in these bytes, given that no more will come.
    fn keys(bytes: &[u8]) -> Vec<KeyPress> {
        let mut keys = Keys::default();
        keys.push(bytes);
        let mut found = Vec::new();
        loop {
            found.extend(std::iter::from_fn(|| keys.next()));
            if !keys.is_half() {
                return found;
            }
            found.extend(keys.settle());
        }
    }

    #[test]
    fn every_terminal_has_its_own_arrow_keys() {
        for (bytes, key) in [
            (&b"\x1b[A"[..], KeyPress::Up),
            (b"\x1bOB", KeyPress::Down),
            (b"\x1b[1;3C", KeyPress::Right),
            (b"\x1b\x1b[D", KeyPress::Left),
            (b"\x1b[5~", KeyPress::PageUp),
            (b"\x1b[6;2~", KeyPress::PageDown),
            (b"\x1b[7~", KeyPress::Home),
            (b"\x1bOF", KeyPress::End),
            (b"\r", KeyPress::Enter),
            (b"\x1bOM", KeyPress::Enter),
            (b"\x1b", KeyPress::Esc),
            (b"\x7f", KeyPress::Backspace),
            (b"\t", KeyPress::Tab),
            (b"\x03", KeyPress::Interrupt),
            ("é".as_bytes(), KeyPress::Char('é')),
            ("本".as_bytes(), KeyPress::Char('本')),
        ] {
            assert_eq!(keys(bytes), [key], "{}", bytes.escape_ascii());
        }
        for nothing in [&b"\x1bx"[..], b"\x1b[[A", b"\x1b[15~", b"\xff", b"\x00", b"\x1b[9999"] {
            assert_eq!(keys(nothing), [], "{}", nothing.escape_ascii());
        }
        assert_eq!(keys(b"\x1b\x1b"), [KeyPress::Esc, KeyPress::Esc]);
        assert_eq!(keys(b"\x1b\x1bj"), [KeyPress::Esc]);
    }

    #[test]
    fn an_arrow_key_in_two_pieces_is_no_escape() {
        let mut keys = Keys::default();
        keys.push(b"\x1b");
        assert_eq!(keys.next(), None);
        assert!(keys.is_half());
        keys.push(b"[");
        assert_eq!(keys.next(), None);
        keys.push(b"Bj");
        assert_eq!(keys.next(), Some(KeyPress::Down));
        assert_eq!(keys.next(), Some(KeyPress::Char('j')));
        assert_eq!(keys.settle(), None);
    }

    #[test]
    fn what_is_pasted_presses_nothing() {
        let mut keys = Keys::default();
        keys.push(b"\x1b[200~a\r\x1b");
        assert_eq!((keys.next(), keys.is_half()), (None, false), "the rest may take its time");
        keys.push(b"[Ab\x1b[201~\r");
        assert_eq!(keys.next(), Some(KeyPress::Pasted("a\r\x1b[Ab".to_owned())));
        assert_eq!(keys.next(), Some(KeyPress::Enter));
    }

    proptest! {
        #[test]
        fn no_bytes_confuse_it_for_long(bytes: Vec<u8>) {
            let mut reader = Keys::default();
            reader.push(&bytes);
            while reader.next().is_some() {}
            for _ in 0..=bytes.len() {
                let _key = reader.settle();
                while reader.next().is_some() {}
            }
            prop_assert!(reader.bytes.is_empty() || reader.bytes.starts_with(PASTE_BEGINS));
        }
    }
}
