//! One case under way: the project, what is known of it, and what is looked at after each step.

use std::collections::{BTreeMap, BTreeSet};

use chrono::DateTime;
use serde_json::{Value, json};

use super::{
    model::{Change, Moment, Order, Who, differing, is_within, judge},
    steps::{Edit, Ours, SESSIONS, SLOTS, Step, Tool, apply, line},
};
use crate::support::{
    real::{beforehand, git, try_git},
    temp::{Files, on_disk},
    world::{Output, World},
};

type Outcome = Result<(), String>;

/// A call that has begun.
struct Call {
    session: usize,
    edits: Vec<Edit>,
    payload: Value,
}

pub(super) struct Run {
    world: World,
    now: Moment,
    /// What was there when each checkpoint was taken.
    moments: BTreeMap<String, Moment>,
    calls: [Option<Call>; SLOTS],
    turns: [usize; 2],
    /// Whether the agent of a session is known to tell when a call is done.
    tells: [bool; 2],
    clock: usize,
    /// What agents have left anywhere: the same bytes by another hand cannot be told apart.
    left: BTreeSet<(Vec<u8>, Vec<u8>)>,
}

impl Run {
    pub(super) fn new(is_git: bool) -> Self {
        let world = if is_git { World::with_git() } else { World::new() };
        let mut run = Self {
            world,
            now: Moment::default(),
            moments: BTreeMap::new(),
            calls: [None, None],
            turns: [0, 0],
            tells: [false, false],
            clock: 0,
            left: BTreeSet::new(),
        };
        run.world.write(".gitignore", "*.tmp\n");
        run.world.write("a", "first\n");
        run.world.write("d/x", "first x\n");
        run.world.write("i.tmp", "first i\n");
        if is_git {
            git(&run.world, &run.world.root(), "git add -A && git commit -qm first");
        }
        run.now.files = run.files();
        run
    }

    /// Everything but what is in repositories of git's.
    fn files(&self) -> Files {
        let mut files = on_disk(&self.world.root());
        files.retain(|path, _| {
            let mut names = path.split(|byte| *byte == b'/').rev().skip(1);
            path != b".git" && names.all(|name| name != b".git")
        });
        files
    }

    fn tick(&mut self) {
        self.clock += 1;
        self.world.now = DateTime::from_timestamp_nanos(beforehand::fs::now_ns());
    }

    pub(super) fn step(&mut self, step: &Step) -> Outcome {
        self.tick();
        match step {
            Step::Begin { slot, session, tool } => self.begin(*slot, *session, tool),
            Step::End(slot) => self.end(*slot, true),
            Step::Cut(slot) => self.end(*slot, false),
            Step::Refuse(slot) => {
                self.calls[*slot] = None;
                Ok(())
            }
            Step::Prompt(session) => {
                self.turns[*session] += 1;
                // Its hooks were installed together.
                self.tells[*session] = true;
                let more = json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" });
                self.hook(&self.payload(*session, &more)).map(drop)
            }
            Step::Stop(session) => {
                self.hook(&self.payload(*session, &json!({ "hook_event_name": "Stop" }))).map(drop)
            }
            Step::User(edit) => {
                apply(&self.world.root(), edit);
                self.changed_by_user();
                Ok(())
            }
            Step::Git(line) => {
                let _whatever = try_git(&self.world, &self.world.root(), line);
                self.changed_by_user();
                Ok(())
            }
            Step::Background => {
                self.world.run_started();
                self.learn().map(drop)
            }
            Step::Prune => {
                let done = self.world.run(&["prune", "--keep", "3"]);
                is_well(&done, &[0])
            }
            Step::Ours(ours, then) => self.ours(ours, *then),
        }?;
        self.is_untouched()
    }

    /// Nothing but what was noted has changed.
    fn is_untouched(&self) -> Outcome {
        match differing(&self.files(), &self.now.files).first() {
            Some(path) => Err(format!("{} has changed", String::from_utf8_lossy(path))),
            None => Ok(()),
        }
    }

    fn payload(&self, session: usize, more: &Value) -> Value {
        let mut payload = json!({
            "session_id": SESSIONS[session],
            "cwd": self.world.root(),
            "prompt_id": format!("t{}", self.turns[session]),
        });
        let (all, more) = (payload.as_object_mut().unwrap(), more.as_object().unwrap());
        all.extend(more.clone());
        payload
    }

    fn hook(&self, payload: &Value) -> Result<String, String> {
        let args = ["hook", "--agent", "claude-code"];
        let output = self.world.run_in(&self.world.root(), &args, &payload.to_string());
        is_well(&output, &[0])?;
        if !output.stderr.is_empty() || output.stdout.contains("NOT protected") {
            return Err(format!("a hook says {}{}", output.stdout, output.stderr));
        }
        Ok(output.stdout)
    }

    fn begin(&mut self, slot: usize, session: usize, tool: &Tool) -> Outcome {
        if self.calls[slot].is_some() {
            return Ok(());
        }
        let (name, input, edits) = match tool {
            Tool::Write(path, number) => {
                let file = self.world.root().join(path);
                let input = json!({ "file_path": file, "content": "" });
                ("Write", input, vec![Edit::Write(path, *number)])
            }
            Tool::Shell(edits) => ("Bash", json!({ "command": line(edits) }), edits.clone()),
            Tool::Make(edits) => ("Bash", json!({ "command": "make" }), edits.clone()),
        };
        let mut payload = self.payload(session, &json!({ "tool_name": name, "tool_input": input }));
        payload["tool_use_id"] = json!(format!("u{}", self.clock));
        payload["hook_event_name"] = json!("PreToolUse");
        let answer = self.hook(&payload)?;
        self.learn()?;
        if !answer.contains("\"ask\"") && !answer.contains("\"deny\"") {
            self.calls[slot] = Some(Call { session, edits, payload });
        }
        Ok(())
    }

    fn end(&mut self, slot: usize, is_told: bool) -> Outcome {
        let Some(Call { session, edits, mut payload }) = self.calls[slot].take() else {
            return Ok(());
        };
        for edit in &edits {
            apply(&self.world.root(), edit);
        }
        // Of two commands at once, either may have made what both looks show.
        let is_alone = self.calls.iter().flatten().all(|call| call.session == session);
        let is_known = is_told && is_alone;
        self.now
            .becomes(self.files(), Change { who: Who::Agent(session), at: self.clock, is_known });
        let left = self.now.files.iter().map(|(path, seen)| (path.clone(), seen.bytes.clone()));
        self.left.extend(left);
        if is_told {
            payload["hook_event_name"] = json!("PostToolUse");
            payload["tool_response"] = json!({});
            self.tick();
            self.hook(&payload)?;
            self.tells[session] = true;
        }
        Ok(())
    }

    /// While a call is under way, or in a session that has never told of an end, it cannot be known.
    fn changed_by_user(&mut self) {
        let is_known = self.calls.iter().all(Option::is_none) && self.tells == [true, true];
        let change = Change { who: Who::User, at: self.clock, is_known };
        self.now.becomes(self.files(), change);
        for (path, change) in &mut self.now.changes {
            let bytes = self.now.files.get(path).map(|seen| seen.bytes.clone());
            if change.at == self.clock
                && bytes.is_some_and(|it| self.left.contains(&(path.clone(), it)))
            {
                change.is_known = false;
            }
        }
    }

    /// Takes note of new checkpoints, and tells all there are, the newest first.
    fn learn(&mut self) -> Result<Vec<Value>, String> {
        let listed = self.world.run(&["list", "--all", "--json"]);
        is_well(&listed, &[0])?;
        let Ok(Value::Array(all)) = serde_json::from_str(&listed.stdout) else {
            return Err(format!("no list: {}", listed.stdout));
        };
        for one in &all {
            let id = one["id"].as_str().unwrap().to_owned();
            let now = || Moment { at: self.clock, ..self.now.clone() };
            self.moments.entry(id).or_insert_with(now);
        }
        Ok(all)
    }

    fn ours(&mut self, ours: &Ours, then: usize) -> Outcome {
        let all = self.learn()?;
        let name = |back: usize| {
            let one = all.get(back % all.len().max(1))?;
            let number = match &one["number"] {
                Value::Number(number) => number.to_string(),
                Value::String(number) => number.clone(),
                _ => one["id"].as_str()?.to_owned(),
            };
            Some(number)
        };
        match ours {
            Ours::Restore { back, flags, path } => {
                let Some(name) = name(*back) else { return Ok(()) };
                let mut args = vec!["restore", &name];
                args.extend(flags);
                self.deed(&args, path.as_slice(), then)
            }
            Ours::Undo => self.deed(&["undo"], &[], then),
            Ours::UndoSession(session) => {
                self.deed(&["undo", "--session", SESSIONS[*session]], &[], then)
            }
            Ours::Killed { back, point, ends } => {
                let Some(name) = name(*back) else { return Ok(()) };
                self.killed(&name, point, ends)
            }
        }
    }

    /// A command of ours, announced and then done; and taken back and done again, if that is wanted.
    fn deed(&mut self, args: &[&str], paths: &[&str], then: usize) -> Outcome {
        let with = |more: &[&'static str]| {
            let dashes: &[&str] = if paths.is_empty() { &[] } else { &["--"] };
            [args, more, dashes, paths].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let run = |this: &mut Self, args: Vec<String>| {
            this.world.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let shown = run(self, with(&["--dry-run", "--json"]));
        let before = self.now.clone();
        let nothing = ["there is no turn", "is anything left to undo"];
        if shown.exit.code() == 1 && nothing.iter().any(|why| shown.stderr.contains(why)) {
            return Ok(());
        }
        if let Some(id) = shown.stderr.split("was not there at ").nth(1).and_then(|it| it.get(..16))
        {
            return self.is_nowhere(paths, id);
        }
        is_well(&shown, &[0])?;
        let plan = parsed(&shown)?;
        let order = self.order(args, paths, &plan)?;
        let done = run(self, with(&["--yes", "--json"]));
        let after = self.files();
        let told = |why: String| format!("{why}\n{args:?}\n{}\n{}", done.stdout, done.stderr);
        judge(&order, &before, &after).map_err(told)?;
        is_as_announced(&plan, &before.files, &after).map_err(told)?;
        let deed = parsed(&done)?;
        if deed["steps"] != plan["steps"] && without_lines(&deed) != without_lines(&plan) {
            return Err(told(format!("another plan was shown: {plan}")));
        }
        let count = listed(&plan) + plan["repositories"].as_array().unwrap().len();
        if deed["done"] != count {
            return Err(told(format!("{count} paths were announced, {} done", deed["done"])));
        }
        let is_inner = deed["inner_steps"] != json!([]) || deed["mid_turn"] != json!([]);
        let conflicts = plan["steps"].as_array().unwrap().iter().any(|it| it["conflict"] == true)
            || is_inner && !args.contains(&"--exact");
        is_well(&done, &[if conflicts { 3 } else { 0 }])?;
        is_named(&order, &plan, &before, &after).map_err(told)?;
        let Some(held) = deed["held_in"].as_str() else { return Ok(()) };
        self.moments.insert(held.to_owned(), Moment { at: self.clock, ..before.clone() });
        self.now.restored(after, &order, self.clock);
        self.learn()?;
        let (back, forth) = if args[0] == "undo" { ("redo", "undo") } else { ("undo", "redo") };
        let restored = self.now.clone();
        if then > 0 {
            self.exactly(back, before)?;
        }
        if then > 1 {
            self.exactly(forth, restored)?;
        }
        Ok(())
    }

    /// Paths that a restore does not know are neither there now nor were they at checkpoint `id`.
    fn is_nowhere(&self, paths: &[&str], id: &str) -> Outcome {
        let then = self.moments.get(id).ok_or("nobody took it")?;
        let has = |files: &Files| {
            let is_it = |path: &Vec<u8>| {
                paths.iter().any(|it| is_within(path, it.as_bytes()) || path == it.as_bytes())
            };
            files.keys().any(is_it)
        };
        if has(&then.files) || has(&self.now.files) {
            return Err(format!("{paths:?} is called unknown"));
        }
        Ok(())
    }

    /// A step back or forth brings back all that was there, exactly.
    fn exactly(&mut self, verb: &str, to: Moment) -> Outcome {
        self.tick();
        let done = self.world.run(&[verb, "--yes"]);
        let files = self.files();
        let told = format!("{}{}", done.stdout, done.stderr);
        if let Some(path) = differing(&files, &to.files).first() {
            let [is, wanted] = [&files, &to.files].map(|files| files.get(path));
            let name = String::from_utf8_lossy(path);
            return Err(format!("{verb}: {name} is {is:?} and was {wanted:?}\n{told}"));
        }
        is_well(&done, &[0])?;
        let now = std::mem::replace(&mut self.now, Moment { at: self.clock, ..to });
        let taken = self.world.run(&["list", "--all", "--json"]).stdout;
        let taken: Vec<Value> = serde_json::from_str(&taken).unwrap();
        for one in taken {
            let id = one["id"].as_str().unwrap().to_owned();
            self.moments.entry(id).or_insert_with(|| Moment { at: self.clock, ..now.clone() });
        }
        Ok(())
    }

    fn order(&mut self, args: &[&str], paths: &[&str], plan: &Value) -> Result<Order, String> {
        let id = plan["checkpoint"].as_str().ok_or("no checkpoint")?;
        let all = self.learn()?;
        let one = all.iter().find(|one| one["id"] == id).ok_or("not in the list")?;
        let session = SESSIONS.iter().position(|session| one["session"] == *session);
        Ok(Order {
            then: self.moments.get(id).cloned().ok_or("nobody took it")?,
            session,
            is_forced: args.contains(&"--force"),
            is_undo: args.first() == Some(&"undo"),
            picked: paths.first().map(|path| path.as_bytes().to_vec()),
            inner_roots: plan["inner_roots"].as_array().map_or_else(Vec::new, |all| {
                all.iter().map(|path| path.as_str().unwrap().as_bytes().to_vec()).collect()
            }),
        })
    }

    fn killed(&mut self, name: &str, point: &str, ends: &str) -> Outcome {
        let plan = self.world.run(&["restore", name, "--dry-run", "--json"]);
        is_well(&plan, &[0])?;
        let order = self.order(&[], &[], &parsed(&plan)?)?;
        let mut command = beforehand(&self.world, &self.world.root(), &["restore", name, "--yes"]);
        let output = command.env("BEFOREHAND_TEST_CRASH_AT", point).output().unwrap();
        let is_dead = output.status.code().is_none();
        self.tick();
        let said = if is_dead {
            let done = self.world.run(&["restore", ends]);
            format!("{:?} {}{}", done.exit, done.stdout, done.stderr)
        } else {
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let after = self.files();
        let told = |why| format!("{why}\nkilled at {point}: {is_dead}, {ends}: {said}");
        let is_before = differing(&after, &self.now.files).is_empty();
        if is_dead && ends == "--abort" && !is_before {
            return Err(told("not as it was before".to_owned()));
        }
        if !is_before {
            judge(&order, &self.now, &after).map_err(told)?;
        }
        let before = std::mem::take(&mut self.now);
        self.now = before.clone();
        self.now.restored(after, &order, self.clock);
        let after = std::mem::replace(&mut self.now, before);
        self.learn()?;
        self.now = after;
        Ok(())
    }
}

fn parsed(output: &Output) -> Result<Value, String> {
    let parsed = serde_json::from_str(&output.stdout);
    parsed.map_err(|err| format!("{err}: {}{}", output.stdout, output.stderr))
}

fn is_well(output: &Output, exits: &[u8]) -> Outcome {
    let exit = output.exit.code();
    if exits.contains(&exit) {
        return Ok(());
    }
    Err(format!("exit {exit} and not {exits:?}\n{}{}", output.stdout, output.stderr))
}

fn without_lines(plan: &Value) -> Vec<[Value; 3]> {
    let steps = plan["steps"].as_array().unwrap().iter();
    steps.map(|step| ["path", "action", "why"].map(|key| step[key].clone())).collect()
}

/// The paths that are to change.
fn announced(plan: &Value) -> BTreeSet<Vec<u8>> {
    let steps = plan["steps"].as_array().unwrap().iter();
    let deeds = steps.filter(|step| step["action"] != "keep" && step["action"] != "leave");
    deeds.map(|step| step["path"].as_str().unwrap().as_bytes().to_vec()).collect()
}

/// How many of them a text lists: a directory that comes or goes only with what is in it is not among them.
fn listed(plan: &Value) -> usize {
    let steps = plan["steps"].as_array().unwrap();
    let is_implied = |(step, next): (&Value, &Value)| {
        let within = format!("{}/", step["path"].as_str().unwrap());
        (step["action"] == "recreate" || step["action"] == "remove")
            && next["action"] == step["action"]
            && next["path"].as_str().unwrap().starts_with(&within)
    };
    let implied = steps.iter().zip(&steps[1.min(steps.len())..]).filter(|pair| is_implied(*pair));
    announced(plan).len() - implied.count()
}

/// What changes is what was said to.
fn is_as_announced(plan: &Value, before: &Files, after: &Files) -> Outcome {
    let deeds = announced(plan);
    let mut changed = differing(before, after);
    changed.retain(|path| !path.ends_with(b"/.git"));
    match changed.symmetric_difference(&deeds).next() {
        Some(path) => Err(format!(
            "{}: announced {}, done {}",
            String::from_utf8_lossy(path),
            deeds.contains(path),
            changed.contains(path)
        )),
        None => Ok(()),
    }
}

/// What is not as it was is named.
fn is_named(order: &Order, plan: &Value, before: &Moment, after: &Files) -> Outcome {
    let steps = plan["steps"].as_array().unwrap();
    let paths: BTreeSet<&[u8]> =
        steps.iter().map(|step| step["path"].as_str().unwrap().as_bytes()).collect();
    let mut unlike = differing(&order.then.files, after);
    unlike.retain(|path| {
        let is_left = before.is_put_back(path, order) || before.has_under_in(path, order);
        order.is_picked(path) && !path.ends_with(b"/.git") && !is_left
    });
    match unlike.iter().find(|path| !paths.contains(&path[..])) {
        Some(path) => Err(format!("{} is not named", String::from_utf8_lossy(path))),
        None => Ok(()),
    }
}
