//! The packs of the private store: few files, whatever is saved; nothing is lost when a process dies or
//! a pack is damaged.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use beforehand::{fs::own_bytes, process::Exit};

use crate::{
    maintenance::{ids, run_maintenance},
    support::{
        packs::{objects, packs},
        real::git,
        temp::{chmod, noise, on_disk, special, write},
        world::World,
    },
};

fn create(world: &mut World) {
    world.wait(1);
    let output = world.run(&["create"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
}

#[track_caller]
fn is_sound(world: &mut World, context: &str) {
    let output = world.run(&["check", "--read-data"]);
    assert_eq!(output.exit, Exit::Ok, "{context}: {}{}", output.stdout, output.stderr);
}

/// Everything in the state directory, directories as well.
fn inodes(world: &World) -> usize {
    on_disk(&world.state()).len()
}

fn pack_count(world: &World) -> usize {
    packs(&world.state()).len()
}

/// Runs a command in a process of its own.
fn run_with(world: &World, args: &[&str], variable: &str, value: &str) -> Option<i32> {
    let status = Command::new(env!("CARGO_BIN_EXE_beforehand"))
        .args(args)
        .current_dir(world.root())
        .env_clear()
        .envs(&world.env)
        .env(variable, value)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.code()
}

/// Whether a command dies at a point.
fn dies_at(world: &World, args: &[&str], point: &str) -> bool {
    run_with(world, args, "BEFOREHAND_TEST_CRASH_AT", point).is_none()
}

#[test]
fn ten_thousand_files_are_twenty_inodes() {
    let mut world = World::new();
    for number in 0..10_000 {
        world.write(&format!("{}/{}/{number}", number % 30, number % 7), format!("{number}\n"));
    }
    create(&mut world);
    assert!(inodes(&world) <= 20, "{:?}", on_disk(&world.state()).keys());
    let before = inodes(&world);
    world.write("1/1/1", "changed");
    create(&mut world);
    // A record and a pack.
    assert_eq!(inodes(&world) - before, 2);
    is_sound(&mut world, "both");
}

#[test]
fn many_small_saves_are_merged_and_each_still_restores() {
    let mut world = World::new();
    world.write("same", "same");
    for number in 0..40 {
        world.write("d/a", format!("{number}"));
        create(&mut world);
    }
    assert!(pack_count(&world) <= 40);
    run_maintenance(&world);
    assert!(pack_count(&world) <= 16, "{}", pack_count(&world));
    is_sound(&mut world, "merged");
    let all = ids(&mut world);
    assert_eq!(all.len(), 40);
    for (number, id) in all.iter().rev().enumerate().step_by(7) {
        let done = world.run(&["restore", id, "--yes", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{}", done.stderr);
        assert_eq!(world.read("d/a"), number.to_string());
    }
}

#[test]
fn a_save_that_is_killed_anywhere_costs_nothing() {
    for point in ["pack-write", "pack-rename", "pack-renamed"] {
        let mut world = World::new();
        world.write("a", "first");
        create(&mut world);
        world.write("a", "second");
        assert!(dies_at(&world, &["create"], point), "{point} is never reached");
        is_sound(&mut world, point);
        assert_eq!(ids(&mut world).len(), 1, "{point}");
        create(&mut world);
        world.write("a", "third");
        assert_eq!(world.run(&["restore", "1", "--yes", "--force"]).exit, Exit::Ok, "{point}");
        assert_eq!(world.read("a"), "second", "{point}");
        assert_eq!(world.run(&["prune", "--keep", "1"]).exit, Exit::Ok);
        is_sound(&mut world, point);
        let objects = on_disk(&world.state().join("objects"));
        assert!(!objects.keys().any(|name| name.starts_with(b"tmp-")), "{point}");
    }
}

/// A project with many packs, some of which a checkpoint needs in part.
fn with_many_packs() -> World {
    let mut world = World::new();
    for number in 0..20 {
        world.write("a", format!("{number}"));
        world.write(&format!("stays/{number}"), format!("{number} stays"));
        create(&mut world);
    }
    world
}

/// What the last save of the only root recorded about the files with objects.
fn stamps(world: &World) -> Vec<u8> {
    let root = fs::read_dir(world.state().join("roots")).unwrap().next().unwrap().unwrap();
    fs::read(root.path().join("object-stamps")).unwrap()
}

#[test]
fn the_next_save_relies_on_merged_packs() {
    for kind in ["git", "plain"] {
        let mut world = World::new();
        if kind == "git" {
            git(&world, &world.root(), "git init -q -b main");
        }
        create(&mut world);
        // What it does besides merging is done then.
        run_maintenance(&world);
        for number in 0..20 {
            world.write(&format!("{}", number % 3), number.to_string());
            create(&mut world);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        create(&mut world);
        let before = stamps(&world);
        let root = world.root();
        let tidy = ["maintain", "--tidy", root.to_str().unwrap()];
        assert_eq!(world.run_in(Path::new("/"), &tidy, "").exit, Exit::Ok);
        let merged = stamps(&world);
        assert!(merged != before, "{kind}: the packs are other ones");
        std::thread::sleep(std::time::Duration::from_millis(50));
        create(&mut world);
        assert!(stamps(&world) == merged, "{kind}: nothing had to be verified");
        is_sound(&mut world, kind);
    }
}

#[test]
fn a_pack_that_changed_before_a_merge_is_not_relied_on() {
    let world = with_many_packs();
    let before = stamps(&world);
    let pack = packs(&world.state()).remove(0);
    chmod(&pack, 0o600);
    let bytes = fs::read(&pack).unwrap();
    write(&pack, &bytes[..bytes.len() / 2]);
    run_maintenance(&world);
    assert!(stamps(&world) == before, "the next save finds that something has changed");
}

#[test]
fn a_merge_that_is_killed_loses_nothing_and_is_done_again() {
    for point in ["pack-write", "pack-rename", "pack-renamed", "merge-packs"] {
        let mut world = with_many_packs();
        assert!(pack_count(&world) > 16, "nothing has merged them yet");
        assert!(dies_at(&world, &["maintain"], point), "{point} is never reached");
        is_sound(&mut world, point);
        run_maintenance(&world);
        assert!(pack_count(&world) <= 16, "{point}");
        is_sound(&mut world, point);
        assert_eq!(ids(&mut world).len(), 20, "{point}");
    }
}

#[test]
fn a_sweep_that_is_killed_loses_nothing_and_is_done_again() {
    let points = ["pack-write", "pack-rename", "sweep-copied", "sweep-object:1", "sweep-object:9"];
    for point in points {
        let mut world = with_many_packs();
        world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
        assert!(dies_at(&world, &["maintain"], point), "{point} is never reached");
        is_sound(&mut world, point);
        run_maintenance(&world);
        is_sound(&mut world, point);
        let all = ids(&mut world);
        assert_eq!(all.len(), 1, "{point}");
        // The twenty that stay, `a`, and the directories.
        assert_eq!(objects(&world.state()).len(), 20 + 1 + 2, "{point}");
        let oldest = all.last().unwrap();
        let done = world.run(&["restore", oldest, "--yes", "--exact", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{point}: {}", done.stderr);
        assert_eq!(world.read("a"), "19", "{point}");
    }
}

#[test]
fn what_a_save_comes_to_need_while_a_sweep_is_at_work_stays() {
    let mut world = World::new();
    world.write("a", "unneeded soon");
    world.write("b", "always");
    create(&mut world);
    world.write("a", "other");
    create(&mut world);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    // After the rest of the first pack was copied, and before the pack goes.
    let home = world.state();
    let line = format!(
        "sweep-copied:cd '{}' && printf 'unneeded soon' > a && BEFOREHAND_HOME='{}' \
         BEFOREHAND_TEST_RUN_AT= '{}' create",
        world.root().display(),
        home.display(),
        env!("CARGO_BIN_EXE_beforehand"),
    );
    assert_eq!(run_with(&world, &["maintain"], "BEFOREHAND_TEST_RUN_AT", &line), Some(0));
    is_sound(&mut world, "both");
    world.write("a", "lost");
    assert_eq!(world.run(&["restore", "1", "--yes", "--force"]).exit, Exit::Ok);
    assert_eq!(world.read("a"), "unneeded soon");
}

#[test]
fn space_comes_back_when_most_of_a_pack_is_unneeded() {
    let mut world = World::new();
    world.write("stays", "stays");
    for number in 0..3 {
        world.write(&format!("{number}"), noise(number, 500_000));
    }
    create(&mut world);
    for number in 0..3 {
        fs::remove_file(world.root().join(format!("{number}"))).unwrap();
    }
    create(&mut world);
    assert!(own_bytes(&world.state()) > 1_500_000);
    assert_eq!(world.run(&["prune", "--keep", "1"]).exit, Exit::Ok);
    assert!(own_bytes(&world.state()) < 200_000);
    is_sound(&mut world, "what stays");
}

/// A project with one checkpoint, and its pack.
fn with_a_pack() -> (World, PathBuf) {
    let mut world = World::new();
    world.write("a", "first of all\n");
    world.write("d/b", "second\n");
    create(&mut world);
    let pack = packs(&world.state()).remove(0);
    chmod(&pack, 0o600);
    (world, pack)
}

/// A way in which a pack can go wrong, and whether its lines are lost by it.
type Harm = (&'static str, bool, fn(&Path));

fn damages() -> Vec<Harm> {
    fn changed(pack: &Path, change: impl Fn(&mut Vec<u8>)) {
        let mut bytes = fs::read(pack).unwrap();
        change(&mut bytes);
        write(pack, bytes);
    }
    vec![
        ("a byte of an object", false, |pack| changed(pack, |bytes| bytes[2] ^= 1)),
        ("cut off", true, |pack| changed(pack, |bytes| bytes.truncate(bytes.len() / 2))),
        ("empty", true, |pack| write(pack, "")),
        ("a digit of an offset", true, |pack| {
            changed(pack, |bytes| {
                let at = bytes.len() - 32 - 96 + 64 + 17;
                bytes[at] ^= 1;
            });
        }),
        ("more objects than there are", true, |pack| {
            changed(pack, |bytes| {
                let at = bytes.len() - 3;
                bytes[at] = b'9';
            });
        }),
        ("a pipe", true, |pack| {
            fs::remove_file(pack).unwrap();
            special(pack, rustix::fs::FileType::Fifo, 0o600);
        }),
    ]
}

#[test]
fn a_damaged_pack_is_named_and_what_is_held_again_is_written_again() {
    for (what, lines, damage) in damages() {
        let (mut world, pack) = with_a_pack();
        damage(&pack);
        let name = format!("objects/packs/{}", pack.file_name().unwrap().to_str().unwrap());
        for args in [&["check"][..], &["check", "--read-data"]] {
            let told = world.run(args);
            let is_seen = lines || args.len() == 2;
            assert_eq!(told.exit == Exit::Failed, is_seen, "{what}: {}", told.stdout);
            assert_eq!(told.stdout.contains(&name), is_seen, "{what}: {}", told.stdout);
        }
        // Saves go on.
        world.write("c", "third\n");
        create(&mut world);
        let said = world.run(&["check", "--repair"]).stderr;
        assert_eq!(said.contains(&format!("put {name} aside")), lines, "{what}: {said}");
        assert_eq!(pack.with_extension("damaged").symlink_metadata().is_ok(), lines, "{what}");
        // Nothing is known to be held without its anchor, and a file that is young is read again.
        for path in ["a", "d/b"] {
            let text = world.read(path);
            world.write(path, text);
        }
        world.write("c", "fourth\n");
        create(&mut world);
        for path in ["a", "c", "d/b"] {
            world.write(path, "broken");
        }
        let done = world.run(&["restore", "1", "--yes", "--force"]);
        assert_eq!(done.exit, Exit::Ok, "{what}: {}", done.stderr);
        let texts = ["a", "d/b", "c"].map(|path| world.read(path));
        assert_eq!(texts, ["first of all\n", "second\n", "fourth\n"], "{what}");
    }
}

#[test]
fn nothing_is_freed_while_a_pack_is_damaged() {
    let (mut world, pack) = with_a_pack();
    world.write("a", "second of all\n");
    create(&mut world);
    let bytes = fs::read(&pack).unwrap();
    write(&pack, &bytes[..bytes.len() - 1]);
    let before = pack_count(&world);
    world.run(&["prune", "--keep", "1"]);
    run_maintenance(&world);
    assert_eq!((ids(&mut world).len(), pack_count(&world)), (1, before));
    let told = world.run(&["status"]).stdout;
    assert!(told.contains("is damaged; beforehand check --repair puts it aside"), "{told}");
    // Nothing goes for want of room while that gives none.
    world.agent_writes("t1", "a", "third of all");
    world.wait(60 * 60);
    world.agent_writes("t2", "a", "fourth of all");
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1 KB");
    let count = ids(&mut world).len();
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), count);
    write(&pack, &bytes);
    run_maintenance(&world);
    assert!(!pack.exists());
    is_sound(&mut world, "it was there again");
}
