//! Finds out, on a thread of its own, what the picker shows of a turn: what lies between it and now,
//! what going back would do, what each turn did. A key never waits for it.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    commands::{
        Project,
        compare::Comparison,
        error_text,
        list::ListView,
        restore::{self, conversation},
        stats::Stats,
    },
    crash,
    error::Result,
    model::Checkpoint,
    process::{Process, ProcessContext, Terminal},
    ui::{
        DiffOptions, Style,
        picker::{DetailRequest, News, PickerPlan, Waker},
    },
};

/// How long one file may take before its difference need not be the shortest.
const FILE_TIME: Duration = Duration::from_millis(100);
/// What fits on no screen is worth no longer wait.
const DIFF_TIME: Duration = Duration::from_secs(3);
/// More files are counted, not shown.
const FILES_MAX: usize = 300;
/// What one turn did is counted within this time.
const COUNT_TIME: Duration = Duration::from_millis(400);

/// Begins to look. Ends when the picker has no more wishes.
pub(super) fn begin(
    process: &Process<'_>,
    listed: ListView,
    waker: Waker,
) -> (Sender<DetailRequest>, Receiver<News>) {
    let (sender, wished) = channel();
    let (tell, news) = channel();
    let context =
        ProcessContext { cwd: process.cwd.clone(), env: process.env.clone(), now: process.now };
    // Left to itself at the end: it only reads, and is not waited for.
    let _detached = thread::Builder::new().name("look".to_owned()).spawn(move || {
        context.run(b"", Terminal::default(), &(), |process| {
            crash::bug("picker-look");
            let teller = PickerSender { tell, waker };
            let uncounted = (0..listed.lines.len()).collect();
            match Project::open(process, None) {
                Ok(project) => {
                    let waiting = VecDeque::new();
                    Looker { process, project, listed, wished, teller, waiting, uncounted }.look();
                }
                Err(err) => teller.say(News::Trouble(0, error_text(&err, Style::PLAIN))),
            }
        })
    });
    (sender, news)
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
    wished: Receiver<DetailRequest>,
    teller: PickerSender,
    /// What is wished and not granted yet.
    waiting: VecDeque<DetailRequest>,
    /// Turns of which it is not known yet what they did.
    uncounted: VecDeque<usize>,
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
                        stats.save();
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
            self.waiting.clear();
        }
        self.waiting.push_back(wish);
    }

    fn grant(&mut self, wish: DetailRequest) {
        let (turn, granted) = match wish {
            DetailRequest::Look(turn) => (turn, self.difference(turn)),
            DetailRequest::Plan(turn) => (turn, self.plan(turn)),
            DetailRequest::Talk(turn) => {
                self.talk(turn);
                return;
            }
        };
        if let Err(err) = granted {
            self.teller.say(News::Trouble(turn, error_text(&err, Style::PLAIN)));
        }
    }

    fn checkpoint(&self, turn: usize) -> &Checkpoint {
        self.listed.lines[turn].checkpoint()
    }

    /// File by file, until the next wish comes; then the plan.
    fn difference(&mut self, turn: usize) -> Result<()> {
        let comparison = Comparison::until_now(&self.project, self.process, self.checkpoint(turn))?;
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
        let preview = restore::preview(self.process, &self.project, self.checkpoint(turn))?;
        let (text, conflicts) = (preview.text, preview.conflicts);
        self.teller.say(News::Planned(turn, PickerPlan { text, conflicts }));
        Ok(())
    }

    /// Whether the conversation can be forked: for that all of it is read, or its agent's server asked.
    fn talk(&self, turn: usize) {
        let talk = conversation::prepare(self.process, &self.project, self.checkpoint(turn));
        let talk = talk.map(|talk| talk.words(None)).map_err(|why| why.to_string());
        self.teller.say(News::Talked(turn, talk));
    }

    fn count(&self, turn: usize, stats: &mut Stats) {
        let deadline = Instant::now() + COUNT_TIME;
        let line = &self.listed.lines[turn];
        if let Some(counts) = line.counts(self.process, &self.project, stats, deadline) {
            self.teller.say(News::Did(turn, counts.words()));
        }
    }
}
