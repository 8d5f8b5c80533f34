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
    line(at, by, LogEvent::Done { call: call.to_owned(), moved_head: None })
}

fn doers(log: &TurnLog, path: &str) -> Vec<Doer> {
    let path = RelPath::from_bytes(path.as_bytes()).unwrap();
    log.sights.get(&path).into_iter().flatten().map(|sight| sight.by).collect()
}

#[test]
fn what_a_call_left_is_its_own_whatever_began_meanwhile() {
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
    let log = TurnLog::since(&checkpoint(1, 5), &lines, PathSide::Root);
    let call = |at| Doer::Call(Some(at));
    assert_eq!(doers(&log, "d/a"), [call(0), call(2), call(1), Doer::Other]);
    assert_eq!(doers(&log, "d")[..1], [call(0)], "it had to be made on the way");
    let of_callers: Vec<CheckpointId> = log.logged_calls.iter().map(|caller| caller.of).collect();
    assert_eq!(of_callers, [1, 2, 3].map(id));
    assert!(log.logged_calls.iter().all(|call| call.done.is_some()));
    assert_eq!(log.position_of(&checkpoint(3, 25)), 2);
    assert_eq!(log.position_of(&checkpoint(9, 35)), 7, "no call says when: by its time");
}

#[test]
fn the_call_whose_beginning_is_lost_is_the_last_one() {
    let lines = [began(10, "me", "1", 1), left(30, "me", "a"), done(30, "me", "2")];
    let log = TurnLog::since(&checkpoint(1, 5), &lines, PathSide::Root);
    assert_eq!(doers(&log, "a"), [Doer::Call(Some(0))]);
    assert_eq!(log.logged_calls[0].done, None, "it was never seen to end");
    assert!(log.reports_ends("me") && !log.reports_ends("you"));
    let lost = line(20, "", LogEvent::Lost { until: 20 });
    let log = TurnLog::since(&checkpoint(1, 5), &[lost], PathSide::Root);
    assert!(log.is_lost);
}

#[test]
fn a_checkpoint_may_have_read_what_a_call_left_that_began_after_it() {
    let lines = [began(10, "me", "1", 1), done(11, "me", "1"), began(20, "me", "2", 1)];
    let log = TurnLog::since(&checkpoint(1, 5), &lines, PathSide::Root);
    let read = |bits, at, reading_ns| {
        log.was_read(&Checkpoint { reading_ns: Some(reading_ns), ..checkpoint(bits, at) })
    };
    assert_eq!(read(2, 9, 0), 0, "before the first call");
    assert_eq!(read(2, 9, 3), 2, "while it ran, and until after its end");
    assert_eq!(read(1, 5, 30), 0, "right before the first call that it covers");
    assert_eq!(log.was_read(&checkpoint(2, 12)), 2, "if that was not noted, when it began");
}
