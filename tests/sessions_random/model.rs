//! What a restore may do, from what is known of every change: who made it, and when.

use std::collections::{BTreeMap, BTreeSet};

use beforehand::model::Kind;

use crate::support::temp::{Files, Seen};

type Path = Vec<u8>;

/// Who changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    User,
    /// The agent of a session.
    Agent(usize),
}

/// The last change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) who: Who,
    /// The step it was made in.
    pub(super) at: usize,
    /// Whether a look right before and right after one call tells whose it is.
    pub(super) is_known: bool,
}

/// What somebody had made before it was changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Under {
    seen: Option<Seen>,
    change: Change,
}

/// All files at some moment, and who made each what it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) at: usize,
    pub(super) files: Files,
    pub(super) changes: BTreeMap<Path, Change>,
    /// What was there at each path before, oldest first.
    pub(super) under: BTreeMap<Path, Vec<Under>>,
    /// What a restore put back, with the time it went back to.
    pub(super) put_back: BTreeMap<Path, usize>,
}

impl Moment {
    /// Takes note of what somebody did.
    pub(super) fn becomes(&mut self, files: Files, change: Change) {
        for path in differing(&self.files, &files) {
            self.put_back.remove(&path);
            let last = self.changes.insert(path.clone(), change);
            if let Some(change) = last {
                let under = Under { seen: self.files.get(&path).cloned(), change };
                self.under.entry(path).or_default().push(under);
            }
        }
        self.files = files;
        self.at = change.at;
    }

    /// What others had made at a path since the order's checkpoint, when its agent went on with it.
    fn under(&self, path: &[u8], order: &Order) -> Vec<&Under> {
        let goes_back = order.session.is_some() && !order.is_forced && order.picked.is_none();
        let all = self.under.get(path).filter(|_| goes_back);
        let since = all.into_iter().flatten().filter(|it| it.change.at > order.then.at);
        let is_gone = !self.files.contains_key(path);
        let is_agents = |it: &Change| Some(it.who) == order.session.map(Who::Agent) && it.is_known;
        // Who removed what is gone may not be known, and then it comes back.
        since.filter(|it| is_gone || !is_agents(&it.change)).collect()
    }

    /// Whether it is not known who made some of that.
    fn has_unclear_under(&self, path: &[u8], order: &Order) -> bool {
        self.under(path, order).iter().any(|under| !under.change.is_known)
    }

    /// Whether a path is as another restore put it back, to before the turn that is undone: that is
    /// nothing of this turn's.
    pub(super) fn is_put_back(&self, path: &[u8], order: &Order) -> bool {
        order.is_undo && self.put_back.get(path).is_some_and(|at| *at <= order.then.at)
    }

    /// Whether the agent whose turn is undone was seen to change a path last.
    fn is_last_of(&self, order: &Order, path: &[u8]) -> bool {
        let last = self.changes.get(path).filter(|last| order.is_undo && last.is_known);
        last.zip(order.session).is_some_and(|(last, of)| last.who == Who::Agent(of))
    }

    /// Whether there is such work in a directory.
    pub(super) fn has_under_in(&self, dir: &[u8], order: &Order) -> bool {
        let mut within = self.under.keys().filter(|path| is_within(path, dir));
        within.any(|path| !self.under(path, order).is_empty())
    }

    /// Takes note of what a restore did: what it put back is what it was.
    pub(super) fn restored(&mut self, files: Files, order: &Order, at: usize) {
        let then = &order.then;
        for path in differing(&self.files, &files) {
            if files.get(&path) == then.files.get(&path) {
                let to = then.put_back.get(&path).copied().unwrap_or(then.at);
                self.put_back.insert(path.clone(), to);
                match then.changes.get(&path) {
                    Some(change) => drop(self.changes.insert(path, *change)),
                    None => drop(self.changes.remove(&path)),
                }
            } else {
                let is_it = |under: &&&Under| under.seen.as_ref() == files.get(&path);
                let all = self.under(&path, order);
                if let Some(change) = all.iter().rev().find(is_it).map(|under| under.change) {
                    self.put_back.insert(path.clone(), change.at);
                    self.changes.insert(path, change);
                }
            }
        }
        self.files = files;
        self.at = at;
    }
}

/// The paths at which two trees differ.
pub(super) fn differing(a: &Files, b: &Files) -> BTreeSet<Path> {
    let paths: BTreeSet<&Path> = a.keys().chain(b.keys()).collect();
    paths.into_iter().filter(|path| a.get(*path) != b.get(*path)).cloned().collect()
}

pub(super) fn is_within(path: &[u8], dir: &[u8]) -> bool {
    path.len() > dir.len() && path.starts_with(dir) && path[dir.len()] == b'/'
}

/// Which checkpoint is gone back to, and how.
pub(super) struct Order {
    pub(super) then: Moment,
    /// Whose turn it was; `None` for one that was taken before a restore.
    pub(super) session: Option<usize>,
    pub(super) is_forced: bool,
    /// Whether it is a step along the line of undo and redo.
    pub(super) is_undo: bool,
    /// The only place it is about.
    pub(super) picked: Option<Path>,
    /// Roots of their own, which are named and stay.
    pub(super) inner_roots: Vec<Path>,
}

impl Order {
    pub(super) fn is_picked(&self, path: &[u8]) -> bool {
        self.picked.as_ref().is_none_or(|picked| path == picked || is_within(path, picked))
            && !self.inner_roots.iter().any(|root| path == root || is_within(path, root))
    }
}

/// What is wrong with a restore that led from `before` to `after`.
pub(super) fn judge(order: &Order, before: &Moment, after: &Files) -> Result<(), String> {
    let then = &order.then;
    let paths = then.files.keys().chain(before.files.keys()).chain(after.keys());
    for path in paths.collect::<BTreeSet<_>>() {
        let [mut was, is, becomes] =
            [&then.files, &before.files, after].map(|files| files.get(path));
        // The work of others in the middle of a turn is where the turn goes back to.
        let under = before.under(path, order);
        if becomes.is_some() && under.iter().any(|under| under.seen.as_ref() == becomes) {
            was = becomes;
        } else if before.is_last_of(order, path)
            && is_wanted(&under, was, is)
            && !is_blocked(path, is, after, under.last().and_then(|under| under.seen.as_ref()))
        {
            return Err(format!("no work of others: {}", String::from_utf8_lossy(path)));
        }
        let is_directory = becomes.is_some_and(|seen| seen.kind == Kind::Directory);
        if is_directory && before.has_under_in(path, order) {
            continue;
        }
        let told = || {
            let name = String::from_utf8_lossy(path);
            let change = before.changes.get(path);
            format!(
                "{name}: {}, after {under:?}\nwas {was:?}\nis {is:?}\nbecomes {becomes:?}",
                change_words(change)
            )
        };
        if becomes != was && becomes != is {
            return Err(format!("something new: {}", told()));
        }
        if was == is || before.is_put_back(path, order) {
            continue;
        }
        match wanted(order, before, path, was, is) {
            Wanted::Kept if becomes != is => return Err(format!("not kept: {}", told())),
            Wanted::Back if becomes != was && !is_blocked(path, is, after, was) => {
                return Err(format!("not restored: {}", told()));
            }
            Wanted::Kept | Wanted::Back | Wanted::Either => (),
        }
    }
    Ok(())
}

/// Whether what others made has to be there again, and is not there now.
fn is_wanted(under: &[&Under], was: Option<&Seen>, is: Option<&Seen>) -> bool {
    let is_directory = |seen: Option<&Seen>| seen.is_some_and(|it| it.kind == Kind::Directory);
    let newest = under.last().filter(|newest| newest.change.is_known && is.is_some());
    let newest = newest.and_then(|newest| newest.seen.as_ref()).filter(|seen| is != Some(*seen));
    newest.is_some_and(|seen| seen.kind == Kind::File) && !is_directory(was)
}

enum Wanted {
    Kept,
    Back,
    Either,
}

fn wanted(
    order: &Order,
    before: &Moment,
    path: &[u8],
    was: Option<&Seen>,
    is: Option<&Seen>,
) -> Wanted {
    if !order.is_picked(path) || path.ends_with(b"/.git") {
        return Wanted::Either;
    }
    let change = before.changes.get(path).filter(|change| change.at > order.then.at);
    // It may be ignored now: there is a rule for `d/` as well.
    let is_special = String::from_utf8_lossy(path).contains(".tmp") || path.starts_with(b"d/");
    if order.is_forced {
        return if was.is_none() && is_special { Wanted::Either } else { Wanted::Back };
    }
    match change {
        // What is gone comes back, whoever removed it.
        _ if is.is_none() => Wanted::Back,
        Some(change) if !change.is_known => Wanted::Either,
        // A state that no agent's work is told apart from is gone back to as a whole.
        Some(Change { who: Who::User, .. }) if order.session.is_none() && !order.is_undo => {
            Wanted::Either
        }
        Some(Change { who: Who::User, .. }) => Wanted::Kept,
        Some(Change { who: Who::Agent(session), .. }) => match order.session {
            // What another left there at once may be in it, and stays then.
            Some(of) if of == *session && before.has_unclear_under(path, order) => Wanted::Either,
            Some(of) if of == *session => Wanted::Back,
            Some(_) => Wanted::Kept,
            None => Wanted::Either,
        },
        None => Wanted::Either,
    }
}

fn change_words(change: Option<&Change>) -> String {
    change.map_or("nobody's".to_owned(), |change| format!("{change:?}"))
}

/// Whether something that stays is in the way: in a directory, or where a directory was.
fn is_blocked(path: &[u8], is: Option<&Seen>, after: &Files, was: Option<&Seen>) -> bool {
    let is_dir = |seen: &Seen| seen.kind == Kind::Directory;
    let below = is.is_some_and(is_dir)
        && !was.is_some_and(is_dir)
        && after.keys().any(|other| is_within(other, path));
    let above = (0..path.len())
        .filter(|at| path[*at] == b'/')
        .any(|at| after.get(&path[..at]).is_some_and(|seen| !is_dir(seen)));
    below || above
}
