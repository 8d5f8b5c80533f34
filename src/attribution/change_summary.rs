//! How many files a command changed or deleted, and whether that is more than a user expects.

use std::collections::{BTreeSet, HashMap};

use super::SinceCheckpoint;
use crate::{
    error::Result,
    fs::stat_path,
    ledger,
    model::{CheckpointId, ContentId, Directory, Entry, Notice, RelPath, Root, Tree},
    plan::{self, Change},
    store::{
        GitStore, Held, Store,
        record::{self, Record},
    },
    ui,
};

/// So many digits of an id are hardly ever those of another checkpoint.
const ID_DIGITS: usize = 8;

/// What a command did to files that were there before it. What it made counts for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeSummary {
    /// Files with other bytes, another kind or other permissions.
    pub changed: u64,
    /// Files that are gone.
    pub deleted: u64,
    /// Those of them that git did not track, so that nothing but a checkpoint has them.
    pub untracked: u64,
    /// Files that are gone and that no checkpoint holds.
    pub unheld: u64,
    /// Whether the turn had an earlier checkpoint already, to which an undo of the turn goes back.
    pub is_inner: bool,
}

impl ChangeSummary {
    /// What of it is more than `known`, which the user has been told.
    #[must_use]
    pub fn beyond(self, known: Self) -> Self {
        Self {
            changed: self.changed.saturating_sub(known.changed),
            deleted: self.deleted.saturating_sub(known.deleted),
            untracked: self.untracked.saturating_sub(known.untracked),
            unheld: 0,
            is_inner: self.is_inner,
        }
    }

    /// Whether a person wants to hear of it at once.
    pub fn is_much(self, notice: Notice) -> bool {
        let is_many = notice.files > 0 && self.changed + self.deleted > u64::from(notice.files);
        is_many || (notice.untracked && self.untracked > 0)
    }

    /// One line for the user on what is gone for good.
    pub fn unheld_words(self) -> Option<String> {
        let files = ui::count(self.unheld, "file");
        (self.unheld > 0).then(|| format!("gone for good: {files} that no checkpoint holds"))
    }

    /// One line for the user on what was done since the checkpoint `of`.
    pub fn words(self, of: CheckpointId) -> String {
        let mut deeds = Vec::new();
        if self.changed > 0 {
            deeds.push(format!("changed {}", ui::count(self.changed, "file")));
        }
        if self.deleted > 0 {
            deeds.push(format!("deleted {}", ui::count(self.deleted, "file")));
        }
        let untracked = match (self.untracked, self.deleted) {
            (0, _) => String::new(),
            (1, 1) => ", which git did not track before".to_owned(),
            (some, all) if some == all => ", none of them tracked by git before".to_owned(),
            (some, _) => format!(", {} of them untracked", ui::number(some)),
        };
        let deeds = deeds.join(" and ");
        if self.is_inner {
            let id = of.to_string();
            let id = id.get(..ID_DIGITS).unwrap_or(&id);
            return format!("that command {deeds}{untracked}: beforehand restore {id}");
        }
        format!("that command {deeds}{untracked}: beforehand undo")
    }
}

/// Whether an earlier checkpoint of the same turn is there, its own or one that it uses.
fn is_inner(since: SinceCheckpoint<'_, '_>, store: &dyn Store, record: &Record) -> Result<bool> {
    let own = record.checkpoint.sequence;
    let mut all = store.list()?;
    ledger::adopt(&mut all, &ledger::uses(since.state));
    let Some(of) = all.iter().find(|it| it.sequence == own) else { return Ok(false) };
    Ok(all.iter().any(|it| it.sequence < own && it.is_same_turn(of)))
}

/// Counts what `changes`, since the checkpoint `of`, did to files. A file that has only another
/// name now is not gone. `unheld` files are gone that it does not hold.
///
/// # Errors
///
/// Fails if the checkpoint cannot be read.
pub(super) fn count(
    since: SinceCheckpoint<'_, '_>,
    store: &dyn Store,
    changes: &[Change],
    unheld: u64,
) -> Result<ChangeSummary> {
    let name = |entry: Entry| (entry.kind, entry.content.map(|content| content.id), entry.device);
    // A pipe or a socket has no content: it counts only where it is new.
    let is_news = |change: &&Change| {
        let is_new = change
            .before
            .is_none_or(|before| change.after.is_none_or(|after| after.kind != before.kind));
        is_new || change.after.is_some_and(|after| after.content.is_some())
    };
    let news = changes.iter().filter(is_news);
    let appeared: BTreeSet<_> = news.filter_map(|change| change.after.map(name)).collect();
    let record = record::read(&since.state.root(since.root), since.of)?;
    let mut blast = ChangeSummary { unheld, ..ChangeSummary::default() };
    let mut gone = Vec::new();
    for change in changes {
        let Some(before) = change.before.filter(|before| !before.is_directory()) else {
            continue;
        };
        match change.after {
            Some(after) if !after.is_directory() => blast.changed += 1,
            Some(_) | None => {
                if !appeared.contains(&name(before)) {
                    blast.deleted += 1;
                    gone.push(&change.path);
                }
            }
        }
    }
    // What a nested repository tracks, the root's own index does not tell.
    gone.retain(|path| !record.repositories.iter().any(|held| is_in(path, held)));
    let git = store.git().filter(|_| !gone.is_empty());
    if let Some(git) = git
        && let Some(top) = git.staged(since.of)?
    {
        blast.untracked = untracked(git, top, &gone)?;
    }
    blast.is_inner = blast.is_much(since.settings.notice) && is_inner(since, store, &record)?;
    Ok(blast)
}

/// Whether a path lies in the worktree of a repository nested in the root.
fn is_in(path: &RelPath, held: &Held) -> bool {
    let gits = held.pointers.iter().map(|(pointer, _)| pointer).chain([&held.path]);
    let mut tops = gits.filter_map(|git| git.strip_suffix(b"/.git"));
    tops.any(|top| RelPath::from_bytes(top).is_ok_and(|top| path.is_within(&top)))
}

/// How many of these paths were not staged.
fn untracked(git: &GitStore, top: ContentId, gone: &[&RelPath]) -> Result<u64> {
    let staged = Tree { top: Some(top), ..Tree::default() };
    let mut known: HashMap<ContentId, Directory> = HashMap::new();
    let mut read = |_: &Tree, id: &ContentId| {
        if let Some(dir) = known.get(id) {
            return Ok(dir.clone());
        }
        let dir = git.staged_directory(id)?;
        known.insert(*id, dir.clone());
        Ok(dir)
    };
    let mut count = 0;
    for path in gone {
        count += u64::from(plan::entry_at(&staged, path, &mut read)?.is_none());
    }
    Ok(count)
}

/// Whether what a change takes for gone is: otherwise it is ignored now, or was held for its own sake, and
/// the walk does not look there.
pub(super) fn is_really_gone(root: &Root, change: &Change) -> bool {
    change.after.is_some() || stat_path(&root.join(&change.path)).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_was_done() {
        let said = |changed, deleted, untracked| {
            ChangeSummary { changed, deleted, untracked, ..ChangeSummary::default() }
                .words(CheckpointId::from_bits(0xabcd << 48))
        };
        let line = "that command deleted 214 files, 3 of them untracked: beforehand undo";
        assert_eq!(said(0, 214, 3), line);
        assert_eq!(said(60, 0, 0), "that command changed 60 files: beforehand undo");
        assert_eq!(
            said(1, 1, 1),
            "that command changed 1 file and deleted 1 file, which git did not track before: \
             beforehand undo"
        );
        assert!(said(0, 2, 2).contains("2 files, none of them tracked by git before:"));
    }

    #[test]
    fn much_is_what_the_settings_say() {
        let blast = |changed, deleted, untracked| ChangeSummary {
            changed,
            deleted,
            untracked,
            ..ChangeSummary::default()
        };
        let notice = |files, untracked| Notice { files, untracked };
        let default_notice = notice(50, true);
        assert!(
            !blast(25, 25, 0).is_much(default_notice) && blast(25, 26, 0).is_much(default_notice)
        );
        assert!(
            blast(0, 1, 1).is_much(default_notice) && !blast(0, 1, 1).is_much(notice(50, false))
        );
        assert!(!blast(9_000, 9_000, 0).is_much(notice(0, true)));
        assert!(
            !blast(9, 60, 1).beyond(blast(9, 60, 1)).is_much(default_notice),
            "it has been said"
        );
    }
}
