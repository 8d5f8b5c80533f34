//! A part of a prepared restore: of the files, what the user chose; of everything else, nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::prepare::Prepared;
use crate::{
    model::RelPath,
    plan::{Choosable, Chosen},
};

impl Prepared {
    /// Leaves everything as it is that is not chosen. Only files can be: branch, index and repositories
    /// stay as they are. Returns whether one of them would have changed.
    pub(crate) fn choose(&mut self, chosen: &BTreeMap<Choosable, Chosen>) -> bool {
        let is_more = self.head.moves.is_some() || self.stages || !self.repositories.is_empty();
        self.head.moves = None;
        self.stages = false;
        self.repositories.clear();
        self.losing.clear();
        let parts = chosen.iter().filter(|(_, chosen)| matches!(chosen, Chosen::Part(_)));
        self.parts = parts.map(|(choosable, _)| choosable.path.clone()).collect();
        self.plan.choose(chosen);
        let plan = &self.plan;
        let deeds: BTreeSet<&RelPath> = plan.deeds().map(|step| &step.path).collect();
        // What goes back to the work of others is written down with its digest; a part of it has one
        // of its own.
        let is_whole = |path: &RelPath| deeds.contains(path) && !plan.merges.contains_key(path);
        self.mid_turn.retain(|path, _| is_whole(path));
        self.mid_turn_digests.retain(|path, _| is_whole(path));
        self.marked.retain(|path| deeds.contains(path));
        is_more
    }
}
