//! Finds out, on a thread of its own, what the picker shows of a turn: what lies between it and now,
//! what going back would do, what each turn did. A key never waits for it.

use std::{
    collections::VecDeque,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

use crate::{
    commands::{
        Project,
        compare::Comparison,
        error_text,
        list::{self, ListView},
        restore,
        rewind::has_conversation,
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
                    Looker { process, project, listed, wished, teller, uncounted }.look();
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
        let mut waiting = None;
        loop {
            match waiting.take().map_or_else(|| self.next(), Next::Wish) {
                Next::Wish(wish) => waiting = self.grant(wish),
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

    /// The newest wish: what was wished before it is wanted no more.
    fn next(&self) -> Next {
        let first = if self.uncounted.is_empty() {
            self.wished.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            self.wished.try_recv().map_err(|err| match err {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
        };
        match first {
            Ok(first) => Next::Wish(self.wished.try_iter().last().unwrap_or(first)),
            Err(RecvTimeoutError::Timeout) => Next::Idle,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Finds out what is wished; the next wish, if one came meanwhile.
    fn grant(&self, wish: DetailRequest) -> Option<DetailRequest> {
        let (turn, is_asked, granted) = match wish {
            DetailRequest::Look(turn) => (turn, false, self.difference(turn)),
            DetailRequest::Plan(turn) => (turn, true, Ok(None)),
        };
        let granted = granted.and_then(|waiting| match waiting {
            Some(wish) => Ok(Some(wish)),
            None => self.plan(turn, is_asked).map(|()| None),
        });
        granted.unwrap_or_else(|err| {
            self.teller.say(News::Trouble(turn, error_text(&err, Style::PLAIN)));
            None
        })
    }

    fn checkpoint(&self, turn: usize) -> &Checkpoint {
        self.listed.lines[turn].checkpoint()
    }

    /// File by file, until the next wish comes.
    fn difference(&self, turn: usize) -> Result<Option<DetailRequest>> {
        let comparison = Comparison::until_now(&self.project, self.process, self.checkpoint(turn))?;
        self.teller.say(News::Begins(turn));
        let deadline = Instant::now() + DIFF_TIME;
        let mut shown = 0;
        for differing in comparison.found.iter().take(FILES_MAX) {
            if let Some(wish) = self.wished.try_iter().last() {
                return Ok(Some(wish));
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
        Ok(None)
    }

    /// The plan, and, when the user is about to choose, whether the conversation can go with it:
    /// for that all of it is read.
    fn plan(&self, turn: usize, is_asked: bool) -> Result<()> {
        let talks = is_asked && has_conversation(&self.listed.lines[turn]);
        let checkpoint = self.checkpoint(turn);
        let preview = restore::preview(self.process, &self.project, checkpoint, talks)?;
        let no_conversation = preview.no_conversation.map(|why| why.to_string());
        let (text, conflicts) = (preview.text, preview.conflicts);
        self.teller.say(News::Planned(turn, PickerPlan { text, conflicts, no_conversation }));
        Ok(())
    }

    fn count(&self, turn: usize, stats: &mut Stats) {
        let deadline = Instant::now() + COUNT_TIME;
        let line = &self.listed.lines[turn];
        if let Some(counts) = line.counts(self.process, &self.project, stats, deadline) {
            self.teller.say(News::Did(turn, list::counted(counts)));
        }
    }
}
