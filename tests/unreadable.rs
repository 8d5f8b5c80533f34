//! Unreadable checkpoints: they are named, and what they may need is kept, but not forever. A
//! checkpoint of a newer beforehand is left alone.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use beforehand::{process::Exit, state::StateDir};
use serde_json::{Value, json};

use crate::{
    maintenance::{ids, live, run_maintenance, save, status},
    support::{
        packs, real,
        temp::{chmod, on_disk, withhold, write},
        world::World,
    },
};

fn record(world: &World, id: &str) -> PathBuf {
    let own = StateDir::new(world.state()).root_at(&world.root());
    own.checkpoints().join(format!("{id}.json"))
}

fn aside(world: &World, id: &str) -> PathBuf {
    StateDir::new(world.state()).root_at(&world.root()).damaged().join(format!("{id}.json"))
}

/// Changes the record of a checkpoint.
fn damage(world: &World, id: &str, with: impl Fn(&str) -> String) {
    let path = record(world, id);
    let text = with(&fs::read_to_string(&path).unwrap());
    chmod(&path, 0o600);
    write(&path, text);
}

fn half(text: &str) -> String {
    text[..text.len() / 2].to_owned()
}

fn odd(text: &str) -> String {
    let odd = text.replace("\"reason\": \"asked\"", "\"reason\": \"a cosmic ray\"");
    assert_ne!(odd, text);
    odd
}

/// Takes a checkpoint with a file of this many bytes that goes to the private store.
fn save_private(world: &mut World, bytes: usize) -> String {
    save(world, ".env", bytes)
}

/// The sizes of the private objects that `save_private` made.
fn sizes(world: &World) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    if world.state().join("objects").exists() {
        all.extend(packs::objects(&world.state()).values().map(|bytes| bytes.len() as u64));
    }
    if world.private().exists() {
        let line = "git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectsize)'";
        let blobs = git(world, line);
        let blobs = blobs.lines().filter_map(|line| line.strip_prefix("blob "));
        all.extend(blobs.map(|size| size.parse::<u64>().unwrap()));
    }
    let mut sizes: Vec<u64> =
        all.into_iter().filter(|len| *len >= 5000 && len % 1000 == 0).collect();
    sizes.sort_unstable();
    sizes
}

/// Runs git on our private repository.
fn git(world: &World, line: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(world.private())
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", world.state())
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn is_named(world: &mut World, id: &str) {
    let told = world.run(&["status"]).stdout;
    assert!(told.contains(&format!("damaged: {}", &id[..4])), "{told}");
    let (_, told) = status(world);
    assert_eq!(told["roots"][0]["damaged"], json!([id]));
    let told = world.run(&["check"]);
    assert!(told.exit == Exit::Failed && told.stdout.contains(&id[..4]), "{}", told.stdout);
}

#[test]
fn a_record_of_which_nothing_is_left_keeps_everything_until_its_time_is_up() {
    let mut world = World::new();
    let all: Vec<String> = (0..4).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
    damage(&world, &all[1], half);
    is_named(&mut world, &all[1]);
    let told = world.run(&["status"]).stdout;
    assert!(told.contains("nothing can be freed"), "{told}");
    let pruned = world.run(&["prune", "--keep", "1"]).stdout;
    assert!(pruned.contains("it is damaged: beforehand check --repair"), "{pruned}");
    let mut stay = vec![all[3].clone(), all[1].clone()];
    assert_eq!(ids(&mut world), stay, "the limit holds for what can be read");
    assert_eq!(sizes(&world), [5000, 6000, 7000, 8000], "it may need any of them");
    let sized = world.run(&["prune", "--max-size", "1"]);
    assert!(sized.stderr.contains("nothing can be freed"), "{}{}", sized.stdout, sized.stderr);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    stay.insert(0, save_private(&mut world, 9000));
    live(&mut world, 13);
    assert_eq!(ids(&mut world), stay, "what would gain no room is not dropped for it");
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1 GB");
    live(&mut world, 3);
    assert!(!record(&world, &all[1]).exists());
    // What a repository has of it is a checkpoint like any other.
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    live(&mut world, 1);
    assert_eq!(ids(&mut world), [stay[0].clone()]);
    assert!(!sizes(&world).contains(&6000), "{:?}", sizes(&world));
    let told = world.run(&["status"]).stdout;
    assert!(!told.contains("damaged"), "{told}");
    assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
}

#[test]
fn a_record_that_still_says_what_it_needs_blocks_nothing_and_can_be_salvaged() {
    let mut world = World::new();
    let all: Vec<String> = (0..4).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
    damage(&world, &all[1], odd);
    is_named(&mut world, &all[1]);
    let told = world.run(&["status"]).stdout;
    assert!(!told.contains("nothing can be freed"), "{told}");
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    run_maintenance(&world);
    assert_eq!(ids(&mut world), [all[3].clone(), all[1].clone()]);
    assert_eq!(sizes(&world), [6000, 8000], "its own stay, and others go");
    let said = world.run(&["check", "--repair"]);
    assert!(said.stderr.contains("from what was left of it"), "{}", said.stderr);
    assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
    let done = world.run(&["restore", &all[1], "--yes", "--force"]);
    assert_eq!(done.exit, Exit::Ok, "{}", done.stderr);
    assert_eq!(world.read(".env").len(), 6000);
}

#[test]
fn repair_puts_aside_what_nothing_is_left_of_and_frees_nothing() {
    let mut world = World::new();
    world.write("a", "then");
    let all: Vec<String> = (0..2).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
    damage(&world, &all[0], half);
    world.write("a", "now");
    let said = world.run(&["check", "--repair"]);
    assert!(said.stderr.contains("kept for a while"), "{}", said.stderr);
    assert!(said.stdout.contains("damaged/"), "it is still named: {}", said.stdout);
    assert!(aside(&world, &all[0]).exists() && !record(&world, &all[0]).exists());
    let checked = world.run(&["check", "--read-data"]).stdout;
    assert!(checked.contains("whole and restore in full"), "the other one is: {checked}");
    world.run(&["prune", "--keep", "9"]);
    run_maintenance(&world);
    assert_eq!(sizes(&world), [5000, 6000]);
    live(&mut world, 16);
    assert!(!aside(&world, &all[0]).exists());
    assert!(!sizes(&world).contains(&5000));
}

/// A record in a private repository has a copy there, and nothing of it is lost with the file.
#[test]
fn a_lost_record_is_made_again_from_its_copy() {
    let ways: [&dyn Fn(&Path); 4] = [
        &|path| fs::remove_file(path).unwrap(),
        &|path| write(path, half(&fs::read_to_string(path).unwrap())),
        &|path| write(path, ""),
        &|path| write(path, odd(&fs::read_to_string(path).unwrap())),
    ];
    for way in ways {
        let mut world = World::with_git();
        let all: Vec<String> = (0..2).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
        let path = record(&world, &all[0]);
        let whole = fs::read(&path).unwrap();
        chmod(&path, 0o600);
        way(&path);
        let done = world.run(&["restore", &all[0], "--yes", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{}", done.stderr);
        assert_eq!(world.read(".env").len(), 5000, "private files are restored as well");
        assert_eq!(fs::read(&path).unwrap(), whole, "the bytes are the same");
        assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
    }
}

/// The copy of a lost record needs what the record did: here a repository that the root had in it.
#[test]
fn what_the_copy_of_a_lost_record_needs_is_not_freed() {
    for becomes_private in [false, true] {
        let mut world = World::new();
        let root = world.root();
        world.write("conf", "one");
        let line = "git init -q -b main && mkdir n && cd n && git init -q && echo 1 > f && \
                    git add f && git commit -qm one";
        real::git(&world, &root, line);
        let history = real::git(&world, &root.join("n"), "git rev-parse HEAD");
        assert_eq!(world.before_bash("t1", "rm -rf n"), "{}");
        real::git(&world, &root, "rm -rf n");
        if becomes_private {
            chmod(&root.join("conf"), 0o600);
            world.before_bash("t2", "echo two > conf");
            world.write("conf", "two");
        }
        let id = ids(&mut world).pop().unwrap();
        fs::remove_file(record(&world, &id)).unwrap();
        let elsewhere = world.home();
        assert_eq!(world.run_in(&elsewhere, &["prune"], "").exit, Exit::Ok);
        let done = world.run(&["restore", &id, "--yes", "--exact", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{}", done.stderr);
        assert_eq!(real::git(&world, &root.join("n"), "git rev-parse HEAD"), history);
        assert!(record(&world, &id).exists(), "the restore wrote it again");
    }
}

/// The object in the private store with such a text.
fn object(world: &World, is_it: impl Fn(&str) -> bool) -> PathBuf {
    packs::unpack(&world.state());
    let objects = world.state().join("objects");
    let paths = on_disk(&objects).into_keys().map(|path| String::from_utf8(path).unwrap());
    let mut paths = paths.map(|path| objects.join(path));
    let text = |path: &PathBuf| fs::read_to_string(path).ok();
    paths.find(|path| path.is_file() && text(path).is_some_and(|text| is_it(&text))).unwrap()
}

#[test]
fn a_record_that_the_disk_does_not_give_is_named_and_the_rest_goes_on() {
    for mut world in [World::new(), World::with_git()] {
        let all: Vec<String> = (0..4).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
        let path = record(&world, &all[1]);
        let away = withhold(&path);
        let told = world.run(&["status"]).stdout;
        assert!(told.contains(&format!("checkpoint {} of ", &all[1][..4])), "{told}");
        assert!(told.contains("nothing can be freed"), "{told}");
        let (_, told) = status(&mut world);
        assert_eq!(told["roots"][0]["withheld"], json!([all[1]]));
        let newest = save_private(&mut world, 9000);
        world.run(&["prune", "--keep", "2"]);
        run_maintenance(&world);
        let stay: BTreeSet<String> = ids(&mut world).into_iter().collect();
        let expected = [&newest, &all[3], &all[1]].map(String::clone);
        assert_eq!(stay, BTreeSet::from(expected), "the limit holds for what can be read");
        assert_eq!(sizes(&world), [5000, 6000, 7000, 8000, 9000], "it may need any of them");
        assert_eq!(world.run(&["check", "--repair"]).exit, Exit::Failed);
        world.run(&["clear", "--yes"]);
        assert!(path.is_symlink(), "what may be whole is neither put aside nor dropped");
        fs::rename(away, &path).unwrap();
        run_maintenance(&world);
        assert_eq!(ids(&mut world), [all[1].clone()]);
        assert_eq!(sizes(&world), [6000], "it is whole, and the rest is free to go");
        assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
        // Not for ever.
        withhold(&path);
        live(&mut world, 16);
        assert!(!path.is_symlink());
    }
}

#[test]
fn what_a_directory_needs_that_the_disk_does_not_give_stays() {
    let mut world = World::new();
    world.write("d/only here", vec![1; 5000]);
    save_private(&mut world, 6000);
    let top = object(&world, |text| text.contains("only"));
    let away = withhold(&top);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    run_maintenance(&world);
    let told = world.run(&["status"]).stdout;
    assert!(told.contains("cannot free unused contents"), "{told}");
    assert_eq!(sizes(&world), [5000, 6000]);
    fs::rename(away, &top).unwrap();
    run_maintenance(&world);
    assert_eq!(world.run(&["check", "--read-data"]).exit, Exit::Ok);
}

#[test]
fn clear_lets_go_of_damaged_ones_too() {
    let mut world = World::new();
    let all: Vec<String> = (0..2).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
    damage(&world, &all[0], half);
    world.run(&["check", "--repair"]);
    damage(&world, &all[1], half);
    assert_eq!(world.run(&["clear", "--yes"]).exit, Exit::Ok);
    assert_eq!(sizes(&world), [0; 0]);
}

/// Makes a checkpoint one of a newer beforehand: its record, and what the repository has of it.
fn make_newer(world: &World, id: &str) {
    damage(world, id, |text| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        value["version"] = json!(99);
        value.to_string()
    });
    if world.root().join(".git").exists() {
        git(
            world,
            &format!(
                "newer() {{ m=$(git show $1:$2 | sed 's/\"version\": *2/\"version\":99/' \
                 | git hash-object -w --stdin); \
                 t=$(git ls-tree $1 | sed \"s/blob [0-9a-f]*\\t$2/blob $m\\t$2/\" | git mktree); \
                 git update-ref $1 $t; }}; \
                 newer refs/checkpoints/main/{id} meta; newer refs/private/main/{id} record"
            ),
        );
    }
}

#[test]
fn a_newer_checkpoint_is_never_dropped_by_any_command() {
    for mut world in [World::new(), World::with_git()] {
        let all: Vec<String> = (0..4).map(|n| save_private(&mut world, 5000 + n * 1000)).collect();
        make_newer(&world, &all[0]);
        let before = fs::read(record(&world, &all[0])).unwrap();
        let told = world.run(&["prune", "--keep", "1"]).stdout;
        assert!(told.contains("a newer beforehand wrote it"), "{told}");
        world.run(&["prune", "--max-size", "1"]);
        world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
        live(&mut world, 40);
        world.run(&["clear", "--yes"]);
        world.run(&["clear", "--everywhere", "--yes"]);
        world.run(&["check", "--repair"]);
        assert_eq!(fs::read(record(&world, &all[0])).unwrap(), before);
        assert_eq!(ids(&mut world), [all[0].clone()]);
        assert_eq!(sizes(&world), [5000, 6000, 7000, 8000], "nobody knows what it needs");
        let told = world.run(&["status"]).stdout;
        assert!(told.contains("from a newer beforehand; update this one"), "{told}");
    }
}

#[test]
fn a_newer_checkpoint_of_another_state_keeps_its_ref() {
    let mut world = World::with_git();
    let all: Vec<String> = (0..3).map(|_| save(&mut world, "a", 10)).collect();
    make_newer(&world, &all[0]);
    fs::remove_file(record(&world, &all[0])).unwrap();
    world.run(&["prune", "--keep", "1"]);
    world.run(&["clear", "--yes"]);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    live(&mut world, 20);
    let refs = git(&world, "git for-each-ref --format='%(refname)'");
    assert!(refs.contains(&all[0]) && !refs.contains(&all[1]), "{refs}");
    assert!(refs.contains("refs/anchors/main"), "not all have gone: {refs}");
}
