//! beforehand, its floors and git side by side: `cargo bench --bench paired [-- OPTION… TREE…]`.
//!
//! A floor is a program that does only what cannot be avoided: `lstat` of each known path, reading and
//! hashing every byte, writing the files and syncing once. Each operation of beforehand is run in turn
//! with its floor and with other programs, round by round, so that all meet the same conditions; what is
//! printed are multiples, as medians over the rounds. All are whole processes.
//!
//! - the floor of a call with nothing to do reads its input and exits;
//! - of nothing changed: `lstat` of each path that is known, files and directories, in two threads;
//! - of ten changed: beforehand's own time where nothing changed, and a file with the bytes of the ten,
//!   written and synced;
//! - of a first checkpoint: every file read and hashed in two threads (SHA-1, SHA-256 in a plain
//!   directory), and what no pack has yet written to one file and synced;
//! - of a restore: beforehand's own time where nothing changed, and the files written beside their
//!   places, renamed, and synced once;
//! - of a list or `status`: a file of 20 KB read and printed.
//!
//! Trees are `1k 10k 79k 500k untracked ignored held loose refs plain large many`; unless told, the five
//! that take a few minutes. `--all` takes every tree. `--only same,ten` runs only these of `first same
//! ten restore covered read list status`; the name of a tree does as well. `--rounds N` overrides the
//! number of rounds. `--write FILE`
//! puts each row into the table of a Markdown document as soon as it is measured, and leaves the others: it
//! can be stopped at any time, and gone on with what is missing. `--program PATH` measures another build.
//!
//! Memory, system calls and instructions are from runs of their own, where there are `time`, `strace`
//! and `valgrind`. Needs `git` and `sh`. Everything lies in a temporary directory, with a home of its
//! own. On a busy machine, run it with `chrt -r 10`.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a tool, not the product")]
#![expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of files that are made up"
)]

mod floors;
mod operation;
mod place;
mod table;
mod tree;

use std::{fs, io, path::PathBuf};

use operation::Operation;
use place::{Place, Usage};
use table::Row;
use tree::Tree;

/// The command line.
struct Wanted {
    trees: Vec<Tree>,
    operations: Vec<Operation>,
    rounds: Option<usize>,
    write: Option<PathBuf>,
    program: PathBuf,
}

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|word| word == floors::WORD) {
        return floors::run(&args[1..]);
    }
    let wanted = wanted(&args).map_err(io::Error::other)?;
    print!("{}", table::HEAD);
    for &tree in &wanted.trees {
        let mut place = Place::make(tree, &wanted.program)?;
        for &operation in wanted.operations.iter().filter(|it| it.is_run_in(tree)) {
            let rounds = wanted.rounds.unwrap_or(tree.rounds());
            let row = measure(&mut place, operation, rounds)?;
            print!("{}", row.line());
            if let Some(path) = &wanted.write {
                table::write(path, &row)?;
            }
        }
    }
    Ok(())
}

fn wanted(args: &[String]) -> Result<Wanted, String> {
    let (mut trees, mut operations) = (Vec::new(), Vec::new());
    let (mut rounds, mut write) = (None, None);
    let mut program = PathBuf::from(env!("CARGO_BIN_EXE_beforehand"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value"));
        match arg.as_str() {
            // Cargo says so.
            "--bench" => (),
            "--all" => trees.extend(Tree::ALL),
            "--only" => choose(value()?, &mut operations, &mut trees)?,
            "--rounds" => rounds = Some(value()?.parse().map_err(|err| format!("{err}"))?),
            "--write" => write = Some(PathBuf::from(value()?)),
            "--program" => program = PathBuf::from(value()?),
            tree => trees.push(tree.parse().map_err(|()| format!("no tree `{tree}`"))?),
        }
    }
    if trees.is_empty() {
        trees.extend(Tree::USUAL);
    }
    if operations.is_empty() {
        operations.extend(Operation::ALL);
    }
    if rounds == Some(0) {
        return Err("nothing to run in no rounds".to_owned());
    }
    if !trees.iter().any(|&tree| operations.iter().any(|it| it.is_run_in(tree))) {
        return Err(
            "nothing to run: none of these operations is measured in these trees".to_owned()
        );
    }
    let program = program.canonicalize().map_err(|err| format!("{}: {err}", program.display()))?;
    Ok(Wanted { trees, operations, rounds, write, program })
}

/// Adds what a list names: operations, in the order in which they have to run, and trees.
fn choose(
    list: &str,
    operations: &mut Vec<Operation>,
    trees: &mut Vec<Tree>,
) -> Result<(), String> {
    for name in list.split(',') {
        let operation = Operation::ALL.into_iter().find(|it| it.name() == name);
        match (operation, name.parse()) {
            (Some(operation), _) => operations.push(operation),
            (None, Ok(tree)) => trees.push(tree),
            (None, Err(())) => return Err(format!("no operation and no tree `{name}`")),
        }
    }
    operations.sort_by_key(|one| Operation::ALL.iter().position(|it| it == one));
    Ok(())
}

fn measure(place: &mut Place, operation: Operation, rounds: usize) -> io::Result<Row> {
    let measured = (0..rounds).map(|_| {
        let round = operation.round(place);
        place.wait_aside();
        round
    });
    let rounds = measured.collect::<io::Result<_>>()?;
    let (added, peak_kb) = watched(place, operation)?;
    // All threads, but not what is started in the background.
    let strace = ["strace", "-f", "-b", "execve", "-c", "-U", "calls,name", "-o"];
    let calls = report(place, operation, &strace)?;
    let calls =
        calls.and_then(|text| first_word(text.lines().rfind(|line| line.contains("total"))?));
    let instructions = if operation.is_counted() { instructions(place, operation)? } else { None };
    Ok(Row { operation, tree: place.tree, rounds, added, peak_kb, calls, instructions })
}

/// What beforehand adds to the disk, and the most memory that it has at once, in kilobytes.
fn watched(place: &mut Place, operation: Operation) -> io::Result<(Usage, Option<u64>)> {
    operation.prepare(place)?;
    let before = place.usage()?;
    let (path, said) = (place.beside("watched"), ["time", "-f", "%M", "-o"].map(str::to_owned));
    let watcher = [&said[..], std::slice::from_ref(&path)].concat();
    let ran = place.time(&mut operation.command(place, &watcher)?);
    let added = place.usage()?.since(before);
    place.wait_aside();
    let peak = if ran.is_ok() {
        first_word(fs::read_to_string(path)?.lines().last().unwrap_or(""))
    } else {
        None
    };
    Ok((added, peak))
}

/// What a program that watches beforehand has written; `None` where it cannot be run.
fn report(place: &mut Place, operation: Operation, watcher: &[&str]) -> io::Result<Option<String>> {
    operation.prepare(place)?;
    let path = place.beside("watched");
    let watcher: Vec<String> = watcher.iter().copied().chain([&*path]).map(str::to_owned).collect();
    let ran = place.time(&mut operation.command(place, &watcher)?);
    place.wait_aside();
    ran.ok().map(|_| fs::read_to_string(path)).transpose()
}

/// How many instructions beforehand executes in user space.
fn instructions(place: &mut Place, operation: Operation) -> io::Result<Option<u64>> {
    operation.prepare(place)?;
    let watcher = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let mut command = operation.command(place, &watcher.map(str::to_owned))?;
    let ran = place.time(&mut command);
    let said = place.said()?;
    let collected = said.lines().rfind(|line| line.contains("Collected :"));
    Ok(collected.filter(|_| ran.is_ok()).and_then(|line| first_word(line.split(':').nth(1)?)))
}

fn first_word(line: &str) -> Option<u64> {
    line.split_whitespace().next()?.parse().ok()
}
