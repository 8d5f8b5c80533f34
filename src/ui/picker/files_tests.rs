//! Tests of choosing among files and hunks: each key, and thousands of random ones against an oracle.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend};

use super::{
    keys::KeyPress,
    layout,
    model::{
        DetailRequest, FileMark, Model, News, OfferedFile, PartId, PickerEffect, PickerGoal,
        PickerPlan, PickerTurn, PickerView, STILL,
    },
    view::view,
};
use crate::ui::Style;

/// Two turns.
fn model() -> Model {
    let turn = |number| PickerTurn {
        number,
        trigger: "before Edit a".to_owned(),
        is_turn: true,
        ..PickerTurn::default()
    };
    Model::new("shop", &[turn(1), turn(2)])
}

fn file(name: &str) -> OfferedFile {
    OfferedFile { name: name.to_owned(), verb: "restore".to_owned(), ..OfferedFile::default() }
}

fn hunks(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("@@ -{n} +{n} @@\n-old\n+new\n")).collect()
}

/// In the list of files `a`, of three hunks, and `b`, which is one choice.
fn opened() -> Model {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.learn(News::Planned(0, PickerPlan::default()));
    let wanted = PickerEffect::Wish(DetailRequest::Offer(1, 0, PickerGoal::Before));
    assert_eq!(model.press(KeyPress::Char(' ')), wanted);
    model.learn(News::Offered(1, Ok(vec![file("a"), file("b")])));
    model
}

fn marks(model: &Model) -> &[FileMark] {
    &model.offer.as_ref().unwrap().marks
}

fn asked(effect: PickerEffect) -> (PartId, Vec<(usize, FileMark)>) {
    match effect {
        PickerEffect::Wish(DetailRequest::Part(id, marks)) => (id, marks),
        other => panic!("{other:?}"),
    }
}

#[test]
fn space_marks_a_file_and_takes_the_mark_away() {
    let mut model = opened();
    assert_eq!(model.press(KeyPress::Char('r')), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some("nothing is marked: Space marks"));
    model.press(KeyPress::Char(' '));
    model.press(KeyPress::Down);
    assert_eq!(marks(&model), [FileMark::Whole, FileMark::Unmarked]);
    model.press(KeyPress::Char('a'));
    assert_eq!(marks(&model), [FileMark::Whole, FileMark::Whole]);
    model.press(KeyPress::Char(' '));
    let (id, chosen) = asked(model.press(KeyPress::Char('r')));
    assert_eq!((id.turn, id.goal, chosen), (0, PickerGoal::Before, vec![(0, FileMark::Whole)]));
}

#[test]
fn hunks_of_a_file_are_marked_one_by_one() {
    let mut model = opened();
    let wanted = PickerEffect::Wish(DetailRequest::Open(1, 0));
    assert_eq!(model.press(KeyPress::Enter), wanted);
    model.press(KeyPress::Char(' '));
    assert_eq!(marks(&model)[0], FileMark::Unmarked, "it is not known yet what that would mark");
    model.learn(News::Opened(1, 0, hunks(3)));
    model.press(KeyPress::Down);
    model.press(KeyPress::Char(' '));
    assert_eq!(marks(&model)[0], FileMark::Hunks(vec![false, true, false]));
    for key in [KeyPress::Up, KeyPress::Char(' '), KeyPress::End, KeyPress::Char(' ')] {
        model.press(key);
    }
    assert_eq!(marks(&model)[0], FileMark::Whole, "all of its hunks are the file");
    model.press(KeyPress::Char(' '));
    model.press(KeyPress::Esc);
    assert_eq!(model.step, PickerView::Files { at: 0, top: 0 });
    let (_, chosen) = asked(model.press(KeyPress::Char('r')));
    assert_eq!(chosen, [(0, FileMark::Hunks(vec![true, true, false]))]);
}

#[test]
fn a_hunk_is_split_and_its_parts_have_its_mark() {
    let mut model = opened();
    model.press(KeyPress::Enter);
    model.learn(News::Opened(1, 0, hunks(3)));
    for key in [KeyPress::Char(' '), KeyPress::Down, KeyPress::Char(' ')] {
        model.press(key);
    }
    let wanted = PickerEffect::Wish(DetailRequest::Split(1, 0, 1));
    assert_eq!(model.press(KeyPress::Char('s')), wanted);
    for key in [KeyPress::Char('s'), KeyPress::Char(' '), KeyPress::Char('r')] {
        assert_eq!(model.press(key), PickerEffect::Nothing, "it is not known yet into how many");
    }
    assert_eq!(model.note.as_deref(), Some(STILL));
    model.learn(News::Split(1, 0, 1, hunks(4)));
    assert_eq!(marks(&model)[0], FileMark::Hunks(vec![true, true, true, false]));
    model.press(KeyPress::Char(' '));
    let (_, chosen) = asked(model.press(KeyPress::Char('r')));
    assert_eq!(chosen, [(0, FileMark::Hunks(vec![true, false, true, false]))]);
    model.press(KeyPress::Esc);
    model.press(KeyPress::Enter);
    model.press(KeyPress::Char('s'));
    model.learn(News::Split(1, 0, 0, hunks(4)));
    assert_eq!(model.note.as_deref(), Some("this hunk cannot be split"));
}

#[test]
fn a_part_is_done_only_when_what_it_does_has_been_shown() {
    let mut model = opened();
    model.press(KeyPress::Char('a'));
    let (first, _) = asked(model.press(KeyPress::Char('r')));
    model.press(KeyPress::Esc);
    let (second, _) = asked(model.press(KeyPress::Char('r')));
    assert_ne!(first, second);
    model.learn(News::Parted(first.part, Ok("restore a, b".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing, "an answer from before");
    assert_eq!(model.note.as_deref(), Some(STILL));
    model.learn(News::Parted(second.part, Ok("restore a, b".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::DoPart(second));
}

#[test]
fn a_plan_that_has_changed_is_made_again() {
    let mut model = opened();
    model.press(KeyPress::Char('a'));
    let (id, _) = asked(model.press(KeyPress::Char('r')));
    model.learn(News::Parted(id.part, Err("`a` has changed since it was shown".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some("`a` has changed since it was shown"));
    let again = model.press(KeyPress::Esc);
    assert!(matches!(again, PickerEffect::Wish(DetailRequest::Offer(_, 0, PickerGoal::Before))));
    model.learn(News::Offered(1, Ok(vec![file("old")])));
    assert!(model.offer.as_ref().unwrap().known().is_empty(), "a plan from before");
}

#[test]
fn escape_goes_back_from_hunks_to_the_turns_one_step_at_a_time() {
    let mut model = opened();
    model.press(KeyPress::Char('a'));
    model.press(KeyPress::Right);
    for step in [
        PickerView::Files { at: 0, top: 0 },
        PickerView::Choices { at: 1, top: 0 },
        PickerView::Turns,
    ] {
        model.press(KeyPress::Esc);
        assert_eq!(model.step, step);
    }
}

#[test]
fn what_was_marked_is_still_marked_after_a_step_back() {
    let mut model = opened();
    model.press(KeyPress::Char(' '));
    model.press(KeyPress::Esc);
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(marks(&model)[0], FileMark::Whole);
    // Of another goal, or another turn, there is another plan.
    model.press(KeyPress::Esc);
    model.press(KeyPress::Down);
    let other = model.press(KeyPress::Char(' '));
    assert_eq!(other, PickerEffect::Wish(DetailRequest::Offer(2, 0, PickerGoal::Turn)));
}

#[test]
fn a_plan_without_files_says_why() {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.press(KeyPress::Char(' '));
    model.learn(News::Offered(1, Err("no file to choose".to_owned())));
    for key in [' ', 'a', 'r', 'j'] {
        assert_eq!(model.press(KeyPress::Char(key)), PickerEffect::Nothing);
    }
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    model.press(KeyPress::Esc);
    assert!(matches!(model.step, PickerView::Choices { .. }));
}

#[test]
fn a_long_hunk_is_scrolled_through_and_stays_the_chosen_one() {
    let mut model = opened();
    model.press(KeyPress::Enter);
    let long = format!("@@ @@\n{}", "+x\n".repeat(100));
    model.learn(News::Opened(1, 0, vec![long.clone(), long]));
    let at = |model: &Model| match model.step {
        PickerView::Hunks { at, top, .. } => (at, top),
        other => panic!("{other:?}"),
    };
    let page = layout::file_rows((80, 24));
    model.press(KeyPress::PageDown);
    assert_eq!(at(&model), (0, page));
    for _ in 0..5 {
        model.press(KeyPress::PageDown);
    }
    assert_eq!(at(&model), (1, 6 * page), "the first is no more on the screen");
    model.press(KeyPress::Up);
    assert_eq!(at(&model), (0, 0));
    model.press(KeyPress::Down);
    assert_eq!(at(&model), (1, 101));
}

/// How many pieces the files of the random plan have.
const PIECES: [usize; 4] = [3, 1, 2, 5];

/// What the picker asks, and what it is told in the end.
#[derive(Default)]
struct Answers {
    wishes: Vec<DetailRequest>,
    /// What was marked when a part was asked about.
    marked: BTreeMap<u32, BTreeSet<(usize, usize)>>,
}

impl Answers {
    fn grant(&mut self, model: &mut Model) {
        if self.wishes.is_empty() {
            return;
        }
        model.learn(match self.wishes.remove(0) {
            DetailRequest::Look(turn) => News::Begins(turn),
            DetailRequest::Plan(turn) => News::Planned(turn, PickerPlan::default()),
            DetailRequest::ConversationFork(turn) => News::Talked(turn, Err("gone".to_owned())),
            DetailRequest::Revert(turn) => News::Reverts(turn, Ok(PickerPlan::default())),
            DetailRequest::Steps(turn) => {
                let step = |n| PickerTurn { step: Some(n), ..PickerTurn::default() };
                News::Steps(turn, Ok((1..4).map(step).collect()))
            }
            DetailRequest::Offer(number, ..) => {
                let files = (0..PIECES.len()).map(|n| file(&n.to_string())).collect();
                News::Offered(number, Ok(files))
            }
            DetailRequest::Open(number, file) => News::Opened(number, file, hunks(PIECES[file])),
            DetailRequest::Split(number, file, at) => {
                News::Split(number, file, at, hunks(PIECES[file]))
            }
            DetailRequest::Part(id, _) => News::Parted(id.part, Ok("all of it".to_owned())),
        });
    }
}

/// What a key does to the marks, told by what is on the screen alone.
fn mark(model: &Model, key: &KeyPress, marked: &mut BTreeSet<(usize, usize)>) {
    let all = |file: usize| (0..PIECES[file]).map(move |piece| (file, piece));
    let flip = |marked: &mut BTreeSet<(usize, usize)>, pieces: Vec<(usize, usize)>| {
        let is_all = pieces.iter().all(|it| marked.contains(it));
        for piece in pieces {
            if is_all {
                marked.remove(&piece)
            } else {
                marked.insert(piece)
            };
        }
    };
    let Some(offer) = model.offer.as_ref().filter(|offer| !offer.known().is_empty()) else {
        return;
    };
    match (model.step, key) {
        (PickerView::Files { at, .. }, KeyPress::Char(' ')) => flip(marked, all(at).collect()),
        (PickerView::Files { .. }, KeyPress::Char('a')) => {
            flip(marked, (0..PIECES.len()).flat_map(all).collect());
        }
        (PickerView::Hunks { file, .. }, KeyPress::Char('a')) => flip(marked, all(file).collect()),
        (PickerView::Hunks { file, at, .. }, KeyPress::Char(' '))
            if offer.pieces.contains_key(&file) && !offer.is_splitting =>
        {
            flip(marked, vec![(file, at)]);
        }
        _ => (),
    }
}

fn pieces_of(marks: &[(usize, FileMark)]) -> BTreeSet<(usize, usize)> {
    let all = |(file, mark): &(usize, FileMark)| {
        let (file, mark) = (*file, mark.clone());
        (0..PIECES[file]).filter(move |at| mark.has(*at)).map(move |at| (file, at))
    };
    marks.iter().flat_map(all).collect()
}

fn any_key() -> impl Strategy<Value = Option<KeyPress>> {
    prop_oneof![
        // News come in between, or later.
        6 => Just(None),
        8 => Just(Some(KeyPress::Char(' '))),
        5 => Just(Some(KeyPress::Enter)),
        4 => Just(Some(KeyPress::Down)),
        2 => Just(Some(KeyPress::Up)),
        2 => Just(Some(KeyPress::Right)),
        2 => Just(Some(KeyPress::Char('a'))),
        3 => Just(Some(KeyPress::Char('r'))),
        2 => Just(Some(KeyPress::Esc)),
        2 => Just(Some(KeyPress::Tab)),
        1 => Just(Some(KeyPress::PageDown)),
        1 => Just(Some(KeyPress::PageUp)),
        1 => Just(Some(KeyPress::End)),
        1 => Just(Some(KeyPress::Home)),
        1 => Just(Some(KeyPress::Backspace)),
        1 => Just(Some(KeyPress::Pasted("r\r ".to_owned()))),
        1 => any::<char>().prop_map(|c| Some(KeyPress::Char(c))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_done_is_what_was_marked(
        keys in proptest::collection::vec(any_key(), 0..120),
        columns in 20_u16..100,
        rows in 5_u16..40,
    ) {
        let (mut model, mut answers) = (model(), Answers::default());
        let mut marked = BTreeSet::new();
        let mut offer = 0;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        model.resize((columns, rows));
        for key in keys {
            let Some(key) = key else {
                answers.grant(&mut model);
                continue;
            };
            mark(&model, &key, &mut marked);
            let effect = model.press(key);
            terminal.draw(|frame| view(frame, &model, Style::COLOUR)).unwrap();
            if let PickerEffect::Wish(wish) = &effect {
                if let DetailRequest::Part(id, marks) = wish {
                    prop_assert_eq!(&pieces_of(marks), &marked);
                    answers.marked.insert(id.part, marked.clone());
                }
                answers.wishes.push(wish.clone());
            }
            if let PickerEffect::DoPart(id) = effect {
                prop_assert_eq!(answers.marked.get(&id.part), Some(&marked));
                prop_assert_eq!(Some(id.turn), model.chosen());
            }
            let number = model.offer.as_ref().map_or(0, |offer| offer.id.offer);
            if number != offer {
                (offer, marked) = (number, BTreeSet::new());
            }
        }
        // Whatever was pressed, a few steps back lead out of it.
        let leaves = (0..8).any(|_| model.press(KeyPress::Esc) == PickerEffect::Leave);
        prop_assert!(leaves, "{:?}", model.step);
    }
}
