//! The order of a series: the changes of a turn together, as far as what came between lets them be. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{FileChange, GitFile, LINK_MODE};
use crate::model::RelPath;

/// The owner of a change, by its place in the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartOwner {
    /// What others did before the turn at this place began, and after the one before it.
    Before(usize),
    Turn(usize),
}

/// A file, as it is where a series begins, and the states that come then.
#[derive(Debug)]
pub(super) struct FileCourse {
    pub(super) here: Option<GitFile>,
    pub(super) next: Vec<CourseState>,
}

/// A state of a file, and who led to it.
#[derive(Debug)]
pub(super) struct CourseState {
    pub(super) owner: PartOwner,
    /// Its place in the log.
    pub(super) place: usize,
    pub(super) file: Option<GitFile>,
}

/// A change of the series.
pub(super) struct OrderedPart {
    pub(super) owner: PartOwner,
    pub(super) files: BTreeMap<RelPath, FileChange>,
}

impl FileCourse {
    /// What others removed, or gave another name.
    pub(super) fn left_by_others(&self) -> impl Iterator<Item = GitFile> {
        let states = std::iter::once(&self.here).chain(self.next.iter().map(|state| &state.file));
        states.zip(&self.next).filter_map(|(before, after)| {
            let is_others = matches!(after.owner, PartOwner::Before(_));
            before.clone().filter(|_| is_others && after.file.is_none())
        })
    }

    /// What was there first, if nothing was there before.
    pub(super) fn made(&self) -> Option<&GitFile> {
        let first = self.next.iter().find_map(|state| state.file.as_ref());
        first.filter(|_| self.here.is_none())
    }

    /// Whether a file comes to be there.
    pub(super) fn comes(&self) -> bool {
        self.next.iter().any(|state| state.file.is_some())
    }
}

impl CourseState {
    /// When it came about. What was found before a call comes before what the call left.
    fn key(&self) -> (usize, bool) {
        (self.place, matches!(self.owner, PartOwner::Turn(_)))
    }
}

/// The changes, in an order in which each file goes through its states, and a file and what is above or below
/// it change in the order in which they did. A turn is in one change, unless others came between.
pub(super) fn parts(courses: &BTreeMap<RelPath, FileCourse>) -> Vec<OrderedPart> {
    let order = SeriesOrder::of(courses);
    let mut here = vec![0; order.courses.len()];
    let mut parts: Vec<OrderedPart> = Vec::new();
    while let Some(oldest) = order.oldest(&here) {
        let owner = order.whole(&here, oldest, &mut BTreeSet::new()).unwrap_or(oldest);
        let next = order.advance(&here, owner);
        push(&mut parts, owner, order.changes(&here, &next));
        here = next;
    }
    parts.into_iter().flat_map(links_first).collect()
}

/// Removes symlinks that become directories in a part before the rest. git looks through the link that is still
/// there for the new files, and refuses the patch if the link leads in a circle, or to where it may not look.
fn links_first(mut part: OrderedPart) -> impl Iterator<Item = OrderedPart> {
    let is_link = |change: &FileChange| match change {
        FileChange { before: Some(file), after: None } => file.mode == LINK_MODE,
        FileChange { .. } => false,
    };
    let becomes_dir = |path: &RelPath, change: &FileChange| {
        let mut below = part.files.range(path..).skip(1);
        is_link(change) && below.next().is_some_and(|(below, _)| below.is_within(path))
    };
    let links = part.files.iter().filter(|(path, change)| becomes_dir(path, change));
    let links: Vec<RelPath> = links.map(|(path, _)| path.clone()).collect();
    let files: BTreeMap<_, _> =
        links.into_iter().filter_map(|path| part.files.remove_entry(&path)).collect();
    let first = (!files.is_empty()).then_some(OrderedPart { owner: part.owner, files });
    first.into_iter().chain([part])
}

/// Two files of which one is above the other, and that would both be there after one of some changes.
pub(super) fn clash(
    courses: &BTreeMap<RelPath, FileCourse>,
    parts: &[OrderedPart],
) -> Option<[RelPath; 2]> {
    let begins = courses.iter().filter(|(_, course)| course.here.is_some());
    let mut there: BTreeSet<&RelPath> = begins.map(|(path, _)| path).collect();
    for part in parts {
        for (path, change) in &part.files {
            match change.after {
                Some(_) => there.insert(path),
                None => there.remove(path),
            };
        }
        for path in part.files.keys().filter(|path| there.contains(path)) {
            let mut above = path.above();
            let above = above.find(|above| there.contains(above));
            let mut below = there.range::<&RelPath, _>(path..).skip(1);
            let below = below.next().filter(|below| below.is_within(path));
            if let Some(other) = above.or_else(|| below.map(|below| (*below).clone())) {
                return Some([path.clone(), other]);
            }
        }
    }
    None
}

/// Adds a change, to the last one if both have one owner.
fn push(parts: &mut Vec<OrderedPart>, owner: PartOwner, files: BTreeMap<RelPath, FileChange>) {
    let is_same = |last: &OrderedPart| match (last.owner, owner) {
        (PartOwner::Before(_), PartOwner::Before(_)) => true,
        (last, owner) => last == owner,
    };
    let Some(last) = parts.last_mut().filter(|last| is_same(last)) else {
        if !files.is_empty() {
            parts.push(OrderedPart { owner, files });
        }
        return;
    };
    last.owner = owner;
    for (path, change) in files {
        let before = last.files.remove(&path).map_or(change.before, |first| first.before);
        if before != change.after {
            last.files.insert(path, FileChange { before, after: change.after });
        }
    }
    if last.files.is_empty() {
        parts.pop();
    }
}

/// What is to be put in order. Where it has got to is how many states of each file have been taken.
struct SeriesOrder<'c> {
    courses: Vec<(&'c RelPath, &'c FileCourse)>,
    /// Of each file, those above and below it.
    near: Vec<Vec<usize>>,
}

impl<'c> SeriesOrder<'c> {
    fn of(courses: &'c BTreeMap<RelPath, FileCourse>) -> Self {
        let courses: Vec<_> = courses.iter().collect();
        let mut near = vec![Vec::new(); courses.len()];
        for (at, (path, _)) in courses.iter().enumerate() {
            // What is below a path follows it.
            let below = courses[at + 1..].iter().take_while(|(below, _)| below.is_within(path));
            for below in at + 1..at + 1 + below.count() {
                near[at].push(below);
                near[below].push(at);
            }
        }
        Self { courses, near }
    }

    fn next(&self, here: &[usize], at: usize) -> Option<&CourseState> {
        self.courses[at].1.next.get(here[at])
    }

    /// The owner of what came first of all that is still to come.
    fn oldest(&self, here: &[usize]) -> Option<PartOwner> {
        let next = (0..here.len()).filter_map(|at| self.next(here, at));
        next.min_by_key(|state| (state.key(), state.owner)).map(|state| state.owner)
    }

    /// An owner of which all can be taken now: the given one, or one that stands in its way. What others did
    /// may be in several parts.
    fn whole(
        &self,
        here: &[usize],
        owner: PartOwner,
        asked: &mut BTreeSet<PartOwner>,
    ) -> Option<PartOwner> {
        asked.insert(owner);
        let then = self.advance(here, owner);
        let in_the_way = self.in_the_way(&then, owner);
        let is_divisible = matches!(owner, PartOwner::Before(_)) && then != here;
        if in_the_way.is_empty() || is_divisible {
            return Some(owner);
        }
        for other in in_the_way {
            if !asked.contains(&other)
                && let Some(found) = self.whole(here, other, asked)
            {
                return Some(found);
            }
        }
        None
    }

    /// Takes of an owner what can be taken.
    fn advance(&self, here: &[usize], owner: PartOwner) -> Vec<usize> {
        let mut then = here.to_vec();
        loop {
            let before = then.clone();
            for at in 0..then.len() {
                while self.next(&then, at).is_some_and(|state| state.owner == owner)
                    && self.blocked_by(&then, at).is_none()
                {
                    then[at] += 1;
                }
            }
            if before == then {
                return then;
            }
        }
    }

    /// A file above or below one that changed before the next change of that.
    fn blocked_by(&self, here: &[usize], at: usize) -> Option<&CourseState> {
        let key = self.next(here, at)?.key();
        let near = self.near[at].iter().filter_map(|near| self.next(here, *near));
        near.filter(|state| state.key() < key).min_by_key(|state| state.key())
    }

    /// The owners of what has to come before the rest of an owner.
    fn in_the_way(&self, here: &[usize], owner: PartOwner) -> BTreeSet<PartOwner> {
        let mut found = BTreeSet::new();
        for (at, (_, course)) in self.courses.iter().enumerate() {
            let rest = &course.next[here[at]..];
            let Some(own) = rest.iter().position(|state| state.owner == owner) else { continue };
            found.extend(rest[..own].iter().map(|state| state.owner));
            found.extend(self.blocked_by(here, at).map(|state| state.owner));
        }
        found
    }

    fn changes(&self, here: &[usize], then: &[usize]) -> BTreeMap<RelPath, FileChange> {
        let state = |at: usize, taken: usize| match taken.checked_sub(1) {
            None => &self.courses[at].1.here,
            Some(last) => &self.courses[at].1.next[last].file,
        };
        let mut files = BTreeMap::new();
        for (at, (path, _)) in self.courses.iter().enumerate() {
            let [before, after] = [here, then].map(|taken| state(at, taken[at]));
            if before != after {
                let change = FileChange { before: before.clone(), after: after.clone() };
                files.insert((*path).clone(), change);
            }
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PartOwner = PartOwner::Turn(0);
    const B: PartOwner = PartOwner::Turn(1);
    const YOU: PartOwner = PartOwner::Before(1);

    fn file(text: &str) -> Option<GitFile> {
        (!text.is_empty()).then(|| GitFile { mode: 0o100_644, bytes: text.into() })
    }

    /// Files by name, with their first text and the later ones, each with its owner and its place. An empty
    /// text is no file.
    type Course<'t> = (&'t str, &'t str, &'t [(PartOwner, usize, &'t str)]);

    fn courses(all: &[Course<'_>]) -> BTreeMap<RelPath, FileCourse> {
        let course = |(path, here, next): &Course<'_>| {
            let state = |(owner, place, text): &(PartOwner, usize, &str)| CourseState {
                owner: *owner,
                place: *place,
                file: file(text),
            };
            let next = next.iter().map(state).collect();
            let path = RelPath::from_bytes(path.as_bytes()).unwrap();
            (path, FileCourse { here: file(here), next })
        };
        all.iter().map(course).collect()
    }

    fn in_words(all: &[Course<'_>]) -> Vec<String> {
        let courses = courses(all);
        let parts = parts(&courses);
        assert_eq!(clash(&courses, &parts), None);
        let words = |part: &OrderedPart| {
            let text = |change: &FileChange| match &change.after {
                Some(file) => String::from_utf8_lossy(&file.bytes).into_owned(),
                None => "-".to_owned(),
            };
            let files = part.files.iter();
            let files =
                files.map(|(path, it)| format!(" {}={}", path.as_path().display(), text(it)));
            format!("{:?}{}", part.owner, files.collect::<String>())
        };
        parts.iter().map(words).collect()
    }

    #[test]
    fn a_turn_is_in_one_part_unless_another_came_between() {
        let both = [("f", "0", &[(A, 1, "1"), (B, 4, "2")][..]), ("g", "0", &[(A, 9, "1")])];
        assert_eq!(in_words(&both), ["Turn(0) f=1 g=1", "Turn(1) f=2"]);
        let late = [("f", "0", &[(B, 4, "1"), (A, 9, "2")][..]), ("g", "0", &[(A, 1, "1")])];
        assert_eq!(in_words(&late), ["Turn(1) f=1", "Turn(0) f=2 g=1"]);
        let torn = [("f", "0", &[(A, 1, "1"), (B, 4, "2"), (A, 9, "3")][..])];
        assert_eq!(in_words(&torn), ["Turn(0) f=1", "Turn(1) f=2", "Turn(0) f=3"]);
        let crossed =
            [("f", "0", &[(A, 1, "1"), (B, 4, "2")][..]), ("g", "0", &[(B, 3, "1"), (A, 9, "2")])];
        assert_eq!(in_words(&crossed), ["Turn(0) f=1", "Turn(1) f=2 g=1", "Turn(0) g=2"]);
    }

    #[test]
    fn what_others_did_comes_where_it_has_to() {
        let yours = [("f", "0", &[(YOU, 3, "1"), (B, 5, "2")][..]), ("g", "0", &[(A, 1, "1")])];
        assert_eq!(in_words(&yours), ["Turn(0) g=1", "Before(1) f=1", "Turn(1) f=2"]);
        let between = [("f", "0", &[(A, 1, "1"), (YOU, 3, "2"), (A, 5, "3")][..])];
        assert_eq!(in_words(&between), ["Turn(0) f=1", "Before(1) f=2", "Turn(0) f=3"]);
        let first = [("f", "0", &[(YOU, 3, "1"), (A, 5, "2")][..]), ("g", "0", &[(A, 1, "1")])];
        assert_eq!(in_words(&first), ["Before(1) f=1", "Turn(0) f=2 g=1"]);
    }

    #[test]
    fn what_comes_to_nothing_is_no_part_and_divides_none() {
        let back = [("f", "0", &[(B, 2, "1"), (B, 3, "0")][..]), ("g", "0", &[(A, 1, "1")])];
        assert_eq!(in_words(&back), ["Turn(0) g=1"]);
        let owners = [A, YOU, A].map(|owner| (owner, "x"));
        let mut parts = Vec::new();
        for (at, (owner, path)) in owners.into_iter().enumerate() {
            let (before, after) = (file(&at.to_string()), file(&(at + 1).to_string()));
            let path = RelPath::from_bytes(path.as_bytes()).unwrap();
            let files = BTreeMap::from([(path, FileChange { before, after })]);
            push(&mut parts, owner, if owner == YOU { BTreeMap::new() } else { files });
        }
        assert_eq!((parts.len(), parts[0].owner), (1, A));
    }

    #[test]
    fn a_file_makes_room_for_a_directory_before_it_is_there() {
        let room = [("d", "0", &[(YOU, 1, "")][..]), ("d/x", "", &[(A, 2, "1"), (B, 5, "")])];
        assert_eq!(in_words(&room), ["Before(1) d=-", "Turn(0) d/x=1", "Turn(1) d/x=-"]);
        let back =
            [("d", "0", &[(B, 3, ""), (A, 9, "1")][..]), ("d/x", "", &[(B, 3, "1"), (A, 9, "")])];
        assert_eq!(in_words(&back), ["Turn(1) d=- d/x=1", "Turn(0) d=1 d/x=-"]);
        let waits = [
            ("d", "0", &[(B, 3, "")][..]),
            ("d/x", "", &[(A, 9, "1")]),
            ("f", "0", &[(A, 1, "1")]),
        ];
        assert_eq!(in_words(&waits), ["Turn(1) d=-", "Turn(0) d/x=1 f=1"]);
    }

    #[test]
    fn a_symlink_that_becomes_a_directory_goes_in_a_part_before_it() {
        let mut all = courses(&[
            ("d", "d", &[(A, 1, "")]),
            ("d/x", "", &[(A, 2, "1")]),
            ("d.x", "", &[(A, 2, "1")]),
            ("e", "f", &[(A, 1, "")]),
        ]);
        for path in ["d", "e"] {
            let link = all.get_mut(&RelPath::from_bytes(path.as_bytes()).unwrap()).unwrap();
            link.here.as_mut().unwrap().mode = LINK_MODE;
        }
        let parts = parts(&all);
        let paths = |part: &OrderedPart| -> Vec<String> {
            part.files.keys().map(|it| it.as_path().display().to_string()).collect()
        };
        let paths: Vec<Vec<String>> = parts.iter().map(paths).collect();
        assert_eq!(paths, [&["d"][..], &["d/x", "d.x", "e"]]);
        assert!(parts.iter().all(|part| part.owner == A));
    }

    #[test]
    fn two_files_of_which_one_is_above_the_other_clash() {
        let both = courses(&[("d", "0", &[(A, 5, "1")]), ("d/x", "", &[(A, 2, "1")])]);
        let found = clash(&both, &parts(&both)).map(|pair| pair.map(|it| it.as_bytes().to_vec()));
        assert_eq!(found, Some([b"d".to_vec(), b"d/x".to_vec()]));
    }
}
