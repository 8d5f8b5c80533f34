//! beforehand and git plumbing side by side: `cargo bench --bench paired [-- TREE…]`.
//!
//! A tree is a number of small files, all committed, or one of `untracked` (1,000 and 5,000 more
//! that git does not track), `ignored` (1,000 and 40,000 ignored ones), `large` (1,000 and one of
//! 2 GB, untracked) and `plain` (10,000 without a repository, against `cp -a`). Unless told: 1000,
//! 10000, untracked, ignored and plain.
//!
//! Runs each operation with both in turn, round by round, so that both meet the same weather.
//! Prints the medians, their spread, and the median of the pairs' ratios, each less what starting a
//! shell and a program that does nothing costs; and what the disk got, in bytes and inodes. In a
//! run of their own, beforehand's peak memory and system calls, where there are `time` and `strace`.
//! Needs `git` and `sh`. Everything lies in a temporary directory, with a home of its own.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool, not the product")]

mod place;
mod system;

use std::io;

use place::floor;
use place::{Kind, Place, Room};
use system::{BEFOREHAND, System};

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
    let told: Vec<Kind> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let usual =
        [Kind::Files(1_000), Kind::Files(10_000), Kind::Untracked, Kind::Ignored, Kind::Plain];
    println!("wall milliseconds less the floor: median [least-most]; ratio: median of the pairs");
    for kind in if told.is_empty() { usual.to_vec() } else { told } {
        let mut place = Place::make(kind)?;
        println!("\n{kind}");
        // The others take minutes with 2 GB, and say no more; nothing else restores a plain copy.
        let phases = match kind {
            Kind::Files(_) | Kind::Untracked | Kind::Ignored => &PHASES[..],
            Kind::Large | Kind::Plain => &PHASES[..3],
        };
        for phase in phases {
            measure(&mut place, phase, if kind == Kind::Large { 1 } else { ROUNDS })?;
        }
    }
    Ok(())
}

fn measure(place: &mut Place, phase: &Phase, rounds: usize) -> io::Result<()> {
    let (mut floors, mut other, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    let mut grown = Room::default();
    for _ in 0..rounds {
        floors.push(floor(place)?);
        for (system, times) in [(place.other(), &mut other), (&BEFOREHAND, &mut ours)] {
            place.turn_to(system)?;
            (phase.before)(place)?;
            let before = place.room()?;
            times.push(place.time(system, (phase.run)(system))?);
            grown = place.room()?.since(before);
        }
    }
    let (peak, calls) = (peak(place, phase)?, calls(place, phase)?);
    let floor = median(&mut floors);
    let net = |times: &[f64]| times.iter().map(|time| time - floor).collect::<Vec<_>>();
    let (other, ours) = (net(&other), net(&ours));
    let mut ratios: Vec<f64> = ours.iter().zip(&other).map(|(ours, other)| ours / other).collect();
    println!(
        "  {:<18} {} {:<22} beforehand {:<22} ratio {:.2}  {} KB and {} inodes more  peak {} KB  {} \
         system calls",
        phase.name,
        place.other().name,
        spread(other),
        spread(ours),
        median(&mut ratios),
        grown.bytes / 1024,
        grown.inodes,
        peak.as_deref().unwrap_or("?"),
        calls.as_deref().unwrap_or("?"),
    );
    Ok(())
}

/// The most memory that beforehand has at once, in kilobytes.
fn peak(place: &mut Place, phase: &Phase) -> io::Result<Option<String>> {
    let said = place.watched("time -f %M -o", phase.before, (phase.run)(&BEFOREHAND))?;
    Ok(said.and_then(|said| said.lines().last().map(str::to_owned)))
}

/// How many system calls beforehand makes.
fn calls(place: &mut Place, phase: &Phase) -> io::Result<Option<String>> {
    let said =
        place.watched("strace -f -c -U calls,name -o", phase.before, (phase.run)(&BEFOREHAND))?;
    let total = said.as_ref().and_then(|said| said.lines().rfind(|line| line.contains("total")));
    Ok(total.and_then(|line| line.split_whitespace().next().map(str::to_owned)))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn spread(mut times: Vec<f64>) -> String {
    let median = median(&mut times);
    format!("{median:.1} [{:.1}-{:.1}]", times[0], times[times.len() - 1])
}
