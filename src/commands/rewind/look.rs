//! Finds out, on a thread of its own, what the picker shows of a turn: what lies between it and now,
//! what going back would do, what each turn did. A key never waits for it.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use super::{
    error_line,
    target::{RewindRow, RewindTarget, state_before},
};
use crate::{
    commands::{
        Project,
        compare::Comparison,
        error_text,
        list::{ListRow, ListView, TurnCounter},
        restore::{self, PlanOffer, Selection, conversation},
        stats::Stats,
        steps,
    },
    crash,
    error::{Error, Result},
    process::{Process, ProcessContext, Terminal},
    restore::{StepState, TurnStep, TurnSteps},
    ui::{
        Clock, DiffOptions, Style, number,
        picker::{
            DetailRequest, FileMark, News, OfferedFile, PartId, PickerGoal, PickerPlan, PickerTurn,
            Waker,
        },
    },
};

/// How long one file may take before its difference need not be the shortest.
const FILE_TIME: Duration = Duration::from_millis(100);
/// What fits on no screen is worth no longer wait.
const DIFF_TIME: Duration = Duration::from_secs(3);
/// More files are counted, not shown.
const FILES_MAX: usize = 300;
/// What is held of each step is found out within this time.
const STEPS_TIME: Duration = Duration::from_millis(500);

/// What finds things out, and how one talks to it.
pub(super) struct LookThread {
    /// Where wishes go. Without it, nothing more is found out.
    pub(super) wishes: Sender<DetailRequest>,
    pub(super) news: Receiver<News>,
    /// What was chosen of plans, before the news of what that would do.
    pub(super) selections: Receiver<(PartId, Selection)>,
}

/// Begins to look. Ends when the picker has no more wishes.
pub(super) fn begin(process: &Process<'_>, listed: ListView, waker: Waker) -> LookThread {
    let (wishes, receiver) = channel();
    let (tell, news) = channel();
    let (selected, selections) = channel();
    let context =
        ProcessContext { cwd: process.cwd.clone(), env: process.env.clone(), now: process.now };
    // Left to itself at the end: it only reads, and is not waited for.
    let _detached = thread::Builder::new().name("look".to_owned()).spawn(move || {
        context.run(b"", Terminal::default(), &(), |process| {
            crash::bug("picker-look");
            let teller = PickerSender { tell, waker };
            let uncounted = (0..listed.lines.len()).collect();
            let id = |line: &ListRow| line.checkpoint().id;
            let rows = listed.lines.iter().map(|it| RewindRow { id: id(it), step: None }).collect();
            match Project::open(process, None) {
                Ok(project) => {
                    let (waiting, offer) = (VecDeque::new(), None);
                    let looker = Looker {
                        process,
                        project,
                        listed,
                        rows,
                        wished: receiver,
                        teller,
                        selected,
                        waiting,
                        uncounted,
                        offer,
                    };
                    looker.look();
                }
                Err(err) => teller.say(News::Trouble(0, error_text(&err, Style::PLAIN))),
            }
        })
    });
    LookThread { wishes, news, selections }
}

/// Tells the picker.
struct PickerSender {
    tell: Sender<News>,
    waker: Waker,
}

impl PickerSender {
    fn say(&self, news: News) {
        if self.tell.send(news).is_ok() {
            self.waker.wake();
        }
    }
}

struct Looker<'a, 'b> {
    process: &'a Process<'b>,
    project: Project,
    listed: ListView,
    /// The rows of the picker: the turns, and behind them the steps of those that were unfolded.
    rows: Vec<RewindRow>,
    wished: Receiver<DetailRequest>,
    teller: PickerSender,
    selected: Sender<(PartId, Selection)>,
    /// What is wished and not granted yet.
    waiting: VecDeque<DetailRequest>,
    /// Turns of which it is not known yet what they did.
    uncounted: VecDeque<usize>,
    /// The plan that the user chooses from, and its number.
    offer: Option<(u32, RewindTarget, PlanOffer)>,
}

/// What comes next.
enum Next {
    Wish(DetailRequest),
    /// Nothing is wished; there is time to count.
    Idle,
    End,
}

impl Looker<'_, '_> {
    fn look(mut self) {
        let mut stats = Stats::load(&self.project.state.root(&self.project.root));
        loop {
            match self.next() {
                Next::Wish(wish) => self.grant(wish),
                Next::Idle => {
                    if let Some(turn) = self.uncounted.pop_front() {
                        self.count(turn, &mut stats);
                    }
                    if self.uncounted.is_empty() {
                        stats.save(&self.listed.checkpoints);
                    }
                }
                Next::End => return,
            }
        }
    }

    fn next(&mut self) -> Next {
        let mut is_over = self.take_wishes();
        if self.waiting.is_empty() && self.uncounted.is_empty() && !is_over {
            match self.wished.recv() {
                Ok(wish) => self.wait_for(wish),
                Err(_gone) => is_over = true,
            }
        }
        match self.waiting.pop_front() {
            _ if is_over => Next::End,
            Some(wish) => Next::Wish(wish),
            None => Next::Idle,
        }
    }

    /// Takes what is wished meanwhile. Whether no more will be.
    fn take_wishes(&mut self) -> bool {
        loop {
            match self.wished.try_recv() {
                Ok(wish) => self.wait_for(wish),
                Err(err) => return err == TryRecvError::Disconnected,
            }
        }
    }

    /// What was wished of another turn, or before a new plan, is wanted no more.
    fn wait_for(&mut self, wish: DetailRequest) {
        if matches!(wish, DetailRequest::Look(_) | DetailRequest::Plan(_)) {
            // The marks of the file that is split wait for it.
            self.waiting.retain(|it| matches!(it, DetailRequest::Split(..)));
        }
        if let DetailRequest::Offer(..) = wish {
            self.waiting.retain(|it| matches!(it, DetailRequest::Look(_) | DetailRequest::Plan(_)));
        }
        self.waiting.push_back(wish);
    }

    fn grant(&mut self, wish: DetailRequest) {
        match wish {
            DetailRequest::Look(turn) => {
                let looked = self.difference(turn);
                self.say_trouble(turn, looked);
            }
            DetailRequest::Plan(turn) => {
                let planned = self.plan(turn);
                self.say_trouble(turn, planned);
            }
            DetailRequest::ConversationFork(turn) => self.talk(turn),
            DetailRequest::Revert(turn) => {
                let plan = self.preview(turn, PickerGoal::Turn).map_err(|err| error_line(&err));
                self.teller.say(News::Reverts(turn, plan));
            }
            DetailRequest::Offer(number, turn, goal) => {
                let files = self.offer(number, turn, goal).map_err(|err| error_line(&err));
                self.teller.say(News::Offered(number, files));
            }
            DetailRequest::Steps(turn) => self.unfold(turn),
            DetailRequest::Open(number, file) => self.open(number, file),
            DetailRequest::Split(number, file, at) => self.split(number, file, at),
            DetailRequest::Part(id, marks) => {
                let text = self.part(id, &marks).map_err(|err| error_line(&err));
                self.teller.say(News::Parted(id.part, text));
            }
        }
    }

    fn say_trouble(&self, turn: usize, result: Result<()>) {
        if let Err(err) = result {
            self.teller.say(News::Trouble(turn, error_text(&err, Style::PLAIN)));
        }
    }

    /// File by file, until the next wish comes; then the plan.
    fn difference(&mut self, turn: usize) -> Result<()> {
        let before;
        let comparison = if self.rows[turn].step.is_none() {
            let checkpoint = self.listed.lines[turn].checkpoint();
            Comparison::until_now(&self.project, self.process, checkpoint)?
        } else {
            before = state_before(self.process, &self.project, self.rows[turn])?;
            let (project, checkpoint, tree) = &before;
            Comparison::state_until_now(project, self.process, (checkpoint, tree))?
        };
        self.teller.say(News::Begins(turn));
        let deadline = Instant::now() + DIFF_TIME;
        let mut shown = 0;
        for differing in comparison.found.iter().take(FILES_MAX) {
            if let Ok(wish) = self.wished.try_recv() {
                self.waiting.push_back(wish);
                return Ok(());
            }
            if Instant::now() > deadline {
                break;
            }
            let file_deadline = Some(Instant::now() + FILE_TIME);
            let look = DiffOptions { style: Style::PLAIN, deadline: file_deadline };
            let text = comparison.show(differing, look)?;
            let lines = comparison.lines(differing, file_deadline)?;
            self.teller.say(News::File(turn, text, lines));
            shown += 1;
        }
        self.teller.say(News::Ends(turn, comparison.found.len() - shown));
        self.plan(turn)
    }

    fn plan(&self, turn: usize) -> Result<()> {
        let plan = self.preview(turn, PickerGoal::Before)?;
        self.teller.say(News::Planned(turn, plan));
        Ok(())
    }

    fn preview(&self, turn: usize, goal: PickerGoal) -> Result<PickerPlan> {
        let row = self.rows[turn];
        let target = RewindTarget::of(self.process, &self.project, row, goal, false)?;
        restore::preview(self.process, target.restore(&self.project))
    }

    /// A plan to choose from.
    fn offer(&mut self, number: u32, turn: usize, goal: PickerGoal) -> Result<Vec<OfferedFile>> {
        self.offer = None;
        let row = self.rows[turn];
        let target = RewindTarget::of(self.process, &self.project, row, goal, true)?;
        let restore = target.restore(&self.project);
        let offer = PlanOffer::of(self.process, restore)?;
        let rows = offer.rows(restore);
        self.offer = Some((number, target, offer));
        Ok(rows)
    }

    fn open(&mut self, number: u32, file: usize) {
        let offer = self.offer.as_mut().filter(|(it, ..)| *it == number);
        let Some((_, target, offer)) = offer else { return };
        let pieces = offer.pieces(target.restore(&self.project), file);
        self.teller.say(News::Opened(number, file, pieces));
    }

    fn split(&mut self, number: u32, file: usize, at: usize) {
        let offer = self.offer.as_mut().filter(|(it, ..)| *it == number);
        let Some((_, target, offer)) = offer else { return };
        let pieces = offer.split(target.restore(&self.project), file, at);
        self.teller.say(News::Split(number, file, at, pieces));
    }

    /// What the marks would do. What they choose is kept for a yes.
    fn part(&mut self, id: PartId, marks: &[(usize, FileMark)]) -> Result<String> {
        let offer = self.offer.as_mut().filter(|(it, ..)| *it == id.offer);
        let Some((_, target, offer)) = offer else {
            return Err(Error::other("the plan has changed", "choose again"));
        };
        let restore = target.restore(&self.project);
        let selection = offer.select(restore, marks);
        let text = restore::part_text(self.process, restore, &selection)?;
        // If the picker is gone, so is the one who reads it.
        let _ignored = self.selected.send((id, selection));
        Ok(text)
    }

    /// Whether the conversation can be forked: for that all of it is read, or its agent's server asked.
    fn talk(&self, turn: usize) {
        let checkpoint = self.listed.lines[turn].checkpoint();
        let talk = conversation::prepare(self.process, &self.project, checkpoint);
        let talk = talk.map(|talk| talk.words(None, "")).map_err(|why| why.to_string());
        self.teller.say(News::Talked(turn, talk));
    }

    /// The steps of a turn become rows, here and in the picker.
    fn unfold(&mut self, turn: usize) {
        let id = self.rows[turn].id;
        if self.rows.iter().any(|row| row.id == id && row.step.is_some()) {
            return;
        }
        let steps = self.steps(turn).map_err(|err| error_line(&err));
        for step in steps.iter().flatten() {
            self.rows.push(RewindRow { id, step: step.step });
        }
        self.teller.say(News::Steps(turn, steps));
    }

    fn steps(&self, turn: usize) -> Result<Vec<PickerTurn>> {
        let found = TurnSteps::of(&self.project, self.rows[turn].number(&self.project)?)?;
        // A row of a person's has none.
        found.step(1)?;
        let clock = Clock::local(self.process.now);
        let deadline = Instant::now() + STEPS_TIME;
        let listed = self.listed.lines[turn].number.map_or(0, |(row, _)| row);
        let row = |step: &TurnStep| {
            let is_late = Instant::now() > deadline;
            let state = (!is_late).then(|| found.state(self.process, step));
            PickerTurn {
                number: listed,
                id: step.of.to_string()[..self.listed.digits].to_owned(),
                when: clock.when(step.at),
                trigger: steps::words(step),
                badges: state.as_ref().and_then(not_held).into_iter().collect(),
                step: Some(step.number),
                ..PickerTurn::default()
            }
        };
        Ok(found.steps.iter().map(row).collect())
    }

    fn count(&self, turn: usize, stats: &mut Stats) {
        let line = &self.listed.lines[turn];
        let since = line.checkpoint().sequence;
        let mut counter = TurnCounter::new(self.process, &self.project, &self.listed, stats, since);
        if let Some(counts) = line.counts(&mut counter) {
            self.teller.say(News::Did(turn, counts.words()));
        }
    }
}

/// How many files from before a step are not held, as the list of turns says it.
fn not_held(state: &Result<StepState>) -> Option<String> {
    match state {
        Ok(state) if state.gaps.is_empty() => None,
        Ok(state) => Some(format!("{} not held", number(state.gaps.len() as u64))),
        Err(_) => Some("not held".to_owned()),
    }
}
