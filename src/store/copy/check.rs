//! Checks the copies of one root for damage.

use std::collections::HashSet;

use super::CopyStore;
use crate::{
    error::{Error, Result},
    model::{CheckpointId, Content, ContentId, Entry, Kind},
    store::{
        Damage,
        directory::read_directory,
        objects::object,
        record::{Record, RecordEntry},
        repository::{CheckedObjects, RepositoryCheck},
    },
};

/// Real paths are shorter; a forged one must not exhaust the stack.
const DEPTH_MAX: usize = 2048;

/// Everything wrong with `records` and the objects they need.
pub(super) fn check(store: &CopyStore, records: Vec<RecordEntry>, read_data: bool) -> Vec<Damage> {
    let (good, damage) = (HashSet::new(), Vec::new());
    let repositories = CheckedObjects::default();
    let mut check = CopyCheck { store, read_data, id: None, good, repositories, damage };
    for RecordEntry { id, record, .. } in records {
        check.id = Some(id);
        match record {
            Ok(record) => check.record(&record),
            Err(err) => check.report(err),
        }
    }
    check.damage.extend(check.repositories.lost());
    check.damage
}

struct CopyCheck<'a> {
    store: &'a CopyStore,
    read_data: bool,
    /// The checkpoint being checked.
    id: Option<CheckpointId>,
    /// Objects known to be intact, with everything they name.
    good: HashSet<ContentId>,
    /// Repositories that were checked already.
    repositories: CheckedObjects,
    damage: Vec<Damage>,
}

impl CopyCheck<'_> {
    fn record(&mut self, record: &Record) {
        if let Some(top) = record.checkpoint.top {
            self.directory(top, 0);
        }
        let overlay = self.store.overlay(record).map(|held| held.into_values().collect());
        let outside = self.store.outside(record).map(|held| held.into_values().collect());
        self.listed(overlay);
        self.listed(outside);
        let look = RepositoryCheck {
            state: self.store.state.state(),
            root: self.store.root.path(),
            record,
            read_data: self.read_data,
        };
        let faults = look.check(&mut self.repositories);
        for (what, why) in faults {
            self.report(Error::damaged(what, why));
        }
    }

    fn listed(&mut self, entries: Result<Vec<Entry>>) {
        match entries {
            Ok(entries) => {
                for content in entries.into_iter().filter_map(|entry| entry.content) {
                    self.content(content);
                }
            }
            Err(err) => self.report(err),
        }
    }

    /// Whether a directory and everything below it is intact.
    fn directory(&mut self, id: ContentId, depth: usize) -> bool {
        if self.good.contains(&id) {
            return true;
        }
        if depth > DEPTH_MAX {
            self.report(Error::damaged(object(&id), "nested too deep"));
            return false;
        }
        let directory = match read_directory(&self.store.objects, &id) {
            Ok(directory) => directory,
            Err(err) => {
                self.report(err);
                return false;
            }
        };
        let mut good = true;
        for entry in directory.values() {
            good &= match (entry.kind, entry.content) {
                (Kind::Directory, Some(content)) => self.directory(content.id, depth + 1),
                (_, Some(content)) => self.content(content),
                (_, None) => true,
            };
        }
        if good {
            self.good.insert(id);
        }
        good
    }

    fn content(&mut self, Content { id, .. }: Content) -> bool {
        if self.good.contains(&id) {
            return true;
        }
        match self.store.objects.check(&id, self.read_data) {
            Ok(()) => self.good.insert(id),
            Err(err) => {
                self.report(err);
                false
            }
        }
    }

    fn report(&mut self, err: Error) {
        let (what, why) = match err {
            Error::Damaged { what, why } => (what, why),
            other => (
                self.id.map_or_else(String::new, |id| format!("checkpoints/{id}.json")),
                other.to_string(),
            ),
        };
        let damage = Damage::new(self.id, what, why);
        if !self.damage.contains(&damage) {
            self.damage.push(damage);
        }
    }
}
