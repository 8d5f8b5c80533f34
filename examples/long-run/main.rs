//! Months of use in a minute: thousands of hooks over simulated weeks, in a repository that changes
//! and in a plain directory. Prints what the disk, the inodes, a call and the user's own
//! `git status` come to, and draws it.
//!
//! `cargo run --release --example long-run -- [HOOKS] [DAYS] [CHART.svg]`; needs git. Works in a
//! temporary directory with a home of its own, and removes it.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it plays the user, the agent and the clock")]

mod chart;
mod world;

use std::error::Error;

use chart::Sample;
use world::World;

/// How many calls a session makes.
const SESSION: usize = 25;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default| args.get(n).map_or(Ok(default), |text| text.parse());
    let (hooks, days) = (number(0, 10_000)?, i64::try_from(number(1, 42)?)?);
    let mut world = World::new(hooks, days)?;
    // Once a day and always at the same hour: what a day adds goes with its round.
    let look = (hooks / usize::try_from(days)?).max(1);
    let mut samples = Vec::new();
    println!("{}", Sample::HEAD);
    for n in 0..hooks {
        if n.is_multiple_of(SESSION) {
            world.session_begins(n / SESSION)?;
        }
        world.call(n)?;
        if n % SESSION == SESSION - 1 {
            world.session_ends()?;
        }
        if n.is_multiple_of(look) || n + 1 == hooks {
            let sample = world.look(n)?;
            println!("{sample}");
            samples.push(sample);
        }
    }
    if let Some(path) = args.get(2) {
        std::fs::write(path, chart::draw(&samples))?;
    }
    world.close()
}
