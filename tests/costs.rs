//! What a call costs, in system calls, files and objects: exactly, for a time depends on the machine
//! and a count does not. Where nothing may be traced, nothing is counted.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use insta::assert_snapshot;
use serde_json::json;

use crate::{
    maintenance::run_maintenance,
    support::{
        real::{before, beforehand, git, hook},
        temp::{count, on_disk, write},
        world::World,
    },
};

/// Forty files in four directories, committed, and long enough ago that every stamp proves something.
fn settled() -> World {
    let world = of_forty();
    git(&world, &world.root(), "git init -q -b main && git add -A && git commit -qm one");
    warmed(world)
}

/// The same files in a plain directory.
fn of_forty() -> World {
    let world = World::new();
    for number in 0..40 {
        world.write(&format!("src/{}/{number}", number % 4), format!("{number}\n").repeat(50));
    }
    world
}

fn warmed(world: World) -> World {
    std::thread::sleep(std::time::Duration::from_millis(50));
    // The first reads, the second looks again at what was young.
    for turn in ["warm", "again"] {
        hook(&world, &world.root(), &before_unknown(&world.root(), turn));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    world
}

fn before_unknown(dir: &Path, turn: &str) -> String {
    before(dir, "s", turn, "Bash", &json!({ "command": "./build.sh" }))
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn skipped() {
    eprintln!("skipped: nothing can be traced here");
}

/// The system calls of one hook that name something of the world, each with how often: the name of
/// the call, whether it may write, and the path. `None` where nothing can be traced.
fn traced(world: &World, payload: &str) -> Option<BTreeMap<String, usize>> {
    traced_of(world, &["hook", "--agent", "claude-code"], payload)
}

/// The same of any command.
fn traced_of(world: &World, args: &[&str], input: &str) -> Option<BTreeMap<String, usize>> {
    let trace = raw_trace(world, args, input, "trace=%file,getdents64")?;
    let mut calls = BTreeMap::new();
    for line in trace.lines().filter_map(|line| call_of(world, line)) {
        *calls.entry(line).or_default() += 1;
    }
    Some(calls)
}

/// The lines of strace about the system calls of one kind.
fn raw_trace(world: &World, args: &[&str], input: &str, kind: &str) -> Option<String> {
    let place = world.state().parent()?.join("trace");
    if !may_trace() {
        skipped();
        return None;
    }
    let plain = beforehand(world, &world.root(), args);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "4096", "-e", kind, "-o"]).arg(&place);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(world.root()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let trace = fs::read_to_string(&place).unwrap();
    fs::remove_file(&place).unwrap();
    Some(trace)
}

/// How many bytes a command reads of each file, and in how many calls. `None` where nothing can be
/// traced.
fn reads_of(world: &World, args: &[&str]) -> Option<BTreeMap<PathBuf, (u64, usize)>> {
    if !may_trace() {
        skipped();
        return None;
    }
    let place = world.state().parent()?.join("trace");
    let plain = beforehand(world, &world.root(), args);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "0", "-e", "trace=read,pread64,mmap", "-o"]).arg(&place);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(world.root()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    let mut reads = BTreeMap::<PathBuf, (u64, usize)>::new();
    for line in fs::read_to_string(&place).unwrap().lines() {
        let path = line.split_once('<').and_then(|(_, rest)| Some(rest.split_once('>')?.0));
        let (Some(path), Some((_, bytes))) = (path, line.rsplit_once(" = ")) else { continue };
        let read = reads.entry(path.into()).or_default();
        read.0 += bytes.parse().unwrap_or(0);
        read.1 += 1;
    }
    Some(reads)
}

/// Whether there is strace, and the system lets it look. In `.ci/run` there must be.
pub(crate) fn may_trace() -> bool {
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    #[expect(clippy::disallowed_methods, reason = "a wish of `.ci/run`, not of users")]
    let is_required = std::env::var_os("BEFOREHAND_REQUIRE_STRACE").is_some();
    let may = tried.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(may || !is_required, "strace is missing, or the system forbids tracing: {tried:?}");
    may
}

/// `openat(3</a/b>, "c", O_RDONLY) = 4` as `openat /a/b/c`, with the world's places by short names.
fn call_of(world: &World, line: &str) -> Option<String> {
    let line = line.split_once(' ').map_or(line, |(_, rest)| rest.trim_start());
    let (name, rest) = line.split_once('(')?;
    let dir = rest.split_once('<').filter(|(number, _)| !number.contains('"'));
    let dir = dir.and_then(|(_, rest)| Some(rest.split_once('>')?.0)).unwrap_or_default();
    let named = rest.split_once('"').and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    let path = Path::new(dir).join(named.unwrap_or_default());
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| rest.contains(flag));
    let places = [(world.root(), "project"), (world.state(), "state")];
    let (place, short) = places.iter().find(|(place, _)| path.starts_with(place))?;
    let below = path.strip_prefix(place).ok()?;
    let mark = if writes { " to write" } else { "" };
    Some(format!("{name}{mark} {short}/{}", hidden(&below.to_string_lossy())))
}

/// Names that are hashes, numbers of processes and the like, by one letter.
fn hidden(path: &str) -> String {
    let is_hash = |name: &str| {
        let digits = name.chars().filter(char::is_ascii_hexdigit).count();
        digits >= 16 && digits + 5 >= name.len()
    };
    let plain = |name: &str| match name.split_once(".tmp-") {
        _ if is_hash(name) => "HASH".to_owned(),
        Some((name, _)) if is_hash(name) => "HASH.tmp".to_owned(),
        Some((name, _)) => format!("{name}.tmp"),
        None => name.to_owned(),
    };
    path.split('/').map(plain).collect::<Vec<_>>().join("/")
}

fn of<'a>(
    calls: &'a BTreeMap<String, usize>,
    wanted: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = (&'a str, usize)> {
    calls.iter().filter(move |(call, _)| wanted(call)).map(|(call, times)| (&**call, *times))
}

fn listed<'a>(calls: impl Iterator<Item = (&'a str, usize)>) -> String {
    calls.map(|(call, times)| format!("{times} {call}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_that_only_reads_touches_nothing() {
    let world = settled();
    let file = json!({ "file_path": world.root().join("src/0/0") });
    let payload = before(&world.root(), "s", "read", "Read", &file);
    let Some(calls) = traced(&world, &payload) else { return };
    assert_snapshot!(listed(of(&calls, |_| true)), @"1 getcwd project/");
}

#[test]
fn a_call_that_finds_nothing_changed_lists_nothing_and_opens_no_object() {
    let world = settled();
    let Some(calls) = traced(&world, &before_unknown(&world.root(), "next")) else { return };
    let looks = of(&calls, |call| call.starts_with("newfstatat project/src/"));
    assert_eq!(looks.map(|(_, times)| times).sum::<usize>(), 40, "{calls:#?}");
    let lists = of(&calls, |call| call.starts_with("getdents64 project"));
    assert_snapshot!(listed(lists), @"");
    // Whether it was somewhere else before is asked once a session.
    let identity = |call: &str| call.starts_with("readlink state/roots");
    assert_snapshot!(listed(of(&calls, identity)), @"");
    let opened = of(&calls, |call| call.starts_with("openat project/.git/"));
    // Twice for the repository that this call, and the one before it that nobody saw end, work in.
    assert_snapshot!(listed(opened), @r"
    3 openat project/.git/HEAD
    2 openat project/.git/commondir
    3 openat project/.git/config
    3 openat project/.git/config.worktree
    3 openat project/.git/objects/info/alternates
    ");
    let objects = of(&calls, |call| call.starts_with("open") && call.contains("HASH/objects/pack"));
    assert_snapshot!(listed(objects), @"");
    let written = of(&calls, |call| {
        let changes = ["rename", "mkdir", "unlink", "link", "chmod", "symlink"];
        call.contains(" to write ") || changes.iter().any(|name| call.starts_with(name))
    });
    // The ledger, and a line for whoever restores: what agents do is known by it.
    assert_snapshot!(listed(written), @r"
    1 openat to write state/roots/HASH/attribution/log
    1 openat to write state/sessions/HASH.tmp
    1 openat2 to write state/sessions/HASH
    1 rename state/sessions/HASH.tmp
    1 unlink state/sessions/HASH.tmp
    ");
}

#[test]
fn a_root_with_as_many_files_as_may_be_held_is_walked_once() {
    let stats = |files_max: u32| {
        let world = of_forty();
        write(&world.settings(), format!("max_files = {files_max}\n"));
        fs::create_dir_all(world.state().parent()?).unwrap();
        let calls = traced(&world, &before_unknown(&world.root(), "first"))?;
        let of_files = of(&calls, |line| line.starts_with("newfstatat project/src/"));
        Some(of_files.map(|(_, times)| times).sum::<usize>())
    };
    let Some(within) = stats(41) else { return };
    assert!(within >= 40, "{within}");
    assert_eq!(stats(40), Some(within), "each once");
    assert!(
        stats(39) > Some(within),
        "again, in one thread, so that it is clear which are left out"
    );
}

#[test]
fn a_session_asks_once_whether_its_root_was_somewhere_else() {
    let world = settled();
    let payload = before(&world.root(), "new", "t", "Bash", &json!({ "command": "./build.sh" }));
    let Some(calls) = traced(&world, &payload) else { return };
    let identity =
        |call: &str| call.starts_with("readlink state/roots/") || call.contains("root.json");
    // What is saved then looks once more.
    assert_snapshot!(listed(of(&calls, identity)), @r"
    1 openat state/roots/HASH/root.json
    1 readlink state/roots/HASH
    ");
}

#[test]
fn a_covered_edit_looks_at_the_ledger_its_file_and_our_packs_alone() {
    let is_of_objects = |call: &str| {
        let dirs = ["state/repositories/", "state/objects"];
        dirs.iter().any(|dir| call.contains(dir))
    };
    let listed_edit = |world| Some(listed(of(&traced_edit(&world)?, |call| !is_of_objects(call))));
    let Some(in_repository) = listed_edit(settled()) else { return };
    assert_snapshot!(in_repository, @r"
    1 getcwd project/
    1 newfstatat project/src/0/0
    1 openat project/src/0
    1 openat state/roots/HASH/cache
    1 openat state/roots/HASH/object-stamps
    1 openat state/sessions/HASH
    1 openat to write state/roots/HASH/attribution/log
    1 statx project/.git
    1 statx state/roots/HASH/checkpoints/HASH
    ");
    let Some(calls) = traced_edit(&settled()) else { return };
    // A pack, its index, and the list of borrowed directories.
    let of_packs = of(&calls, is_of_objects).map(|(_, times)| times);
    assert_eq!(of_packs.sum::<usize>(), 3, "{calls:#?}");
    assert_eq!(listed_edit(warmed(of_forty())), Some(in_repository), "in a plain directory");
}

/// The calls of an edit that an earlier call of its turn has covered.
fn traced_edit(world: &World) -> Option<BTreeMap<String, usize>> {
    let edit =
        json!({ "file_path": world.root().join("src/0/0"), "old_string": "0", "new_string": "x" });
    let call = || before(&world.root(), "s", "edit", "Edit", &edit);
    hook(world, &world.root(), &call());
    traced(world, &call())
}

/// What one hook reads of the cache, in bytes.
fn cache_bytes(world: &World, payload: &str) -> Option<usize> {
    let trace =
        raw_trace(world, &["hook", "--agent", "claude-code"], payload, "trace=read,pread64")?;
    let reads = trace.lines().filter(|line| line.contains("/cache>"));
    Some(reads.filter_map(|line| line.rsplit_once("= ")?.1.parse::<usize>().ok()).sum())
}

#[test]
fn a_covered_edit_reads_a_few_kilobytes_of_a_large_cache() {
    let world = World::new();
    for number in 0..3000 {
        world.write(&format!("src/{}/{number}", number % 40), "one\n");
    }
    let root = world.root();
    git(&world, &root, "git init -q -b main && git add -A && git commit -qm one");
    let edit = |turn| {
        let file = json!({ "file_path": root.join("src/0/0"), "old_string": "0" });
        before(&root, "s", turn, "Edit", &file)
    };
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(50));
        hook(&world, &root, &edit("edit"));
    }
    let Some(read) = cache_bytes(&world, &edit("edit")) else { return };
    assert!((100..8192).contains(&read), "{read} bytes");
    // It is the whole of it that a call in another turn reads.
    let whole = cache_bytes(&world, &edit("next")).unwrap_or_default();
    assert!(whole > 200_000, "{whole} bytes");
}

/// At most 54 of all kinds in a static build, half of which the startup and the exit of every program make.
#[test]
fn a_call_with_nothing_to_do_makes_few_calls_about_files() {
    let world = settled();
    let root = world.root();
    let edit = json!({ "file_path": root.join("src/0/0"), "old_string": "0", "new_string": "x" });
    let edit = || before(&root, "s", "edit", "Edit", &edit);
    hook(&world, &root, &edit());
    let shell = |line: &str| before(&root, "s", "edit", "Bash", &json!({ "command": line }));
    let read = before(&root, "s", "edit", "Read", &json!({ "file_path": root.join("src/0/0") }));
    // Before an edit, the file with each pack of ours is looked at: it may be the last one with the bytes.
    let payloads = [
        (edit(), 38),
        (read, 10),
        (shell("ls -la"), 15),
        (shell("git status --short | head -5"), 15),
    ];
    for (payload, most) in payloads {
        let args = ["hook", "--agent", "claude-code"];
        let Some(trace) = raw_trace(&world, &args, &payload, "all") else { return };
        // First what loads a program that is linked dynamically.
        let ours = trace.lines().skip_while(|line| !line.contains(" poll("));
        let kinds =
            ["open", "close", "read", "pread", "write", "stat", "fstat", "newfstat", "getcwd"];
        let is_about_files = |line: &&str| {
            let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
            kinds.iter().any(|kind| call.starts_with(kind))
        };
        let calls: Vec<&str> = ours.filter(is_about_files).collect();
        assert!(calls.len() <= most, "{}: {calls:#?}", calls.len());
    }
}

#[test]
fn a_list_opens_everything_once() {
    let world = settled();
    let run = |args: &[&str]| {
        let output = beforehand(&world, &world.root(), args).output().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    for number in 0..12 {
        world.write("src/0/0", format!("{number}"));
        run(&["create"]);
    }
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!run(&["list"]).is_empty());
    let Some(calls) = traced_of(&world, &["list"], "") else { return };
    let is_record = |call: &str| call.starts_with("openat state/roots/HASH/checkpoints/");
    let opened = of(&calls, |call| call.starts_with("open") && !is_record(call));
    assert_snapshot!(listed(opened), @r"
    2 openat project/
    1 openat project/.claude/settings.json
    1 openat project/.claude/settings.local.json
    1 openat project/.git/HEAD
    1 openat project/.git/commondir
    1 openat project/.git/config
    1 openat project/.git/config.worktree
    1 openat project/.git/objects/info/alternates
    1 openat state/
    1 openat state/installed.json
    1 openat state/journal
    1 openat state/journal.old
    1 openat state/repositories/HASH/origin.json
    1 openat state/repositories/HASH/packed-refs
    1 openat state/repositories/HASH/refs/checkpoints/main
    1 openat state/repositories/HASH/refs/private/main
    1 openat state/roots/HASH/attribution/log
    1 openat state/roots/HASH/attribution/log.old
    1 openat state/roots/HASH/checkpoints
    2 openat state/roots/HASH/root.json
    1 openat state/roots/HASH/stats.json
    1 openat state/sessions
    2 openat state/sessions/HASH
    ");
    let records = of(&calls, is_record);
    assert_eq!(records.map(|(_, times)| times).sum::<usize>(), 13, "each once: {calls:#?}");
}

/// A root with more than `count` checkpoints, each of another change.
fn with_checkpoints(make: fn() -> World, count: usize) -> World {
    let mut world = make();
    for number in 0..count {
        world.write("src/0/0", format!("{number}"));
        assert_eq!(world.run(&["create"]).exit, beforehand::process::Exit::Ok);
    }
    // Otherwise the save is the one that starts it.
    run_maintenance(&world);
    std::thread::sleep(std::time::Duration::from_millis(50));
    world
}

/// What a command does with files of ours, but for objects: they are in packs, however many there are.
fn of_ours(world: &World, args: &[&str], payload: &str) -> Option<BTreeMap<String, usize>> {
    let mut calls = traced_of(world, args, payload)?;
    calls.retain(|call, _| call.contains(" state/") && !call.contains("/objects"));
    Some(calls)
}

#[test]
fn a_save_opens_as_many_files_with_ninety_checkpoints_as_with_ten() {
    let makes: [fn() -> World; 2] = [settled, || warmed(of_forty())];
    for make in makes {
        let calls = [10, 90].map(|count| {
            let world = with_checkpoints(make, count);
            world.write("src/0/0", "by the user");
            let payload = before_unknown(&world.root(), "next");
            of_ours(&world, &["hook", "--agent", "claude-code"], &payload)
        });
        let [Some(few), Some(many)] = calls else { return };
        assert_eq!(many, few);
    }
}

#[test]
fn a_command_opens_each_record_once_and_nothing_else_for_it() {
    let makes: [fn() -> World; 2] = [settled, || warmed(of_forty())];
    for make in makes {
        let worlds = [10, 30].map(|count| with_checkpoints(make, count));
        for args in [
            &["status"][..],
            &["find", "0"],
            &["check"],
            &["show", "latest"],
            &["restore", "latest", "--dry-run"],
        ] {
            let [few, many] = worlds.each_ref().map(|world| of_ours(world, args, ""));
            let (Some(few), Some(many)) = (few, many) else { return };
            let more = many.iter().filter_map(|(call, times)| {
                let before = few.get(call).copied().unwrap_or(0);
                (*times > before).then(|| format!("{} {call}", times - before))
            });
            let more: Vec<String> = more.collect();
            // `status` adds up the sizes of all files; `check` looks whether each record is there.
            let is_opened = |line: &&str| line.contains(" openat ");
            let added: Vec<&str> = more.iter().map(String::as_str).filter(is_opened).collect();
            assert_eq!(added, ["20 openat state/roots/HASH/checkpoints/HASH"], "{args:?}");
        }
    }
}

#[test]
fn ten_changed_files_cost_three_files_and_an_object_for_each_change() {
    let world = settled();
    let change = |round: u64| {
        for number in 0..10 {
            let text = format!("{round} {number}\n").repeat(50);
            world.write(&format!("src/0/{}", number * 4), text);
        }
        hook(&world, &world.root(), &before_unknown(&world.root(), &format!("ten {round}")))
    };
    let objects = || {
        let line = "git cat-file --batch-all-objects --batch-check";
        git(&world, &world.private(), line).lines().count()
    };
    let files = || [world.private(), world.state()].map(|place| count(&place));
    // What is there once for all, as the list of our packs, comes with the first.
    change(1);
    let (objects_before, files_before) = (objects(), files());
    change(2);
    // Ten contents, the trees `src/0`, `src` and that of the root, the record and its public part, a tree with each.
    assert_eq!(objects() - objects_before, 10 + 3 + 4);
    // A pack and its index; beside them a record. The refs are in one list.
    let [in_git, in_state] = files();
    let added = (in_git - files_before[0], in_state - files_before[1]);
    assert_eq!(added, (2, 3), "{:#?}", on_disk(&world.state()).keys());
    hook(&world, &world.root(), &before_unknown(&world.root(), "same"));
    assert_eq!((objects() - objects_before, files()), (17, [in_git, in_state]));
}

#[test]
fn a_checkpoint_waits_for_the_disk_three_times() {
    let world = settled();
    (0..10).for_each(|number| world.write(&format!("src/0/{}", number * 4), "other\n"));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let args = ["hook", "--agent", "claude-code"];
    let kinds = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2";
    let payload = before_unknown(&world.root(), "changed");
    let Some(trace) = raw_trace(&world, &args, &payload, kinds) else { return };
    // What is synced or renamed, in order; syncs that nothing is renamed between can wait together.
    let mut steps: Vec<Vec<String>> = vec![Vec::new()];
    for line in trace.lines().filter(|line| !line.contains("<... ")) {
        let is_sync = line.contains("sync(");
        let Some(path) = line.split(['<', '>', '"']).nth(1) else { continue };
        let below = Path::new(path).strip_prefix(world.state()).unwrap_or(Path::new(path));
        match (is_sync, steps.last().is_some_and(Vec::is_empty)) {
            (true, _) => steps.last_mut().unwrap().push(hidden_of(&below.to_string_lossy())),
            (false, false) => steps.push(Vec::new()),
            (false, true) => (),
        }
    }
    steps.retain(|step| !step.is_empty());
    for step in &mut steps {
        step.sort();
    }
    let steps: Vec<String> = steps.iter().map(|step| step.join(", ")).collect();
    assert_snapshot!(steps.join("\n"), @r"
    repositories/HASH/objects/pack/tmp_idx_, repositories/HASH/objects/pack/tmp_pack_
    repositories/HASH/objects/pack, repositories/HASH/packed-refs.new, roots/HASH/checkpoints/HASH.tmp
    repositories/HASH, roots/HASH/checkpoints
    ");
}

/// The same for names of packs and checkpoints that are not written yet.
fn hidden_of(path: &str) -> String {
    let plain = |name: &str| {
        let name = name.split_once(".tmp-").map_or(name, |(name, _)| name);
        name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned()
    };
    hidden(path).split('/').map(plain).collect::<Vec<_>>().join("/")
}

/// A repository with so many loose refs in ten directories, held, and long enough ago.
fn with_refs(count: usize) -> World {
    let world = settled();
    let head = git(&world, &world.root(), "git rev-parse HEAD");
    let head = head.trim();
    let list = (0..count).map(|number| format!("create refs/many/{}/{number} {head}", number % 10));
    world.write(".git/list", list.collect::<Vec<_>>().join("\n") + "\n");
    git(&world, &world.root(), "git update-ref --stdin <.git/list && rm .git/list");
    for turn in ["many", "again", "settled"] {
        std::thread::sleep(std::time::Duration::from_millis(50));
        hook(&world, &world.root(), &before_unknown(&world.root(), turn));
    }
    world
}

#[test]
fn very_many_refs_are_not_looked_at_one_by_one_when_nothing_has_changed() {
    let world = with_refs(2_100);
    let Some(calls) = traced(&world, &before_unknown(&world.root(), "next")) else { return };
    let of_refs = of(&calls, |call| call.contains(" project/.git/refs/many"));
    // The ten directories, and the one above them.
    assert_eq!(of_refs.map(|(_, times)| times).sum::<usize>(), 11, "{calls:#?}");
}

/// Each ref in two threads: a stat tells a checkpoint that it is as it was, and a restore reads it, to find a
/// damaged repository.
#[test]
fn a_restore_opens_each_ref_once_and_a_checkpoint_none() {
    let world = with_refs(1_200);
    let counts = |args: &[&str]| {
        let calls = traced_of(&world, args, "")?;
        let is_ref = |call: &str| {
            call.contains(" project/.git/refs/many/") && call.matches('/').count() == 5
        };
        let mut counts = BTreeMap::new();
        for (call, times) in of(&calls, is_ref) {
            let name = call.split(' ').next().unwrap_or_default().to_owned();
            *counts.entry(name).or_insert(0) += times;
        }
        Some(counts.into_iter().collect::<Vec<_>>())
    };
    world.write("src/0/0", "other\n");
    let Some(created) = counts(&["create"]) else { return };
    assert_eq!(created, [("newfstatat".to_owned(), 1_200)]);
    world.write("src/0/0", "again\n");
    let restored = counts(&["restore", "latest", "--yes", "--exact", "--force"]).unwrap();
    assert_eq!(world.read("src/0/0"), "other\n");
    assert_eq!(restored, [("newfstatat".to_owned(), 1_200), ("openat".to_owned(), 1_200)]);
}

#[test]
fn a_ref_that_was_written_in_place_is_held_whichever_thread_looks_at_it() {
    let world = with_refs(1_200);
    world.write("src/0/0", "other\n");
    git(&world, &world.root(), "git commit -qam two");
    let new = git(&world, &world.root(), "git rev-parse HEAD");
    for name in ["0/0", "0/10", "4/4", "5/1195", "9/9", "9/999"] {
        std::thread::sleep(std::time::Duration::from_millis(50));
        // Its directory does not tell.
        world.write(&format!(".git/refs/many/{name}"), &new);
        let args = ["create"];
        let created = beforehand(&world, &world.root(), &args).output().unwrap();
        let id = String::from_utf8(created.stdout).unwrap();
        let line =
            format!("git show refs/private/main/{}:private/repository/refs/many/{name}", id.trim());
        assert_eq!(git(&world, &world.private(), &line), new, "{name}");
    }
}

#[test]
fn a_restore_reads_no_tree_of_a_repository_that_has_all_that_was_borrowed() {
    let world = settled();
    world.write("src/0/0", "other\n");
    let args = ["restore", "latest", "--yes", "--exact", "--force"];
    let Some(calls) = traced_of(&world, &args, "") else { return };
    assert_eq!(world.read("src/0/0"), "0\n".repeat(50));
    let is_theirs = |call: &str| {
        call.starts_with("open")
            && call.contains(" project/.git/objects/")
            && call.ends_with("HASH")
    };
    // The commit at which HEAD stands.
    assert_eq!(of(&calls, is_theirs).map(|(_, times)| times).sum::<usize>(), 1, "{calls:#?}");
}

/// How often something below the repository's own object directories was looked at or linked.
fn of_objects(calls: &BTreeMap<String, usize>, call: &str) -> usize {
    let prefix = format!("{call} project/.git/objects/");
    let is_loose = |call: &str| call.strip_prefix(&prefix).is_some_and(|it| it.ends_with("/HASH"));
    of(calls, is_loose).map(|(_, times)| times).sum()
}

#[test]
fn each_loose_object_is_linked_once_and_only_new_ones_later() {
    let world = World::new();
    for number in 0..400 {
        world.write(&format!("{}/{number}", number % 4), format!("{number}\n"));
    }
    git(&world, &world.root(), "git init -q -b main && git add -A");
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::create_dir_all(world.state().parent().unwrap()).unwrap();
    let Some(calls) = traced_of(&world, &["create"], "") else { return };
    assert_eq!(of_objects(&calls, "linkat"), 400, "{calls:#?}");
    world.write("0/0", "other\n");
    git(&world, &world.root(), "git add -A");
    std::thread::sleep(std::time::Duration::from_millis(50));
    let Some(calls) = traced_of(&world, &["create"], "") else { return };
    let looked = of_objects(&calls, "linkat");
    assert!((1..20).contains(&looked), "those in the directory of the new one: {calls:#?}");
}

/// A plain directory: reading is all that a first checkpoint does for each file.
#[test]
fn a_first_checkpoint_of_a_plain_directory_opens_each_file_and_looks_for_no_other() {
    let mut world = World::new();
    for number in 0..300 {
        world.write(&format!("{}/{number}", number % 4), format!("{number}\n"));
    }
    fs::create_dir_all(world.state().parent().unwrap()).unwrap();
    let Some(calls) = traced_of(&world, &["create"], "") else { return };
    let is_content = |call: &str| call.contains(" project/") && call.starts_with("openat");
    // Each file, and directories: each thread opens that of the files it takes.
    let opened = of(&calls, is_content).filter(|(call, _)| call.matches('/').count() == 2);
    assert_eq!(opened.map(|(_, times)| times).sum::<usize>(), 300, "{calls:#?}");
    // One pack, a directory for it, and what is needed to list and to sync them.
    let objects = of(&calls, |call| call.contains("state/objects"));
    assert!(objects.map(|(_, times)| times).sum::<usize>() < 60, "{calls:#?}");
    // A pack and a record, whatever has changed.
    for round in 0..2 {
        let before = count(&world.state());
        for number in 0..10 {
            world.write(&format!("0/{}", number * 4), format!("{round} {number}\n"));
        }
        assert_eq!(world.run(&["create"]).exit, beforehand::process::Exit::Ok);
        assert_eq!(count(&world.state()) - before, 2);
    }
}

#[test]
fn status_of_a_plain_directory_reads_the_lines_of_a_pack_at_once() {
    let mut world = World::new();
    for number in 0..400 {
        world.write(&format!("{}/{number}", number % 4), format!("{number}\n"));
    }
    assert_eq!(world.run(&["create"]).exit, beforehand::process::Exit::Ok);
    let Some(reads) = reads_of(&world, &["status"]) else { return };
    let of_packs =
        |(path, _): &(&PathBuf, _)| path.starts_with(world.state().join("objects/packs"));
    let packs: Vec<_> = reads.iter().filter(of_packs).collect();
    let [(_, (bytes, times))] = packs[..] else { panic!("{reads:#?}") };
    // Directories and the first of the four hundred files one by one, and then 40 KB.
    assert!(*times < 100 && *bytes < 1_000_000, "{reads:#?}");
}
