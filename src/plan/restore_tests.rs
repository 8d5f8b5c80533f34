//! Every row of the table of a restore, and what directories come to.

use super::{super::restore_plan::misplaced, *};

fn path(text: &str) -> RelPath {
    RelPath::from_bytes(text.as_bytes()).unwrap()
}

fn file(id: u8, permissions: u32) -> Entry {
    let id = crate::model::ContentId::new(&[id; 20]);
    let content = Some(crate::model::Content { id, place: crate::model::Storage::Git });
    Entry { kind: Kind::File, permissions, content, device: 0 }
}

const DIRECTORY: Entry =
    Entry { kind: Kind::Directory, permissions: 0o755, content: None, device: 0 };

/// One row of the table in the design: what was, what is, who made that, what was said.
fn action(
    then: Option<Entry>,
    now: Option<Entry>,
    author: Author,
    said: &str,
    past: &str,
) -> Action {
    let options = Options {
        exact: said == "exact",
        keep_new: said == "keep-new",
        force: said == "force",
        merge: said == "merge",
        unclear: false,
    };
    let at = path("a");
    let skipped = [Skipped { path: b"a".to_vec(), reason: SkipReason::TooLarge, size: 9 }];
    let none: [Skipped; 0] = [];
    let set = |is: bool| -> BTreeSet<RelPath> { is.then(|| at.clone()).into_iter().collect() };
    let both = Merged { bytes: b"x".to_vec(), permissions: 0o644 };
    let merges: BTreeMap<_, _> =
        (past == "merges").then(|| (at.clone(), both)).into_iter().collect();
    let known = Past {
        authors: &BTreeMap::from([(at.clone(), author)]),
        merges: &merges,
        edited: &set(past == "edited"),
        others: &set(past == "others"),
        ignored: &set(past == "ignored"),
        skipped_then: if past == "not covered" { &skipped } else { &none },
        skipped_now: if past == "unseen" { &skipped } else { &none },
        repositories: &BTreeMap::new(),
        kept: &BTreeMap::new(),
    };
    let changes = vec![Change { path: at, before: then, after: now }];
    let plan = restore(CheckpointId::from_bits(1), changes, options, &Picked::All, &known);
    plan.steps[0].action
}

#[test]
fn every_row_of_the_table() {
    use Action::{Keep, Merge, Recreate, Remove, Restore};
    use Author::{Agent, Other, Unclear, Unknown};
    let (old, new) = (Some(file(1, 0o644)), Some(file(2, 0o644)));
    let rows = [
        (old, new, Agent, "", "", Restore),
        (old, new, Unknown, "", "", Restore),
        (old, new, Other, "", "", Keep(KeepReason::Edited)),
        (old, new, Other, "force", "", Restore),
        (old, new, Unclear, "", "", Keep(KeepReason::Edited)),
        (old, new, Unclear, "force", "", Restore),
        (old, new, Other, "merge", "merges", Merge),
        (old, new, Other, "merge", "", Keep(KeepReason::Edited)),
        (old, new, Other, "exact", "", Keep(KeepReason::Edited)),
        (None, new, Agent, "", "", Remove),
        (None, new, Agent, "keep-new", "", Keep(KeepReason::New)),
        (None, new, Other, "", "", Keep(KeepReason::New)),
        (None, new, Unknown, "", "", Keep(KeepReason::New)),
        (None, new, Unclear, "", "", Keep(KeepReason::Edited)),
        (None, new, Unclear, "force", "", Remove),
        (old, new, Other, "", "others", Keep(KeepReason::OfOthers)),
        (old, new, Other, "force", "others", Restore),
        (None, new, Other, "", "edited", Keep(KeepReason::Edited)),
        (None, new, Other, "force", "edited", Remove),
        (None, new, Other, "exact", "edited", Remove),
        (None, new, Other, "keep-new", "edited", Keep(KeepReason::New)),
        (None, new, Other, "exact", "", Remove),
        (None, new, Agent, "", "ignored", Remove),
        (None, new, Unknown, "exact", "ignored", Keep(KeepReason::Ignored)),
        (
            None,
            new,
            Agent,
            "exact",
            "not covered",
            Keep(KeepReason::NotCovered(SkipReason::TooLarge)),
        ),
        (old, None, Unknown, "", "", Recreate),
        (old, None, Other, "", "", Recreate),
        (old, None, Unknown, "", "unseen", Keep(KeepReason::Unseen(SkipReason::TooLarge))),
        (Some(DIRECTORY), new, Agent, "", "", Restore),
        (old, Some(DIRECTORY), Agent, "", "", Restore),
        (None, Some(DIRECTORY), Agent, "", "", Remove),
        (old, Some(file(1, 0o755)), Agent, "", "", Restore),
    ];
    for (then, now, author, said, past, expected) in rows {
        let found = action(then, now, author, said, past);
        assert_eq!(found, expected, "{then:?} {now:?} {author:?} {said:?} {past:?}");
    }
}

#[test]
fn a_directory_goes_only_with_all_that_is_in_it() {
    let plan = |other: Author| {
        let change = |at: &str, after| Change { path: path(at), before: None, after };
        let changes = vec![
            change("d", Some(DIRECTORY)),
            change("d/a", Some(file(1, 0o644))),
            change("d/b", Some(file(2, 0o644))),
        ];
        let past = Past {
            authors: &BTreeMap::from([
                (path("d"), Author::Agent),
                (path("d/a"), Author::Agent),
                (path("d/b"), other),
            ]),
            merges: &BTreeMap::new(),
            edited: &BTreeSet::new(),
            others: &BTreeSet::new(),
            ignored: &BTreeSet::new(),
            skipped_then: &[],
            skipped_now: &[],
            repositories: &BTreeMap::new(),
            kept: &BTreeMap::new(),
        };
        let id = CheckpointId::from_bits(1);
        let plan = restore(id, changes, Options::default(), &Picked::All, &past);
        plan.steps.into_iter().map(|step| step.action).collect::<Vec<_>>()
    };
    let (gone, kept) = (Action::Remove, Action::Keep(KeepReason::New));
    assert_eq!(plan(Author::Agent), [gone, gone, gone]);
    let stays = Action::Keep(KeepReason::InTheWay);
    assert_eq!(plan(Author::Other), [stays, gone, kept]);
    assert_eq!(plan(Author::Unclear), [stays, gone, Action::Keep(KeepReason::Edited)]);
}

#[test]
fn what_stays_in_a_directorys_place_keeps_it_away() {
    let changes = vec![
        Change { path: path("d"), before: Some(DIRECTORY), after: Some(file(1, 0o644)) },
        Change { path: path("d/a"), before: Some(file(2, 0o644)), after: None },
    ];
    let past = Past {
        authors: &BTreeMap::from([(path("d"), Author::Other)]),
        merges: &BTreeMap::new(),
        edited: &BTreeSet::new(),
        others: &BTreeSet::new(),
        ignored: &BTreeSet::new(),
        skipped_then: &[],
        skipped_now: &[],
        repositories: &BTreeMap::new(),
        kept: &BTreeMap::new(),
    };
    let id = CheckpointId::from_bits(1);
    let plan = restore(id, changes, Options::default(), &Picked::All, &past);
    assert_eq!(plan.steps[1].action, Action::Keep(KeepReason::InTheWay));
}

#[test]
fn what_would_go_and_cannot_be_looked_at_is_named() {
    let unreadable = |path: &str| {
        let path = path.as_bytes().to_vec();
        Skipped { path, reason: SkipReason::Unreadable, size: 1 }
    };
    let kept_of = |exact: bool, author: Author, skipped_then: &[Skipped], before| {
        let now = [unreadable("d/a")];
        let past = Past {
            authors: &BTreeMap::from([(path("d"), author), (path("d/a"), author)]),
            merges: &BTreeMap::new(),
            edited: &BTreeSet::new(),
            others: &BTreeSet::new(),
            ignored: &BTreeSet::new(),
            skipped_then,
            skipped_now: &now,
            repositories: &BTreeMap::new(),
            kept: &BTreeMap::new(),
        };
        let changes = vec![Change { path: path("d"), before, after: Some(DIRECTORY) }];
        let options = Options { exact, force: before.is_some(), ..Options::default() };
        let plan = restore(CheckpointId::from_bits(1), changes, options, &Picked::All, &past);
        plan.steps.into_iter().map(|step| step.action).collect::<Vec<_>>()
    };
    let kept = |exact, author, then: &[Skipped]| kept_of(exact, author, then, None);
    let unseen = [
        Action::Keep(KeepReason::InTheWay),
        Action::Keep(KeepReason::Unseen(SkipReason::Unreadable)),
    ];
    assert_eq!(kept(false, Author::Agent, &[]), unseen);
    assert_eq!(kept(true, Author::Unknown, &[]), unseen);
    assert_eq!(kept(false, Author::Other, &[]), [Action::Keep(KeepReason::New)], "stays anyway");
    let file = Some(file(1, 0o644));
    assert_eq!(
        kept_of(false, Author::Other, &[], file),
        unseen,
        "d was a file, and would be again"
    );
    let then = [unreadable("d/a")];
    assert_eq!(kept(true, Author::Unknown, &then).len(), 1, "nothing is known of it at either end");
}

#[test]
fn what_stands_where_a_picked_file_needs_a_directory_makes_room_or_is_in_the_way() {
    let change = |at, before, after| Change { path: path(at), before, after };
    let changes = || {
        vec![
            change("d", Some(DIRECTORY), Some(file(1, 0o644))),
            change("d/a", Some(file(2, 0o644)), None),
            change("d/b", Some(file(3, 0o644)), None),
            change("e", Some(DIRECTORY), Some(file(4, 0o644))),
        ]
    };
    let picked = Picked::Paths(vec![super::super::picked::Pick::of(path("d/b"))]);
    let done = |author: Author| {
        let authors = BTreeMap::from([(path("d"), author)]);
        let (merges, none) = (BTreeMap::new(), BTreeSet::new());
        let past = Past {
            authors: &authors,
            merges: &merges,
            edited: &none,
            others: &none,
            ignored: &BTreeSet::new(),
            skipped_then: &[],
            skipped_now: &[],
            repositories: &BTreeMap::new(),
            kept: &BTreeMap::new(),
        };
        let id = CheckpointId::from_bits(1);
        let plan = restore(id, changes(), Options::default(), &picked, &past);
        let steps = plan.steps.into_iter().map(|step| (step.path.to_string(), step.action));
        steps.collect::<Vec<_>>()
    };
    let (d, b) = ("d".to_owned(), "d/b".to_owned());
    let agents = [(d.clone(), Action::Restore), (b.clone(), Action::Recreate)];
    assert_eq!(done(Author::Agent), agents);
    let theirs = [(d, Action::Keep(KeepReason::Edited)), (b, Action::Keep(KeepReason::InTheWay))];
    assert_eq!(done(Author::Other), theirs);
}

/// The actions of steps, once they can be carried out as a whole.
fn executable(steps: &[(&str, Action, Option<Entry>, Option<Entry>)]) -> Vec<Action> {
    let step = |(at, action, then, now): &(&str, Action, Option<Entry>, Option<Entry>)| PlanStep {
        path: path(at),
        action: *action,
        then: *then,
        now: *now,
        author: Author::Agent,
    };
    let mut steps: Vec<PlanStep> = steps.iter().map(step).collect();
    keep_executable(&mut steps);
    assert_eq!(misplaced(&steps), None);
    steps.into_iter().map(|step| step.action).collect()
}

#[test]
fn no_step_puts_anything_below_what_does_not_end_as_a_directory() {
    use Action::{Keep, Recreate, Remove, Restore};
    let (old, new, dir) = (Some(file(1, 0o644)), Some(file(2, 0o644)), Some(DIRECTORY));
    let (conflict, way) = (Keep(KeepReason::BothChanged), Keep(KeepReason::InTheWay));
    let gone =
        [("d", conflict, None, None), ("d/e", Recreate, dir, None), ("d/e/f", Recreate, old, None)];
    assert_eq!(executable(&gone), [conflict, way, way], "nothing stays in its place");
    let other = [("d", conflict, new, new), ("d/f", Recreate, old, None)];
    assert_eq!(executable(&other), [conflict, way]);
    let there = [("d", conflict, dir, dir), ("d/f", Recreate, old, None)];
    assert_eq!(executable(&there), [conflict, Recreate]);
    let comes = [("d", Restore, dir, new), ("d/f", Recreate, old, None)];
    assert_eq!(executable(&comes), [Restore, Recreate]);
    let goes = [("d", Remove, None, dir), ("d/e", Remove, None, dir), ("d/e/f", Restore, old, new)];
    assert_eq!(executable(&goes), [way, way, Restore], "a directory stays with what is put there");
    let swapped = [("d", Restore, old, dir), ("d/f", Restore, old, new)];
    assert_eq!(executable(&swapped), [way, Restore]);
    let filed = [("d", Restore, old, new), ("d/f", Recreate, old, None)];
    assert_eq!(executable(&filed), [Restore, way]);
    let emptied = [("d", Restore, old, dir), ("d/f", Remove, None, new)];
    assert_eq!(executable(&emptied), [Restore, Remove]);
}
