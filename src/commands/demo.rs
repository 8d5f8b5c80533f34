//! `beforehand demo`: a turn and a restore in temporary projects, with real payloads through the real
//! hook, and every byte compared at the end.
//!
//! The pretended agent works with plain `std::fs`, as any program would; it only ever touches the
//! directory that was made for it.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use chrono::TimeDelta;
use serde_json::Value;

use super::{diff, list, print, print_text, restore};
use crate::{
    error::{Error, Result},
    hook,
    process::{Exit, Process, ProcessContext, Terminal},
    ui::Style,
};

/// Demonstrate a turn and a restore in a temporary project.
///
/// Makes two small projects in a temporary directory, one in a git repository and one without,
/// feeds the calls of a pretended agent through the hook, lets it overwrite a file and delete a
/// directory, and takes both back. Exits 1 if a single byte is not as it was.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// Keep the directory
    #[arg(long)]
    keep: bool,
}

/// The project, as it ships.
const TEMPLATE: [(&str, &str); 5] = [
    ("assets/logo.svg", include_str!("../../fixtures/demo/shop/assets/logo.svg")),
    ("assets/shop.css", include_str!("../../fixtures/demo/shop/assets/shop.css")),
    ("notes.md", include_str!("../../fixtures/demo/shop/notes.md")),
    ("src/cart.ts", include_str!("../../fixtures/demo/shop/src/cart.ts")),
    ("src/main.ts", include_str!("../../fixtures/demo/shop/src/main.ts")),
];

/// What Claude Code sends, as it was recorded.
const PROMPT: &str = include_str!("../../fixtures/payloads/claude-code/UserPromptSubmit.json");
const WRITE: &str = include_str!("../../fixtures/payloads/claude-code/PreToolUse-Write.json");
const BASH: &str = include_str!("../../fixtures/payloads/claude-code/PreToolUse-Bash.json");

/// What the pretended agent makes of the cart.
const REWRITTEN: &str = "export const total = (items) => 0; // simplified\n";

pub(crate) fn run(process: &mut Process<'_>, args: &DemoArgs) -> Result<Exit> {
    let stage = DemoStage::set(process)?;
    let told = stage.tell(process);
    if args.keep {
        print_text(process, &format!("\nit is all still there: {}\n", stage.dir.display()))?;
    } else {
        stage.clear()?;
    }
    told
}

/// Where the story takes place: a directory with a home of its own.
struct DemoStage {
    dir: PathBuf,
}

impl DemoStage {
    fn set(process: &Process<'_>) -> Result<Self> {
        let temp = process.var("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let temp = fs::canonicalize(&temp).map_err(Error::io("find", &temp))?;
        let dir = temp.join(format!("beforehand-demo-{}", std::process::id()));
        // Must be new: what is there is not ours.
        let made = fs::DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(Error::io("make", &dir))?;
        let stage = Self { dir };
        for (name, text) in TEMPLATE {
            write(&stage.dir.join("template/shop").join(name), text)?;
        }
        make_dir(&stage.dir.join("home"))?;
        Ok(stage)
    }

    #[expect(clippy::disallowed_methods, reason = "a directory that this very process made")]
    fn clear(self) -> Result<()> {
        fs::remove_dir_all(&self.dir).map_err(Error::io("remove", &self.dir))
    }

    fn tell(&self, process: &mut Process<'_>) -> Result<Exit> {
        let mut whole = true;
        for with_git in [true, false] {
            let project = self.project(with_git)?;
            let mut story = DemoProject { stage: self, process, project, style: Style::PLAIN };
            story.style = Style::stdout(story.process);
            whole &= story.tell(with_git)?;
        }
        if whole {
            print(
                process,
                "\nEvery byte is back, with and without git. Nothing of yours was touched.\n",
            )?;
            return Ok(Exit::Ok);
        }
        Err(Error::Other {
            message: "not everything came back as it was".to_owned(),
            hint: Some("this is a bug: please report it with the output above".to_owned()),
        })
    }

    /// A fresh copy of the project.
    fn project(&self, with_git: bool) -> Result<PathBuf> {
        let parent = self.dir.join(if with_git { "with-git" } else { "without-git" });
        make_dir(&parent)?;
        let options = fs_extra::dir::CopyOptions::new();
        fs_extra::dir::copy(self.dir.join("template/shop"), &parent, &options).map_err(|err| {
            Error::Other { message: format!("cannot copy the template: {err}"), hint: None }
        })?;
        let project = parent.join("shop");
        if with_git {
            let options = gix::create::Options::default();
            gix::create::into(&project, gix::create::Kind::WithWorktree, options)
                .map_err(|err| Error::Repository { path: project.clone(), why: err.to_string() })?;
        }
        Ok(project)
    }
}

/// One project's part.
struct DemoProject<'s, 'p, 'o> {
    stage: &'s DemoStage,
    process: &'p mut Process<'o>,
    project: PathBuf,
    style: Style,
}

impl DemoProject<'_, '_, '_> {
    /// Tells it, and whether it ended well.
    fn tell(&mut self, with_git: bool) -> Result<bool> {
        let before = snapshot(&self.project)?;
        let kind = if with_git { "A project in a git repository" } else { "\nA plain directory" };
        let title = self.style.bold(&format!("{kind}: {} files", before.len())).into_owned();
        self.say(&format!("{title}\n"))?;
        self.agent_works()?;
        let args = list::ListArgs { is_read: true, ..list::ListArgs::default() };
        self.shown("list", |inner| list::run(inner, &args))?;
        if with_git {
            let args = diff::DiffArgs {
                from: "1".to_owned(),
                paths: vec![self.project.join("src")],
                ..diff::DiffArgs::default()
            };
            self.shown("diff 1 -- src", |inner| diff::run(inner, &args))?;
        } else {
            let args =
                diff::DiffArgs { from: "1".to_owned(), stat: true, ..diff::DiffArgs::default() };
            self.shown("diff 1 --stat", |inner| diff::run(inner, &args))?;
        }
        let args = restore::RestoreArgs {
            checkpoint: Some("1".to_owned()),
            yes: true,
            ..restore::RestoreArgs::default()
        };
        self.shown("restore 1 --yes", |inner| restore::run(inner, &args))?;
        let after = snapshot(&self.project)?;
        for (path, file) in &before {
            if after.get(path) != Some(file) {
                self.say(&format!("NOT as it was: {}\n", crate::ui::escape_path(path)))?;
            }
        }
        Ok(after == before)
    }

    /// The agent gets a prompt, overwrites a file, and deletes a directory.
    fn agent_works(&mut self) -> Result<()> {
        self.say("The user types: \"simplify the cart and clean up\"\n")?;
        self.hook(&self.payload(PROMPT, &[("prompt", "simplify the cart and clean up")])?)?;
        let cart = self.project.join("src/cart.ts");
        let fields = [("file_path", &*cart.to_string_lossy()), ("content", REWRITTEN)];
        let call = self.payload(WRITE, &fields)?;
        let said = self.hook(&call)?;
        write(&cart, REWRITTEN)?;
        self.hook(&done(&call))?;
        self.say(&format!(
            "  Write src/cart.ts   the hook answers {said}  … and the file is overwritten\n"
        ))?;
        let call = self.payload(BASH, &[("command", "rm -rf assets")])?;
        let said = self.hook(&call)?;
        remove_all(&self.project.join("assets"))?;
        self.hook(&done(&call))?;
        self.say(&format!(
            "  Bash rm -rf assets  the hook answers {said}  … and the directory is gone\n"
        ))
    }

    /// A recorded payload, made to be about this project: fields by name, wherever they are.
    fn payload(&self, recorded: &str, fields: &[(&str, &str)]) -> Result<String> {
        let mut payload: Value = serde_json::from_str(recorded)
            .map_err(|err| Error::damaged("a recorded payload", err.to_string()))?;
        payload["cwd"] = Value::from(self.project.to_string_lossy());
        payload["session_id"] = Value::from(self.project.to_string_lossy());
        for (name, value) in fields {
            let at = if payload.get(*name).is_some() {
                &mut payload
            } else {
                &mut payload["tool_input"]
            };
            at[*name] = Value::from(*value);
        }
        Ok(payload.to_string())
    }

    fn hook(&mut self, payload: &str) -> Result<String> {
        let (said, exit) = self.inside(payload, |inner| Ok(hook::run(inner, "claude-code")))?;
        debug_assert_eq!(exit, Exit::Ok);
        Ok(said)
    }

    /// Runs a command and shows it with what it prints.
    fn shown(
        &mut self,
        line: &str,
        command: impl FnOnce(&mut Process<'_>) -> Result<Exit>,
    ) -> Result<()> {
        let (said, _) = self.inside("", command)?;
        let prompt = self.style.dim("$").into_owned();
        self.say(&format!("\n{prompt} beforehand {line}\n{said}\n"))
    }

    /// Runs something as a process of its own in the project, at home on the stage.
    fn inside(
        &mut self,
        stdin: &str,
        command: impl FnOnce(&mut Process<'_>) -> Result<Exit>,
    ) -> Result<(String, Exit)> {
        let mut env = BTreeMap::new();
        env.insert("HOME".into(), self.stage.dir.join("home").into());
        env.insert("BEFOREHAND_HOME".into(), self.stage.dir.join("beforehand").into());
        for name in ["TERM", "NO_COLOR"] {
            env.extend(self.process.var(name).map(|value| (name.into(), value.to_owned())));
        }
        let terminal = Terminal { stdin: false, stderr: false, ..self.process.terminal };
        // The agent worked a moment ago, so that times in the list read as they will.
        let ago = if stdin.is_empty() { TimeDelta::zero() } else { TimeDelta::minutes(2) };
        let (cwd, now) = (Some(self.project.clone()), self.process.now - ago);
        let stdin = stdin.as_bytes();
        let (exit, printed) = ProcessContext { cwd, env, now }.run(stdin, terminal, &(), command);
        Ok((printed.stdout.trim_end().to_owned(), exit?))
    }

    fn say(&mut self, text: &str) -> Result<()> {
        print(self.process, text)
    }
}

/// What Claude Code sends when the call is done.
fn done(call: &str) -> String {
    call.replacen("PreToolUse", "PostToolUse", 1)
}

/// Every file of the project by its path: its permissions and bytes.
fn snapshot(project: &Path) -> Result<BTreeMap<PathBuf, (u32, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    let mut dirs = vec![project.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).map_err(Error::io("list", &dir))? {
            let path = entry.map_err(Error::io("list", &dir))?.path();
            let found = fs::symlink_metadata(&path).map_err(Error::io("look at", &path))?;
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if found.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).map_err(Error::io("read", &path))?;
                let rel = path.strip_prefix(project).unwrap_or(&path).to_owned();
                files.insert(rel, (found.permissions().mode(), bytes));
            }
        }
    }
    Ok(files)
}

fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::io("make", path))
}

#[expect(
    clippy::disallowed_methods,
    reason = "an agent writes like this, below the demo's own directory"
)]
fn write(path: &Path, text: &str) -> Result<()> {
    make_dir(path.parent().unwrap_or(path))?;
    fs::write(path, text).map_err(Error::io("write", path))
}

#[expect(clippy::disallowed_methods, reason = "what an agent does, below the demo's own directory")]
fn remove_all(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(Error::io("remove", path))
}
