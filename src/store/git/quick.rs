//! Tells that nothing at all has changed since the last save, without opening an object.
//!
//! The last save leaves in the cache: its checkpoint, and a digest of everything outside the files
//! that a checkpoint depends on. If the files are as the cache has them, the anchor stands and the
//! digest is the same, that checkpoint is the answer. In every doubt there is the long way.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{GitStore, head};
use crate::{
    cache::Table,
    fs::{read_small, stat_path},
    model::{Checkpoint, ContentId, Kind, Stamp},
    scan::Scan,
    store::{Draft, record},
};

/// A ref is a hash and a line end; HEAD a name.
const REF_MAX_BYTES: u64 = 8 << 10;

impl GitStore {
    /// The checkpoint that already holds exactly what `draft` would.
    pub(super) fn unchanged(&self, draft: &Draft) -> Option<Checkpoint> {
        let scan = &draft.scan;
        let is_quiet = scan.is_unchanged()
            && !scan.refreshed
            && !scan.partial
            && scan.victims.is_empty()
            && scan.git_dirs.is_empty()
            && scan.unheld.is_empty();
        if draft.always || !is_quiet || !is_index_known(scan) || !self.holds_private(scan) {
            return None;
        }
        let (id, digest) = scan.base.as_ref()?.facts().latest?;
        let stands = self.anchor_by_file() == scan.anchor
            && self.loose_ref(&id.to_string()).is_some()
            && digest == self.surroundings(scan.index);
        if !stands {
            return None;
        }
        record::read(&self.state, id).ok().map(|record| record.checkpoint)
    }

    /// A digest of where HEAD stands, of what git is in the middle of, and of the index's stamp.
    pub(super) fn surroundings(&self, index: Stamp) -> ContentId {
        let (git_dir, common_dir) = (&self.repo.git_dir, &self.repo.common_dir);
        let head = small(&git_dir.join("HEAD"));
        let mut hash = Sha256::new();
        hash.update(&head);
        if let Some(name) = head.strip_prefix(b"ref:").and_then(|name| str::from_utf8(name).ok()) {
            let name = name.trim();
            let own = small(&common_dir.join(name));
            let packed =
                if own.is_empty() { common_dir.join("packed-refs") } else { git_dir.clone() };
            hash.update(&own);
            if own.is_empty() {
                put_stamp(&mut hash, &stat_path(&packed).unwrap_or_default());
            }
        }
        hash.update([u8::from(head::in_progress(&self.repo).is_some())]);
        hash.update(head::in_progress(&self.repo).unwrap_or_default());
        put_stamp(&mut hash, &index);
        ContentId::new(&hash.finalize())
    }

    /// The anchor, if it is a file of its own.
    fn anchor_by_file(&self) -> Option<ContentId> {
        ContentId::parse(&self.loose_ref("anchor")?)
    }

    fn loose_ref(&self, name: &str) -> Option<String> {
        let path = self.refs.path(&self.repo.common_dir, name);
        let bytes = read_small(&path, REF_MAX_BYTES).ok()??;
        Some(str::from_utf8(&bytes).ok()?.trim_end().to_owned())
    }

    /// Whether the private objects that files of the root are kept in are still there: they have
    /// no anchor to stand for them.
    fn holds_private(&self, scan: &Scan) -> bool {
        let mut all = true;
        scan.each(|_, row| {
            let is_private = row.marks.private && row.kind() != Some(Kind::Directory);
            if let Some(id) = row.content.filter(|_| is_private) {
                all = all && self.objects.contains(&id);
            }
        });
        all
    }
}

/// Whether the index is the one whose tree the cache knows.
fn is_index_known(scan: &Scan) -> bool {
    let facts = scan.base.as_ref().map(Table::facts);
    facts.is_some_and(|facts| {
        facts.index == scan.index && (facts.staged.is_some() || scan.index == Stamp::default())
    })
}

fn small(path: &Path) -> Vec<u8> {
    read_small(path, REF_MAX_BYTES).ok().flatten().unwrap_or_default()
}

fn put_stamp(hash: &mut Sha256, stamp: &Stamp) {
    for number in [stamp.mtime_ns, stamp.ctime_ns] {
        hash.update(number.to_le_bytes());
    }
    for number in [stamp.inode, stamp.size, u64::from(stamp.mode)] {
        hash.update(number.to_le_bytes());
    }
}
