//! Tests of the effect of keys on the picker.

use super::*;
use crate::ui::picker::layout;

fn turn(number: usize, prompt: Option<&str>, trigger: &str) -> PickerTurn {
    PickerTurn {
        number,
        id: format!("a{number:03}"),
        when: format!("{number} minutes ago"),
        who: "Claude Code".to_owned(),
        prompt: prompt.map(str::to_owned),
        trigger: trigger.to_owned(),
        badges: Vec::new(),
        with_conversation: true,
        is_turn: true,
        step: None,
    }
}

fn wish(wished: DetailRequest) -> PickerEffect {
    PickerEffect::Wish(wished)
}

fn model() -> Model {
    let turns = vec![
        turn(1, Some("clean up the build"), "before Bash rm -rf build"),
        turn(2, Some("simplify the cart"), "before Edit src/cart.ts"),
        turn(3, None, "\"before the merge\""),
    ];
    Model::new("shop", &turns)
}

fn planned(text: &str) -> PickerPlan {
    PickerPlan { text: text.to_owned(), conflicts: 0 }
}

fn type_in(model: &mut Model, text: &str) {
    for c in text.chars() {
        model.press(KeyPress::Char(c));
    }
}

#[test]
fn arrows_move_and_stop_at_the_ends() {
    let mut model = model();
    assert_eq!(model.press(KeyPress::Up), PickerEffect::Nothing);
    assert_eq!(model.press(KeyPress::Down), wish(DetailRequest::Look(1)));
    assert_eq!(model.press(KeyPress::Char('j')), wish(DetailRequest::Look(2)));
    assert_eq!(model.press(KeyPress::Down), PickerEffect::Nothing);
    assert_eq!(model.press(KeyPress::Home), wish(DetailRequest::Look(0)));
    assert_eq!(model.press(KeyPress::PageDown), wish(DetailRequest::Look(2)));
    assert_eq!(model.press(KeyPress::Char('k')), wish(DetailRequest::Look(1)));
    assert_eq!(model.press(KeyPress::Esc), PickerEffect::Leave);
}

#[test]
fn the_chosen_turn_is_always_on_the_screen() {
    let turns: Vec<PickerTurn> = (1..=100).map(|n| turn(n, None, "x")).collect();
    let mut model = Model::new("shop", &turns);
    model.resize((80, 24));
    let page = layout::turns_on((80, 24));
    for key in [
        KeyPress::End,
        KeyPress::Up,
        KeyPress::PageUp,
        KeyPress::Home,
        KeyPress::PageDown,
        KeyPress::Down,
        KeyPress::End,
    ] {
        model.press(key);
        assert!((model.top..model.top + page).contains(&model.at), "{} {}", model.top, model.at);
    }
    model.resize((80, 10));
    assert!((model.top..model.top + layout::turns_on((80, 10))).contains(&model.at));
}

#[test]
fn what_is_typed_narrows_the_list_and_escape_widens_it() {
    let mut model = model();
    type_in(&mut model, "CART e");
    assert_eq!(model.search.as_deref(), Some("CART e"));
    assert_eq!((&model.fitting[..], model.chosen()), (&[1][..], Some(1)));
    // With a search, these are letters.
    type_in(&mut model, "jk");
    assert_eq!((model.chosen(), model.press(KeyPress::Enter)), (None, PickerEffect::Nothing));
    assert_eq!(model.press(KeyPress::BackWord), wish(DetailRequest::Look(1)));
    assert_eq!(model.press(KeyPress::Esc), PickerEffect::Nothing, "the chosen turn stays chosen");
    assert_eq!((model.search.as_ref(), model.chosen()), (None, Some(1)));
    model.press(KeyPress::Char('/'));
    type_in(&mut model, "jk");
    assert!(model.fitting.is_empty());
    for _ in 0..3 {
        model.press(KeyPress::Backspace);
    }
    assert_eq!(model.search, None);
}

#[test]
fn a_pasted_text_is_searched_for_and_chooses_nothing() {
    let mut model = model();
    model.press(KeyPress::Pasted("cart\r\n\u{1b}[A\u{202e}".to_owned()));
    assert_eq!(model.search.as_deref(), Some("cart   [A\\u{202e}"));
    assert_eq!(model.step, PickerView::Turns);
}

#[test]
fn a_yes_counts_only_when_the_plan_has_been_shown() {
    let mut model = model();
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Plan(0)));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert!(model.note.is_some());
    model.learn(News::Planned(1, planned("of another turn")));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    model.learn(News::Planned(0, planned("restore a")));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::Files));
    // A plan from before is not the one to say yes to.
    assert_eq!(model.press(KeyPress::Esc), wish(DetailRequest::Look(0)));
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Plan(0)));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
}

#[test]
fn the_choices_are_those_that_can_be_had() {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.learn(News::Planned(0, planned("restore a")));
    assert_eq!(model.press(KeyPress::Down), wish(DetailRequest::ConversationFork(0)));
    model.learn(News::Talked(0, Ok("it would be forked".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::Conversation));
    assert_eq!(model.press(KeyPress::Down), PickerEffect::Nothing);
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::ConversationOnly));
    model.press(KeyPress::Char('6'));
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Look(0)));
    assert_eq!(model.step, PickerView::Diff { top: 0 });
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Plan(0)));
    model.press(KeyPress::Up);
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Look(0)));
    assert_eq!(model.step, PickerView::Turns, "the last one is to cancel");
    let by_hand = PickerTurn { with_conversation: false, is_turn: false, ..turn(1, None, "x") };
    let without = Model::new("shop", &[by_hand]);
    let choices = [Choice::Files, Choice::Parts, Choice::Diff, Choice::Cancel];
    assert_eq!(without.choices(), choices);
}

#[test]
fn a_turn_is_taken_back_alone_when_that_has_been_shown() {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.learn(News::Planned(0, planned("restore a")));
    assert_eq!(model.press(KeyPress::Char('5')), wish(DetailRequest::Revert(0)));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some(STILL));
    model.learn(News::Reverts(0, Err("checkpoint a001 is partial".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some("checkpoint a001 is partial"));
    model.learn(News::Reverts(0, Ok(planned("revert a"))));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::Revert));
}

#[test]
fn a_conversation_that_cannot_be_cut_says_why() {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.press(KeyPress::Down);
    model.press(KeyPress::Down);
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some(STILL));
    model.learn(News::Talked(0, Err("its transcript is gone".to_owned())));
    for _conversation_only_and_both in 0..2 {
        model.learn(News::Planned(0, planned("restore a")));
        assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
        assert_eq!(model.note.as_deref(), Some("its transcript is gone"));
        model.press(KeyPress::Up);
    }
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::Files));
}

#[test]
fn a_conversation_alone_needs_no_plan() {
    let mut model = model();
    model.press(KeyPress::Enter);
    model.press(KeyPress::Char('3'));
    model.learn(News::Trouble(0, "error: cannot read it\nhint: x\n".to_owned()));
    model.learn(News::Talked(0, Ok("it would be forked".to_owned())));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(0, Choice::ConversationOnly));
    model.press(KeyPress::Up);
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    assert_eq!(model.note.as_deref(), Some("error: cannot read it"));
}

#[test]
fn escape_goes_back_one_step_at_a_time() {
    let mut model = model();
    type_in(&mut model, "cart");
    model.press(KeyPress::Right);
    assert_eq!(model.step, PickerView::Diff { top: 0 });
    model.press(KeyPress::Esc);
    assert_eq!(model.step, PickerView::Turns);
    assert!(model.search.is_some());
    model.press(KeyPress::Enter);
    model.press(KeyPress::Esc);
    model.press(KeyPress::Esc);
    assert!(model.search.is_none());
    assert_eq!(model.press(KeyPress::Esc), PickerEffect::Leave);
}

#[test]
fn a_difference_is_scrolled_to_its_end_and_no_further() {
    let mut model = model();
    model.learn(News::Begins(0));
    let text = format!("--- a\n+++ b\n@@ @@\n{}", "+x\n".repeat(97));
    model.learn(News::File(0, text, None));
    model.learn(News::Ends(0, 0));
    model.press(KeyPress::Right);
    model.press(KeyPress::End);
    let last = 100 - layout::diff_rows((80, 24));
    assert_eq!(model.step, PickerView::Diff { top: last });
    model.press(KeyPress::Down);
    assert_eq!(model.step, PickerView::Diff { top: last });
    // Found out anew, it is shorter.
    model.learn(News::Begins(0));
    model.learn(News::Ends(0, 0));
    assert_eq!(model.step, PickerView::Diff { top: 0 });
}

#[test]
fn what_is_known_of_many_turns_stays_bounded() {
    let turns: Vec<PickerTurn> = (1..=100).map(|n| turn(n, None, "x")).collect();
    let mut model = Model::new("shop", &turns);
    for n in 0..100 {
        model.learn(News::Did(n, "1 file".to_owned()));
        model.learn(News::Begins(n));
        model.learn(News::File(n, "x: empty file added\n".to_owned(), None));
    }
    let with_diff = model.known.values().filter(|known| known.diff.len() > 0).count();
    assert!(with_diff <= DIFFS_MAX + 1, "{with_diff}");
    assert!(model.known.values().all(|known| known.did.is_some()));
}

fn steps_of(turn: usize, count: usize) -> Vec<PickerTurn> {
    let step = |step| PickerTurn {
        number: turn,
        trigger: format!("Edit {step}"),
        step: Some(step),
        ..PickerTurn::default()
    };
    (1..=count).map(step).collect()
}

#[test]
fn a_turn_unfolds_into_its_steps_and_folds_again() {
    let mut model = model();
    model.press(KeyPress::Down);
    assert_eq!(model.press(KeyPress::Tab), wish(DetailRequest::Steps(1)));
    model.learn(News::Steps(1, Ok(steps_of(2, 2))));
    assert_eq!((&model.fitting[..], model.chosen()), (&[0, 1, 3, 4, 2][..], Some(1)));
    model.press(KeyPress::Down);
    assert_eq!(model.press(KeyPress::Down), wish(DetailRequest::Look(4)));
    assert_eq!(model.place(4), PickerPlace { turn: 1, step: Some(2) });
    assert_eq!(model.choices(), [Choice::Files, Choice::Parts, Choice::Diff, Choice::Cancel]);
    // Another turn unfolds behind them, and what was known keeps its place.
    model.press(KeyPress::Home);
    model.press(KeyPress::Tab);
    model.learn(News::Steps(0, Ok(steps_of(1, 1))));
    assert_eq!(model.fitting, [0, 5, 1, 3, 4, 2]);
    assert_eq!(model.place(5), PickerPlace { turn: 0, step: Some(1) });
    model.press(KeyPress::End);
    model.press(KeyPress::Up);
    assert_eq!(model.press(KeyPress::Tab), wish(DetailRequest::Look(1)), "its turn is chosen then");
    assert_eq!(model.fitting, [0, 5, 1, 2]);
    assert_eq!(model.press(KeyPress::Tab), PickerEffect::Nothing, "they are known");
    assert_eq!(model.fitting, [0, 5, 1, 3, 4, 2]);
}

#[test]
fn a_step_is_restored_to_when_that_has_been_shown() {
    let mut model = model();
    model.press(KeyPress::Tab);
    model.learn(News::Steps(0, Ok(steps_of(1, 2))));
    model.press(KeyPress::Down);
    model.press(KeyPress::Down);
    assert_eq!(model.press(KeyPress::Enter), wish(DetailRequest::Plan(4)));
    model.learn(News::Planned(0, planned("of the turn")));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Nothing);
    model.learn(News::Planned(4, planned("restore a")));
    assert_eq!(model.press(KeyPress::Enter), PickerEffect::Do(4, Choice::Files));
    let wanted = wish(DetailRequest::Offer(1, 4, PickerGoal::Before));
    assert_eq!(model.press(KeyPress::Char(' ')), wanted);
}

#[test]
fn a_search_has_the_steps_of_the_turns_that_fit() {
    let mut model = model();
    model.press(KeyPress::Down);
    model.press(KeyPress::Tab);
    model.learn(News::Steps(1, Err("a person asked for it".to_owned())));
    assert_eq!(model.note.as_deref(), Some("a person asked for it"));
    model.press(KeyPress::Tab);
    model.learn(News::Steps(1, Ok(steps_of(2, 2))));
    type_in(&mut model, "cart");
    assert_eq!(model.fitting, [1, 3, 4]);
    type_in(&mut model, "!");
    assert_eq!((model.chosen(), model.press(KeyPress::Tab)), (None, PickerEffect::Nothing));
    model.press(KeyPress::Esc);
    assert_eq!(model.fitting, [0, 1, 3, 4, 2]);
}

#[test]
fn ctrl_c_leaves_from_anywhere() {
    for before in [KeyPress::Up, KeyPress::Right, KeyPress::Enter, KeyPress::Char('x')] {
        let mut model = model();
        model.press(before);
        assert_eq!(model.press(KeyPress::Interrupt), PickerEffect::Leave);
    }
}
