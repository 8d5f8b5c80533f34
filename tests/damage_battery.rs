//! Any file of the state directory, damaged in any way, and then a call that destroys everything: the next hook
//! notices and holds everything anew, or asks, or a restore brings everything back or says what is lost. Nothing
//! waits beyond its deadline, nothing panics, and no wrong byte is restored.
//!
//! `BEFOREHAND_CASES` and `BEFOREHAND_SEED` run more cases, or one again.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::Write as _,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use serde_json::json;

use crate::support::{
    dice::{Dice, wished},
    real::{before, beforehand, git, try_git},
    temp::{noise, on_disk, special, write},
    world::World,
};

/// Far more than the hook's deadline, and than any command takes here.
const WAIT_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    Emptied,
    Cut,
    Zeroed,
    Flipped,
    Pipe,
    Directory,
    Link,
    Removed,
}

const HARMS: [Harm; 8] = [
    Harm::Emptied,
    Harm::Cut,
    Harm::Zeroed,
    Harm::Flipped,
    Harm::Pipe,
    Harm::Directory,
    Harm::Link,
    Harm::Removed,
];

/// What became of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The hook asked before the call.
    Asked,
    /// Every byte came back.
    CameBack,
    /// A restore said that it could not bring everything back.
    LossNamed,
}

/// How a process ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}\n{}\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Runs a command to its end, which must come in time and be no bug.
#[track_caller]
fn run(mut command: Command, input: &str, case: &str) -> Ended {
    let mut child = command.spawn().unwrap();
    // A process that ends early does not read it.
    let _gone = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (done, ends) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let ended = ends.recv_timeout(WAIT_MAX);
    let output = ended.unwrap_or_else(|_| panic!("{case}: {command:?} waits")).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ended = Ended {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    };
    let is_bug = ended.stdout.contains("a bug in") || ended.stderr.contains("panicked");
    assert!(!is_bug && !matches!(ended.code, None | Some(70 | 101)), "{case}: {ended}");
    ended
}

#[track_caller]
fn hook(world: &World, turn: &str, line: &str, case: &str) -> Ended {
    let payload = before(&world.root(), "s", turn, "Bash", &json!({ "command": line }));
    let mut command = beforehand(world, &world.root(), &["hook", "--agent", "claude-code"]);
    command.env("BEFOREHAND_DEADLINE", "10s");
    let ended = run(command, &payload, case);
    assert_eq!(ended.code, Some(0), "{case}: {ended}");
    ended
}

/// A project with files that git has, does not have, and ignores, and one outside of it, all of them held.
fn project(dice: &mut Dice, is_git: bool) -> World {
    let world = World::new();
    for number in 0..4 {
        world.write(&format!("src/t{number}"), format!("tracked {number}\n").repeat(20));
    }
    world.write(".gitignore", ".env\n");
    if is_git {
        git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    }
    world.write("src/t1", "changed\n".repeat(30));
    world.write("new/n", "new\n".repeat(10));
    world.write(".env", "secret\n");
    if dice.is(4) {
        world.write("large", noise(1, 5 << 20));
    }
    write(&world.home().join("notes"), "outside\n");
    let case = "before the damage";
    hook(&world, "t1", &format!("rm -rf new {}", world.home().join("notes").display()), case);
    world.write("src/t2", "edited\n");
    // The last one finds nothing changed, and no stamp that proves nothing.
    for turn in ["t2", "t3", "t4"] {
        assert_eq!(hook(&world, turn, "make", case).stdout.trim(), "{}");
    }
    world
}

/// The regular files of the state directory.
fn files(world: &World) -> Vec<PathBuf> {
    let all = on_disk(&world.state()).into_keys().map(|path| String::from_utf8(path).unwrap());
    let all = all.map(|path| world.state().join(path));
    all.filter(|path| path.symlink_metadata().unwrap().is_file()).collect()
}

/// Does harm to a file; returns whether that changed it.
fn harm(path: &Path, harm: Harm, dice: &mut Dice) -> bool {
    let found = fs::symlink_metadata(path).unwrap();
    let mut bytes = fs::read(path).unwrap();
    let (length, old) = (bytes.len(), bytes.clone());
    match harm {
        Harm::Emptied => bytes.clear(),
        Harm::Cut => bytes.truncate(length / 2),
        Harm::Zeroed => bytes.fill(0),
        Harm::Flipped if length > 0 => bytes[dice.below(length)] ^= 1 << dice.below(8),
        Harm::Flipped => (),
        Harm::Pipe | Harm::Directory | Harm::Link | Harm::Removed => {
            fs::remove_file(path).unwrap();
            match harm {
                Harm::Pipe => special(path, rustix::fs::FileType::Fifo, 0o600),
                Harm::Directory => fs::create_dir(path).unwrap(),
                Harm::Link => symlink("/dev/zero", path).unwrap(),
                _ => (),
            }
            return true;
        }
    }
    if bytes == old {
        return false;
    }
    if found.nlink() > 1 {
        // The user's file stays as it is.
        fs::remove_file(path).unwrap();
        write(path, &bytes);
    } else {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        write(path, &bytes);
    }
    fs::set_permissions(path, found.permissions()).unwrap();
    if harm == Harm::Flipped {
        fs::File::open(path).unwrap().set_modified(found.modified().unwrap()).unwrap();
    }
    true
}

/// All files of the user's, but for what git has of its own.
fn users_files(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = on_disk(&world.root()).into_keys().map(|path| String::from_utf8(path).unwrap());
    let paths = names.filter(|path| !path.starts_with(".git/")).map(|path| world.root().join(path));
    let paths = paths.chain([world.home().join("notes")]).filter(|path| path.is_file());
    paths.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn one_case(seed: u64, number: usize) -> (Harm, Outcome) {
    let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let (is_git, how) = (!number.is_multiple_of(3), HARMS[number % HARMS.len()]);
    let world = project(&mut dice, is_git);
    let then = users_files(&world);
    let mut all = files(&world);
    let victim = loop {
        let path = all.swap_remove(dice.below(all.len()));
        if harm(&path, how, &mut dice) {
            break path.strip_prefix(world.state()).unwrap().to_owned();
        }
    };
    let case = format!("seed {seed}, case {number}: {how:?} {}", victim.display());
    let notes = world.home().join("notes");
    let line = format!("rm -rf src new .env .gitignore large .git {}", notes.display());
    let answer = hook(&world, "t9", &line, &case).stdout;
    if answer.contains("\"ask\"") || answer.contains("\"deny\"") {
        return (how, Outcome::Asked);
    }
    let mut rm = Command::new("sh");
    rm.args(["-c", &line]).current_dir(world.root()).stdin(Stdio::piped());
    run(rm, "", &case);
    let args = ["restore", "latest", "--yes", "--force", "--outside"];
    let restored = run(beforehand(&world, &world.root(), &args), "", &case);
    let mut is_lost = is_git && try_git(&world, &world.root(), "git fsck --strict").is_err();
    for (path, bytes) in then {
        match fs::read(&path) {
            Ok(now) => assert!(now == bytes, "{case}: {} is wrong", path.display()),
            Err(_) => is_lost = true,
        }
    }
    assert!(!is_lost || restored.code != Some(0), "{case}: lost without a word: {restored}");
    (how, if is_lost { Outcome::LossNamed } else { Outcome::CameBack })
}

#[test]
#[expect(clippy::print_stderr, reason = "what a long run is made for")]
fn what_is_damaged_is_held_anew_or_told() {
    let cases = wished("BEFOREHAND_CASES").map_or(16, |cases| usize::try_from(cases).unwrap());
    let seed = wished("BEFOREHAND_SEED").unwrap_or(1);
    let mut count: BTreeMap<(Harm, Outcome), usize> = BTreeMap::new();
    for number in 0..cases {
        *count.entry(one_case(seed, number)).or_default() += 1;
    }
    eprintln!("{count:#?}");
}
