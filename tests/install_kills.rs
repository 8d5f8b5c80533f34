//! `install` killed in the middle of writing settings files.

use std::{collections::BTreeMap, fs, path::Path};

use crate::{
    repository::dies_at,
    support::{real::beforehand, temp::write, world::World},
};

/// A home with the settings of two agents: one has commands beside its hooks.
fn world() -> World {
    let world = World::new();
    write(&world.home().join(".claude/settings.json"), "{\r\n\t\"model\": \"opus\"\r\n}");
    write(&world.home().join(".hermes/config.yaml"), "model: x\nlast: 1");
    world
}

#[track_caller]
fn runs(world: &World, command: &str) {
    let output = beforehand(world, &world.root(), &[command, "--yes"]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Every file and directory of the home but those of the state directory.
fn settings(world: &World) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![world.home()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(world.home()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                open.push(path.clone());
            }
            if !name.starts_with(".local") {
                found.insert(name, fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// What is not finished, which an agent does not look at.
fn is_unfinished(name: &str) -> bool {
    name.contains(".tmp-")
}

#[test]
fn settings_are_as_before_or_complete_wherever_it_is_killed_and_the_next_ends_well() {
    let done = world();
    let before = settings(&done);
    runs(&done, "install");
    let complete = settings(&done);
    assert_ne!(before, complete);
    for command in ["install", "uninstall"] {
        let mut killed = 0;
        for point in ["replace-file", "replaced-file", "removed-file"] {
            let mut nth = 0;
            loop {
                nth += 1;
                let world = world();
                if command == "uninstall" {
                    runs(&world, "install");
                }
                let at = format!("{point}:{nth}");
                if !dies_at(&world, &[command, "--yes"], &at) {
                    break;
                }
                killed += 1;
                let about = format!("{command} killed at {at}");
                for (name, text) in settings(&world).iter().filter(|(it, _)| !is_unfinished(it)) {
                    let is_one = [&before, &complete].iter().any(|it| it.get(name) == Some(text));
                    assert!(is_one, "{about}: {name}: {text}");
                }
                if nth % 2 == 0 {
                    runs(&world, "install");
                    assert_eq!(settings(&world), complete, "{about}");
                }
                runs(&world, "uninstall");
                assert_eq!(settings(&world), before, "{about}");
                assert!(!has_files(&world.state()), "{about}: something is left of ours");
            }
        }
        assert!(killed > 6, "{command} is hardly ever killed");
    }
}

fn has_files(dir: &Path) -> bool {
    let names = fs::read_dir(dir).into_iter().flatten().map(Result::unwrap);
    names.map(|entry| entry.path()).any(|path| !path.is_dir() || has_files(&path))
}
