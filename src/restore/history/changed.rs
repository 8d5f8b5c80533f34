//! Who can have led from one state of a project to a later one.

use std::collections::BTreeSet;

use super::{FileHistory, LineWriter, PastState, StateOrigin, WriterCandidates};
use crate::model::{Checkpoint, RelPath};

/// Those who changed files between two states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedBy {
    /// Turns that did or may have, by their places in [`FileHistory::turns`].
    pub(crate) turns: BTreeSet<usize>,
    /// Whether the user or a restore did or may have.
    pub(crate) others: bool,
    /// Whether more may have than can be named.
    pub(crate) any: bool,
}

impl FileHistory<'_> {
    /// Who changed some paths between a checkpoint and a later one, or what is there now.
    pub(crate) fn changed_by<'p>(
        &self,
        paths: impl Iterator<Item = &'p RelPath>,
        from: &Checkpoint,
        until: Option<&Checkpoint>,
    ) -> ChangedBy {
        let place = |one: &Checkpoint| self.log.position_of(one);
        let (from, last) = (place(from), until);
        let until = until.map_or(usize::MAX, place);
        let mut found = ChangedBy::default();
        for path in paths {
            let steps = self.states(path);
            // Between turns a state may have come about before it was seen.
            let is_so_early = |it: &PastState| {
                let held = last.and_then(|last| self.held(last, path));
                it.known_until < until
                    && held.is_none_or(|held| self.source.is_same(path, &held, &it.there))
            };
            let between =
                steps.iter().filter(|it| from < it.order && (it.order <= until || is_so_early(it)));
            let count = between.map(|step| found.add(&step.origin)).count();
            // What is not seen to change was changed by someone.
            found.any |= count == 0;
        }
        found
    }
}

impl ChangedBy {
    fn add(&mut self, cause: &StateOrigin) {
        let writer = match cause {
            StateOrigin::By(writer) => writer,
            StateOrigin::Restored => return self.others = true,
            StateOrigin::First => return self.any = true,
        };
        let WriterCandidates { turns, user, any, .. } = WriterCandidates::of(writer);
        self.turns.extend(turns);
        self.others |= user;
        self.any |= any || *writer == LineWriter::Before;
    }
}
