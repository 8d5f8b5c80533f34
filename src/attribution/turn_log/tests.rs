//! Which call a log says left what, line by line.

use chrono::DateTime;

use super::*;

fn id(bits: u64) -> CheckpointId {
    CheckpointId::from_bits(bits)
}

fn checkpoint(bits: u64, at: i64) -> Checkpoint {
    Checkpoint::sample(bits, bits, DateTime::from_timestamp_nanos(at))
}

fn line(at: i64, by: &str, what: LogEvent) -> LogLine {
    LogLine { at, by: by.to_owned(), what }
}

fn began(at: i64, by: &str, call: &str, of: u64) -> LogLine {
    let (of, call) = (id(of).to_string(), call.to_owned());
    let (makes, absent) = (vec!["d".to_owned()], Vec::new());
    line(
        at,
        by,
        LogEvent::Began {
            of,
            call,
            paths: None,
            names: Vec::new(),
            makes,
            absent,
            tells: true,
            compared: false,
            names_all: false,
            tool: String::new(),
            summary: String::new(),
        },
    )
}

fn left(at: i64, by: &str, path: &str) -> LogLine {
    line(at, by, LogEvent::Left { path: path.to_owned(), state: Some(PathState::unread(0o644)) })
}

fn done(at: i64, by: &str, call: &str) -> LogLine {
    line(at, by, LogEvent::Done { call: call.to_owned() })
}

fn doers(log: &TurnLog, path: &str) -> Vec<Doer> {
    let path = RelPath::from_bytes(path.as_bytes()).unwrap();
    log.sights.get(&path).into_iter().flatten().map(|sight| sight.by).collect()
}

#[test]
fn what_a_call_left_is_its_turns_whatever_began_meanwhile() {
    let lines = [
        began(10, "me", "1", 1),
        began(20, "me", "2", 2),
        began(21, "you", "1", 3),
        left(30, "me", "d/a"),
        done(30, "me", "1"),
        left(31, "you", "d/a"),
        done(31, "you", "1"),
        left(40, "me", "d/a"),
        done(40, "me", "2"),
        left(50, "", "d/a"),
    ];
    let of = |turn: &[u64]| {
        let checkpoints = turn.iter().copied().map(id).collect();
        let turn = TurnCalls { checkpoints, uses: Vec::new() };
        TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root)
    };
    let log = of(&[1]);
    let call = |at| Doer::Call(Some(at));
    assert_eq!(doers(&log, "d/a"), [Doer::Turn, call(2), call(1), Doer::Other]);
    assert_eq!(doers(&log, "d")[..1], [Doer::Turn], "it had to be made on the way");
    let of_callers: Vec<CheckpointId> = log.logged_calls.iter().map(|caller| caller.of).collect();
    assert_eq!(of_callers, [1, 2, 3].map(id));
    assert_eq!((log.calls().count(), log.unseen().count()), (1, 0));
    let look = log.position_of(&checkpoint(3, 25));
    assert_eq!((look.order, look.is_of_session), (2, false));
    assert!(log.calls().all(|call| call.is_during(&look)));
    assert_eq!(log.position_of(&checkpoint(9, 35)).order, 7, "no call says when: by its time");
    assert_eq!(of(&[1, 2]).calls().count(), 2);
}

#[test]
fn what_two_commands_at_once_left_may_be_of_either() {
    let lines = [
        began(10, "me", "1", 1),
        began(20, "you", "1", 2),
        left(30, "me", "a"),
        done(30, "me", "1"),
        left(40, "you", "a"),
        done(40, "you", "1"),
    ];
    let turn = TurnCalls { checkpoints: BTreeSet::from([id(1)]), uses: Vec::new() };
    let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root);
    let shared: Vec<bool> = log.sights.values().flatten().map(|it| it.is_shared).collect();
    assert_eq!(shared, [true, false], "the second only saw it again");
}

#[test]
fn a_call_that_never_ended_is_not_seen_and_one_whose_beginning_is_lost_is_the_last_turns() {
    let lines = [began(10, "me", "1", 1), left(30, "me", "a"), done(30, "me", "2")];
    let turn = TurnCalls { checkpoints: BTreeSet::from([id(1)]), uses: Vec::new() };
    let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &lines, PathSide::Root);
    assert_eq!(doers(&log, "a"), [Doer::Turn]);
    assert_eq!(log.unseen().count(), 1);
    let before = TurnCalls { uses: vec![(5, true), (10, false)], ..turn.clone() };
    let of_next = TurnLog::of(&checkpoint(1, 5), &before, "me", &lines, PathSide::Root);
    assert_eq!(doers(&of_next, "a"), [Doer::Call(Some(0))], "the next one used the same");
    let lost = line(20, "", LogEvent::Lost { until: 20 });
    let log = TurnLog::of(&checkpoint(1, 5), &turn, "me", &[lost], PathSide::Root);
    assert!(log.is_lost);
}

#[test]
fn a_checkpoint_may_have_read_what_a_call_left_that_began_after_it() {
    let lines = [began(10, "me", "1", 1), done(11, "me", "1"), began(20, "me", "2", 1)];
    let log = TurnLog::of_all(&checkpoint(1, 5), &lines, PathSide::Root);
    let read = |bits, at, reading_ns| {
        log.was_read(&Checkpoint { reading_ns: Some(reading_ns), ..checkpoint(bits, at) })
    };
    assert_eq!(read(2, 9, 0), 0, "before the first call");
    assert_eq!(read(2, 9, 3), 2, "while it ran, and until after its end");
    assert_eq!(read(1, 5, 30), 0, "right before the first call that it covers");
    assert_eq!(log.was_read(&checkpoint(2, 12)), 2, "if that was not noted, when it began");
}
