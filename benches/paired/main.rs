//! turnback and git plumbing side by side: `cargo bench --bench paired [-- FILES…]`.
//!
//! Makes a repository of so many small files (1,000 and 10,000 unless told), and runs each
//! operation with both in turn, round by round, so that both meet the same weather. Prints the
//! medians, their spread, and the median of the pairs' ratios, each less what starting a shell and
//! a program that does nothing costs. Needs `git` and `sh`. Everything lies in a temporary
//! directory, with a home of its own.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool, not the product")]

mod place;
mod system;

use std::io;

use place::Place;
use system::{GIT, System, TURNBACK, floor};

const ROUNDS: usize = 7;

/// What is measured: its name, what is done to the tree before each run, and what is run.
struct Phase {
    name: &'static str,
    before: fn(&mut Place) -> io::Result<()>,
    run: fn(&System) -> &'static str,
}

const PHASES: [Phase; 5] = [
    Phase { name: "first", before: Place::forget, run: |system| system.snapshot },
    Phase { name: "nothing changed", before: Place::settle, run: |system| system.snapshot },
    Phase { name: "ten changed", before: Place::change_ten, run: |system| system.snapshot },
    Phase { name: "restore 100 files", before: Place::ruin, run: |system| system.restore },
    Phase { name: "list of 50", before: Place::fill, run: |system| system.list },
];

fn main() -> io::Result<()> {
    let sizes: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    println!("wall milliseconds less the floor: median [least-most]; ratio: median of the pairs");
    for files in sizes {
        let mut place = Place::make(files)?;
        println!("\n{files} files");
        for phase in &PHASES {
            measure(&mut place, phase)?;
        }
    }
    Ok(())
}

fn measure(place: &mut Place, phase: &Phase) -> io::Result<()> {
    let (mut floors, mut git, mut ours, mut grown) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        floors.push(floor(place)?);
        for (system, times) in [(&GIT, &mut git), (&TURNBACK, &mut ours)] {
            place.turn_to(system)?;
            (phase.before)(place)?;
            let before = place.bytes()?;
            times.push(system.time(place, (phase.run)(system))?);
            grown = place.bytes()?.saturating_sub(before);
        }
    }
    let floor = median(&mut floors);
    let net = |times: &[f64]| times.iter().map(|time| time - floor).collect::<Vec<_>>();
    let (git, ours) = (net(&git), net(&ours));
    let mut ratios: Vec<f64> = ours.iter().zip(&git).map(|(ours, git)| ours / git).collect();
    println!(
        "  {:<18} git {:<22} turnback {:<22} ratio {:.2}  {} KB more",
        phase.name,
        spread(git),
        spread(ours),
        median(&mut ratios),
        grown / 1024,
    );
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn spread(mut times: Vec<f64>) -> String {
    let median = median(&mut times);
    format!("{median:.1} [{:.1}-{:.1}]", times[0], times[times.len() - 1])
}
