//! Everything that can be wrong with a store is found, named, and refused; what can be repaired
//! without a byte of data is.

mod calls;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use beforehand::process::Exit;

use crate::{
    maintenance::run_maintenance,
    support::{
        packs,
        temp::{chmod, noise, on_disk, special, write},
        world::{Output, World},
    },
};

/// Runs git in the project.
fn git(world: &World, line: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(world.root())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.state())
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@b")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A project with two checkpoints: of `a` and of what it became.
fn project(mut world: World) -> World {
    world.write("dir/a", "first\n");
    world.write(".env", "secret\n");
    world.write(".gitignore", ".env\n");
    assert_eq!(world.run(&["create", "-m", "one"]).exit, Exit::Ok);
    world.write("dir/a", "second\n");
    world.agent_writes("t1", "dir/a", "third\n");
    world
}

fn repository() -> World {
    let world = World::new();
    git(&world, "git init -q -b main && git commit -q --allow-empty -m none");
    project(world)
}

/// Every file of the state directory whose path has `part` in it.
fn own_files(world: &World, part: &str) -> Vec<PathBuf> {
    let all = on_disk(&world.state()).into_keys().map(|path| String::from_utf8(path).unwrap());
    let fitting = all.filter(|path| path.contains(part));
    fitting.map(|path| world.state().join(path)).filter(|path| path.is_file()).collect()
}

fn is_kind(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it == extension)
}

fn overwrite(path: &Path, bytes: impl AsRef<[u8]>) {
    if path.exists() {
        chmod(path, 0o600);
    }
    write(path, bytes);
}

/// The private object with these bytes.
fn private(world: &World, bytes: &[u8]) -> PathBuf {
    packs::unpack(&world.state());
    let found = own_files(world, "objects/").into_iter();
    found.into_iter().find(|path| fs::read(path).unwrap() == bytes).unwrap()
}

#[track_caller]
fn check(world: &mut World, args: &[&str]) -> Output {
    world.run(&[&["check"], args].concat())
}

/// Whether the damage is told by `check`, with or without reading everything.
#[track_caller]
fn is_found(world: &mut World, told: &str) {
    let output = check(world, &["--read-data"]);
    assert_eq!(output.exit, Exit::Failed, "{}", output.stdout);
    assert!(output.stdout.contains(told), "no `{told}` in {}", output.stdout);
}

#[track_caller]
fn is_whole(world: &mut World) {
    let output = check(world, &["--read-data"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stdout);
}

/// Runs git on our private repository.
fn private_git(world: &World, line: &str) -> String {
    let dir = world.private();
    git(world, &format!("export GIT_DIR={0}; cd {0}; {line}", dir.display()))
}

/// A loose object of our repository, compressed, in place of the one called `id`.
fn forge(world: &World, id: &str, with: &str) {
    let path = |id: &str| world.private().join(format!("objects/{}/{}", &id[..2], &id[2..]));
    let bytes = fs::read(path(with)).unwrap();
    private_git(
        world,
        "mkdir p && mv objects/pack/* p/ 2>/dev/null || exit 0; \
         for pack in p/*.pack; do git unpack-objects -q < $pack; done; rm -rf p",
    );
    overwrite(&path(id), bytes);
}

/// The object of a path in the newest checkpoint.
fn stored(world: &mut World, path: &str) -> String {
    let id = world.run(&["list"]).stdout;
    let id = id.split_whitespace().nth(1).unwrap().to_owned();
    private_git(world, &format!("git rev-parse refs/checkpoints/main/{id}:{path}"))
}

#[test]
fn a_forged_blob_of_a_repository_is_found_and_never_restored() {
    let mut world = repository();
    let blob = stored(&mut world, "files/dir/a");
    let other = private_git(&world, "echo forged | git hash-object -w --stdin");
    forge(&world, &blob, &other);
    is_found(&mut world, "is not what its name says");
    let before = on_disk(&world.root().join("dir"));
    let output = world.run(&["restore", "1", "--yes", "--force"]);
    assert_ne!(output.exit, Exit::Ok, "{}", output.stderr);
    assert_eq!(on_disk(&world.root().join("dir")), before);
}

#[test]
fn a_forged_tree_of_a_repository_is_found_and_leads_nowhere() {
    let mut world = repository();
    let tree = stored(&mut world, "files/dir");
    let other = private_git(
        &world,
        "printf '100644 blob %s\\tplanted\\n' $(echo x | git hash-object -w --stdin) | git mktree",
    );
    forge(&world, &tree, &other);
    is_found(&mut world, "is not what its name says");
    let output = world.run(&["restore", "1", "--yes", "--force"]);
    assert_ne!(output.exit, Exit::Ok, "{}", output.stderr);
    assert!(!world.root().join("dir/planted").exists());
    assert_eq!(world.read("dir/a"), "third\n");
}

#[test]
fn refs_that_are_gone_are_made_again() {
    let mut world = repository();
    private_git(&world, "git for-each-ref --format='delete %(refname)' | git update-ref --stdin");
    let said = check(&mut world, &["--repair"]);
    assert!(said.stderr.contains("made 4 refs again"), "{}", said.stderr);
    is_whole(&mut world);
    assert_eq!(private_git(&world, "git for-each-ref refs/checkpoints | wc -l"), "2");
    assert_eq!(private_git(&world, "git for-each-ref refs/private | wc -l"), "2");
}

#[test]
fn a_ref_that_leads_nowhere_is_dropped() {
    let mut world = repository();
    let id = "a1b2c3d4e5f60718";
    let dir = world.private().join("refs");
    let nowhere = "1234567890123456789012345678901234567890\n";
    let planted =
        [format!("checkpoints/main/{id}"), "checkpoints/main/b1b2c3d4e5f60718".to_owned()];
    overwrite(&dir.join(&planted[0]), nowhere);
    overwrite(&dir.join(&planted[1]), "");
    overwrite(&dir.join("anchors/main"), nowhere);
    is_found(&mut world, "anchors/main");
    check(&mut world, &["--repair"]);
    assert!(planted.iter().all(|name| !dir.join(name).exists()));
    is_whole(&mut world);
    private_git(&world, "git fsck --strict");
    world.write("dir/a", "fourth\n");
    assert!(world.before_bash("t2", "rm -rf dir").contains("{}"), "the next call is as always");
    assert_eq!(world.run(&["restore", "1", "--yes"]).exit, Exit::Ok);
}

#[test]
fn what_is_made_again_is_removed_when_it_is_damaged() {
    for world in [World::new(), repository()] {
        let mut world = if world.root().join(".git").exists() { world } else { project(world) };
        world.run(&["list"]);
        let kept = world.run(&["list"]).stdout;
        for (part, name) in [("/cache", "cache"), ("stats.json", "stats.json")] {
            for path in own_files(&world, part) {
                let mut bytes = fs::read(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes.truncate(middle);
                overwrite(&path, bytes);
            }
            is_found(&mut world, name);
        }
        run_maintenance(&world);
        overwrite(&own_files(&world, "maintenance.json")[0], "{\"version\":1,");
        is_found(&mut world, "maintenance.json");
        for path in own_files(&world, "sessions/").iter().filter(|path| is_kind(path, "json")) {
            overwrite(path, "{");
        }
        is_found(&mut world, "sessions/");
        check(&mut world, &["--repair"]);
        is_whole(&mut world);
        let again = world.run(&["list"]).stdout;
        assert_eq!(kept.lines().count(), again.lines().count(), "{again}");
    }
}

#[test]
fn what_a_power_cut_takes_is_no_damage() {
    for world in [World::new(), repository()] {
        let mut world = if world.root().join(".git").exists() { world } else { project(world) };
        world.run(&["list"]);
        run_maintenance(&world);
        for zeros in [0, 100] {
            let mut lost = own_files(&world, "/cache");
            lost.extend(
                ["stats.json", "maintenance.json"].map(|part| own_files(&world, part)[0].clone()),
            );
            lost.extend(
                own_files(&world, "sessions/").into_iter().filter(|it| is_kind(it, "json")),
            );
            assert_eq!(lost.len(), 4);
            for path in &lost {
                overwrite(path, vec![0; zeros]);
            }
            is_whole(&mut world);
        }
        world.write("dir/a", "later\n");
        assert_eq!(world.before_bash("t9", "rm -rf dir"), "{}");
        is_whole(&mut world);
    }
}

#[test]
fn where_a_root_is_can_be_written_down_again() {
    let mut world = project(World::new());
    let place = own_files(&world, "root.json").remove(0);
    overwrite(&place, "[]");
    is_found(&mut world, "root.json");
    let everywhere = check(&mut world, &["--everywhere"]);
    assert!(everywhere.stdout.contains("root.json"), "{}", everywhere.stdout);
    check(&mut world, &["--repair"]);
    is_whole(&mut world);
    assert!(world.run(&["list", "--everywhere"]).stdout.contains("shop"));
}

#[test]
fn damage_without_a_cure_is_named_and_the_rest_restores() {
    for mut world in [project(World::new()), repository()] {
        if world.root().join(".git").exists() {
            let list = private_git(&world, "git for-each-ref --format='%(refname)' refs/private");
            let name = list.lines().next().unwrap();
            let line = format!("git rev-parse {name}:private/below/.env");
            let secret = private_git(&world, &line);
            let other = private_git(&world, "echo forged | git hash-object -w --stdin");
            forge(&world, &secret, &other);
            is_found(&mut world, ".env");
        } else {
            let object = private(&world, b"secret\n");
            overwrite(&object, "forged\n");
            is_found(&mut world, "objects/");
        }
        let named = check(&mut world, &["--repair", "--read-data"]);
        assert_eq!(named.exit, Exit::Failed, "there is no cure for lost bytes");
        world.write("dir/a", "broken\n");
        let output = world.run(&["restore", "1", "--yes", "--force", "--", "dir/a"]);
        assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
        assert_eq!(world.read("dir/a"), "second\n");
    }
}

#[test]
fn a_pipe_among_the_records_hides_no_other() {
    for mut world in [project(World::new()), repository()] {
        let record = own_files(&world, "checkpoints/").remove(0);
        let planted = record.with_file_name("c000000000000001.json");
        special(&planted, rustix::fs::FileType::Fifo, 0o600);
        assert_eq!(world.run(&["list"]).exit, Exit::Ok);
        world.write("dir/a", "later\n");
        assert_eq!(world.before_bash("t9", "rm -rf dir"), "{}");
        assert_eq!(world.run(&["create", "-m", "on"]).exit, Exit::Ok);
    }
}

#[test]
fn a_damaged_object_that_is_borrowed_is_found() {
    let mut world = repository();
    is_whole(&mut world);
    let loose = own_files(&world, "linked/objects/").into_iter();
    let loose = loose.into_iter().find(|it| !it.to_str().unwrap().contains("/pack/")).unwrap();
    // What it links must not change, so it is replaced.
    fs::remove_file(&loose).unwrap();
    write(&loose, "nothing of the kind");
    is_found(&mut world, "borrowed from the user's repository");
}

/// A commit in the history of two checkpoints, not in that of the first: another object by its name.
#[test]
fn a_damaged_commit_is_charged_to_each_checkpoint_that_needs_it() {
    let mut world = World::new();
    git(&world, "git init -q -b main && git commit -q --allow-empty -m none");
    assert_eq!(world.run(&["create", "-m", "without"]).exit, Exit::Ok);
    let other = git(&world, "git rev-parse HEAD");
    let commit = git(&world, "git commit -q --allow-empty -m bad && git rev-parse HEAD");
    git(&world, "git commit -q --allow-empty -m later");
    for text in ["one", "two"] {
        world.write("a", text);
        assert_eq!(world.run(&["create", "-m", text]).exit, Exit::Ok);
    }
    let path = |id: &str| own_files(&world, &format!("linked/objects/{}/{}", &id[..2], &id[2..]));
    let (other, path) = (fs::read(&path(&other)[0]).unwrap(), path(&commit).remove(0));
    fs::remove_file(&path).unwrap();
    write(&path, other);
    let told = check(&mut world, &["--read-data"]).stdout;
    let named = format!("        {commit}, borrowed from the user's repository: it is not what");
    assert!(told.contains(&named), "{told}");
    let needs = format!("  .git/HEAD: of its history {commit} is damaged\n");
    assert_eq!(told.matches(&needs).count(), 2, "{told}");
    assert!(told.ends_with("1 of 3 checkpoints are whole and restore in full\n"), "{told}");
}

#[test]
fn a_borrowed_pack_that_is_damaged_or_gone_is_found() {
    let mut world = World::new();
    world.write("x", "x\n");
    git(&world, "git init -q -b main && git add -A && git commit -qm one && git gc -q");
    assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    is_whole(&mut world);
    let pack = own_files(&world, "linked/objects/pack/").into_iter();
    let pack = pack.into_iter().find(|path| is_kind(path, "pack")).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    is_found(&mut world, "the repository no longer has it");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    write(&pack, bytes);
    is_found(&mut world, "it is not what it was");
}

#[test]
fn a_newer_ledger_is_never_written_to() {
    let mut world = project(World::new());
    let ledger = own_files(&world, "sessions/").into_iter();
    let ledger = ledger.into_iter().find(|path| is_kind(path, "json")).unwrap();
    let newer = r#"{"version":2,"another":["format"]}"#;
    overwrite(&ledger, newer);
    is_whole(&mut world);
    world.write("dir/a", "fourth\n");
    world.agent_writes("t1", "dir/a", "fifth\n");
    assert_eq!(fs::read_to_string(&ledger).unwrap(), newer);
    let all = world.run(&["list", "--all"]).stdout;
    assert_eq!(all.lines().count(), 3, "it was saved all the same: {all}");
}

/// Puts what is no regular file in a place: a pipe, a socket, a link, a directory, one that is not
/// empty.
fn block(path: &Path, how: usize) {
    let _gone = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match how {
        0 => special(path, rustix::fs::FileType::Fifo, 0o600),
        1 => special(path, rustix::fs::FileType::Socket, 0o600),
        2 => std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
        3 => fs::create_dir(path).unwrap(),
        _ => write(&path.join("somebody's"), "own"),
    }
}

#[test]
fn what_is_no_file_in_the_place_of_one_is_named_and_cleared_away() {
    let of_root = [
        "anchor",
        "cache",
        "lock",
        "restore-lock",
        "restore-log",
        "root.json",
        "stats.json",
        "warming",
        "attribution/log",
        "attribution/log.old",
        "attribution/contents/a000000000000001",
    ];
    let shared = [
        "installed.json", "journal", "journal.old", "maintenance.json", "maintenance.lock",
        "objects.lock",
    ];
    let sessions = ["sessions/x.lock", "sessions/x.json"];
    let all = of_root.map(|name| ("roots/", name)).into_iter();
    let all = all.chain(shared.into_iter().chain(sessions).map(|name| ("", name)));
    for (number, (dir, name)) in all.enumerate() {
        // Every place once; every kind in the two that were found first.
        let is_first = ["anchor", "objects.lock"].contains(&name);
        for how in (0..5).filter(|how| is_first || *how == number % 5) {
            let mut world = project(World::new());
            let root = own_files(&world, "root.json").remove(0);
            let dir = if dir.is_empty() { world.state() } else { root.parent().unwrap().into() };
            block(&dir.join(name), how);
            let found = world.run(&["check"]);
            assert_eq!(found.exit, Exit::Failed, "{name} {how}");
            let told = format!("{name}: not a regular file");
            assert!(found.stdout.contains(&told), "{name} {how}: {}", found.stdout);
            let repaired = world.run(&["check", "--repair"]);
            assert_eq!(repaired.exit, Exit::Ok, "{name} {how}: {}", repaired.stderr);
            let last = name.rsplit('/').next().unwrap();
            let done = if how == 4 { "renamed the directory" } else { "removed" };
            assert!(repaired.stderr.contains(&format!("{done} {last}")), "{}", repaired.stderr);
            assert_eq!(world.run(&["check"]).exit, Exit::Ok, "{name} {how}");
            assert_eq!(world.run(&["restore", "latest", "--yes"]).exit, Exit::Ok, "{name} {how}");
            run_maintenance(&world);
        }
    }
}

#[test]
fn a_lost_root_json_is_named_and_written_again() {
    for mut world in [project(World::new()), repository()] {
        let place = own_files(&world, "root.json").remove(0);
        fs::remove_file(&place).unwrap();
        is_found(&mut world, "root.json: it is missing");
        let elsewhere = world.home();
        let told = world.run_in(&elsewhere, &["check", "--everywhere"], "");
        assert_eq!(told.exit, Exit::Failed, "{}", told.stdout);
        assert!(told.stdout.contains("/root.json: it is missing"), "{}", told.stdout);
        let status = world.run_in(&elsewhere, &["status"], "").stdout;
        assert!(status.contains("root.json` is damaged: it is missing"), "{status}");
        let said = check(&mut world, &["--everywhere", "--repair"]);
        assert_eq!(said.exit, Exit::Ok, "{}", said.stdout);
        assert!(said.stderr.contains("wrote root.json again"), "{}", said.stderr);
        assert!(place.is_file());
        assert!(world.run(&["list", "--everywhere"]).stdout.contains("shop"));
    }
}

#[test]
fn a_project_that_is_gone_is_looked_at_as_well() {
    for world in [project(World::new()), repository()] {
        let root = world.root();
        fs::rename(&root, root.with_extension("away")).unwrap();
        let elsewhere = world.home();
        let whole = world.run_in(&elsewhere, &["check", "--everywhere", "--read-data"], "");
        assert_eq!(whole.exit, Exit::Ok, "{}", whole.stdout);
        assert!(whole.stdout.contains("(gone): 2 checkpoints, all whole"), "{}", whole.stdout);
        for path in own_files(&world, "objects/") {
            fs::remove_file(path).unwrap();
        }
        let lost = world.run_in(&elsewhere, &["check", "--everywhere", "--json"], "");
        assert_eq!(lost.exit, Exit::Failed, "{}", lost.stdout);
        assert!(lost.stdout.contains("shop"), "{}", lost.stdout);
        // Nothing is made where the project was.
        world.run_in(&elsewhere, &["check", "--everywhere", "--repair"], "");
        assert!(!root.exists());
    }
}

/// The command that `show` prints for looking at a file without us, run on `path`.
fn shown_by_hand(world: &mut World, checkpoint: &str, path: &str) -> String {
    let shown = world.run(&["show", checkpoint]).stdout;
    let line = shown.lines().find_map(|line| line.trim().strip_prefix("git --git-dir")).unwrap();
    git(world, &format!("git --git-dir{}", line.replace("PATH", path)))
}

#[test]
fn a_ref_that_is_gone_is_named_and_made_again() {
    let mut world = repository();
    let all = private_git(&world, "git for-each-ref --format='%(refname)' refs/checkpoints");
    let private = private_git(&world, "git for-each-ref --format='%(refname)' refs/private");
    private_git(&world, &format!("git update-ref -d {}", all.lines().next().unwrap()));
    let told = check(&mut world, &[]);
    assert_eq!(told.exit, Exit::Ok, "every byte is there: {}", told.stdout);
    assert!(told.stdout.contains("note: refs/checkpoints/"), "{}", told.stdout);
    // Its tree has a name as well.
    assert_eq!(shown_by_hand(&mut world, "1", "dir/a"), "second");
    assert_eq!(shown_by_hand(&mut world, "2", "dir/a"), "first");
    let said = check(&mut world, &["--repair"]);
    assert_eq!(said.stderr.trim(), "made 1 ref again");
    assert!(!said.stdout.contains("note"), "{}", said.stdout);
    assert_eq!(private_git(&world, "git for-each-ref --format='%(refname)' refs"), {
        let anchors = "refs/anchors/administration\nrefs/anchors/main\n";
        format!("{anchors}{all}\n{private}")
    });
}

#[test]
fn what_is_in_an_earlier_repository_is_checked_and_mended_too() {
    let mut world = repository();
    let earlier = world.private();
    git(&world, "rm -rf .git && git init -q -b main --object-format=sha256");
    world.wait(1);
    assert_eq!(world.run(&["create", "-m", "three"]).exit, Exit::Ok);
    is_whole(&mut world);
    assert_eq!(shown_by_hand(&mut world, "3", "dir/a"), "first");
    let list = "git for-each-ref --format='%(refname)' refs/checkpoints";
    let refs = private_git(&world, list);
    private_git(&world, &format!("{list} | sed 's/^/delete /' | git update-ref --stdin"));
    let told = check(&mut world, &[]);
    assert_eq!(told.stdout.matches("note: refs/checkpoints/").count(), 2, "{}", told.stdout);
    let said = check(&mut world, &["--repair"]);
    assert!(said.stderr.contains("made 2 refs again"), "{}", said.stderr);
    assert_eq!(private_git(&world, list), refs);
    fs::remove_file(earlier.join("config")).unwrap();
    is_found(&mut world, "/config: git cannot read the repository");
    check(&mut world, &["--repair"]);
    is_whole(&mut world);
    for path in own_files(&world, earlier.file_name().unwrap().to_str().unwrap()) {
        if path.starts_with(earlier.join("objects")) || path.starts_with(earlier.join("linked")) {
            fs::remove_file(path).unwrap();
        }
    }
    is_found(&mut world, "1 of 3 checkpoints are whole");
}

/// How many checkpoints are listed.
fn count_listed(world: &mut World) -> usize {
    let list: serde_json::Value =
        serde_json::from_str(&world.run(&["list", "--json", "--all"]).stdout).unwrap();
    list.as_array().unwrap().len()
}

#[test]
fn a_copy_of_a_lost_record_is_found_in_the_repository_before_the_present_one() {
    let mut world = repository();
    git(&world, "rm -rf .git && git init -q -b main --object-format=sha256");
    world.wait(1);
    assert_eq!(world.run(&["create", "-m", "three"]).exit, Exit::Ok);
    let records = own_files(&world, "/checkpoints/");
    assert_eq!(records.len(), 3);
    for path in &records {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(count_listed(&mut world), 3);
    assert_eq!(own_files(&world, "/checkpoints/"), records, "each is written again");
    is_whole(&mut world);
    for path in &records {
        fs::remove_file(path).unwrap();
    }
    let said = check(&mut world, &["--repair"]);
    assert_eq!(said.stderr.matches("again from its copy").count(), 3, "{}", said.stderr);
    is_whole(&mut world);
}

#[test]
fn a_root_whose_repository_and_state_are_gone_is_restored_from_its_private_repository() {
    let mut world = repository();
    git(&world, "rm -rf .git");
    beforehand::fs::remove_tree(&world.state().join("roots")).unwrap();
    fs::remove_file(world.root().join("dir/a")).unwrap();
    assert_eq!(count_listed(&mut world), 2);
    let done = world.run(&["restore", "2", "--yes", "--force"]);
    assert_eq!(done.exit, Exit::Ok, "{}{}", done.stdout, done.stderr);
    assert_eq!(world.read("dir/a"), "first\n");
    assert!(world.root().join(".git/HEAD").exists());
}

/// A person's work that a restore overwrites, or a program destroys, is held anew where what is
/// stored of it is damaged.
#[test]
fn what_is_held_again_is_held_although_its_object_is_damaged() {
    for (how, wip) in [("emptied", "mine\n"), ("flipped", "mine\n"), ("emptied", "large")] {
        let mut world = World::new();
        let wip = if wip == "large" { noise(1, 9 << 20) } else { wip.as_bytes().to_vec() };
        world.write("wip", "before\n");
        assert_eq!(world.run(&["create", "-m", "one"]).exit, Exit::Ok);
        world.write("wip", &wip);
        assert_eq!(world.run(&["create", "-m", "two"]).exit, Exit::Ok);
        let object = private(&world, &wip);
        overwrite(&object, if how == "emptied" { Vec::new() } else { b"nine\n".to_vec() });
        fs::File::open(world.root().join("wip")).unwrap().set_modified(world.now().into()).unwrap();
        assert_eq!(world.run(&["restore", "latest~1", "--force", "--yes"]).exit, Exit::Ok);
        assert_eq!(world.read("wip"), "before\n");
        let undone = world.run(&["undo", "--yes"]);
        assert_eq!(undone.exit, Exit::Ok, "{how}: {}{}", undone.stdout, undone.stderr);
        assert_eq!(fs::read(world.root().join("wip")).unwrap(), wip, "{how}");
    }
}

/// A repository that works is not replaced by a copy whose objects are damaged.
#[test]
fn a_repository_that_works_is_never_replaced_by_a_damaged_one() {
    let mut world = World::new();
    git(&world, "git init -q -b main");
    for seed in 1..3 {
        world.write("a", noise(seed, 100_000));
        git(&world, "git add . && git commit -qm more");
    }
    git(&world, "git branch keep && git gc -q");
    world.before_bash("t1", "git branch -D keep");
    git(&world, "git branch -qD keep");
    let pack = own_files(&world, "linked/objects/pack").into_iter().find(|it| is_kind(it, "pack"));
    let pack = pack.unwrap();
    // An inode of its own: nothing of the user's is damaged.
    let mut bytes = fs::read(&pack).unwrap();
    fs::remove_file(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    write(&pack, bytes);
    let refused = world.run(&["restore", "1", "--repository", "--yes"]);
    assert_eq!(refused.exit, Exit::Failed, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("is damaged, and the repository"), "{}", refused.stderr);
    git(&world, "git fsck --strict");
}
