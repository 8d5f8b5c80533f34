//! `beforehand find`: where a file went.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use beforehand::process::Exit;
use serde_json::Value;

use crate::{
    evidence::{run, writes},
    support::{packs, temp::on_disk, world::World},
};

/// A file that changed twice and is gone, one that only ever was there, and a directory that is
/// gone.
fn lost(mut world: World) -> World {
    world.write("src/cart.ts", "one\ntwo\n");
    world.write("src/price.ts", "price\n");
    world.write("assets/logo.svg", "<svg/>\n");
    world.run(&["create", "-m", "first"]);
    world.wait(3600);
    world.write("src/cart.ts", "one\n2\nconst total = 3;\n");
    world.run(&["create", "-m", "second"]);
    world.wait(3600);
    world.write("other.txt", "x\n");
    world.run(&["create", "-m", "third"]);
    world.wait(60);
    fs::remove_file(world.root().join("src/cart.ts")).unwrap();
    fs::remove_file(world.root().join("assets/logo.svg")).unwrap();
    fs::remove_dir(world.root().join("assets")).unwrap();
    world
}

#[test]
fn each_version_is_told_once_with_the_command_that_brings_it_back() {
    let mut world = lost(World::with_git());
    insta::assert_snapshot!(world.see(&["find", "cart.ts"]));
    insta::assert_snapshot!(world.see(&["find", "price.ts"]));
    insta::assert_snapshot!(world.see(&["find", "assets"]));
    insta::assert_snapshot!(world.see(&["find", "nowhere.ts"]));
}

#[test]
fn every_store_finds_the_same() {
    let [mut git, mut plain] = [World::with_git(), World::new()].map(lost);
    for args in [
        &["find", "cart.ts"][..],
        &["find", "*.ts"],
        &["find", "src/**"],
        &["find", "--text", "total"],
        &["find", "assets"],
        &["find", "cart.ts", "--json"],
        &["find", "nothing"],
    ] {
        assert_eq!(git.see(args), plain.see(args), "{args:?}");
    }
}

#[test]
fn the_command_does_what_it_says() {
    let mut world = lost(World::with_git());
    let found = world.run(&["find", "src/cart.ts", "--json"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found[0]["now"], "gone");
    let versions = found[0]["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    for (version, text) in versions.iter().zip(["one\n2\nconst total = 3;\n", "one\ntwo\n"]) {
        let words = shell_words::split(version["command"].as_str().unwrap()).unwrap();
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let words = [&["restore", "--yes", "--force"], &words[1..]].concat();
        let output = world.run(&words);
        assert_eq!(output.exit, Exit::Ok, "{words:?}: {}", output.stderr);
        assert_eq!(world.read("src/cart.ts"), text);
    }
    let shown = world.run(&["find", "src/cart.ts"]).stdout;
    assert!(shown.contains("there now, like an older version"), "{shown}");
    assert!(shown.contains("as it is now"), "{shown}");
}

#[test]
fn a_version_that_cannot_be_read_is_not_advised() {
    let mut world = lost(World::new());
    packs::unpack(&world.state());
    let objects = world.state().join("objects");
    let newest = on_disk(&objects).into_iter().find(|(_, it)| it.bytes.ends_with(b"total = 3;\n"));
    fs::remove_file(objects.join(OsStr::from_bytes(&newest.unwrap().0))).unwrap();
    let found = world.run(&["find", "src/cart.ts"]).stdout;
    let rows: Vec<&str> = found.lines().collect();
    assert!(rows[2].contains("unreadable"), "{found}");
    let id = rows[3].split_whitespace().next().unwrap();
    assert_eq!(rows[4], format!("  beforehand restore {id} -- src/cart.ts"), "{found}");
}

#[test]
fn a_text_is_found_with_its_line() {
    let mut world = lost(World::new());
    world.write("data.bin", b"total\0total");
    world.run(&["create"]);
    insta::assert_snapshot!(world.see(&["find", "--text", "total"]));
    insta::assert_snapshot!(world.see(&["find", "*.svg", "--text", "total"]));
    assert_eq!(world.run(&["find"]).exit, Exit::Usage);
}

#[test]
fn other_projects_are_found_from_anywhere() {
    let world = lost(World::new());
    let elsewhere = world.root().parent().unwrap().join("third");
    fs::create_dir(&elsewhere).unwrap();
    let here = world.run_in(&elsewhere, &["find", "cart.ts"], "");
    assert_eq!(here.exit, Exit::Failed, "{}", here.stdout);
    let found = world.run_in(&elsewhere, &["find", "cart.ts", "--everywhere"], "");
    assert_eq!(found.exit, Exit::Ok, "{}", found.stderr);
    let command = found.stdout.lines().find(|line| line.contains("restore")).unwrap();
    let words = shell_words::split(command).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = [&["restore", "--yes"], &words[2..]].concat();
    assert_eq!(world.run_in(&elsewhere, &words, "").exit, Exit::Ok, "{command}");
    assert_eq!(world.read("src/cart.ts"), "one\n2\nconst total = 3;\n");
}

#[test]
fn a_subdirectory_names_files_as_it_sees_them() {
    let world = lost(World::new());
    let found = world.run_in(&world.root().join("src"), &["find", "./cart.ts"], "");
    assert!(found.stdout.contains(" -- cart.ts\n"), "{}", found.stdout);
    let found = world.run_in(&world.root().join("src"), &["find", "../assets/logo.svg"], "");
    assert!(found.stdout.contains("/code/shop/assets/logo.svg\n"), "{}", found.stdout);
}

/// Routes have brackets in their names. What is called so is meant, and not what a pattern fits.
#[test]
fn a_name_with_brackets_is_found_as_it_is_written() {
    let mut world = World::new();
    world.write("app/[id]/page.tsx", "route");
    world.write("i/page.tsx", "another");
    world.run(&["create"]);
    for given in ["[id]/page.tsx", "./app/[id]/page.tsx", "app/[id]/page.tsx", "[id]"] {
        let found = world.run(&["find", given]);
        let shown = found.stdout.matches("there now").count();
        assert!(found.stdout.starts_with("app/[id]") && shown == 1, "{given}: {}", found.stdout);
    }
    let found = world.run(&["find", "[i]/page.tsx"]);
    assert!(found.stdout.starts_with("i/page.tsx"), "{}{}", found.stdout, found.stderr);
}

#[test]
fn an_evil_name_is_quoted_for_eyes_and_shells() {
    let mut world = World::new();
    world.write("a\u{1b}[2J\nb's", "x\n");
    world.run(&["create"]);
    fs::remove_file(world.root().join("a\u{1b}[2J\nb's")).unwrap();
    let found = world.run(&["find", "a*"]).stdout;
    assert!(!found.contains('\u{1b}'), "{found}");
    assert!(found.contains(r"-- $'a\033\\[2J\012b\'s'"), "{found}");
}

#[test]
fn many_files_are_counted_and_not_all_shown() {
    let mut world = World::new();
    for n in 0..30 {
        world.write(&format!("f{n:02}.txt"), "x\n");
    }
    world.run(&["create"]);
    let found = world.run(&["find", "*.txt"]);
    assert_eq!(found.stdout.matches("there now").count(), 20);
    assert!(found.stderr.contains("… and 10 files more: --limit 30"), "{}", found.stderr);
    let found = world.run(&["find", "*.txt", "--limit", "30"]);
    assert_eq!((found.stdout.matches("there now").count(), &*found.stderr), (30, ""));
}

/// What one call of a turn left for the next one is in no checkpoint, and held all the same.
#[test]
fn a_version_between_two_steps_is_found_and_comes_back() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "one\n");
        run(&mut world, "zero", "make nothing", |_| ());
        for text in ["two\n", "three\n", "four\n"] {
            writes(&mut world, "one", "a", text);
        }
        let told = world.run(&["find", "--text", "three"]).stdout;
        let step = told.lines().find(|line| line.contains("between two steps of a turn")).unwrap();
        assert!(step.trim_start().starts_with("1.3 "), "{told}");
        let told = world.run(&["find", "a", "--json"]).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        let versions = told[0]["versions"].as_array().unwrap();
        let steps: Vec<_> = versions.iter().map(|it| it["step"].as_str()).collect();
        assert_eq!(steps, [Some("1.3"), Some("1.2"), None]);
        let command = versions[0]["command"].as_str().unwrap();
        let words = shell_words::split(command).unwrap();
        let words: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
        let done = world.run(&[&["restore", "--yes"], &words[..]].concat());
        assert_eq!((done.exit, &*world.read("a")), (Exit::Ok, "three\n"), "{command}");
    }
}
