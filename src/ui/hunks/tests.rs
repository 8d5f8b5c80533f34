//! Tests of the output of differences.

use super::{LINES_MAX, *};

fn file(bytes: &[u8]) -> DiffSide<'_> {
    DiffSide::File { bytes, permissions: 0o644 }
}

fn show(old: DiffSide<'_>, new: DiffSide<'_>) -> String {
    let change = FileDiff { path: b"src/a\n\x1b.ts", old, new };
    change.show(DiffOptions { style: Style::PLAIN, deadline: None })
}

fn lines(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
    let change = FileDiff { path: b"x", old: file(old), new: file(new) };
    change.lines(None).map(|lines| (lines.added, lines.removed))
}

#[test]
fn a_change_is_shown_with_what_is_around_it() {
    let old = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
    let new = b"1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13";
    insta::assert_snapshot!(show(file(old), file(new)), @r"
    --- a/src/a\n\u{1b}.ts
    +++ b/src/a\n\u{1b}.ts
    @@ -2,7 +2,7 @@
     2
     3
     4
    -5
    +five
     6
     7
     8
    @@ -10,3 +10,4 @@
     10
     11
     12
    +13
    \ no newline at the end
    ");
}

#[test]
fn a_line_cannot_draw_on_the_terminal() {
    insta::assert_snapshot!(show(file(b"\tok\n"), file(b"\x1b[2J\xff\tok\n")), @r"
    --- a/src/a\n\u{1b}.ts
    +++ b/src/a\n\u{1b}.ts
    @@ -1 +1 @@
    -	ok
    +\u{1b}[2J\xff	ok
    ");
}

#[test]
fn files_come_and_go() {
    insta::assert_snapshot!(show(DiffSide::Missing, file(b"new\n")), @r"
    --- /dev/null
    +++ b/src/a\n\u{1b}.ts
    @@ -0,0 +1 @@
    +new
    ");
    insta::assert_snapshot!(show(file(b"old\n"), DiffSide::Missing), @r"
    --- a/src/a\n\u{1b}.ts
    +++ /dev/null
    @@ -1 +0,0 @@
    -old
    ");
}

#[test]
fn what_has_no_lines_is_said_in_words() {
    let name = "src/a\\n\\u{1b}.ts: ";
    let (blob, bigger) = (vec![0; 12_000], vec![0; 14_000]);
    let run = |bytes| DiffSide::File { bytes, permissions: 0o755 };
    for (old, new, said) in [
        (file(&blob), file(&bigger), "binary files differ (12 KB → 14 KB)"),
        (DiffSide::Missing, file(&blob), "binary file (12 KB) added"),
        (file(&blob), DiffSide::Missing, "binary file (12 KB) removed"),
        (file(b"x"), file(&blob), "binary files differ (1 byte → 12 KB)"),
        (DiffSide::Link(b"a"), DiffSide::Link(b"b\n"), "symlink to a → symlink to b\\n"),
        (file(b"text"), DiffSide::Link(b"b"), "file (4 bytes) → symlink to b"),
        (DiffSide::Other(Kind::Fifo), DiffSide::Missing, "named pipe removed"),
        (DiffSide::Other(Kind::Directory), file(b"x"), "directory → file (1 byte)"),
        (DiffSide::Missing, file(b""), "empty file added"),
        (file(b""), DiffSide::Missing, "empty file removed"),
        (file(b"same"), run(b"same"), "mode 644 → 755"),
        (file(&blob), run(&blob), "mode 644 → 755"),
    ] {
        assert_eq!(show(old, new), format!("{name}{said}\n"));
    }
    assert_eq!(show(file(b"same"), file(b"same")), "");
    assert_eq!(show(file(&blob), file(&blob)), "");
    assert_eq!(show(DiffSide::Missing, DiffSide::Missing), "");
    let both = show(file(b"a"), run(b"b"));
    assert!(both.starts_with("src/a\\n\\u{1b}.ts: mode 644 → 755\n--- a/"), "{both}");
}

#[test]
fn line_ends_are_shown_where_they_matter() {
    assert!(!show(file(b"a\r\nb\r\n"), file(b"a\r\nc\r\n")).contains("\\r"));
    assert!(show(file(b"a\r\n"), file(b"a\n")).contains("-a\\r\n+a\n"));
}

#[test]
fn lines_are_counted() {
    assert_eq!(lines(b"a\nb\n", b"a\nc\nd\n"), Some((2, 1)));
    assert_eq!(lines(b"", b"a"), Some((1, 0)));
    assert_eq!(lines(b"a", b"a\n"), Some((1, 1)));
    assert_eq!(lines(b"\0", b"a"), None);
    assert_eq!(LineCounts { added: 1_204, removed: 0 }.to_string(), "+1,204 −0");
}

#[test]
fn large_texts_are_counted_and_not_compared() {
    let old: Vec<u8> = b"line\n".repeat(LINES_MAX + 1);
    let new = [&old[..], b"one\n", b"two\n"].concat();
    assert_eq!(lines(&old, &new), Some((2, 0)));
    assert!(show(file(&old), file(&new)).ends_with("too large to compare, about +2 −0 lines\n"));
}

#[test]
fn a_line_too_long_to_read_is_cut() {
    let long = b"x".repeat(LINE_MAX + 1_500);
    let shown = show(DiffSide::Missing, file(&long));
    assert!(shown.contains("… (1,500 bytes more)"), "{shown}");
}

#[test]
fn the_deadline_gives_a_coarser_difference_and_never_a_wrong_one() {
    let old: Vec<u8> =
        (0..50_000).flat_map(|n| format!("{}\n", n * 7 % 911).into_bytes()).collect();
    let new: Vec<u8> =
        (0..50_000).flat_map(|n| format!("{}\n", n * 5 % 877).into_bytes()).collect();
    let change = FileDiff { path: b"x", old: file(&old), new: file(&new) };
    let counted = change.lines(Some(Instant::now())).unwrap();
    assert_eq!(counted.added, counted.removed);
    assert!(counted.added <= 50_000);
}

#[test]
fn red_and_green_are_for_lines_only() {
    let change = FileDiff { path: b"x", old: file(b"a\nb\n"), new: file(b"a\nc\n") };
    let shown = change.show(DiffOptions { style: Style::COLOUR, deadline: None });
    insta::assert_snapshot!(shown.escape_debug().to_string().replace("\\n", "\n"), @r"
    \u{1b}[1m--- a/x\u{1b}[0m
    \u{1b}[1m+++ b/x\u{1b}[0m
    \u{1b}[2m@@ -1,2 +1,2 @@\u{1b}[0m
     a
    \u{1b}[31m-b\u{1b}[0m
    \u{1b}[32m+c\u{1b}[0m
    ");
}
