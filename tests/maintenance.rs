//! Maintenance: when it starts, what each limit removes, and what no limit may remove.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use beforehand::{
    fs::own_bytes,
    model::CheckpointId,
    process::{Exit, Stdin},
    restore_log::RestoreLog,
    state::{RootState, StateDir},
};
use serde_json::{Value, json};

use crate::{
    evidence,
    support::{
        temp::{count, noise, write},
        world::World,
    },
};

const DAY: i64 = 24 * 60 * 60;

/// A round, by itself.
pub(crate) fn run_maintenance(world: &World) {
    let output = world.run_in(Path::new("/"), &["maintain"], "");
    assert_eq!((output.exit, &*output.stdout, &*output.stderr), (Exit::Ok, "", ""));
}

/// A round every day for so many days.
pub(crate) fn live(world: &mut World, days: i64) {
    for _ in 0..days {
        world.wait(DAY);
        run_maintenance(world);
    }
}

fn own(world: &World) -> RootState {
    StateDir::new(world.state()).root_at(&world.root())
}

/// The ids of all checkpoints of the project, newest first.
pub(crate) fn ids(world: &mut World) -> Vec<String> {
    let told = world.run(&["list", "--all", "--json"]).stdout;
    let told: Value = serde_json::from_str(&told).unwrap();
    let mut ids = Vec::new();
    collect_ids(&told, &mut ids);
    ids
}

fn collect_ids(value: &Value, ids: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        Value::Object(fields) => {
            let id = fields.get("id").and_then(Value::as_str);
            ids.extend(id.filter(|id| !ids.iter().any(|known| known == id)).map(str::to_owned));
            fields.values().for_each(|value| collect_ids(value, ids));
        }
        _ => (),
    }
}

/// Takes a checkpoint of a file with this many bytes, no two alike.
pub(crate) fn save(world: &mut World, name: &str, bytes: usize) -> String {
    let salt = ids(world).len();
    world.write(name, vec![u8::try_from(salt).unwrap(); bytes]);
    world.wait(1);
    let output = world.run(&["create"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    output.stdout.trim().to_owned()
}

fn report(world: &World) -> Value {
    let text = fs::read(world.state().join("maintenance.json")).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap()["report"].clone()
}

pub(crate) fn is_sound(world: &mut World) {
    let output = world.run(&["check", "--read-data"]);
    assert_eq!(output.exit, Exit::Ok, "{}{}", output.stdout, output.stderr);
}

#[test]
fn a_call_that_saved_something_starts_a_round_once_a_day() {
    let mut world = World::new();
    world.write("a", "1");
    world.before_bash("t1", "ls");
    assert_eq!(world.started(), [[""; 0]; 0], "a call with nothing to do starts nothing");
    world.before_bash("t1", "make");
    assert_eq!(world.started(), [["maintain"]]);
    for turn in 2..5 {
        world.write("a", turn.to_string());
        world.before_bash(&format!("t{turn}"), "make");
    }
    assert_eq!(world.started(), [[""; 0]; 0], "it has been asked for");
    // The run that was started died. It is tried again, but not at once.
    world.wait(11 * 60);
    world.write("a", "5");
    world.before_bash("t5", "make");
    assert_eq!(world.started(), [["maintain"]]);
    run_maintenance(&world);
    for (hours, due) in [(12, false), (11, false), (2, true)] {
        world.wait(hours * 60 * 60);
        world.write("a", format!("{hours}"));
        world.before_bash(&format!("u{hours}"), "make");
        assert_eq!(!world.started().is_empty(), due, "{hours}");
    }
}

#[test]
fn a_clock_that_stood_ahead_does_not_keep_rounds_away() {
    let mut world = World::new();
    world.wait(3000 * DAY);
    world.before_bash("t1", "make");
    world.run_started();
    world.wait(-3000 * DAY);
    world.write("a", "1");
    world.before_bash("t2", "make");
    assert_eq!(world.started(), [["maintain"]]);
}

#[test]
fn no_maintenance_runs_where_it_is_switched_off() {
    let mut world = World::new();
    world.set("BEFOREHAND_AUTO_PRUNE", "off");
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    for turn in 0..3 {
        world.write("a", turn.to_string());
        world.before_bash(&format!("t{turn}"), "make");
    }
    assert!(world.started().is_empty());
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 3);
}

#[test]
fn the_largest_root_gives_its_oldest_when_there_is_no_room() {
    let mut world = World::new();
    let small = world.root().with_file_name("small");
    for n in 0..3u8 {
        write(&small.join("a"), vec![n; 20_000]);
        assert_eq!(world.run_in(&small, &["create"], "").exit, Exit::Ok);
    }
    let all: Vec<String> = (0..5).map(|_| save(&mut world, "big", 1_000_000)).collect();
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "3500 KB");
    run_maintenance(&world);
    assert_eq!(ids(&mut world), [all[4].clone(), all[3].clone(), all[2].clone()]);
    let others = StateDir::new(world.state()).root_at(&small);
    assert_eq!(count(&others.checkpoints()), 3, "the small root loses nothing");
    assert_eq!(report(&world)["unmet"], json!([]));
    assert!(own_bytes(&world.state()) <= 3_500_000);
    is_sound(&mut world);
}

#[test]
fn what_must_stay_wins_over_the_room_there_is() {
    let mut world = World::new();
    save(&mut world, "big", 500_000);
    let newest = save(&mut world, "big", 1_000_000);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "100 KB");
    run_maintenance(&world);
    assert_eq!(ids(&mut world), [newest]);
    let unmet = report(&world)["unmet"][0].as_str().unwrap().to_owned();
    assert!(unmet.ends_with("and what is left must stay"), "{unmet}");
    is_sound(&mut world);
}

#[test]
fn a_disk_that_is_nearly_full_gets_room_back() {
    let mut world = World::new();
    for _ in 0..4 {
        save(&mut world, "a", 10_000);
    }
    // No disk has that much.
    world.set("BEFOREHAND_FREE_SPACE_FLOOR", "9000000 GB");
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 1);
    let unmet = report(&world)["unmet"][0].as_str().unwrap().to_owned();
    assert!(unmet.starts_with("only "), "{unmet}");
}

#[test]
fn what_was_held_before_a_restore_stays_seven_days() {
    let mut world = World::new();
    save(&mut world, "a", 10);
    world.write("a", "what a restore overwrites");
    let output = world.run(&["restore", "1", "--yes", "--force"]);
    assert_eq!(output.exit, Exit::Ok, "{}", output.stderr);
    let held = ids(&mut world)[0].clone();
    let newest = save(&mut world, "a", 30);
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    run_maintenance(&world);
    live(&mut world, 6);
    assert_eq!(ids(&mut world), [newest.clone(), held]);
    live(&mut world, 2);
    assert_eq!(ids(&mut world), [newest]);
}

/// A user who is asked, lets other processes work, and then says yes.
pub(crate) struct Slow<F: FnMut()>(pub(crate) Option<F>);

impl<F: FnMut()> io::Read for Slow<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let said: &[u8] = match self.0.take() {
            Some(mut meanwhile) => {
                meanwhile();
                b"y"
            }
            None => b"\n",
        };
        buffer[..said.len()].copy_from_slice(said);
        Ok(said.len())
    }
}

impl<F: FnMut()> Stdin for Slow<F> {
    fn ready(&mut self, _: Duration) -> bool {
        true
    }
}

#[test]
fn nothing_goes_while_the_user_is_asked_whether_to_restore() {
    for mut world in [World::new(), World::with_git()] {
        world.write("a", "first");
        world.wait(1);
        assert_eq!(world.run(&["create"]).exit, Exit::Ok);
        let first = ids(&mut world)[0].clone();
        for n in 2..5 {
            save(&mut world, "a", n);
        }
        world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
        let meanwhile = || {
            run_maintenance(&world);
            let pruned = world.run_in(&world.root(), &["prune", "--keep", "1"], "");
            assert_eq!(pruned.exit, Exit::Failed, "{}", pruned.stdout);
            let cleared = world.run_in(&world.root(), &["clear", "--yes"], "");
            assert_eq!(cleared.exit, Exit::Failed, "{}", cleared.stdout);
        };
        let args = ["restore", &first, "--force"];
        let done = world.run_asked(&args, &mut Slow(Some(meanwhile)));
        assert_eq!(done.exit, Exit::Ok, "{}{}", done.stdout, done.stderr);
        assert_eq!(world.read("a"), "first");
        assert_eq!(ids(&mut world).len(), 5, "with the one held before the restore");
        run_maintenance(&world);
        assert_eq!(ids(&mut world).len(), 2);
    }
}

#[test]
fn what_an_open_restore_needs_stays() {
    let mut world = World::new();
    let all: Vec<String> = (0..5).map(|_| save(&mut world, "a", 100_000)).collect();
    let id = |n: usize| CheckpointId::parse(&all[n]).unwrap();
    let log = RestoreLog {
        repository: false,
        repositories: Vec::new(),
        of: id(0),
        held: id(2),
        verb: "restore".to_owned(),
        index: false,
        paths: Vec::new(),
        merged: Vec::new(),
        merges: Vec::new(),
        dated: Vec::new(),
        ends: Vec::new(),
        outside: Vec::new(),
        head: None,
        closed: Vec::new(),
        brings: None,
    };
    log.begin(&own(&world)).unwrap();
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    run_maintenance(&world);
    let stay: BTreeSet<String> = ids(&mut world).into_iter().collect();
    assert_eq!(stay, BTreeSet::from([0, 2, 4].map(|n| all[n].clone())));
    // One that cannot be read may need anything.
    write(&own(&world).restore_log(), "not a log");
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 3);
    fs::remove_file(own(&world).restore_log()).unwrap();
    run_maintenance(&world);
    assert_eq!(ids(&mut world), [all[4].clone()]);
}

#[test]
fn a_root_that_was_removed_is_forgotten_after_the_time_to_keep() {
    let mut world = World::with_git();
    save(&mut world, "a", 10);
    run_maintenance(&world);
    fs::rename(world.root(), world.root().with_file_name("elsewhere")).unwrap();
    live(&mut world, 14);
    assert!(own(&world).dir().is_dir(), "it may yet be wanted back");
    live(&mut world, 2);
    assert!(!own(&world).dir().exists());
    assert_eq!(count(&world.state().join("objects")), 0);
}

#[test]
fn a_root_that_was_removed_stays_where_the_settings_say_so() {
    let mut world = World::new();
    world.set("BEFOREHAND_DELETE_ORPHANS", "no");
    save(&mut world, "a", 10);
    fs::rename(world.root(), world.root().with_file_name("elsewhere")).unwrap();
    live(&mut world, 40);
    assert_eq!(count(&own(&world).checkpoints()), 1);
}

#[test]
fn a_disk_that_is_not_plugged_in_is_not_a_root_that_was_removed() {
    let mut world = World::new();
    save(&mut world, "a", 10);
    let code = world.root().parent().unwrap().to_owned();
    fs::rename(&code, code.with_file_name("unplugged")).unwrap();
    live(&mut world, 20);
    // Another directory where it used to be mounted.
    fs::create_dir(&code).unwrap();
    live(&mut world, 20);
    assert_eq!(count(&own(&world).checkpoints()), 1);
}

#[test]
fn a_session_that_is_over_leaves_its_newest_if_so_wanted() {
    for wanted in ["keep", "prune"] {
        let mut world = World::new();
        world.set("BEFOREHAND_ON_SESSION_END", wanted);
        let asked = save(&mut world, "a", 10);
        for turn in 0..3 {
            world.agent_writes(&format!("t{turn}"), "a", &format!("{turn}"));
        }
        drop(world.started());
        run_maintenance(&world);
        let payload = json!({
            "session_id": "s1", "cwd": world.root(), "hook_event_name": "SessionEnd",
            "reason": "exit",
        });
        let args = ["hook", "--agent", "claude-code"];
        world.run_in(&world.root(), &args, &payload.to_string());
        world.run_started();
        let stay = ids(&mut world);
        assert_eq!(stay.len(), if wanted == "keep" { 4 } else { 2 }, "{wanted}");
        assert_eq!(stay.last(), Some(&asked), "{wanted}: of no session");
    }
}

#[test]
fn the_leavings_of_the_dead_are_reclaimed() {
    let mut world = World::new();
    save(&mut world, "a", 10);
    world.before_bash("t1", "make");
    let own = own(&world);
    let state = world.state();
    let now = world.now();
    let age = |path: &Path, days: u64| {
        let then = SystemTime::from(now) - Duration::from_secs(days * 86_400);
        File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    };
    let litter: Vec<PathBuf> = vec![
        state.join("maintenance.json.tmp-1-2"),
        own.dir().join("cache.tmp-12-0"),
        own.checkpoints().join("x.json.tmp-12-0"),
    ];
    for path in &litter {
        write(path, "{}");
        age(path, 30);
    }
    write(&state.join("gone-0123/d/f"), "half removed");
    let young = state.join("sessions/4567.json.tmp-12-1");
    write(&young, "{}");
    age(&young, 0);
    let session = ["sessions/0123.lock", "sessions/0123.json"].map(|name| state.join(name));
    for path in &session {
        write(path, "{}");
    }
    run_maintenance(&world);
    for path in &litter {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(session.iter().all(|path| path.exists()), "its time begins now");
    live(&mut world, 15);
    assert!(session.iter().all(|path| !path.exists()), "no checkpoint is of that session");
    write(&young, "{}");
    assert!(young.exists(), "it may still be written");
    assert!(!state.join("gone-0123").exists());
    assert_eq!(count(&state.join("sessions")), 3, "the ledger of a session that lives");
    is_sound(&mut world);
}

#[test]
fn two_rounds_never_run_at_once() {
    let mut world = World::new();
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    save(&mut world, "a", 1);
    save(&mut world, "a", 2);
    let lock = File::create(world.state().join("maintenance.lock")).unwrap();
    lock.lock().unwrap();
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 2);
    lock.unlock().unwrap();
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 1);
}

/// What `status --json` says.
pub(crate) fn status(world: &mut World) -> (Exit, Value) {
    let output = world.run(&["status", "--json"]);
    (output.exit, serde_json::from_str(&output.stdout).unwrap())
}

#[test]
fn status_says_how_each_root_stands() {
    let mut world = World::with_git();
    save(&mut world, "a", 100_000);
    assert_eq!(world.run(&["install", "claude-code", "--yes"]).exit, Exit::Ok);
    let places = ["gone", "unplugged/disk"].map(|name| world.root().with_file_name(name));
    for place in &places {
        write(&place.join("f"), vec![7; 50_000]);
        assert_eq!(world.run_in(place, &["create"], "").exit, Exit::Ok);
    }
    for place in [places[0].as_path(), places[1].parent().unwrap()] {
        fs::rename(place, place.with_extension("away")).unwrap();
    }
    run_maintenance(&world);
    live(&mut world, 9);
    let (exit, told) = status(&mut world);
    assert_eq!(exit, Exit::Ok, "{told}");
    let standing = |told: &Value| {
        let roots = told["roots"].as_array().unwrap().iter();
        roots.map(|root| root["standing"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(standing(&told), ["live", "gone", "unreachable"]);
    assert_eq!(told["roots"][0]["status"], "installed, not seen yet");
    assert_eq!(told["roots"][0]["protected"], false);
    assert_eq!(told["roots"][1]["forgotten_in"], 5 * DAY);
    assert!(told["roots"][1]["size"].as_u64().unwrap() >= 50_000);
    assert_eq!(told["size"].as_u64().unwrap(), own_bytes(&world.state()));
    assert_eq!(told["last_prune"]["dropped"], 0);
    let words = world.run(&["status"]).stdout;
    for expected in ["gone; forgotten in 5 days", "out of reach", "last prune just now", "14 days"]
    {
        assert!(words.contains(expected), "{expected} in {words}");
    }
    world.set("BEFOREHAND_ENABLED", "no");
    let (exit, told) = status(&mut world);
    assert_eq!((exit, &told["roots"][0]["protected"]), (Exit::Failed, &json!(false)));
}

#[test]
fn status_says_which_limits_are_not_kept() {
    let mut world = World::with_git();
    for _ in 0..3 {
        save(&mut world, "a", 100_000);
    }
    world.set("BEFOREHAND_MAX_TOTAL_SIZE", "1");
    run_maintenance(&world);
    let (_, told) = status(&mut world);
    assert_eq!(told["last_prune"]["dropped"], 2);
    assert_eq!(told["size"].as_u64().unwrap(), own_bytes(&world.state()));
    let words = world.run(&["status"]).stdout;
    assert!(words.contains("limit not kept: "), "{words}");
}

#[test]
fn a_prune_by_hand_frees_at_once_and_is_no_round() {
    let mut world = World::with_git();
    for n in 0..3 {
        world.write("a", noise(n, 1 << 20));
        world.wait(1);
        assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    }
    world.started();
    let before = own_bytes(&world.state());
    let pruned = world.run(&["prune", "--keep", "1"]).stdout;
    assert!(pruned.contains("2.1 MB freed") || pruned.contains("2.2 MB freed"), "{pruned}");
    let after = own_bytes(&world.state());
    assert!(before - after > 2 << 20, "{before} became {after}");
    is_sound(&mut world);
    world.write("a", "now");
    world.before_bash("t1", "make");
    let started = world.started();
    assert!(started.iter().any(|args| args[..] == ["maintain"]), "one is due: {started:?}");
    run_maintenance(&world);
    assert_eq!(ids(&mut world).len(), 2);
    is_sound(&mut world);
}

/// A sparse file takes less room than its size says, and only what it takes can be freed.
#[test]
fn what_is_freed_is_counted_as_status_counts() {
    let mut world = World::new();
    for _ in 0..3 {
        save(&mut world, "a", 10);
        let sparse = File::create(world.root().join("sparse")).unwrap();
        sparse.set_len(9 << 20).unwrap();
        std::os::unix::fs::FileExt::write_at(
            &sparse,
            &[u8::try_from(ids(&mut world).len()).unwrap()],
            0,
        )
        .unwrap();
        world.wait(1);
        assert_eq!(world.run(&["create"]).exit, Exit::Ok);
    }
    let freed =
        |output: &str| serde_json::from_str::<Value>(output).unwrap()["freed"].as_u64().unwrap();
    let promised = freed(&world.run(&["prune", "--keep", "2", "--dry-run", "--json"]).stdout);
    // From the first one on it is noted what a prune did.
    world.run(&["prune", "--keep", "9"]);
    let before = own_bytes(&world.state());
    let did = freed(&world.run(&["prune", "--keep", "2", "--json"]).stdout);
    assert_eq!(did, before - own_bytes(&world.state()));
    assert!(did < 1 << 20, "{did}");
    // What directories take shows only when they have gone.
    assert!(promised > 0 && promised <= did, "{promised} was promised, {did} came of it");
    let before = own_bytes(&world.state());
    let cleared = world.run(&["clear", "--yes"]).stdout;
    let expected = beforehand::ui::size(before - own_bytes(&world.state()));
    assert!(cleared.contains(&format!("{expected} freed")), "{expected}: {cleared}");
}

#[test]
fn prune_shows_the_plan_it_carries_out() {
    let mut world = World::new();
    let all: Vec<String> = (0..4).map(|_| save(&mut world, "big", 1_000_000)).collect();
    let args = ["prune", "--max-size", "2500 KB"];
    let dry = world.run(&[&args[..], &["--dry-run"]].concat()).stdout;
    assert!(dry.contains("2 checkpoints would be dropped, 2 kept"), "{dry}");
    assert!(dry.contains("over the room there is"), "{dry}");
    assert_eq!(ids(&mut world).len(), 4);
    let done = world.run(&args).stdout;
    assert_eq!(dry.lines().take(2).collect::<Vec<_>>(), done.lines().take(2).collect::<Vec<_>>());
    assert_eq!(ids(&mut world), [all[3].clone(), all[2].clone()]);
    is_sound(&mut world);
}

#[test]
fn clear_drops_one_project_or_all_and_only_with_a_yes() {
    let mut world = World::new();
    let other = world.root().with_file_name("other");
    let gone = world.root().with_file_name("gone");
    for place in [&other, &gone] {
        write(&place.join("f"), "f");
        assert_eq!(world.run_in(place, &["create"], "").exit, Exit::Ok);
    }
    fs::rename(&gone, gone.with_extension("away")).unwrap();
    save(&mut world, "a", 10);
    let state = StateDir::new(world.state());
    let left = |path: &Path| count(&state.root_at(path).checkpoints());
    let all = |world: &World| [&world.root(), &other, &gone].map(|path| left(path));
    let asked = world.run(&["clear", "--everywhere"]);
    assert_eq!((asked.exit, all(&world)), (Exit::Failed, [1, 1, 1]), "{}", asked.stdout);
    let root = other.to_str().unwrap().to_owned();
    assert_eq!(world.run(&["clear", "--root", &root, "--yes"]).exit, Exit::Ok);
    assert_eq!(all(&world), [1, 0, 1]);
    let root = gone.to_str().unwrap().to_owned();
    let cleared = world.run(&["clear", "--root", &root, "--yes"]);
    assert_eq!((cleared.exit, all(&world)), (Exit::Ok, [1, 0, 0]), "{}", cleared.stderr);
    assert_eq!(world.run(&["clear", "--everywhere", "--yes"]).exit, Exit::Ok);
    assert_eq!((all(&world), count(&state.objects())), ([0, 0, 0], 0));
}

#[test]
fn what_was_noted_of_calls_goes_with_the_checkpoints_that_restores_go_back_to() {
    const KEPT: i64 = 12;
    const DAYS: i64 = 60;
    let mut world = World::new();
    world.write("a", "mine");
    for tier in ["RETENTION", "KEEP_TURNS", "KEEP_SESSIONS"] {
        world.set(&format!("BEFOREHAND_{tier}"), &format!("{KEPT}d"));
    }
    for day in 0..DAYS {
        let turn = format!("turn {day}");
        evidence::run(&mut world, &turn, "make something", |world| {
            world.write(&format!("made-{day:02}"), "");
        });
        live(&mut world, 1);
    }
    let dir = own(&world).attribution();
    let lines: String = ["log.old", "log"]
        .iter()
        .map(|name| fs::read_to_string(dir.join(name)).unwrap_or_default())
        .collect();
    let noted = |day: i64| lines.contains(&format!("\"made-{day:02}\""));
    let first = (0..DAYS).find(|day| noted(*day)).unwrap();
    assert!((first..DAYS).all(noted), "nothing in between is missing");
    let kept = DAYS - first;
    assert!((KEPT..=2 * KEPT + 1).contains(&kept), "of {kept} days");
    // Of every turn that is listed, it is still known who made what.
    let plan = world.run(&["restore", &KEPT.to_string(), "--dry-run"]);
    for day in DAYS - KEPT..DAYS {
        let line = format!("remove    made-{day:02}   made by the agent");
        assert!(plan.stdout.contains(&line), "{line}: {}{}", plan.stdout, plan.stderr);
    }
}
