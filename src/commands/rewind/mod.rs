//! `beforehand rewind`: choose a turn on the whole screen and go back to it.
//!
//! Counts turns as `list` does and goes back as `restore` does, by their own code: what is chosen
//! here is checked, held and reported as if it had been typed.

mod look;
mod target;

use std::path::Path;

use super::{
    Project, diff, error_text,
    list::{self, ListRow, ListView},
    origin,
    restore::{self, Selection},
    revert,
    rows::agent_title,
    say_text,
};
use crate::{
    agent::transcript,
    error::{Error, Result},
    model::{By, Checkpoint, Reason},
    process::{Exit, Process, Tty},
    restore::find_checkpoint,
    ui::{
        self, Clock, Style,
        picker::{Choice, End, Model, Picker, PickerGoal, PickerPlace, PickerTurn},
    },
};

use look::LookThread;
use target::{RewindRow, RewindTarget};

/// Choose a turn on the whole screen, look at what has changed since, and go back to it.
///
/// Left are the turns, right is what lies between the chosen one and now. Type to search. Enter
/// shows what going back would do and asks; as with `restore`, whatever is overwritten is held
/// first. Where the terminal can do no more than lines, it asks in lines.
#[derive(clap::Args)]
pub(crate) struct RewindArgs {
    /// Print only the result, for the widget of `beforehand init`
    #[arg(long, hide = true)]
    at_prompt: bool,
}

pub(crate) fn run(process: &mut Process<'_>, args: &RewindArgs) -> Result<Exit> {
    let can_ask = process.terminal.stdin && (process.terminal.stdout || args.at_prompt);
    if !can_ask {
        let refusal = Error::other(
            "`beforehand rewind` needs a terminal to draw on",
            "`beforehand list` and `beforehand restore N` do the same in lines",
        );
        let text = error_text(&refusal, Style::stderr(process));
        say_text(process, &text);
        return Ok(Exit::Usage);
    }
    let project = Project::open(process, None)?;
    let is_dumb = process.var("TERM").is_none_or(|term| term == "dumb");
    let tty = process.tty(args.at_prompt);
    let tty = tty.map_err(Error::io("open", Path::new("/dev/tty")))?;
    match tty.filter(|_| !is_dumb) {
        Some(tty) => on_screen(process, project, tty, args.at_prompt),
        None => in_lines(process, &project),
    }
}

fn on_screen(
    process: &mut Process<'_>,
    project: Project,
    tty: Tty,
    at_prompt: bool,
) -> Result<Exit> {
    let listed = ListView::of(&project, &list::ListArgs::default())?;
    let clock = Clock::local(process.now);
    let turn = |line| turn(&project, line, listed.digits, &clock);
    let turns: Vec<PickerTurn> = listed.lines.iter().map(turn).collect();
    let model = Model::new(&list::title(&project), &turns);
    let ids: Vec<_> = listed.lines.iter().map(|line| line.checkpoint().id).collect();
    let row = |place: PickerPlace| RewindRow { id: ids[place.turn], step: place.step };
    let failed = |source| Error::Io { action: "use", path: "/dev/tty".into(), source };
    let style = Style::tty(process);
    let (picker, waker) = Picker::open(tty, model, style, !at_prompt).map_err(failed)?;
    let LookThread { wishes, news, selections } = look::begin(process, listed, waker);
    // The thread that looks has a project of its own.
    drop(project);
    // If that thread is gone, nothing more is learnt; the loop sees to the rest.
    let wish = |wish| {
        let _ignored = wishes.send(wish);
    };
    match picker.run(&wish, &news).map_err(failed)? {
        End::Left => Ok(Exit::Ok),
        End::Lost => Ok(Exit::Bug),
        End::Do(place, choice) => {
            drop(wishes);
            go_back(process, row(place), choice)
        }
        End::DoPart(place, part) => {
            drop(wishes);
            let selected = selections.try_iter().find(|(id, _)| *id == part);
            let Some((_, selection)) = selected else { return Ok(Exit::Bug) };
            do_part(process, row(place), part.goal, &selection)
        }
    }
}

/// What the user has seen and said yes to, done as `restore` does it.
fn go_back(process: &mut Process<'_>, row: RewindRow, choice: Choice) -> Result<Exit> {
    if choice == Choice::Revert {
        let (turn, yes) = (row.id.to_string(), true);
        return revert::run(process, &revert::RevertArgs { turn, yes, ..Default::default() });
    }
    if !choice.has_files() && !choice.has_conversation() {
        return Ok(Exit::Ok);
    }
    let args = restore::RestoreArgs {
        checkpoint: Some(row.name(&Project::open(process, None)?)?),
        yes: true,
        conversation: choice == Choice::Conversation,
        conversation_only: choice == Choice::ConversationOnly,
        ..restore::RestoreArgs::default()
    };
    restore::run(process, &args)
}

/// What was chosen among files, done as it was shown.
fn do_part(
    process: &mut Process<'_>,
    row: RewindRow,
    goal: PickerGoal,
    selection: &Selection,
) -> Result<Exit> {
    let project = Project::open(process, None)?.into_present()?;
    origin::say_if_swapped(process, &project);
    let target = RewindTarget::of(process, &project, row, goal, true)?;
    restore::carry_out_selection(process, target.restore(&project), selection)
}

/// An error in a line.
fn error_line(err: &Error) -> String {
    match err.hint() {
        Some(hint) if !hint.is_empty() => format!("{err}; {hint}"),
        Some(_) | None => err.to_string(),
    }
}

/// Whether conversations of an agent can be forked: by us, or by a server of its own.
fn can_fork(by: Option<&By>) -> bool {
    by.is_some_and(|by| transcript::can_fork(by.agent) || transcript::is_served(by.agent))
}

fn turn(project: &Project, line: &ListRow, digits: usize, clock: &Clock) -> PickerTurn {
    let label = line.label();
    PickerTurn {
        number: line.number.map_or(0, |(row, _)| row),
        id: line.checkpoint().id.to_string()[..digits].to_owned(),
        when: clock.when(label.at),
        who: label.by.map_or("you", |by| agent_title(by.agent)).to_owned(),
        prompt: label.by.and_then(|by| by.prompt.clone()),
        trigger: label.words(),
        badges: label.badges(project.home.as_deref()),
        with_conversation: can_fork(label.by),
        step: None,
        is_turn: line.checkpoint().cause.reason == Reason::Call && label.by.is_some(),
    }
}

/// The same in lines, for terminals that can do no more: a list, a number, a question.
fn in_lines(process: &mut Process<'_>, project: &Project) -> Result<Exit> {
    list::run(process, &list::ListArgs::default())?;
    if project.store.list()?.is_empty() {
        return Ok(Exit::Ok);
    }
    while let Some(given) = ui::answer(process, "Back to which one? A number; Enter leaves:") {
        match find_checkpoint(project, &given) {
            Ok(checkpoint) => {
                if let Some(exit) = choose(process, &checkpoint)? {
                    return Ok(exit);
                }
            }
            Err(err) => {
                let text = error_text(&err, Style::stderr(process));
                say_text(process, &text);
            }
        }
    }
    Ok(Exit::Ok)
}

/// The choices for one checkpoint. `None` if another is to be named.
fn choose(process: &mut Process<'_>, checkpoint: &Checkpoint) -> Result<Option<Exit>> {
    let id = checkpoint.id.to_string();
    let talks = can_fork(checkpoint.cause.by.as_ref());
    let talk = if talks { "c: files and conversation · t: conversation only · " } else { "" };
    let question = format!(
        "f: files only · {talk}p: hunk by hunk · v: this turn alone\nd: view the diff · Enter: another one"
    );
    while let Some(choice) = ui::answer(process, &question) {
        let mut args = restore::RestoreArgs { checkpoint: Some(id.clone()), ..Default::default() };
        match &choice.to_lowercase()[..] {
            // Each shows what it would do, and asks.
            "f" => (),
            "c" if talks => args.conversation = true,
            "t" if talks => args.conversation_only = true,
            "p" => args.patch = true,
            "v" => {
                let args = revert::RevertArgs { turn: id, ..Default::default() };
                return revert::run(process, &args).map(Some);
            }
            "d" => {
                let args = diff::DiffArgs { from: id.clone(), ..diff::DiffArgs::default() };
                diff::run(process, &args)?;
                continue;
            }
            _ => continue,
        }
        return restore::run(process, &args).map(Some);
    }
    Ok(None)
}
