//! Judges mutated command lines for as long as it is told, and dies with the first panic.
//!
//! `cargo run --release --example shell-fuzz -- EXECUTIONS [SEED]`. Needs no fuzzer: lines of
//! `fixtures/commands.jsonl` are cut, joined and sprinkled with what the shell gives a meaning.
//! `fuzz/` has the same for libFuzzer, which looks for new paths as well.
#![expect(clippy::print_stdout, reason = "a program of its own, for people")]

use std::time::{Duration, Instant};

use beforehand::{
    model::Language,
    shell::{ShellContext, classify},
};

/// What a mutation puts in.
const PIECES: &[&str] = &[
    "$(", ")", "`", "\"", "'", "{", "}", "{a,b}", "((", "))", "[[", "]]", "<<EOF\n", "EOF\n",
    "<<<", ">", ">>", "2>&1", "|", "||", "&&", ";", "&", "\n", "\\", "\\\n", "$", "${x:-", "${",
    "~", "*", "?", "[a-", "]", "!", "#", "=", "a=b ", "if ", "then ", "fi", "for x in ", "do ",
    "done", "case x in ", "esac", "function f ", "f() ", "time ", "coproc ", "rm -rf ", "sudo ",
    "xargs ", "eval ", "sh -c ", "find . -exec ", " {} \\;", "env -S ", "git ", "-- ", "\u{202e}",
    "\u{0}", "é", "😀", "\u{feff}",
];

/// A small generator of numbers; the same seed gives the same lines.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below.max(1) as u64).unwrap_or(0)
    }
}

fn main() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // What the parser panics at is judged to be unknown; only what gets through is a fault.
        if !beforehand::shell::is_judging() {
            usual(info);
        }
    }));
    let mut args = std::env::args().skip(1);
    let executions: u64 = args.next().and_then(|given| given.parse().ok()).unwrap_or(100_000);
    let seed = args.next().and_then(|given| given.parse().ok()).unwrap_or(0x9e37_79b9_7f4a_7c15);
    let lines: Vec<String> = include_str!("../fixtures/commands.jsonl")
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|value| Some(value["command"].as_str()?.to_owned()))
        .collect();
    let (mut dice, scope) = (Dice(seed), ShellContext::default());
    let (started, mut slowest) = (Instant::now(), (Duration::ZERO, String::new()));
    for _ in 0..executions {
        let line = mutated(&lines, &mut dice);
        let begun = Instant::now();
        let finding = classify(&line, Language::Shell, &scope);
        assert!(finding.commands.len() <= line.len() + 1, "{line:?}");
        let took = begun.elapsed();
        if took > slowest.0 {
            slowest = (took, line);
        }
    }
    println!("{executions} executions in {:?}, no panic", started.elapsed());
    println!("slowest {:?}: {:?}", slowest.0, slowest.1);
}

fn mutated(lines: &[String], dice: &mut Dice) -> String {
    let mut line = lines[dice.roll(lines.len())].clone();
    for _ in 0..=dice.roll(6) {
        let at = boundary(&line, dice);
        match dice.roll(5) {
            0 | 1 => line.insert_str(at, PIECES[dice.roll(PIECES.len())]),
            2 => line.truncate(at),
            3 => line = line.split_off(at),
            _ => line.insert_str(at, &lines[dice.roll(lines.len())]),
        }
    }
    line
}

fn boundary(line: &str, dice: &mut Dice) -> usize {
    let mut at = dice.roll(line.len() + 1);
    while !line.is_char_boundary(at) {
        at -= 1;
    }
    at
}
