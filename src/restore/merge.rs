//! Three-way merge: reverts the agent's edits and keeps those of others. The base is what the agent
//! wrote.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    authors::Authors,
    content::{bytes_now, bytes_then},
};
use crate::{
    attribution,
    model::{Kind, RelPath},
    plan::{Author, Change, Merged},
    project::Project,
};

/// What merging comes to.
#[derive(Default)]
pub(super) struct Merges {
    pub(super) files: BTreeMap<RelPath, Merged>,
    /// Those of them in which conflicts are marked.
    pub(super) marked: BTreeSet<RelPath>,
    /// Others, in which nothing of the agent's is left: a merge changes nothing.
    pub(super) without: BTreeSet<RelPath>,
}

/// A file without what some calls did, one change of theirs after the other.
pub(super) struct WithoutCalls {
    /// With whether conflicts are marked in it; `None` if the changes cannot be taken back.
    pub(super) merged: Option<(Merged, bool)>,
}

/// What takes back the changes of the agent, if others changed the file between two of them.
type TakeBack<'a> = dyn Fn(&Change) -> Option<WithoutCalls> + 'a;

/// Merges every text that another author changed, as far as that goes without a conflict, or with
/// `markers` around those. Where others changed it between two changes of the agent's too, these are taken back
/// one by one, by `take_back`.
pub(super) fn all(
    project: &Project,
    changes: &[Change],
    authors: &BTreeMap<RelPath, Author>,
    knowledge: &Authors,
    (markers, take_back): (bool, &TakeBack<'_>),
) -> Merges {
    let mut merges = Merges::default();
    for change in changes {
        let is_edited = authors.get(&change.path).is_some_and(|author| author.is_another());
        let found =
            is_edited.then(|| one(project, change, knowledge, (markers, take_back))).flatten();
        let Some(one) = found else { continue };
        if one.is_as_now {
            merges.without.insert(change.path.clone());
            continue;
        }
        merges.marked.extend(one.is_marked.then(|| change.path.clone()));
        merges.files.insert(change.path.clone(), one.merged);
    }
    merges
}

struct FileMerge {
    merged: Merged,
    is_marked: bool,
    /// Whether it is what is there already.
    is_as_now: bool,
}

fn one(
    project: &Project,
    change: &Change,
    knowledge: &Authors,
    (markers, take_back): (bool, &TakeBack<'_>),
) -> Option<FileMerge> {
    let (then, now) = (change.before?, change.after?);
    if (then.kind, now.kind) != (Kind::File, Kind::File) {
        return None;
    }
    let ours = bytes_now(project, &change.path)?;
    let is_as_now = |merged: &Merged| merged.bytes == ours && merged.permissions == now.permissions;
    if let Some(WithoutCalls { merged }) = take_back(change) {
        let (merged, is_marked) = merged?;
        return Some(FileMerge { is_as_now: is_as_now(&merged), merged, is_marked });
    }
    let place = project.place();
    let theirs = bytes_then(project, &then)?;
    let mut bases = knowledge.knowledge.bases(&change.path);
    let base = bases.find_map(|state| {
        let sha = state.sha.as_deref()?;
        Some((attribution::text(&place, sha)?, state.permissions))
    });
    // Where the agent was not seen to leave a text, there is nothing of its own to take back.
    let (base, left) = base?;
    let (bytes, is_marked) = merge(&base, &ours, &theirs, markers)?;
    let permissions = if now.permissions == left { then.permissions } else { now.permissions };
    let merged = Merged { bytes, permissions };
    Some(FileMerge { is_as_now: is_as_now(&merged), merged, is_marked })
}

/// Three texts to one, and whether conflicts are marked in it; `None` for what is no text, and for
/// conflicts unless they may be marked.
pub(super) fn merge(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    markers: bool,
) -> Option<(Vec<u8>, bool)> {
    let text = |bytes: &[u8]| !bytes.contains(&0);
    if ![base, ours, theirs].into_iter().all(text) {
        return None;
    }
    match diffy::merge_bytes(base, ours, theirs) {
        Ok(merged) => Some((merged, false)),
        Err(marked) => markers.then_some((marked, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_keeps_what_people_did_and_takes_back_what_the_agent_did() {
        let then = b"one\ntwo\nthree\nfour\nfive\n";
        let agent = b"one\ntwo\nthree\nfour\nFIVE\n";
        let now = b"ONE\ntwo\nthree\nfour\nFIVE\n";
        let merged = merge(agent, now, then, false).unwrap();
        assert_eq!(merged, (b"ONE\ntwo\nthree\nfour\nfive\n".to_vec(), false));
    }

    #[test]
    fn conflicts_are_marked_only_when_asked_and_binaries_never_merged() {
        let [then, agent, now] = [&b"a\n"[..], b"b\n", b"c\n"];
        assert_eq!(merge(agent, now, then, false), None);
        let (marked, is_marked) = merge(agent, now, then, true).unwrap();
        assert!(is_marked && marked.starts_with(b"<<<<<<<"));
        assert_eq!(merge(b"\0", b"\0a", b"\0b", true), None);
    }
}
