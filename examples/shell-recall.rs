//! Prints how well `shell` judges labelled command lines: recall, false positives, misses by
//! category, and how long a verdict takes.
//!
//! `cargo run --release --example shell-recall -- FILE.jsonl`

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::BTreeMap;
use std::time::Instant;

use beforehand::model::{Language, Level};
use beforehand::shell::{self, ShellContext};
use serde::Deserialize;

#[derive(Deserialize)]
struct Line {
    command: String,
    effect: String,
    capability: String,
    category: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: shell-recall FILE.jsonl")?;
    let text = std::fs::read_to_string(path)?;
    let lines: Vec<Line> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let scope = ShellContext::default();
    let mut micros = Vec::new();
    let mut slowest = (0, "");
    let (mut destroying, mut negatives) = (0_usize, 0_usize);
    let (mut missed, mut raised): (Vec<&Line>, Vec<(&Line, String)>) = (Vec::new(), Vec::new());
    for line in &lines {
        let begin = Instant::now();
        let finding = shell::classify(&line.command, Language::Shell, &scope);
        let took = begin.elapsed().as_micros();
        slowest = slowest.max((took, line.command.as_str()));
        micros.push(took);
        let reads = finding.level == Level::ReadOnly;
        let is_negative = line.effect == "NONE" && line.capability == "none";
        destroying += usize::from(line.effect == "DESTROYS");
        negatives += usize::from(is_negative);
        if line.effect == "DESTROYS" && reads {
            missed.push(line);
        }
        if is_negative && !reads {
            let worst = finding.commands.iter().max_by_key(|simple| simple.level);
            let why = worst.map(|simple| simple.reason.clone()).unwrap_or_default();
            raised.push((line, why));
        }
        let creates = line.effect != "NONE" || line.capability != "none";
        if reads && creates && line.effect != "DESTROYS" {
            println!("reads?   [{} {}] {:?}", line.effect, line.capability, line.command);
        }
    }
    report(&missed, &raised);
    micros.sort_unstable();
    let at = |share: usize| micros.get(micros.len() * share / 1000).copied().unwrap_or_default();
    println!("slowest          {:?}", slowest.1);
    println!("recall           {}", percent(destroying - missed.len(), destroying));
    println!("false positives  {}", percent(raised.len(), negatives));
    println!("p50 {} µs  p99 {} µs  max {} µs", at(500), at(990), at(999));
    Ok(())
}

fn report(missed: &[&Line], raised: &[(&Line, String)]) {
    let mut by_category: BTreeMap<&str, usize> = BTreeMap::new();
    for line in missed {
        *by_category.entry(&line.category).or_default() += 1;
        println!("MISSED   [{}] {:?}", line.category, line.command);
    }
    for (line, why) in raised {
        println!("raised   [{}] {:?}: {why}", line.category, line.command);
    }
    for (category, count) in by_category {
        println!("missed in {category}: {count}");
    }
}

fn percent(part: usize, whole: usize) -> String {
    let tenths = (part * 1000 + whole / 2) / whole.max(1);
    format!("{part} of {whole} ({}.{} %)", tenths / 10, tenths % 10)
}
