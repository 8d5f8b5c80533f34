//! Who made what, case by case.

use chrono::DateTime;

use super::*;

struct Is(&'static str);

impl CurrentState for Is {
    fn is(&self, state: &PathState) -> bool {
        state.sha.as_deref() == Some(self.0)
    }

    fn is_directory(&self) -> bool {
        false
    }

    fn is_likely(&self) -> bool {
        self.0 == "likely"
    }

    fn was_at(&self, look: CheckpointId) -> bool {
        self.0 == "before 2" && look == CheckpointId::from_bits(2)
    }
}

fn checkpoint() -> Checkpoint {
    Checkpoint::sample(1, 1, DateTime::from_timestamp_nanos(100))
}

fn line(by: &str, what: LogEvent) -> LogLine {
    LogLine { at: 200, by: by.to_owned(), what }
}

fn began(by: &str, call: &str, of: u64, paths: Option<&[&str]>) -> LogLine {
    let paths = paths.map(|paths| paths.iter().map(|&path| path.to_owned()).collect());
    let of = CheckpointId::from_bits(of).to_string();
    let (call, makes) = (call.to_owned(), Vec::new());
    let (names, absent) = (Vec::new(), Vec::new());
    line(
        by,
        LogEvent::Began {
            of,
            call,
            paths,
            names,
            makes,
            absent,
            tells: false,
            compared: false,
            names_all: false,
            tool: String::new(),
            summary: String::new(),
        },
    )
}

fn left(by: &str, path: &str, sha: &str) -> LogLine {
    let sha = Some(sha.to_owned());
    let state = Some(PathState { kind: 0o100_000, permissions: 0o644, id: None, sha });
    line(by, LogEvent::Left { path: path.to_owned(), state })
}

fn done(by: &str, call: &str) -> LogLine {
    line(by, LogEvent::Done { call: call.to_owned(), moved_head: None })
}

#[test]
fn whose_it_is() {
    use Author::{Agent, Other, Session, Unclear, Unknown};
    let edit = |by| vec![began(by, "1", 1, Some(&["a"])), left(by, "a", "x"), done(by, "1")];
    let mut two = edit("me");
    two.extend([began("you", "2", 1, None), left("you", "b", "y"), done("you", "2")]);
    two.extend([began("me", "3", 1, None), left("me", "b", "y"), done("me", "3")]);
    let shell = vec![began("me", "1", 1, None)];
    let later = vec![began("me", "1", 1, None), began("me", "2", 2, None), done("me", "2")];
    let covered = vec![began("me", "1", 2, None), began("me", "2", 2, Some(&["a"]))];
    let ended =
        |call: &str| line("me", LogEvent::Ended { call: call.to_owned(), background: None });
    // The agent told of an end before; a call that it was cut off in was not told of.
    let cut = [&[ended("0")], &later[..], &[ended("2")]].concat();
    let cut_once = [&[ended("0")], &later[1..2]].concat();
    let cut_twice = [&[ended("0"), began("me", "1", 1, None)], &later[1..2]].concat();
    let unlooked = vec![began("me", "1", 1, None), ended("1")];
    let lost = |until| line("", LogEvent::Lost { until });
    let (damaged, damaged_before) =
        ([&[lost(150)], &edit("me")[..]].concat(), [&[lost(50)], &edit("me")[..]].concat());
    // A second life with the same bytes is not the agent's.
    let gone = line("me", LogEvent::Left { path: "a".to_owned(), state: None });
    let again = [edit("me"), vec![gone]].concat();
    let there = [vec![ended("0"), left("", "a", "x")], edit("me")].concat();
    let large = PathState { kind: 0o100_000, permissions: 0o644, id: None, sha: None };
    let large = line("me", LogEvent::Left { path: "a".to_owned(), state: Some(large) });
    let large = [began("me", "1", 1, None), large, done("me", "1")];
    let cases: [(&str, &[LogLine], &str, &'static str, Author); 21] = [
        ("too large to be read after the call", &large, "a", "x", Unknown),
        ("nothing is known", &[], "a", "x", Unknown),
        ("the agent's, untouched", &edit("me"), "a", "x", Agent),
        ("the agent's, edited since", &edit("me"), "a", "z", Other),
        ("the agent never touched it", &edit("me"), "b", "z", Other),
        ("another session's", &two, "b", "y", Session(SessionTag::default())),
        ("a call that was not seen to end", &shell, "b", "z", Unknown),
        ("an edit that was not seen to end", &edit("me")[..1], "a", "z", Unknown),
        ("another path of such an edit", &edit("me")[..1], "b", "z", Other),
        ("seen at the next call", &later, "a", "likely", Agent),
        ("the next call took no checkpoint", &covered, "b", "z", Unknown),
        ("changed after the next call", &later, "a", "z", Other),
        ("a call that was cut off", &cut, "b", "z", Unclear),
        ("seen at the next call after one that was cut off", &cut, "a", "likely", Unclear),
        ("a call that ended and was not looked at", &unlooked, "a", "z", Unknown),
        ("there before the call that was cut off", &cut_once, "b", "before 2", Other),
        ("perhaps by an earlier one that was cut off", &cut_twice, "b", "before 2", Unclear),
        ("where a line is lost", &damaged, "a", "x", Unclear),
        ("where a line was lost before", &damaged_before, "a", "x", Agent),
        ("made again by another", &again, "a", "x", Other),
        ("there before the agent wrote the same", &there, "a", "x", Other),
    ];
    for (case, lines, path, sha, expected) in cases {
        let path = RelPath::from_bytes(path.as_bytes()).unwrap();
        let known = AgentHistory::since(&checkpoint(), Some("me"), lines, PathSide::Root);
        assert_eq!(known.author(&path, &Is(sha)), expected, "{case}");
    }
}

#[test]
fn what_a_restore_put_back_has_the_author_it_had_then() {
    let back = |then| {
        let state = left("", "a", "x").what;
        let LogEvent::Left { path, state } = state else { unreachable!() };
        LogLine { at: 300, ..line("", LogEvent::Back { path, state, then, held: None }) }
    };
    let mut edit = vec![began("me", "1", 1, Some(&["a"])), left("me", "a", "x")];
    edit.push(done("me", "1"));
    let author_of = |lines: &[LogLine]| {
        let path = RelPath::from_bytes(b"a").unwrap();
        AgentHistory::since(&checkpoint(), Some("me"), lines, PathSide::Root)
            .author(&path, &Is("x"))
    };
    let of = |then| [edit.clone(), vec![back(then)]].concat();
    assert_eq!(author_of(&of(250)), Author::Agent);
    assert_eq!(author_of(&of(50)), Author::Restore, "older than the checkpoint");
    assert_eq!(author_of(&of(10_000)), Author::Agent, "by a clock that was ahead");
    edit[1].at = 280;
    assert_eq!(author_of(&[edit.clone(), vec![back(250)]].concat()), Author::Other);
}

#[test]
fn what_came_before_the_checkpoint_says_nothing() {
    let mut lines = vec![began("me", "1", 7, None)];
    lines[0].at = 99;
    let known = AgentHistory::since(&checkpoint(), Some("me"), &lines, PathSide::Root);
    let path = RelPath::from_bytes(b"a").unwrap();
    assert_eq!(known.author(&path, &Is("x")), Author::Unknown);
}

fn at(at: i64, line: LogLine) -> LogLine {
    LogLine { at, ..line }
}

/// Two commands at once: a look after each shows what either of them did.
#[test]
fn what_two_sessions_may_have_made_at_once_is_unclear() {
    let ended = |by: &str, call: &str| {
        line(by, LogEvent::Ended { call: call.to_owned(), background: None })
    };
    let done =
        |by: &str, call: &str| line(by, LogEvent::Done { call: call.to_owned(), moved_head: None });
    // The other call began when: while the agent's ran, or after what it left was seen.
    for (began_at, paths, expected) in [
        (220, None, Author::Unclear),
        (220, Some(&["x"][..]), Author::Session(SessionTag::default())),
        (220, Some(&["elsewhere"][..]), Author::Unclear),
        (320, None, Author::Agent),
    ] {
        let lines = [
            at(210, began("agent", "1", 1, None)),
            at(began_at, began("other", "2", 1, paths)),
            at(300, ended("agent", "1")),
            at(300, left("agent", "x", "made")),
            at(300, done("agent", "1")),
            at(400, ended("other", "2")),
            at(400, left("other", "x", "made")),
            at(400, done("other", "2")),
        ];
        let known = AgentHistory::since(&checkpoint(), Some("agent"), &lines, PathSide::Root);
        let path = RelPath::from_bytes(b"x").unwrap();
        assert_eq!(known.author(&path, &Is("made")), expected, "{began_at} {paths:?}");
    }
}

/// The other session changed the file while the agent's command ran, which then changed it again.
#[test]
fn what_is_mixed_of_two_sessions_is_unclear() {
    for (seen_at, expected) in [(250, Author::Unclear), (205, Author::Agent)] {
        let lines = [
            at(seen_at.min(202), began("other", "2", 1, None)),
            at(seen_at, line("other", LogEvent::Ended { call: "2".to_owned(), background: None })),
            at(seen_at, left("other", "x", "theirs")),
            at(seen_at, done("other", "2")),
            at(210, began("agent", "1", 1, None)),
            at(300, line("agent", LogEvent::Ended { call: "1".to_owned(), background: None })),
            at(300, left("agent", "x", "both")),
            at(300, done("agent", "1")),
        ];
        let known = AgentHistory::since(&checkpoint(), Some("agent"), &lines, PathSide::Root);
        let path = RelPath::from_bytes(b"x").unwrap();
        assert_eq!(known.author(&path, &Is("both")), expected, "{seen_at}");
    }
}

/// A look after the agent's command shows that a file is gone, which a restore had removed meanwhile.
#[test]
fn what_a_restore_removed_is_not_removed_by_a_call_that_ran() {
    let back = LogEvent::Back { path: "x".to_owned(), state: None, then: 50, held: None };
    let gone = LogEvent::Left { path: "x".to_owned(), state: None };
    let lines = [
        began("agent", "1", 1, None),
        left("agent", "x", "made"),
        at(250, line("", back)),
        at(300, line("agent", LogEvent::Ended { call: "1".to_owned(), background: None })),
        at(300, line("agent", gone)),
        at(300, done("agent", "1")),
    ];
    let path = RelPath::from_bytes(b"x").unwrap();
    let known = |lines| AgentHistory::since(&checkpoint(), Some("agent"), lines, PathSide::Root);
    assert!(!known(&lines).agent_removed(&path) && known(&lines).was_removed_by_restore(&path));
    let own = [&lines[..2], &lines[3..]].concat();
    assert!(known(&own).agent_removed(&path) && !known(&own).was_removed_by_restore(&path));
}

/// An undo of another session's turn merged a file, and left what the agent had left there.
#[test]
fn what_a_merge_left_just_as_it_had_been_has_the_author_it_had() {
    let merged = |sha: &str| LogEvent::Merged {
        path: "x".to_owned(),
        held: "a000000000000001".to_owned(),
        sha: sha.to_owned(),
    };
    let lines = |sha| {
        [
            began("me", "1", 1, Some(&["x"])),
            left("me", "x", "mine"),
            done("me", "1"),
            at(250, left("you", "x", "yours")),
            at(300, line("", merged(sha))),
        ]
    };
    let path = RelPath::from_bytes(b"x").unwrap();
    let author = |sha| {
        let known = AgentHistory::since(&checkpoint(), Some("me"), &lines(sha), PathSide::Root);
        known.author(&path, &Is(sha))
    };
    assert_eq!(author("mine"), Author::Agent);
    assert_eq!(author("yours"), Author::Session(tag("you")));
    assert_eq!(author("of both"), Author::Other);
}
