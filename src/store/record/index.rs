//! The records of a root, each read once by a command however often it is asked for.
//!
//! A record never changes, so one that was read stays known as long as its name is listed. Those that cannot be
//! read are read again each time: they may have been written again from a copy.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use super::{Record, RecordEntry, ids, read_entries};
use crate::{
    error::{Error, Result},
    model::CheckpointId,
    state::RootState,
};

/// The records of one root.
#[derive(Debug)]
pub(in crate::store) struct RecordIndex {
    state: RootState,
    known: RefCell<HashMap<CheckpointId, Arc<Record>>>,
}

impl RecordIndex {
    /// An index that has read nothing yet.
    pub(in crate::store) fn new(state: RootState) -> Self {
        Self { state, known: RefCell::default() }
    }

    /// All records, the newest first. Lists them anew, and reads those that are new.
    ///
    /// # Errors
    ///
    /// Fails if they cannot be listed. Unreadable records are part of the result.
    pub(in crate::store) fn all(&self) -> Result<Vec<RecordEntry>> {
        let ids = ids(&self.state)?;
        let mut known = self.known.borrow_mut();
        let new: Vec<_> = ids.iter().filter(|id| !known.contains_key(id)).copied().collect();
        let mut read: HashMap<CheckpointId, RecordEntry> =
            read_entries(&self.state, &new)?.into_iter().map(|entry| (entry.id, entry)).collect();
        let entries: Vec<RecordEntry> = ids
            .iter()
            .filter_map(|id| match known.get(id) {
                Some(record) => Some(RecordEntry::readable(record.clone())),
                None => read.remove(id),
            })
            .collect();
        let readable = entries.iter().filter_map(|entry| entry.record.as_ref().ok());
        *known = readable.map(|record| (record.checkpoint.id, record.clone())).collect();
        Ok(entries)
    }

    /// The record of one checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchCheckpoint`], [`Error::FormatTooNew`] or [`Error::Damaged`].
    pub(in crate::store) fn get(&self, id: CheckpointId) -> Result<Arc<Record>> {
        if let Some(known) = self.known.borrow().get(&id) {
            return Ok(known.clone());
        }
        match read_entries(&self.state, &[id])?.pop() {
            Some(entry) => {
                let record = entry.record?;
                self.known.borrow_mut().insert(id, record.clone());
                Ok(record)
            }
            None => Err(Error::NoSuchCheckpoint { given: id.to_string() }),
        }
    }

    /// Takes removed records out.
    pub(in crate::store) fn remove(&self, ids: &[CheckpointId]) {
        self.known.borrow_mut().retain(|id, _| !ids.contains(id));
    }
}
