//! Who made what is there now? Decided from the log alone. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{AtPath, LogEvent, LogLine, PathSide, PathState, turn_log};
use crate::{
    model::{Checkpoint, CheckpointId, RelPath},
    plan::{Author, SessionTag},
};

/// What the log knows of the time since a checkpoint.
#[derive(Debug, Default)]
pub struct AgentHistory {
    /// When the checkpoint was taken.
    since: i64,
    /// The side of the root that it is about.
    side: PathSide,
    /// Whether the agent did anything that was noticed.
    active: bool,
    /// Whether the agent says when a call is done. If so, a call that it never said that of was cut
    /// off or refused.
    tells: bool,
    /// What was seen at each path, oldest first.
    seen: BTreeMap<RelPath, Vec<Observation>>,
    /// Calls that were not looked at when they were done.
    open: HashMap<String, OpenCall>,
    /// The directories on the way to what calls name that were not there, by session and call.
    makes: HashMap<(String, String), Vec<RelPath>>,
    /// The calls that have begun, by session and call.
    begun: HashMap<(String, String), BegunCall>,
    /// The call of each session that is being looked at after its end.
    ending: HashMap<String, String>,
    /// Those of them that had ended when a later call began.
    ended: Vec<OpenCall>,
    /// Whether something that was noted in that time cannot be read any more.
    is_lost: bool,
    /// Where nothing was when a call of the agent first named it.
    absent: BTreeSet<RelPath>,
    /// The newest checkpoint that was taken when calls before it had ended unseen.
    pub likely: Option<CheckpointId>,
}

#[derive(Debug)]
struct BegunCall {
    at: i64,
    names: Vec<RelPath>,
    /// Whether it changes nothing else.
    names_all: bool,
}

#[derive(Debug)]
struct OpenCall {
    /// The checkpoint that covers it.
    of: String,
    /// What it can change; `None` for anything.
    paths: Option<Vec<RelPath>>,
    /// The beginning of its command line.
    summary: String,
    /// Whether the agent said that it was done.
    is_done: bool,
    /// Whether something that it started goes on in the background.
    in_background: bool,
}

/// What was at a path at some time.
#[derive(Debug)]
struct Observation {
    at: i64,
    there: AtPath,
    by: Actor,
    /// The call after which it was looked at; `None` for what is known whatever ran meanwhile.
    after: Option<Claim>,
}

/// What a call that was looked at has to say of a path.
#[derive(Clone, Copy, Debug)]
struct Claim {
    /// When it began.
    began: i64,
    /// Whether its own words name the path.
    is_named: bool,
    /// Whether its words name all that it changes, and not the path.
    is_anothers: bool,
}

impl Observation {
    /// Something that is known whatever ran meanwhile.
    fn known(at: i64, there: AtPath, by: Actor) -> Self {
        Self { at, there, by, after: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    /// The agent of the checkpoint left it.
    Agent,
    /// Another session left it.
    Session(SessionTag),
    /// It was there before a call.
    Others,
    /// It came about while a call ran whose words name all that it changes, and not this.
    Unclear,
    /// A restore put it back as it was at that time.
    Restore(i64),
}

/// The session that has this name in the log.
pub fn tag(name: &str) -> SessionTag {
    let digits = name.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    SessionTag(digits.unwrap_or(0))
}

/// What is at a path now, as far as it can be compared.
pub trait CurrentState {
    /// Whether it is just this.
    fn is(&self, state: &PathState) -> bool;

    /// Whether it is a directory.
    fn is_directory(&self) -> bool;

    /// Whether it is what the checkpoint [`AgentHistory::likely`] has there.
    fn is_likely(&self) -> bool;

    /// Whether it is known to be just what this checkpoint has there.
    fn was_at(&self, look: CheckpointId) -> bool;
}

impl AgentHistory {
    /// Reads the log for what happened since `checkpoint`. The agent is the session the checkpoint
    /// was taken for; where there is none, every session. `name` is that session's in the log.
    pub fn since(
        checkpoint: &Checkpoint,
        name: Option<&str>,
        lines: &[LogLine],
        side: PathSide,
    ) -> Self {
        let id = checkpoint.id.to_string();
        let since = checkpoint.taken_ns();
        let is_since = |line: &LogLine| match &line.what {
            LogEvent::Began { of, .. } if *of == id => true,
            _ => line.at >= since,
        };
        // What was there before a call has no author.
        let is_ours =
            |line: &LogLine| !line.by.is_empty() && name.is_none_or(|name| name == line.by);
        let begin = lines.iter().position(is_since).unwrap_or(lines.len());
        let tells = lines.iter().any(|line| line.shows_ends() && is_ours(line));
        let mut known = Self { since, side, tells, ..Self::default() };
        for line in &lines[begin..] {
            known.add(line, is_ours(line), &id);
        }
        known
    }

    /// Notes when calls begin and which are looked at, also of other sessions.
    fn add_times(&mut self, line: &LogLine) {
        let key = |call: &String| (line.by.clone(), call.clone());
        match &line.what {
            LogEvent::Began { call, paths, names, names_all, .. } => {
                let names = self.paths(paths.as_deref().unwrap_or(names));
                let begun = BegunCall { at: line.at, names, names_all: *names_all };
                self.begun.insert(key(call), begun);
            }
            LogEvent::Ended { call, .. } => drop(self.ending.insert(line.by.clone(), call.clone())),
            LogEvent::Done { call, .. } => {
                self.ending.remove(&line.by);
                self.begun.remove(&key(call));
            }
            _ => (),
        }
    }

    /// The call after which `line` was noted at a path.
    fn call_at(&self, line: &LogLine, path: &str) -> Option<Claim> {
        let call = self.ending.get(&line.by)?;
        // Unknown, it began before the checkpoint.
        let Some(begun) = self.begun.get(&(line.by.clone(), call.clone())) else {
            return Some(Claim { began: self.since, is_named: false, is_anothers: false });
        };
        let path = self.side.path(path)?;
        let is_named = begun.names.contains(&path);
        let is_anothers = begun.names_all && !turn_log::reaches(Some(&begun.names), &path);
        Some(Claim { began: begun.at, is_named, is_anothers })
    }

    fn add(&mut self, line: &LogLine, ours: bool, since: &str) {
        let by = match ours {
            true => Actor::Agent,
            false if line.by.is_empty() => Actor::Others,
            false => Actor::Session(tag(&line.by)),
        };
        self.add_made(line, by);
        self.add_times(line);
        match &line.what {
            // Of an agent that says no ends, what was there before a call may be its own.
            LogEvent::Left { .. } if line.by.is_empty() && !self.tells => (),
            LogEvent::Left { path, state } => {
                let after = self.call_at(line, path);
                let is_anothers = after.is_some_and(|call| call.is_anothers);
                let by = if is_anothers { Actor::Unclear } else { by };
                self.see(
                    path,
                    Observation { at: line.at, there: AtPath::of(state.as_ref()), by, after },
                );
            }
            LogEvent::Back { path, state, then, .. } => {
                let by = Actor::Restore(*then);
                self.see(path, Observation::known(line.at, AtPath::of(state.as_ref()), by));
            }
            LogEvent::Began { of, call, paths, absent, summary, .. } if ours => {
                self.active = true;
                let absent = absent.iter().filter_map(|path| self.side.path(path));
                let first: Vec<_> = absent.filter(|path| !self.seen.contains_key(path)).collect();
                self.absent.extend(first);
                if !self.tells {
                    self.begins_after_unseen(of, since);
                }
                let paths = paths.as_deref().map(|paths| self.paths(paths));
                let open = OpenCall {
                    of: of.clone(),
                    paths,
                    summary: summary.clone(),
                    is_done: false,
                    in_background: false,
                };
                self.open.insert(call.clone(), open);
            }
            LogEvent::Ended { call, background } if ours => {
                if let Some(open) = self.open.get_mut(call) {
                    (open.is_done, open.in_background) =
                        (background.is_none(), background.is_some());
                }
            }
            LogEvent::Done { call, .. } if ours => {
                if self.open.get(call).is_none_or(|open| !open.in_background) {
                    self.open.remove(call);
                }
            }
            LogEvent::CutOff { call, left_nothing: true } if ours => drop(self.open.remove(call)),
            LogEvent::Merged { path, sha, .. } => self.merged(line.at, path, sha),
            LogEvent::Lost { until } => self.is_lost |= *until >= self.since,
            LogEvent::Began { .. }
            | LogEvent::Ended { .. }
            | LogEvent::Done { .. }
            | LogEvent::CutOff { .. }
            | LogEvent::Head { .. }
            | LogEvent::Refs { .. }
            | LogEvent::Void { .. } => (),
        }
    }

    /// A restore merged what is at a path. If that is just what was seen there earlier, it is back as it was then.
    fn merged(&mut self, at: i64, path: &str, merged: &str) {
        let Some(path) = self.side.path(path) else { return };
        let is_it = |seen: &&Observation| match &seen.there {
            AtPath::This(state) => state.sha.as_deref() == Some(merged),
            AtPath::Nothing | AtPath::File(_) | AtPath::Directory => false,
        };
        let earlier = self.seen(&path).iter().rfind(is_it);
        let back =
            earlier.map(|it| Observation::known(at, it.there.clone(), Actor::Restore(it.at)));
        self.seen.entry(path).or_default().extend(back);
    }

    /// If a call left something at a path that it named, it also made the directories on the way there,
    /// even if another call is the first to report them.
    fn add_made(&mut self, line: &LogLine, by: Actor) {
        let key = |call: &String| (line.by.clone(), call.clone());
        match &line.what {
            LogEvent::Began { call, makes, .. } if !makes.is_empty() => {
                let makes = self.paths(makes);
                self.makes.insert(key(call), makes);
            }
            LogEvent::Left { path, state: Some(_) } if !self.makes.is_empty() => {
                let Some(path) = self.side.path(path) else { return };
                let of_call = self.makes.iter().filter(|((by, _), _)| *by == line.by);
                let made = of_call.flat_map(|(_, makes)| makes).filter(|dir| path.is_within(dir));
                for dir in made {
                    let made = Observation::known(line.at, AtPath::Directory, by);
                    self.seen.entry(dir.clone()).or_default().push(made);
                }
            }
            LogEvent::Done { call, .. } => drop(self.makes.remove(&key(call))),
            _ => (),
        }
    }

    fn paths(&self, texts: &[String]) -> Vec<RelPath> {
        texts.iter().filter_map(|path| self.side.path(path)).collect()
    }

    fn see(&mut self, path: &str, seen: Observation) {
        if let Some(path) = self.side.path(path) {
            self.seen.entry(path).or_default().push(seen);
        }
    }

    /// A call begins of an agent that never says when one is done: what is there now is what those
    /// before it had left, as far as they could.
    fn begins_after_unseen(&mut self, of: &str, since: &str) {
        let (same, ended): (HashMap<_, _>, HashMap<_, _>) =
            self.open.drain().partition(|(_, open)| open.of == *of);
        self.open = same;
        if !ended.is_empty() && of != since {
            self.likely = CheckpointId::parse(of);
            self.ended.extend(ended.into_values());
        }
    }

    /// Where nothing was, since the checkpoint, before calls of the agent that name it. Only outside
    /// the root: what was in it, the checkpoint tells.
    pub fn absent(&self) -> impl Iterator<Item = &RelPath> {
        self.absent.iter()
    }

    /// Who made what is at `path` now?
    pub fn author(&self, path: &RelPath, here: &dyn CurrentState) -> Author {
        if self.is_lost {
            return Author::Unclear;
        }
        match self.who_left(path, here) {
            Some(author) => author,
            None if !self.active => Author::Unknown,
            None => match self.unseen(path, Some(here)) {
                Some(open) if self.tells && !open.is_done => Author::Unclear,
                Some(_) => Author::Unknown,
                None if self.likely.is_some() && reaches(&self.ended, path) && here.is_likely() => {
                    Author::Agent
                }
                None if self.was_left_unread(path) => Author::Unknown,
                None => Author::Other,
            },
        }
    }

    /// Who was seen to leave what is at `path` now. Where calls of two sessions overlapped, a look after
    /// each shows the change, and it may be of either, unless the words of one name the path.
    fn who_left(&self, path: &RelPath, here: &dyn CurrentState) -> Option<Author> {
        let seen = self.origin(path, here)?;
        let first = seen.first()?;
        let same = seen.iter().take_while(|seen| seen.there.is(here));
        let is_agent = |by: Actor| by == Actor::Agent;
        // Those that had begun by then.
        let claims = || {
            let claims = same.clone().filter_map(|seen| Some((seen.by, seen.after?)));
            claims.filter(|(_, call)| first.after.is_some() && call.began < first.at)
        };
        let named = claims().find(|(_, call)| call.is_named);
        // Something of another session's, left there while the call ran, may be in it.
        let is_mixed = first.after.is_some_and(|call| {
            let earlier = self.before(path, Some(first));
            let mut others = earlier.filter(|it| matches!(it.by, Actor::Agent | Actor::Session(_)));
            others.any(|it| is_agent(it.by) != is_agent(first.by) && it.at > call.began)
        });
        let is_other_side = |by: Actor| is_agent(by) != is_agent(first.by);
        if is_mixed || named.is_none() && claims().any(|(by, _)| is_other_side(by)) {
            return Some(Author::Unclear);
        }
        let by = named.map_or(first.by, |(by, _)| by);
        Some(match by {
            Actor::Agent => Author::Agent,
            Actor::Session(_) if named.is_none() && claims().any(|(by, _)| by != first.by) => {
                Author::Session(SessionTag::default())
            }
            Actor::Session(session) => Author::Session(session),
            Actor::Others => Author::Other,
            Actor::Unclear => Author::Unclear,
            // Back as it was before the checkpoint: that is the restore's doing.
            Actor::Restore(_) => Author::Restore,
        })
    }

    /// Whether what is at `path` now, or that nothing is, came about before a time, and was only put back
    /// since. `here` is what is there, if anything.
    pub fn was_before(&self, path: &RelPath, here: Option<&dyn CurrentState>, time: i64) -> bool {
        let origin = match here {
            Some(here) => self.origin(path, here).and_then(<[Observation]>::first),
            None => self.seen(path).last().filter(|seen| !seen.there.is_any()),
        };
        origin.is_some_and(|seen| seen.at < time)
    }

    /// Whether a restore to the checkpoint put what is there now at `path`.
    pub fn was_put_back_by_restore(&self, path: &RelPath, here: &dyn CurrentState) -> bool {
        let first = self.origin(path, here).and_then(<[Observation]>::first);
        first.is_some_and(|first| first.by == Actor::Restore(self.since))
    }

    /// What was seen at `path` since its present content was first seen there.
    fn origin(&self, path: &RelPath, here: &dyn CurrentState) -> Option<&[Observation]> {
        let mut seen = self.seen(path);
        loop {
            // Who had it first made it; those after only saw it. A restore made it anew.
            let same = seen.iter().rev().take_while(|seen| seen.there.is(here)).count();
            let from = seen.len() - same;
            let anew = seen[from..].iter().rposition(|seen| matches!(seen.by, Actor::Restore(_)));
            let first = from + anew.unwrap_or(0);
            match seen.get(first)?.by {
                // A clock may have been set back since: what comes later is later all the same.
                Actor::Restore(then) if then > self.since => {
                    seen = &seen[..seen[..first].partition_point(|seen| seen.at <= then)];
                }
                Actor::Agent
                | Actor::Session(_)
                | Actor::Others
                | Actor::Unclear
                | Actor::Restore(_) => {
                    return seen.get(first..);
                }
            }
        }
    }

    fn seen(&self, path: &RelPath) -> &[Observation] {
        self.seen.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether the agent left something at `path` last that was too large to be read: whether it is
    /// what is there now cannot be told.
    fn was_left_unread(&self, path: &RelPath) -> bool {
        self.seen(path).last().is_some_and(|seen| match &seen.there {
            AtPath::This(state) => seen.by == Actor::Agent && state.is_unread(),
            AtPath::Nothing | AtPath::File(_) | AtPath::Directory => false,
        })
    }

    /// Whether something that the agent made was at `path`, or in it, when it was last seen.
    pub fn was_made_by_agent(&self, path: &RelPath) -> bool {
        let below = self.seen.range(path.clone()..).take_while(|(at, _)| at.is_within(path));
        let mut last = below.filter_map(|(_, seen)| seen.last());
        last.any(|seen| seen.by == Actor::Agent && seen.there.is_any())
    }

    /// Which other author removed what the checkpoint has at `path`, where nothing is now: another session was
    /// seen to, or the agent was not, and no call could have done it unseen.
    pub fn removed_by(&self, path: &RelPath, here: &dyn CurrentState) -> Option<Author> {
        let may_be_agents = self.likely.is_some() && reaches(&self.ended, path);
        if self.is_lost || self.unseen(path, Some(here)).is_some() {
            return None;
        }
        match self.seen(path).last().map(|last| (last.there.is_any(), last.by)) {
            None if may_be_agents || !self.active => None,
            None | Some((true, _)) => Some(Author::Other),
            Some((false, Actor::Session(session))) => Some(Author::Session(session)),
            Some((false, Actor::Agent | Actor::Others | Actor::Unclear | Actor::Restore(_))) => {
                None
            }
        }
    }

    /// Whether a restore to what was before the checkpoint removed what was at `path`, and nothing
    /// was seen there since, or what was has been taken back.
    pub fn was_removed_by_restore(&self, path: &RelPath) -> bool {
        let mut seen = self.seen(path);
        while let Some((Observation { by: Actor::Restore(then), .. }, before)) = vanished(seen) {
            if *then <= self.since {
                return true;
            }
            seen = &before[..before.partition_point(|seen| seen.at <= *then)];
        }
        false
    }

    /// Whether the agent was the last that was seen to leave something at just this `path`.
    pub fn agent_left_last(&self, path: &RelPath) -> bool {
        self.seen(path).last().is_some_and(|seen| seen.by == Actor::Agent && seen.there.is_any())
    }

    /// Whether the agent had left something else at just this `path` before what is there now.
    pub fn agent_left_something_else(&self, path: &RelPath, here: &dyn CurrentState) -> bool {
        let first = self.origin(path, here).and_then(<[Observation]>::first);
        let mut before = self.before(path, first);
        before.any(|seen| seen.by == Actor::Agent && seen.there.is_any())
    }

    /// What was seen at `path` before something that was.
    fn before<'s>(
        &'s self,
        path: &RelPath,
        first: Option<&'s Observation>,
    ) -> impl Iterator<Item = &'s Observation> {
        let is_it = move |seen: &Observation| first.is_some_and(|first| std::ptr::eq(seen, first));
        self.seen(path).iter().take_while(move |seen| !is_it(seen))
    }

    /// Whether the agent left something at just this `path`, or removed it.
    pub fn agent_touched(&self, path: &RelPath) -> bool {
        self.seen(path).iter().any(|seen| seen.by == Actor::Agent)
    }

    /// Whether the agent left just this at `path` at any time.
    pub fn agent_left_this(&self, path: &RelPath, this: &dyn CurrentState) -> bool {
        self.seen(path).iter().any(|seen| seen.by == Actor::Agent && seen.there.is(this))
    }

    /// Whether the agent removed what was at `path`, or may have.
    pub fn agent_removed(&self, path: &RelPath) -> bool {
        match vanished(self.seen(path)).map(|(first, _)| first.by) {
            _ if self.is_lost => true,
            Some(by) => by == Actor::Agent,
            None => self.unseen(path, None).is_some(),
        }
    }

    /// Whether the agent may have had a part in what happened at `path`; `here` is what is there, if
    /// anything.
    pub fn may_be_agents(&self, path: &RelPath, here: Option<&dyn CurrentState>) -> bool {
        let may_have_left = match here {
            Some(here) => {
                let author = self.author(path, here);
                !author.is_another() && author != Author::Restore
            }
            None => !self.active || !self.tells || self.agent_removed(path),
        };
        may_have_left || self.seen(path).iter().any(|seen| seen.by == Actor::Agent)
    }

    /// What the agent left at `path`, the newest first.
    pub fn bases<'a>(&'a self, path: &RelPath) -> impl Iterator<Item = &'a PathState> {
        let ours = self.seen(path).iter().rev().filter(|seen| seen.by == Actor::Agent);
        ours.filter_map(|seen| match &seen.there {
            AtPath::This(state) => Some(state),
            AtPath::Nothing | AtPath::File(_) | AtPath::Directory => None,
        })
    }

    /// The checkpoints right before calls that were not looked at when they were done.
    pub fn checkpoints_of_open_calls(&self) -> BTreeSet<CheckpointId> {
        self.open.values().filter_map(|open| CheckpointId::parse(&open.of)).collect()
    }

    /// The command line of a call that was interrupted; of several, the one of any.
    pub fn interrupted(&self) -> Option<&str> {
        let mut open = self.open.values().filter(|open| self.tells && !open.is_done);
        open.find(|open| !open.in_background).map(|open| open.summary.as_str())
    }

    /// A call that may have changed what is at `path`, and was not looked at when it was done. One
    /// that was cut off says less than one that was done. What is `here` as it was right before a call
    /// was not changed by it; of an agent that says no ends, an earlier one may have made it.
    fn unseen(&self, path: &RelPath, here: Option<&dyn CurrentState>) -> Option<&OpenCall> {
        let was_before = |open: &OpenCall| {
            let look = CheckpointId::parse(&open.of).filter(|_| self.tells);
            look.zip(here).is_some_and(|(look, here)| here.was_at(look))
        };
        let open = self.open.values().filter(|open| reaches([*open], path));
        let mut open: Vec<&OpenCall> = open.filter(|open| !was_before(open)).collect();
        open.sort_by_key(|open| open.is_done);
        open.pop()
    }
}

/// Where nothing is any more, who saw that first, and what was seen before.
fn vanished(seen: &[Observation]) -> Option<(&Observation, &[Observation])> {
    let count = seen.iter().rev().take_while(|seen| !seen.there.is_any()).count();
    let (before, since) = seen.split_at(seen.len() - count);
    since.first().map(|first| (first, before))
}

/// Whether one of these calls can change what is at `path`.
fn reaches<'o>(open: impl IntoIterator<Item = &'o OpenCall>, path: &RelPath) -> bool {
    open.into_iter().any(|open| match &open.paths {
        None => true,
        Some(paths) => paths.iter().any(|open| path.is_within(open) || open.is_within(path)),
    })
}

#[cfg(test)]
mod tests;
