//! Hunks as they are shown, split, edited, and taken in any combination.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn numbered(changed: &[(usize, &str)]) -> String {
    (1..=30).fold(String::new(), |mut text, n| {
        let line = changed.iter().find(|(at, _)| *at == n);
        match line {
            Some((_, new)) => text.push_str(new),
            None => writeln!(text, "line {n}").unwrap(),
        }
        text
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Takes exactly these hunks.
fn with(patch: &Patch, taken: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut patch = patch.clone();
    for hunk in 0..patch.count() {
        patch.take(hunk, taken(hunk));
    }
    patch.result()
}

#[test]
fn changes_far_from_each_other_are_hunks_of_their_own() {
    let old = numbered(&[]);
    let new = numbered(&[(3, "three\n"), (8, "eight\n"), (20, ""), (28, "line 28\nmore\n")]);
    let mut patch = Patch::of(old.as_bytes(), new.as_bytes()).unwrap();
    assert_eq!(patch.count(), 3);
    insta::assert_snapshot!(patch.show(0, Style::PLAIN), @r"
    @@ -1,11 +1,11 @@
     line 1
     line 2
    -line 3
    +three
     line 4
     line 5
     line 6
     line 7
    -line 8
    +eight
     line 9
     line 10
     line 11
    ");
    insta::assert_snapshot!(patch.show(2, Style::PLAIN), @r"
    @@ -26,5 +25,6 @@
     line 26
     line 27
     line 28
    +more
     line 29
     line 30
    ");
    assert_eq!((patch.parts(0), patch.parts(1)), (2, 1));
    patch.split(0);
    assert_eq!(patch.count(), 4);
    insta::assert_snapshot!(patch.show(1, Style::PLAIN), @r"
    @@ -5,7 +5,7 @@
     line 5
     line 6
     line 7
    -line 8
    +eight
     line 9
     line 10
     line 11
    ");
    assert_eq!(text(&with(&patch, |hunk| hunk == 1)), numbered(&[(8, "eight\n")]));
    assert_eq!(text(&patch.result()), old, "what is not decided stays");
}

#[test]
fn there_is_nothing_to_choose_in_what_is_no_text_or_the_same() {
    assert_eq!(Patch::of(b"a\n", b"a\n"), None);
    assert_eq!(Patch::of(b"a\0", b"b"), None);
    assert_eq!(Patch::of(b"a", &vec![b'x'; 5 << 20]), None);
    assert_eq!(Patch::of(b"", b"a").unwrap().count(), 1);
}

#[test]
fn a_line_end_is_a_change_like_any_other() {
    let patch = Patch::of(b"a\nb", b"a\nb\n").unwrap();
    insta::assert_snapshot!(patch.show(0, Style::PLAIN), @r"
    @@ -1,2 +1,2 @@
     a
    -b
    \ no newline at the end
    +b
    ");
    assert_eq!(with(&patch, |_| true), b"a\nb\n");
    let crlf = Patch::of(b"a\r\nb\r\n", b"a\r\nc\r\n").unwrap();
    assert!(!crlf.show(0, Style::PLAIN).contains("\\r"), "the file's own style");
    let mixed = Patch::of(b"a\r\n", b"a\n").unwrap();
    assert!(mixed.show(0, Style::PLAIN).contains("-a\\r"));
}

#[test]
fn what_is_shown_cannot_draw_and_is_no_longer_than_can_be_read() {
    let long = [&b"\x1b[2J\xff"[..], &[b'x'; 5000]].concat();
    let patch = Patch::of(b"", &long).unwrap();
    let shown = patch.show(0, Style::PLAIN);
    assert!(shown.contains("\\u{1b}[2J\\xff") && shown.len() < 2200, "{shown}");
    assert_eq!(with(&patch, |_| true), long, "the bytes stay what they are");
    assert!(patch.text(0).windows(long.len()).any(|part| part == long), "also in an editor");
}

#[test]
fn a_hunk_can_be_edited() {
    let (old, new) = (numbered(&[]), numbered(&[(3, "three\nand more\n"), (20, "twenty\n")]));
    let patch = Patch::of(old.as_bytes(), new.as_bytes()).unwrap();
    let edit = |from: &str, to: &str| {
        let mut patch = patch.clone();
        let text = text(&patch.text(0));
        assert!(text.contains(from), "{text}");
        patch.edit(0, text.replace(from, to).as_bytes()).map(|()| patch.result())
    };
    let is = |edited: Result<Vec<u8>, Unfit>, lines: &[(usize, &str)]| {
        assert_eq!(text(&edited.unwrap()), numbered(lines));
    };
    is(edit("+and more\n", ""), &[(3, "three\n")]);
    is(edit("-line 3\n", " line 3\n"), &[(3, "line 3\nthree\nand more\n")]);
    is(edit("+three\n", "# a word\n+3\n"), &[(3, "3\nand more\n")]);
    is(edit(" line 5\n", "-line 5\n+five\n"), &[(3, "three\nand more\n"), (5, "five\n")]);
    is(edit("+three\n+and more\n", ""), &[(3, "")]);
    assert_eq!(edit(" line 5\n", ""), Err(Unfit::Context));
    assert_eq!(edit(" line 5\n", " line five\n"), Err(Unfit::Context));
    assert_eq!(edit(" line 6\n", " line 6\n line 7\n"), Err(Unfit::Context));
    assert_eq!(edit("+three\n", "three\n"), Err(Unfit::Sign));
    assert_eq!(edit("+three\n", "+three\n\\ no end\n"), Err(Unfit::Unended));
    let mut emptied = patch.clone();
    assert_eq!(emptied.edit(0, b"# nothing\n"), Err(Unfit::Empty));
    assert_eq!(emptied, patch, "what is not taken changes nothing");
}

#[test]
fn an_edited_hunk_is_shown_as_it_was_edited_and_split_no_more() {
    let (old, new) = (numbered(&[]), numbered(&[(3, "three\n"), (6, "six\n")]));
    let mut patch = Patch::of(old.as_bytes(), new.as_bytes()).unwrap();
    let edited = text(&patch.text(0)).replace("+six\n", "+half a dozen\n");
    patch.edit(0, edited.as_bytes()).unwrap();
    assert!(patch.show(0, Style::PLAIN).contains("+half a dozen"));
    assert_eq!((patch.parts(0), patch.is_taken(0)), (1, Some(true)));
    patch.take(0, false);
    assert_eq!(text(&patch.result()), old);
}

#[test]
fn two_edited_hunks_do_not_change_the_same_lines() {
    let (old, new) = (numbered(&[]), numbered(&[(3, "three\n"), (5, "five\n")]));
    let mut patch = Patch::of(old.as_bytes(), new.as_bytes()).unwrap();
    patch.split(0);
    let edited = |patch: &Patch, hunk: usize, to: &str| {
        text(&patch.text(hunk)).replace(" line 4\n", to).into_bytes()
    };
    patch.edit(0, &edited(&patch, 0, " line 4\n+a\n")).unwrap();
    let second = edited(&patch, 1, "+b\n line 4\n");
    patch.edit(1, &second).unwrap();
    let both = numbered(&[(3, "three\n"), (4, "b\nline 4\na\n"), (5, "five\n")]);
    assert_eq!(text(&patch.result()), both);
    let first = edited(&patch, 0, "-line 4\n");
    assert_eq!(patch.edit(0, &first), Err(Unfit::Overlap));
    assert_eq!(text(&patch.result()), both, "what was edited before stays");
}

#[test]
fn a_file_without_a_last_line_feed_can_be_edited() {
    let mut patch = Patch::of(b"a\nb", b"a\nc").unwrap();
    let whole = text(&patch.text(0));
    assert!(whole.contains("-b\n\\ No newline at end of file\n"), "{whole}");
    patch.edit(0, whole.as_bytes()).unwrap();
    assert_eq!(patch.result(), b"a\nc");
    let kept = whole.replace("-b\n", " b\n");
    assert_eq!(patch.edit(0, kept.as_bytes()), Err(Unfit::Unended), "`b` and `c` are two lines");
    let ended = whole.rsplit_once("\\ No").unwrap().0;
    patch.edit(0, ended.as_bytes()).unwrap();
    assert_eq!(patch.result(), b"a\nc\n");
    patch.edit(0, whole.rsplit_once("+c").unwrap().0.as_bytes()).unwrap();
    assert_eq!(patch.result(), b"a\n");
}

/// Lines of few kinds, so that many are equal; some with odd bytes, the last perhaps unended.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "c", "", "d\r"]).prop_map(|it| it.as_bytes().to_vec()),
        1 => prop::collection::vec(1..=255_u8, 0..6)
            .prop_map(|it| it.into_iter().filter(|byte| *byte != b'\n').collect()),
    ];
    (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, is_ended)| {
        let mut text = lines.join(&b'\n');
        text.extend(is_ended.then_some(b'\n'));
        text
    })
}

/// Another text that has much in common with one.
fn changed(old: &[u8], cuts: &[(usize, usize, Vec<u8>)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = split(old).into_iter().map(<[u8]>::to_vec).collect();
    for (at, gone, new) in cuts {
        let at = at % (lines.len() + 1);
        let end = (at + gone).min(lines.len());
        lines.splice(at..end, split(new).into_iter().map(<[u8]>::to_vec));
    }
    lines.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_subset_of_hunks_applies_however_they_are_split(
        old in file(),
        cuts in prop::collection::vec((0..40_usize, 0..3_usize, file()), 0..4),
        splits in prop::collection::vec(any::<bool>(), 40),
        taken in prop::collection::vec(any::<bool>(), 200),
    ) {
        let new = changed(&old, &cuts);
        let Some(mut patch) = Patch::of(&old, &new) else { return Ok(()) };
        let whole = patch.clone();
        for hunk in (0..patch.count()).rev() {
            if splits[hunk % splits.len()] {
                patch.split(hunk);
            }
        }
        prop_assert!(patch.count() >= whole.count());
        prop_assert_eq!(&with(&patch, |_| true), &new);
        prop_assert_eq!(&with(&patch, |_| false), &old);
        // What is taken and what is left are the whole: the rest of a subset leads to the end.
        let is_taken = |hunk: usize| taken[hunk % taken.len()];
        let half = with(&patch, is_taken);
        let signed = |count: usize| i64::try_from(count).unwrap();
        let sum = |wanted: &dyn Fn(usize) -> bool| {
            let wanted = patch.hunks.iter().enumerate().filter(|(hunk, _)| wanted(*hunk));
            let replaced = wanted.flat_map(|(_, hunk)| hunk.present());
            replaced.map(|it| signed(it.new.len()) - signed(it.old.len())).sum::<i64>()
        };
        let count = |text: &[u8]| signed(split(text).len());
        prop_assert_eq!(count(&half), count(&old) + sum(&is_taken));
        // Each edited as it is comes to the same.
        let mut edited = patch.clone();
        for hunk in 0..edited.count() {
            let text = edited.text(hunk);
            prop_assert_eq!(edited.edit(hunk, &text), Ok(()));
            edited.take(hunk, is_taken(hunk));
        }
        prop_assert_eq!(edited.result(), half);
    }
}
