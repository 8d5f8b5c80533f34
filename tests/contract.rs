//! `--json` is a contract: every view has a schema in `docs/json`, what is printed fits it, and what a
//! schema promised once it goes on promising. That every document of every other test fits as well is
//! seen to by the worlds (`support/contract.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::support::{
    contract::{documents, faults, kinds, schemas, view},
    packs,
    temp::{on_disk, withhold, write},
    world::World,
};

/// Each command that has `--json`, as it is called here. What asks is answered by `--yes`.
const SAMPLES: &[(&str, &[&str])] = &[
    (
        "list",
        &[
            "list --json",
            "list --json --all",
            "list --json --everywhere",
            "list --json --steps",
            "list --json --steps 3",
        ],
    ),
    ("show", &["show latest --json", "show 2 --json", "show 2.1 --json"]),
    (
        "diff",
        &[
            "diff 2 --json",
            "diff 2 1 --json",
            "diff latest --json -- src",
            "diff 2.1 --step --json",
        ],
    ),
    ("find", &["find a --json", "find * --json --everywhere", "find cart.ts --text two --json"]),
    ("blame", &["blame src/cart.ts --json", "blame none --json"]),
    ("bisect", &["bisect --json --good 2 -- test ! -e new.txt"]),
    ("export", &["export 3..1 --json --patches ../patches", "export 2 --json --branch turns"]),
    ("status", &["status --json"]),
    ("doctor", &["doctor --json"]),
    ("check", &["check --json", "check --json --read-data --everywhere"]),
    ("explain", &["explain --json rm -rf src ~/.zshrc $X *.ts", "explain --json ls"]),
    ("config", &["config --json"]),
    ("create", &["create --json", "create --json -m again"]),
    (
        "restore",
        &[
            "restore --continue --json",
            "restore --abort --json",
            "restore 2 --json --dry-run",
            "restore 2 --json --dry-run --exact --outside",
            "restore 2 --json --into ../out",
            "restore 2 --json --yes",
        ],
    ),
    ("undo", &["undo --json --dry-run", "undo --json --yes"]),
    ("redo", &["redo --json --yes"]),
    ("revert", &["revert 2 --json --dry-run", "revert 2 --json --yes --merge"]),
    (
        "fork",
        &[
            "fork 1 --json --dry-run",
            "fork 1 --json --yes",
            "fork --list --json",
            "fork --keep --json --dry-run",
            "fork --keep --json --yes",
            "fork --drop shop-fork-1 --json --yes --force",
        ],
    ),
    ("prune", &["prune --json --keep 1 --dry-run", "prune --json --keep 1 --max-size 1KB"]),
    ("install", &["install claude-code --json --dry-run", "install claude-code --json --yes"]),
    ("uninstall", &["uninstall --json --yes"]),
    ("allow", &["allow --json"]),
];

/// A project with two turns, work of the user's on top, and what is outside or not held.
fn lived_in(mut world: World) -> World {
    world.write("src/cart.ts", "one\ntwo\nthree\n");
    world.write("assets/logo.svg", "<svg/>\n");
    world.write("big", vec![7; 11 << 20]);
    write(&world.home().join(".zshrc"), "alias a=b\n");
    let user = "[user]\n\tname = Ada\n\temail = ada@example.com\n";
    write(&world.home().join(".gitconfig"), user);
    world.agent_writes("t1", "src/cart.ts", "one\n2\nthree\nfour\n");
    world.wait(60);
    world.before_bash("t2", "rm -rf assets ~/.zshrc");
    fs::remove_file(world.root().join("assets/logo.svg")).unwrap();
    fs::remove_file(world.home().join(".zshrc")).unwrap();
    world.write("new.txt", "new\n");
    world.wait(60);
    world.before_bash("t3", "make");
    world.write("src/cart.ts", "one\nmine\nthree\nfour\n");
    world.wait(120);
    world
}

/// A call that was refused, since its agent asks no one.
fn refused(world: World) -> World {
    world.write("big.db", vec![1; 80 << 20]);
    let payload = json!({
        "session_id": "s1", "cwd": world.root(), "prompt_id": "t4", "tool_name": "Bash",
        "hook_event_name": "PreToolUse", "permission_mode": "bypassPermissions",
        "tool_input": { "command": "rm big.db" }, "tool_use_id": "x",
    });
    let answer =
        world.run_in(&world.root(), &["hook", "--agent", "claude-code"], &payload.to_string());
    assert!(answer.stdout.contains("deny"), "{}", answer.stdout);
    world
}

/// Every record but the newest, and everything of no format that others can do without, is damaged.
fn damaged(world: World) -> World {
    let state = on_disk(&world.state()).into_keys().map(|path| String::from_utf8(path).unwrap());
    let is_it = |path: &String| path.contains("/checkpoints/") || path.ends_with("stats.json");
    let records: Vec<String> = state.filter(is_it).collect();
    assert!(records.len() > 1);
    for path in &records[1..] {
        write(&world.state().join(path), "no JSON");
    }
    world
}

/// A restore could not read what it was to write, and can be tried again.
fn interrupted(mut world: World) -> World {
    packs::unpack(&world.state());
    let objects = world.state().join("objects");
    let paths = on_disk(&objects).into_keys().map(|path| String::from_utf8(path).unwrap());
    let mut paths = paths.map(|path| objects.join(path));
    let is_it = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes == b"<svg/>\n");
    withhold(&paths.find(is_it).unwrap());
    let said = world.run(&["restore", "2", "--yes"]);
    assert!(said.stderr.contains("--continue"), "{}", said.stderr);
    world
}

fn gone(world: World) -> World {
    fs::rename(world.root(), world.root().with_file_name("away")).unwrap();
    world
}

fn states() -> Vec<World> {
    let mut states = vec![World::new(), World::with_git()];
    for new in [World::new, World::with_git] {
        states.push(lived_in(new()));
        states.push(damaged(lived_in(new())));
        states.push(gone(lived_in(new())));
    }
    states.push(refused(lived_in(World::new())));
    states.push(interrupted(lived_in(World::new())));
    states
}

#[test]
fn every_view_has_a_schema_and_what_it_prints_in_every_state_fits() {
    let command = beforehand::cli::command_line();
    let has_json = |it: &&clap::Command| it.get_arguments().any(|arg| arg.get_id() == "json");
    let commands: BTreeSet<&str> =
        command.get_subcommands().filter(has_json).map(clap::Command::get_name).collect();
    let sampled: BTreeSet<&str> = SAMPLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(sampled, commands, "each command with --json has a sample here");
    let mut seen = BTreeSet::new();
    let mut silent = sampled;
    for mut world in states() {
        for (name, lines) in SAMPLES {
            for line in *lines {
                world.wait(1);
                // The world checks it.
                let args: Vec<&str> = line.split(' ').collect();
                let said = documents(&world.run(&args).stdout);
                if !said.is_empty() {
                    silent.remove(name);
                }
                seen.extend(said.iter().filter_map(view).map(str::to_owned));
            }
        }
    }
    assert_eq!(silent, BTreeSet::new(), "these printed no document in any state");
    assert_eq!(seen, schemas().into_keys().collect(), "a schema of what nothing prints");
}

#[test]
fn what_a_schema_does_not_say_is_found() {
    let mut world = lived_in(World::new());
    let list = documents(&world.run(&["list", "--json"]).stdout).remove(0);
    assert_eq!(faults(&list), Vec::<String>::new());
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut list = list.clone();
        change(&mut list);
        faults(&list).join("\n")
    };
    let row = |list: &mut Value, field: &str, value: Value| list[0][field] = value;
    let has = |fault: &str, found: String| assert!(found.contains(fault), "{fault}: {found}");
    has("[0].more is not named", changed(&|it| row(it, "more", json!(1))));
    has(r#""no" against type "boolean""#, changed(&|it| row(it, "partial", json!("no"))));
    has(r#""fun" against enum"#, changed(&|it| row(it, "cause", json!("fun"))));
    has(r#""1f" against pattern"#, changed(&|it| row(it, "id", json!("1f"))));
    has("-1 against minimum 0", changed(&|it| row(it, "changed", json!(-1))));
    has("[0] against anyOf", changed(&|it| row(it, "number", json!([0]))));
    has("2 against const 1", changed(&|it| row(it, "version", json!(2))));
    has("no schema `docs/json/fun.json`", changed(&|it| row(it, "view", json!("fun"))));
    let gone = |it: &mut Value| drop(it[0].as_object_mut().unwrap().remove("tool"));
    has("[0].tool is not there", changed(&gone));
}

#[test]
fn every_schema_says_what_it_is_of() {
    let documented = fs::read_to_string(path("docs/json/README.md")).unwrap();
    for (view, schema) in schemas() {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        assert_eq!(schema["$schema"], draft, "{view}");
        let object = schema.get("items").unwrap_or(&schema);
        let head = [&object["properties"]["view"]["const"], &object["properties"]["version"]];
        assert_eq!(head, [&json!(view), &json!({ "const": 1 })], "{view}");
        assert!(schema["title"].is_string() && schema["description"].is_string(), "{view}");
        assert!(documented.contains(&format!("[{view}]({view}.json)")), "{view}");
    }
}

fn path(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// What readers rely on. A line may be added, and none may go: that takes a new version.
#[test]
fn what_was_promised_once_is_promised_still() {
    let kept = fs::read_to_string(path("fixtures/json-promises.txt")).unwrap();
    let kept: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
    let all = schemas();
    let now: BTreeSet<String> =
        all.iter().flat_map(|(view, schema)| promises(view, schema)).collect();
    let lost: Vec<_> = kept.difference(&now).collect();
    assert!(lost.is_empty(), "docs/json promises no more:\n{lost:#?}");
    let new: Vec<_> = now.difference(&kept).map(String::as_str).collect();
    assert!(new.is_empty(), "to be added to fixtures/json-promises.txt:\n{}", new.join("\n"));
}

#[test]
fn a_promise_that_changes_is_another() {
    let all: BTreeMap<String, Value> = schemas();
    let now = promises("list", &all["list"]);
    assert!(now.contains("list[].id: string, always"), "{now:#?}");
    assert!(now.contains("list[].skipped[].reason = \"too-large\""), "{now:#?}");
    let lost = |change: &dyn Fn(&mut Value)| {
        let mut list = all["list"].clone();
        change(&mut list["items"]);
        let then = promises("list", &list);
        now.difference(&then).cloned().collect::<Vec<_>>()
    };
    let removed = lost(&|row| drop(row["properties"].as_object_mut().unwrap().remove("tool")));
    assert_eq!(removed, ["list[].tool: string or null, always"]);
    let renamed = lost(&|row| row["properties"]["cause"]["enum"][0] = json!("other"));
    assert_eq!(renamed, ["list[].cause = \"call\""]);
    let wider = lost(&|row| row["properties"]["root"]["type"] = json!(["string", "null"]));
    assert_eq!(wider, ["list[].root: string, always"]);
    let optional = lost(&|row| drop(row["required"].as_array_mut().unwrap().remove(2)));
    assert_eq!(optional, ["list[].id: string, always"]);
}

/// What a schema promises, a line for each field and for each word that a field may have.
fn promises(view: &str, schema: &Value) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    Promises { defs: &schema["$defs"], lines: &mut lines }.of(view, schema);
    lines
}

struct Promises<'a> {
    defs: &'a Value,
    lines: &'a mut BTreeSet<String>,
}

impl<'a> Promises<'a> {
    fn of(&mut self, at: &str, schema: &'a Value) {
        let schema = self.resolved(schema);
        for one in alternatives(schema) {
            let one = self.resolved(one);
            let required = one["required"].as_array();
            for (name, field) in one["properties"].as_object().into_iter().flatten() {
                let is_there = required.is_some_and(|names| names.contains(&json!(name)));
                let when = if is_there { "always" } else { "sometimes" };
                let path = format!("{at}.{name}");
                self.lines.insert(format!("{path}: {}, {when}", self.kind(field)));
                self.of(&path, field);
            }
            if let Some(items) = one.get("items") {
                self.of(&format!("{at}[]"), items);
            }
            for word in one["enum"].as_array().into_iter().flatten() {
                self.lines.insert(format!("{at} = {word}"));
            }
        }
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let Some(name) = schema["$ref"].as_str() else { return schema };
        &self.defs[name.strip_prefix("#/$defs/").unwrap()]
    }

    /// The kinds of value that are possible.
    fn kind(&self, schema: &'a Value) -> String {
        let schema = self.resolved(schema);
        let kinds: BTreeSet<String> = alternatives(schema).map(|it| self.one(it)).collect();
        kinds.into_iter().collect::<Vec<_>>().join(" or ")
    }

    fn one(&self, schema: &'a Value) -> String {
        let schema = self.resolved(schema);
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        let mut kinds: Vec<&str> = kinds(&schema["type"]).collect();
        if kinds.is_empty() {
            kinds.push("word");
        }
        let of = schema.get("items").map(|items| format!(" of {}", self.kind(items)));
        kinds.join(" or ") + &of.unwrap_or_default()
    }
}

fn alternatives(schema: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match schema["anyOf"].as_array() {
        Some(all) => Box::new(all.iter()),
        None => Box::new(std::iter::once(schema)),
    }
}
