//! Tests of the module as a whole: the table of command lines, and laws for any line at all.

use proptest::prelude::*;
use serde::Deserialize;

use super::{syntax::Grammar as _, *};

#[derive(Deserialize)]
struct LabelledLine {
    command: String,
    level: String,
    #[serde(default)]
    targets: Option<Vec<String>>,
}

fn scope() -> ShellContext {
    ShellContext { home: Some("/home/me".to_owned()), ..ShellContext::default() }
}

fn level(line: &str) -> Level {
    classify(line, Language::Shell, &scope()).level
}

fn name(level: Level) -> &'static str {
    match level {
        Level::ReadOnly => "read-only",
        Level::Creates => "creates",
        Level::Destroys => "destroys",
        Level::Unknown => "unknown",
    }
}

#[test]
fn every_line_of_the_table_is_judged_as_it_says() {
    let text = include_str!("../../fixtures/commands.jsonl");
    let mut wrong = Vec::new();
    for line in text.lines() {
        let line: LabelledLine = serde_json::from_str(line).unwrap();
        let finding = classify(&line.command, Language::Shell, &scope());
        let worst = finding.commands.iter().max_by_key(|simple| simple.level);
        let why = worst.map_or("", |simple| simple.reason.as_str());
        if name(finding.level) != line.level {
            let found = name(finding.level);
            wrong.push(format!("{:?}: {found} ({why}), not {}", line.command, line.level));
        }
        let targets: Vec<String> = finding.targets().map(|target| target.path.clone()).collect();
        if line.targets.is_some_and(|expected| expected != targets) {
            wrong.push(format!("{:?}: {targets:?}", line.command));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hostile_lines_end_as_unknown_and_in_time() {
    let lines = [
        "ls | ".repeat(20_000),
        "{a,".repeat(3000),
        "$(".repeat(5000),
        "((".repeat(3000),
        "[[ ".to_owned() + &"! ".repeat(20_000),
        "{a,b}".repeat(500),
        "`".repeat(9999),
        "x".repeat(100_000),
    ];
    for line in lines {
        assert_ne!(level(&line), Level::ReadOnly, "{line:.40}");
    }
}

#[test]
fn a_value_that_doubles_itself_is_followed_only_so_far() {
    let doubling = "a=$a$a;".repeat(40);
    let splitting = "a=\"$a $a\";".repeat(40);
    for line in [
        format!("a=xx;{doubling} rm $a"),
        format!("a='x y';{splitting} for b in $a $a; do rm $b $a; done"),
        format!("export a=xx;{doubling} echo {} > b", "$a".repeat(5000)),
        format!("a={};{} rm $a", "x".repeat(4000), "echo $a;".repeat(5000)),
        format!("a={}; rm {}", "x".repeat(4000), "$a".repeat(5000)),
    ] {
        assert!(guard::refuse(&line).is_none(), "it is read");
        let finding = walked(&line, &scope()).0;
        let texts = finding.commands.iter().map(|simple| simple.text.len()).sum::<usize>();
        let paths = finding.targets().map(|target| target.path.len()).sum::<usize>();
        assert!(texts + paths < 4 << 20, "{line:.40}: {texts} and {paths} bytes");
        assert_ne!(finding.level, Level::ReadOnly, "{line:.40}");
    }
}

#[test]
fn a_value_that_is_many_words_is_split_only_so_often() {
    let (grammar, scope) = (brush::Brush::default(), scope());
    let mut walk = ShellWalk::new(&grammar, PROGRAMS, &scope);
    walk.script(&format!("a='{}'", "x ".repeat(2000)));
    let words: usize = (0..1000).map(|_| walk.expand("$a").len()).sum();
    assert!(words > 2000 && words < 300_000, "{words}");
}

#[test]
fn no_name_is_told_that_is_longer_than_a_path_can_be() {
    let line = format!("a=xx;{} rm $a", "a=$a$a;".repeat(12));
    let finding = walked(&line, &scope()).0;
    assert!(finding.targets().all(|target| target.path.len() <= 4096));
    assert_eq!(finding.level, Level::Destroys);
}

#[test]
fn a_call_that_makes_only_known_paths_touches_them() {
    let run = |command: &str| {
        let intent = Intent::Run { command: command.to_owned(), language: Language::Shell };
        effect(&intent, &scope())
    };
    assert_eq!(run("ls"), Effect::None);
    assert_eq!(run("mkdir a"), Effect::Touches(vec![PathBuf::from("a")]));
    assert!(matches!(run("git add ."), Effect::Unknown(_)));
    assert!(matches!(run("rm a"), Effect::Destroys(_)));
    assert!(matches!(
        effect(&Intent::Unknown(crate::model::UnknownTool::default()), &scope()),
        Effect::Unknown(_)
    ));
}

#[test]
fn user_patterns_see_through_wrappers_and_never_hide_a_redirection() {
    let always = ["git *".to_owned()];
    let never = ["npm *".to_owned()];
    let scope = ShellContext { rules: Patterns::parse(&always, &never).unwrap(), ..scope() };
    let level = |line: &str| classify(line, Language::Shell, &scope).level;
    assert_eq!(level("sudo git status"), Level::Destroys);
    assert_eq!(level("npm test"), Level::ReadOnly);
    assert_eq!(level("npm test > out"), Level::Destroys);
    assert_eq!(level("npm test $(rm a)"), Level::Destroys);
}

#[test]
fn other_languages_are_unknown_unless_they_plainly_look() {
    let level = |line: &str, language| classify(line, language, &scope()).level;
    assert_eq!(level("Get-ChildItem src", Language::PowerShell), Level::ReadOnly);
    assert_eq!(level("Get-Content a | Set-Content b", Language::PowerShell), Level::Unknown);
    assert_eq!(level("dir", Language::PowerShell), Level::ReadOnly);
    assert_eq!(level("del a", Language::PowerShell), Level::Unknown);
    assert_eq!(level("print(1)", Language::Code), Level::Unknown);
}

/// Words that are often valid in a mixture, and seldom sensible.
fn soup() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "ls", "rm", "a", "-rf", "|", ";", "&&", "$(", ")", "`", "'", "\"", "{", "}", "if", "then",
        "fi", ">", "<", "<<EOF", "\n", "EOF", "[[", "]]", "((", "))", "${x:-", "$x", "*", "for",
        "in", "do", "done", "git", "sed", "s/a/b/", "awk", "find", "-exec", "{}", "\\;", "python3",
        "-c", "print(1)", "é", "\\", "case", "esac", "!", "&", "cd", "x=1", "bash", "xargs",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn no_soup_breaks_it(line in soup()) {
        level(&line);
    }

    #[test]
    fn no_text_breaks_it(line in any::<String>()) {
        level(&line);
    }

    #[test]
    fn more_commands_never_make_it_better(line in soup()) {
        // What follows a comment or an open quote would be part of it, hence the new line.
        // A last backslash or an open here-document takes the next line in, in bash as well.
        if line.ends_with('\\') || line.contains("<<") {
            return Ok(());
        }
        let before = level(&line);
        let joined = level(&(line.clone() + "\nrm x"));
        let grouped = level(&format!("({line}\n)"));
        let substituted = level(&format!("echo $({line}\n)"));
        prop_assert!(joined > Level::ReadOnly);
        // A line that is none on its own may become one with what follows, as `cd |` does, or
        // another inside brackets: `) $(`.
        let stands = brush::Brush::default().script(&line).is_ok();
        prop_assert!(!stands || joined >= before && grouped >= before && substituted >= before);
    }
}
