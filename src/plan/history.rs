//! Undo and redo as a line through the checkpoints of a root.
//!
//! Every restore leaves a checkpoint of what was there before it, marked with the verb that asked
//! for it. Those marks are the line: an undo steps over what was undone already and takes back a
//! redo like any restore, a redo takes back the newest undo that was not redone, and anything else
//! that happens ends the line forward. An undo of a part leaves the rest to be undone.

use std::collections::HashSet;

use crate::model::{Agent, By, Checkpoint, CheckpointId, Reason, SessionId};

/// The verb that a redo is marked with, in [`crate::model::Cause::tool`].
const REDO: &str = "redo";

/// What an undo took back, as the checkpoint before it is marked, in [`crate::model::Cause::tool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoMark {
    /// All that the session did since, and not one turn or restore.
    pub of_session: bool,
    /// It left what others had changed meanwhile: with `--force` it can be done again.
    pub has_conflicts: bool,
}

impl UndoMark {
    /// The mark of an undo of only some of what could have been taken back.
    pub const IN_PART: &str = "undo (in part)";

    /// The mark itself.
    pub fn text(self) -> &'static str {
        match (self.of_session, self.has_conflicts) {
            (false, false) => "undo",
            (false, true) => "undo (conflicts kept)",
            (true, false) => "undo (session)",
            (true, true) => "undo (session, conflicts kept)",
        }
    }

    /// The mark of a checkpoint; `None` if what it was taken before took back no whole turn.
    fn of(checkpoint: &Checkpoint) -> Option<Self> {
        let verb = verb(checkpoint)?;
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let mut all =
            all.map(|(of_session, has_conflicts)| Self { of_session, has_conflicts }).into_iter();
        all.find(|mark| mark.text() == verb)
    }
}

/// The checkpoint that the next undo goes back to, of all checkpoints of a root, newest first, but for
/// what is `passed` over. With the beginning of the name of a session only its turns count, and what
/// was undone of them. With `force`, what an undo left for conflicts is still to be undone.
///
/// One that a person asked for is no event that could be undone, only a state one can restore.
pub fn undo_target<'a>(
    newest_first: &'a [Checkpoint],
    passed: &[CheckpointId],
    session: Option<&str>,
    force: bool,
) -> Option<&'a Checkpoint> {
    let is_whole =
        |event: &Checkpoint| UndoMark::of(event).is_some_and(|mark| !(force && mark.has_conflicts));
    let mut undone: Vec<&Checkpoint> =
        newest_first.iter().filter(|checkpoint| passed.contains(&checkpoint.id)).collect();
    let mut gone_back_to: Vec<&Checkpoint> = Vec::new();
    for event in newest_first {
        let is_undone = undone.iter().any(|it| it.id == event.id || it.is_same_turn(event));
        match event.cause.reason {
            Reason::Net | Reason::Asked => (),
            Reason::Call | Reason::BeforeRestore if is_undone => (),
            Reason::Call if session.is_none_or(|session| is_of(event, session)) => {
                return Some(first_of_turn(event, newest_first));
            }
            Reason::Call => (),
            // What an undo went to is where we are; look at what led there.
            Reason::BeforeRestore if is_whole(event) => {
                gone_back_to.extend(of(event, newest_first));
                undone.extend(taken_back(event, newest_first));
            }
            Reason::BeforeRestore if is_undo(event) => (),
            // An undo that was done again is none.
            Reason::BeforeRestore if session.is_some() => {
                undone.extend(of(event, newest_first).filter(|it| is_undo(it)));
            }
            Reason::BeforeRestore if is_passed_over(event, &gone_back_to, newest_first) => (),
            // Whatever was done between an undo and its redo is in the redo's own checkpoint only.
            Reason::BeforeRestore => return Some(event),
        }
    }
    None
}

/// The checkpoints that began what an undo took back: that before the turn or the restore, or all of a
/// session. None if it was pruned.
fn taken_back<'a>(
    undo: &'a Checkpoint,
    newest_first: &'a [Checkpoint],
) -> impl Iterator<Item = &'a Checkpoint> {
    let target = of(undo, newest_first);
    let of_session = UndoMark::of(undo).is_some_and(|mark| mark.of_session);
    let is_between = move |it: &&Checkpoint| {
        target.is_some_and(|target| {
            let is_since = (target.sequence..undo.sequence).contains(&it.sequence);
            it.id == target.id || of_session && is_since && is_same_session(it, target)
        })
    };
    newest_first.iter().filter(is_between)
}

/// Whether one of the undos that came after a restore went back to before it: to take it back now
/// would be to go forward. An undo of a turn leaves what other sessions did, and so what was restored
/// of that.
fn is_passed_over(
    restore: &Checkpoint,
    gone_back_to: &[&Checkpoint],
    newest_first: &[Checkpoint],
) -> bool {
    let session = turn_behind(restore, newest_first).and_then(session_of);
    gone_back_to.iter().any(|target| {
        let undone = turn_behind(target, newest_first).and_then(session_of);
        let is_another = undone.zip(session).is_some_and(|(undone, it)| undone != it);
        target.sequence < restore.sequence && !is_another
    })
}

/// The checkpoint before the turn that a restore, or an undo of it, was about.
fn turn_behind<'a>(
    checkpoint: &'a Checkpoint,
    newest_first: &'a [Checkpoint],
) -> Option<&'a Checkpoint> {
    let mut checkpoint = checkpoint;
    while checkpoint.cause.reason == Reason::BeforeRestore {
        // A restore is newer than what it went to.
        checkpoint = of(checkpoint, newest_first).filter(|it| it.sequence < checkpoint.sequence)?;
    }
    Some(checkpoint)
}

/// The session whose call a checkpoint was taken before.
fn session_of(checkpoint: &Checkpoint) -> Option<(Agent, &SessionId)> {
    caller(checkpoint).map(|by| (by.agent, &by.session))
}

/// The checkpoints, of all of a root, newest first, before turns and restores that an undo took back
/// and that were not done again since.
pub fn undone(newest_first: &[Checkpoint]) -> HashSet<CheckpointId> {
    let (mut undone, mut redone) = (HashSet::new(), HashSet::new());
    for event in newest_first {
        // A restore that was itself taken back took nothing back.
        if let (Some(verb), Some(of)) = (verb(event), event.cause.of)
            && verb != UndoMark::IN_PART
            && !redone.contains(&event.id)
        {
            redone.insert(of);
            if UndoMark::of(event).is_some() {
                undone.extend(taken_back(event, newest_first).map(|it| it.id));
            }
        }
    }
    undone
}

/// The first checkpoint of all that a session did. `session` is the beginning of its name; without
/// it, it is the one that was at work last.
pub fn session_target<'a>(
    newest_first: &'a [Checkpoint],
    session: Option<&str>,
) -> Option<&'a Checkpoint> {
    let fits = |checkpoint: &&Checkpoint| {
        caller(checkpoint).is_some() && session.is_none_or(|session| is_of(checkpoint, session))
    };
    let newest = newest_first.iter().find(fits)?;
    newest_first.iter().rev().find(|it| is_same_session(it, newest))
}

fn is_same_session(one: &Checkpoint, other: &Checkpoint) -> bool {
    session_of(one).is_some() && session_of(one) == session_of(other)
}

/// Whether a checkpoint was taken before a call of the session.
fn is_of(checkpoint: &Checkpoint, session: &str) -> bool {
    caller(checkpoint).is_some_and(|by| by.session.0.starts_with(session))
}

/// The author of the call that a checkpoint was taken before.
fn caller(checkpoint: &Checkpoint) -> Option<&By> {
    checkpoint.cause.by.as_ref().filter(|_| checkpoint.cause.reason == Reason::Call)
}

/// The checkpoint that the next redo goes forward to.
pub fn redo_target(newest_first: &[Checkpoint]) -> Option<&Checkpoint> {
    let mut before = u64::MAX;
    loop {
        let newest = newest_first.iter().find(|checkpoint| checkpoint.sequence < before)?;
        match verb(newest) {
            Some(_) if is_undo(newest) => return Some(newest),
            Some(REDO) => before = of(newest, newest_first)?.sequence,
            Some(_) | None => return None,
        }
    }
}

/// Whether a checkpoint was taken before an undo, of whatever it was.
fn is_undo(checkpoint: &Checkpoint) -> bool {
    UndoMark::of(checkpoint).is_some() || verb(checkpoint) == Some(UndoMark::IN_PART)
}

fn verb(checkpoint: &Checkpoint) -> Option<&str> {
    match checkpoint.cause.reason {
        Reason::BeforeRestore => Some(checkpoint.cause.tool.as_deref().unwrap_or("restore")),
        Reason::Call | Reason::Net | Reason::Asked => None,
    }
}

fn of<'a>(checkpoint: &Checkpoint, all: &'a [Checkpoint]) -> Option<&'a Checkpoint> {
    let id = checkpoint.cause.of?;
    all.iter().find(|other| other.id == id)
}

/// The first checkpoint of the turn that `checkpoint` belongs to, though other sessions were at work
/// meanwhile. What was restored since is a state that the turn went on from.
fn first_of_turn<'a>(checkpoint: &'a Checkpoint, newest_first: &'a [Checkpoint]) -> &'a Checkpoint {
    let before = newest_first.iter().filter(|other| other.sequence <= checkpoint.sequence);
    let since = before.take_while(|other| other.cause.reason != Reason::BeforeRestore);
    since.filter(|other| other.is_same_turn(checkpoint)).last().unwrap_or(checkpoint)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::model::Cause;

    const UNDO: &str = "undo";
    const CONFLICTS_KEPT: &str = "undo (conflicts kept)";

    fn id(number: u64) -> CheckpointId {
        CheckpointId::from_bits(number)
    }

    fn checkpoint(sequence: u64, cause: Cause) -> Checkpoint {
        Checkpoint { cause, ..Checkpoint::sample(sequence, sequence, DateTime::UNIX_EPOCH) }
    }

    fn turn(sequence: u64, turn: &str) -> Checkpoint {
        let by = By::sample(Agent::ClaudeCode, turn);
        let reason = Reason::Call;
        checkpoint(sequence, Cause { reason, by: Some(by), tool: None, summary: None, of: None })
    }

    fn restore(sequence: u64, verb: &str, of: u64) -> Checkpoint {
        let tool = Some(verb.to_owned());
        checkpoint(sequence, Cause { tool, ..Cause::before_restore(id(of)) })
    }

    fn next(checkpoints: &mut Vec<Checkpoint>, verb: &str) -> Option<u64> {
        step(checkpoints, verb, None)
    }

    fn next_of(checkpoints: &mut Vec<Checkpoint>, session: &str) -> Option<u64> {
        step(checkpoints, UNDO, Some(session))
    }

    fn step(checkpoints: &mut Vec<Checkpoint>, verb: &str, session: Option<&str>) -> Option<u64> {
        checkpoints.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.sequence));
        let target = match verb {
            UNDO => undo_target(checkpoints, &[], session, false)?.sequence,
            _ => redo_target(checkpoints)?.sequence,
        };
        let sequence = checkpoints[0].sequence + 1;
        checkpoints.push(restore(sequence, verb, target));
        Some(target)
    }

    #[test]
    fn undo_goes_back_turn_by_turn_and_redo_forward_again() {
        let mut line = vec![turn(1, "a"), turn(2, "b"), turn(3, "b"), turn(4, "c")];
        assert_eq!(next(&mut line, UNDO), Some(4));
        assert_eq!(next(&mut line, UNDO), Some(2), "a turn is one step");
        assert_eq!(next(&mut line, UNDO), Some(1));
        assert_eq!(next(&mut line, UNDO), None);
        assert_eq!(next(&mut line, REDO), Some(7));
        assert_eq!(next(&mut line, REDO), Some(6));
        assert_eq!(next(&mut line, UNDO), Some(9), "what was there right before the redo");
        assert_eq!(next(&mut line, REDO), Some(10));
        assert_eq!(next(&mut line, REDO), Some(5));
        assert_eq!(next(&mut line, REDO), None);
    }

    #[test]
    fn a_turn_is_undone_until_it_is_done_again() {
        let mut line = vec![turn(1, "a"), turn(2, "b")];
        let undone = |line: &mut Vec<Checkpoint>| {
            line.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.sequence));
            let undone = undone(line);
            [1, 2].map(|it| undone.contains(&id(it)))
        };
        assert_eq!(undone(&mut line), [false, false]);
        next(&mut line, UNDO);
        assert_eq!(undone(&mut line), [false, true]);
        next(&mut line, UNDO);
        assert_eq!(undone(&mut line), [true, true]);
        next(&mut line, REDO);
        assert_eq!(undone(&mut line), [false, true]);
        next(&mut line, REDO);
        assert_eq!(undone(&mut line), [false, false]);
        next(&mut line, UNDO);
        assert_eq!(undone(&mut line), [false, true], "an undo of the redo");
    }

    #[test]
    fn the_rest_of_a_turn_is_undone_after_a_part_of_it() {
        let mut line = vec![turn(1, "a"), turn(2, "b"), restore(3, UndoMark::IN_PART, 2)];
        assert!(undone(&line).is_empty());
        assert_eq!(next(&mut line, REDO), Some(3));
        assert_eq!(next(&mut line, UNDO), Some(4));
        assert_eq!(next(&mut line, UNDO), Some(2));
        assert_eq!(next(&mut line, UNDO), Some(1));
        let mut line = vec![turn(1, "a"), turn(2, "b"), restore(3, UndoMark::IN_PART, 2)];
        assert_eq!(next(&mut line, UNDO), Some(2));
        assert_eq!(next(&mut line, REDO), Some(4));
        assert_eq!(next(&mut line, REDO), Some(3));
    }

    #[test]
    fn what_an_undo_left_for_conflicts_is_undone_only_with_force() {
        let left = || vec![restore(3, CONFLICTS_KEPT, 2), turn(2, "b"), turn(1, "a")];
        let target = |force| undo_target(&left(), &[], None, force).map(|it| it.sequence);
        assert_eq!([target(false), target(true)], [Some(1), Some(2)]);
        assert!(undone(&left()).contains(&id(2)));
        assert_eq!(redo_target(&left()).map(|it| it.sequence), Some(3));
    }

    #[test]
    fn a_restore_is_undone_before_the_turn_it_followed() {
        let mut line = vec![turn(1, "a"), turn(2, "b"), restore(3, "restore", 1)];
        assert_eq!(next(&mut line, UNDO), Some(3));
        assert_eq!(next(&mut line, UNDO), Some(2));
        assert_eq!(next(&mut line, REDO), Some(5));
    }

    #[test]
    fn a_session_is_undone_by_its_last_turn_or_as_a_whole() {
        let mut other = turn(4, "d");
        other.cause.by.as_mut().unwrap().session = SessionId("other".to_owned());
        let all = [other, turn(3, "c"), turn(2, "c"), turn(1, "a")];
        let whole = |session| session_target(&all, session).map(|it| it.sequence);
        assert_eq!([whole(None), whole(Some("s")), whole(Some("x"))], [Some(4), Some(1), None]);
        let mut line: Vec<Checkpoint> = all.iter().rev().cloned().collect();
        assert_eq!(next_of(&mut line, "s"), Some(2));
        assert_eq!(next_of(&mut line, "s"), Some(1), "not the same turn again");
        assert_eq!(next_of(&mut line, "s"), None);
        assert_eq!(next(&mut line, REDO), Some(6));
        assert_eq!(next_of(&mut line, "s"), Some(1), "it was done again");
    }

    #[test]
    fn an_undo_of_a_session_takes_back_all_its_turns() {
        let mut other = turn(2, "x");
        other.cause.by.as_mut().unwrap().session = SessionId("other".to_owned());
        let all =
            || vec![turn(1, "a"), other.clone(), turn(3, "b"), restore(4, "undo (session)", 1)];
        let mut line = all();
        assert_eq!(next(&mut line, UNDO), Some(2), "of the other session");
        assert_eq!(next(&mut line, UNDO), None);
        let mut line = all();
        line.reverse();
        assert_eq!(undone(&line), [id(1), id(3)].into());
        assert_eq!(next(&mut line, REDO), Some(4));
        line.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.sequence));
        assert!(undone(&line).is_empty());
    }

    #[test]
    fn what_an_undo_took_back_may_be_pruned() {
        let mut line = vec![turn(1, "a"), turn(3, "c"), restore(4, UNDO, 3), restore(5, UNDO, 2)];
        assert_eq!(next(&mut line, UNDO), Some(1));
    }

    #[test]
    fn turns_of_two_sessions_at_once_are_undone_each_as_a_whole() {
        let other = |sequence| {
            let mut other = turn(sequence, "x");
            other.cause.by.as_mut().unwrap().session = SessionId("other".to_owned());
            other
        };
        let mut line = vec![turn(1, "a"), turn(2, "b"), other(3), turn(4, "b"), other(5)];
        assert_eq!(next(&mut line, UNDO), Some(3));
        assert_eq!(next(&mut line, UNDO), Some(2));
        assert_eq!(next(&mut line, UNDO), Some(1));
        let all: Vec<Checkpoint> = [other(5), turn(4, "b"), other(3), turn(2, "b")].into();
        let target = |session| undo_target(&all, &[], Some(session), false).map(|it| it.sequence);
        assert_eq!([target("s"), target("other")], [Some(2), Some(3)]);
        assert_eq!(undo_target(&all, &[id(3)], None, false).map(|it| it.sequence), Some(2));
        let mut line = vec![turn(1, "a"), other(2), restore(3, UNDO, 1), restore(4, REDO, 3)];
        assert_eq!(next_of(&mut line, "other"), Some(2));
        assert_eq!(next(&mut line, UNDO), Some(4), "what was done again of the other session");
        assert_eq!(next(&mut line, UNDO), None, "both are undone");
    }

    #[test]
    fn a_restore_that_an_undo_passed_over_is_not_undone_later() {
        let mut line = vec![turn(1, "a"), turn(2, "b"), restore(3, "restore", 1)];
        // The user had put back by hand what it did.
        line.push(restore(4, UNDO, 2));
        assert_eq!(next(&mut line, UNDO), Some(1));
        assert_eq!(next(&mut line, UNDO), None);
    }

    #[test]
    fn a_checkpoint_taken_by_hand_is_not_undone() {
        assert_eq!(undo_target(&[checkpoint(1, Cause::asked(None))], &[], None, false), None);
    }

    #[test]
    fn new_work_ends_the_line_forward() {
        let mut line = vec![turn(1, "a"), turn(2, "b")];
        assert_eq!(next(&mut line, UNDO), Some(2));
        line.push(turn(4, "c"));
        assert_eq!(next(&mut line, REDO), None);
        assert_eq!(next(&mut line, UNDO), Some(4));
    }
}
