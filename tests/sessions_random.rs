//! Agents, their user and beforehand at work in one project, step after step, against a model that
//! knows who changed what: nothing is lost, the user's work stays, the agent's goes, undo and redo
//! are exact, and what is announced is what is done.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more cases, or one again; `BEFOREHAND_STEPS` makes them
//! longer. A case that fails is made as short as it can be, and told as a script.

mod model;
mod run;
mod steps;

use run::Run;
use steps::{Step, steps};

use crate::support::dice::{Dice, wished};

/// What went wrong after which step.
struct Failure {
    after: usize,
    why: String,
}

fn failure_of(is_git: bool, steps: &[Step]) -> Option<Failure> {
    let mut run = Run::new(is_git);
    steps
        .iter()
        .enumerate()
        .find_map(|(after, step)| run.step(step).err().map(|why| Failure { after, why }))
}

/// Leaves out what is not needed for a failure, as long as that makes it shorter.
fn shrink(is_git: bool, mut steps: Vec<Step>, mut failure: Failure) -> (Vec<Step>, Failure) {
    steps.truncate(failure.after + 1);
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            match failure_of(is_git, &fewer) {
                Some(found) => {
                    fewer.truncate(found.after + 1);
                    (steps, failure) = (fewer, found);
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    (steps, failure)
}

fn case(seed: u64, count: usize) -> usize {
    let mut dice = Dice::new(seed);
    let is_git = dice.is(2);
    let steps = steps(&mut dice, count, is_git);
    let Some(failure) = failure_of(is_git, &steps) else { return steps.len() };
    let (steps, failure) = shrink(is_git, steps, failure);
    let script: Vec<String> = steps.iter().map(ToString::to_string).collect();
    let place = if is_git { "a git repository" } else { "a plain directory" };
    panic!("BEFOREHAND_SEED={seed}, in {place}:\n{}\n{}", script.join("\n"), failure.why);
}

fn number(name: &str, otherwise: usize) -> usize {
    wished(name).map_or(otherwise, |count| usize::try_from(count).unwrap())
}

#[test]
fn whatever_agents_and_people_do_is_told_apart_and_comes_back() {
    let count = number("BEFOREHAND_STEPS", 40);
    if let Some(seed) = wished("BEFOREHAND_SEED") {
        case(seed, count);
        return;
    }
    let first = number("BEFOREHAND_FIRST", 0);
    let cases = number("BEFOREHAND_CASES", 25);
    for seed in first..first + cases {
        case(seed as u64, count);
    }
}
