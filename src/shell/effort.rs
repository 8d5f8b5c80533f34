//! Recognizes text that the parser could take hours to parse. The parser backtracks: with each attempt it parses
//! all enclosing brackets again, so its work is exponential in their depth, even for a line of sixty bytes. Here,
//! one pass over the bytes finds text that nests deeper than any person writes.

/// How deep expansions may nest: `$(`, `${`, and what opens inside them. Each level makes the
/// parser up to five times slower, and this many take it about ten milliseconds.
const EXPANSION_MAX: u32 = 10;

/// How deep parentheses and `case` may nest outside of expansions. Each level doubles the work.
const GROUP_MAX: u32 = 16;

/// One bracket that is open.
struct Opening {
    closes: u8,
    weight: u32,
    in_expansion: bool,
    /// How many quotation marks there were before it: `'` and `"`.
    quotes: [usize; 2],
}

/// Whether the parser may take for ever over a text.
///
/// Quotation marks are not understood, so a bracket between them counts as one. A closing bracket
/// closes only where the marks since its opening come in pairs, for else it may be quoted, and
/// what seems closed is not.
pub(super) fn is_endless(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut open: Vec<Opening> = Vec::new();
    let (mut quotes, mut cases) = ([0, 0], 0_u32);
    let (mut expansion, mut group) = (0_u32, 0_u32);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        match byte {
            b'\\' => at += 1,
            b'\'' => quotes[0] += 1,
            b'"' => quotes[1] += 1,
            b'(' | b'{' | b'[' => {
                let in_expansion = before == b'$' || open.last().is_some_and(|it| it.in_expansion);
                let weight = weight(byte, in_expansion);
                *if in_expansion { &mut expansion } else { &mut group } += weight;
                open.push(Opening { closes: closing(byte), weight, in_expansion, quotes });
            }
            b')' | b'}' | b']' => {
                let pairs = |it: &Opening, n: usize| (quotes[n] - it.quotes[n]).is_multiple_of(2);
                let closes = |it: &Opening| it.closes == byte && pairs(it, 0) && pairs(it, 1);
                if open.last().is_some_and(closes)
                    && let Some(gone) = open.pop()
                {
                    *if gone.in_expansion { &mut expansion } else { &mut group } -= gone.weight;
                }
            }
            b'c' if is_word(text, at, "case") => cases += 1,
            b'e' if is_word(text, at, "esac") => cases = cases.saturating_sub(1),
            _ => (),
        }
        if expansion > EXPANSION_MAX || group + 2 * cases > GROUP_MAX {
            return true;
        }
        at += 1;
    }
    false
}

/// A subscript is read in twenty ways, one after another.
fn weight(opening: u8, in_expansion: bool) -> u32 {
    match (opening, in_expansion) {
        (b'(', _) | (b'{', true) => 1,
        (b'[', true) => 2,
        _ => 0,
    }
}

fn closing(opening: u8) -> u8 {
    match opening {
        b'(' => b')',
        b'{' => b'}',
        _ => b']',
    }
}

/// Whether a word stands alone at a place.
fn is_word(text: &str, at: usize, word: &str) -> bool {
    let (before, behind) = text.as_bytes().split_at(at);
    let part_of = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    behind.starts_with(word.as_bytes())
        && !part_of(before.last())
        && !part_of(behind.get(word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nests_deeper_than_people_write_is_told() {
        for opening in [
            "(", "( ", "$(", "$( (", "$((", "${a[", "a[${b[", "${a:-", "\"$(", "$(x \"",
            "$(x \")\"", "$(x \\)", "${a#", "$(case x in (a) ", "case x in a) ", "$( x(", "'$('",
            "$[",
        ] {
            assert!(is_endless(&opening.repeat(17)), "{opening}");
        }
        assert!(is_endless(&"${a[".repeat(4)));
    }

    #[test]
    fn what_people_write_is_read() {
        for line in [
            "cd \"$(dirname \"$(readlink -f \"${BASH_SOURCE[0]}\")\")\" && x=${a[${#a[@]}-1]}",
            "git commit -m \"$(cat <<'EOF'\nfix(cart): don't (ever) crash (see #1 (and #2))\nEOF\n)\"",
            "echo $((1 + (2 * (3 + $((4)))))) ${a:-${b:-${c:-$(d \"${e}\")}}}",
            "case a in a) x;; esac; case b in b) y;; esac",
            "f() { ( cd a; ( b ) ); }; f \"$(it's)\" \"$(it's)\"",
        ] {
            assert!(!is_endless(line), "{line}");
        }
        assert!(!is_endless(&"f(a[1], {b: [2]}); $(c) ${d[1]}\n".repeat(500)), "side by side");
    }
}
