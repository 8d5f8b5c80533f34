//! Tests of the picker's screen, cell by cell, at several sizes.

use ratatui::{Terminal, backend::TestBackend};

use super::*;
use crate::ui::{
    LineCounts,
    picker::{
        keys::KeyPress,
        model::{News, OfferedFile, PickerPlan},
    },
};

fn turns() -> Vec<PickerTurn> {
    let turn = |number, when: &str, who: &str, prompt: Option<&str>, trigger: &str| PickerTurn {
        number,
        id: ["c0e1", "b81c", "e07d"][number - 1].to_owned(),
        when: when.to_owned(),
        who: who.to_owned(),
        prompt: prompt.map(str::to_owned),
        trigger: trigger.to_owned(),
        badges: Vec::new(),
        with_conversation: number < 3,
        is_turn: number < 3,
        step: None,
    };
    let mut turns = vec![
        turn(
            1,
            "2 minutes ago",
            "Claude Code",
            Some("clean up the build and throw away what is not needed any more"),
            "before Bash rm -rf build && npm i",
        ),
        turn(2, "14 minutes ago", "Codex", Some("simplify the cart"), "before Edit src/cart.ts"),
        turn(3, "2026-11-20 14:02", "you", None, "\"before the merge\""),
    ];
    turns[0].badges = vec!["partial".to_owned(), "2 not held".to_owned()];
    turns
}

const DIFF: &str = "--- a/src/cart.ts\n+++ b/src/cart.ts\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n\
                    +\tfour\n";

fn known() -> Model {
    let mut model = Model::new("shop — ~/code/shop (git)", &turns());
    model.learn(News::Did(0, "4 files  +12 −230".to_owned()));
    model.learn(News::Did(1, "9 files  +88 −41".to_owned()));
    model.learn(News::Begins(0));
    let lines = LineCounts { added: 2, removed: 1 };
    model.learn(News::File(0, DIFF.to_owned(), Some(lines)));
    model.learn(News::File(0, "logo.png: binary file (3 KB) removed\n".to_owned(), None));
    model.learn(News::Ends(0, 0));
    let text = "  restore   src/cart.ts   +1 −2\n  recreate  logo.png\n  keep      src/price.ts   \
                changed since, not by the agent (use --merge or --force)\n\n2 paths would change, \
                1 kept\n";
    model.learn(News::Planned(0, PickerPlan { text: text.to_owned(), conflicts: 1 }));
    model
}

fn frame(model: &mut Model, columns: u16, rows: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    model.resize((columns, rows));
    terminal.draw(|frame| view(frame, model, Style::COLOUR)).unwrap();
    terminal
}

/// What is on the screen, without what every row ends in.
fn shown(model: &mut Model, columns: u16, rows: u16) -> String {
    let terminal = frame(model, columns, rows);
    let buffer = terminal.backend().buffer();
    let row = |y| {
        let mut line = String::new();
        let mut x = 0;
        while x < columns {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(cells(symbol)).unwrap().max(1);
        }
        line.trim_end().to_owned()
    };
    (0..rows).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn turns_stand_beside_what_has_changed_since() {
    insta::assert_snapshot!(shown(&mut known(), 80, 24));
    insta::assert_snapshot!(shown(&mut known(), 120, 40));
}

#[test]
fn a_narrow_terminal_has_one_below_the_other_or_the_turns_alone() {
    insta::assert_snapshot!(shown(&mut known(), 50, 24));
    insta::assert_snapshot!(shown(&mut known(), 40, 10));
}

#[test]
fn a_tiny_terminal_says_so() {
    insta::assert_snapshot!(shown(&mut known(), 28, 6), @r"
    this terminal is 28×6
    30×8 is needed
    Esc leaves
    ");
    for columns in 0..40 {
        for rows in 0..12 {
            frame(&mut known(), columns, rows);
        }
    }
}

#[test]
fn enter_shows_the_plan_and_the_choices() {
    let mut model = known();
    model.press(KeyPress::Enter);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    let text = "  restore   src/cart.ts   +1 −2\n\n1 path would change\n".to_owned();
    model.learn(News::Planned(0, PickerPlan { text, conflicts: 0 }));
    model.press(KeyPress::Down);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    insta::assert_snapshot!(shown(&mut model, 40, 10));
}

#[test]
fn a_conversation_says_what_becomes_of_it() {
    let mut model = known();
    model.press(KeyPress::Enter);
    let text = "  restore   src/cart.ts   +1 −2\n\n1 path would change\n".to_owned();
    model.learn(News::Planned(0, PickerPlan { text, conflicts: 0 }));
    model.press(KeyPress::Down);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    let words = "the conversation would be forked before \"clean up the build\"".to_owned();
    model.learn(News::Talked(0, Ok(words)));
    model.press(KeyPress::Down);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    insta::assert_snapshot!(shown(&mut model, 30, 8));
}

/// The files of a plan, some of them marked.
fn choosing() -> Model {
    let mut model = known();
    model.press(KeyPress::Enter);
    model.press(KeyPress::Char(' '));
    let file = |name: &str, verb: &str, why: &str, lines| OfferedFile {
        name: name.to_owned(),
        verb: verb.to_owned(),
        why: why.to_owned(),
        lines,
    };
    let files = vec![
        file("src/cart.ts", "restore", "", Some(LineCounts { added: 3, removed: 18 })),
        file("logo.png", "recreate", "", None),
        file("scratch.py", "remove", "made by the agent; held first", None),
        file(
            "src/components/checkout/summary/price-with-a-long-name.ts",
            "restore",
            "changed since, perhaps by an interrupted or concurrent call; held first",
            None,
        ),
    ];
    model.learn(News::Offered(1, Ok(files)));
    model.press(KeyPress::Down);
    model.press(KeyPress::Char(' '));
    model.press(KeyPress::Up);
    model.press(KeyPress::Enter);
    let hunk = "@@ -30,3 +31,3 @@\n a\n-b\n+\tc\n d\n";
    let pieces = ["mode 755 → 644\n", "@@ -1,2 +1,2 @@\n one\n-two\n+2\n", hunk];
    model.learn(News::Opened(1, 0, pieces.map(str::to_owned).to_vec()));
    model.press(KeyPress::Down);
    model.press(KeyPress::Char(' '));
    model
}

#[test]
fn files_and_hunks_have_their_marks() {
    let mut model = choosing();
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    insta::assert_snapshot!(shown(&mut model, 40, 10));
    model.press(KeyPress::Esc);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    insta::assert_snapshot!(shown(&mut model, 40, 10));
    model.press(KeyPress::Char('r'));
    let text = "  restore   src/cart.ts   +1 −1\n  recreate  logo.png\n\n2 paths would change\n";
    model.learn(News::Parted(2, Ok(text.to_owned())));
    insta::assert_snapshot!(shown(&mut model, 80, 24));
}

#[test]
fn steps_stand_below_their_turn() {
    let mut model = known();
    model.press(KeyPress::Tab);
    let step = |step: usize, trigger: &str, badges: &[&str]| PickerTurn {
        number: 1,
        id: "c0e1".to_owned(),
        when: "2 minutes ago".to_owned(),
        trigger: trigger.to_owned(),
        badges: badges.iter().map(|it| (*it).to_owned()).collect(),
        step: Some(step),
        ..PickerTurn::default()
    };
    let steps = vec![
        step(1, "Bash rm -rf build && npm i", &[]),
        step(2, "Edit src/\u{1b}[2Jcart.ts", &[]),
        step(3, "Bash make", &["1 not held"]),
    ];
    model.learn(News::Steps(0, Ok(steps)));
    model.press(KeyPress::Down);
    model.press(KeyPress::Down);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    model.press(KeyPress::Enter);
    insta::assert_snapshot!(shown(&mut model, 40, 10));
}

#[test]
fn a_turn_alone_is_shown_with_its_own_plan() {
    let mut model = known();
    model.press(KeyPress::Enter);
    model.press(KeyPress::Char('5'));
    let text = "  restore   src/cart.ts   +1 −2\n\n1 path would change\n".to_owned();
    model.learn(News::Reverts(0, Ok(PickerPlan { text, conflicts: 0 })));
    insta::assert_snapshot!(shown(&mut model, 80, 24));
}

#[test]
fn a_difference_takes_the_whole_screen() {
    let mut model = known();
    model.press(KeyPress::Right);
    insta::assert_snapshot!(shown(&mut model, 80, 24));
    insta::assert_snapshot!(shown(&mut model, 40, 10));
}

#[test]
fn a_search_says_how_many_fit() {
    let mut model = known();
    for c in "cart".chars() {
        model.press(KeyPress::Char(c));
    }
    insta::assert_snapshot!(shown(&mut model, 80, 10));
    model.press(KeyPress::Char('!'));
    insta::assert_snapshot!(shown(&mut model, 80, 10));
}

#[test]
fn without_checkpoints_it_says_where_they_come_from() {
    let mut model = Model::new("shop — ~/code/shop (git)", &[]);
    assert_eq!(model.chosen(), None);
    insta::assert_snapshot!(shown(&mut model, 80, 8));
}

#[test]
fn names_cannot_draw_hide_or_reorder_and_are_as_wide_as_they_are() {
    let mut turns = turns();
    turns[0].prompt = Some("\u{1b}[2J\u{202e}gnp.exe\r\n\u{7}".to_owned());
    turns[1].prompt = Some("日本語のテキストを直してください、それから全部消して".to_owned());
    turns[2].trigger = "before Bash rm 'e\u{301}\u{200b}👩‍👩‍👧'".to_owned();
    let mut model = Model::new("店 — ~/code/店\u{1b}]0;x\u{7} (git)", &turns);
    insta::assert_snapshot!(shown(&mut model, 80, 12));
    // No cell is drawn over the line in the middle.
    let terminal = frame(&mut model, 80, 12);
    let buffer = terminal.backend().buffer();
    let lines: Vec<u16> =
        (2..10).map(|y| (0..80).find(|x| buffer[(*x, y)].symbol() == "│").unwrap()).collect();
    assert!(lines.windows(2).all(|pair| pair[0] == pair[1]), "{lines:?}");
}

#[test]
fn without_colour_nothing_is_lost() {
    let mut model = known();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    model.resize((80, 24));
    terminal.draw(|frame| view(frame, &model, Style::PLAIN)).unwrap();
    let plain = terminal.backend().buffer().clone();
    assert!(plain.content.iter().all(|cell| cell.style() == plain.content[0].style()));
    let coloured = frame(&mut model, 80, 24);
    let coloured = coloured.backend().buffer();
    let symbols = |buffer: &Buffer| -> String {
        buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect()
    };
    assert_eq!(symbols(&plain), symbols(coloured));
    assert_ne!(&plain, coloured);
}

#[test]
fn a_move_draws_only_what_differs() {
    let mut model = known();
    let before = frame(&mut model, 80, 24);
    let before = before.backend().buffer().clone();
    model.press(KeyPress::Char('/'));
    let after = frame(&mut model, 80, 24);
    let drawn = before.diff(after.backend().buffer()).len();
    assert!(drawn < 80, "{drawn} cells");
}
