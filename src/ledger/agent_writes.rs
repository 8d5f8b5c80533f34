//! The part of a ledger about files that the agent wrote: its next edit of such a file need not be held
//! again.

use std::{io::Read, os::unix::ffi::OsStrExt, path::Path};

use sha2::{Digest, Sha256};

use super::{
    Ledger,
    wire::{WireWritten, hex},
};
use crate::{
    fs::stat_path,
    model::{Kind, Stamp},
    scan::is_racy,
};

/// The paths an agent edits in a turn; beyond it the oldest are looked at again.
const WRITTEN_MAX: usize = 500;
/// A file beyond it is not hashed to prove that it is the agent's own: it is looked at again.
const DIGEST_MAX_BYTES: u64 = 4 << 20;

impl Ledger {
    /// Notes what the agent itself has just left at `path`.
    pub fn wrote(&mut self, path: &Path, now_ns: i64) {
        let Some(key) = path.to_str() else { return };
        match stat_path(path) {
            Ok(stamp) if stamp.kind() == Some(Kind::File) => {
                let digest = if is_racy(&stamp, now_ns) { digest(path, &stamp) } else { None };
                let Stamp { mtime_ns: mtime, ctime_ns: ctime, inode, size, mode } = stamp;
                let turn = self.wire.turn.as_ref().map(|turn| turn.id.clone());
                let written = WireWritten { mtime, ctime, inode, size, mode, digest, turn };
                self.wire.written.insert(key.to_owned(), written.into());
            }
            Ok(_) | Err(_) => drop(self.wire.written.remove(key)),
        }
        while self.wire.written.len() > WRITTEN_MAX {
            self.wire.written.pop_first();
        }
        self.changed = true;
    }

    /// Whether what lies at `path` is what the agent itself left there in the turn that runs. What
    /// it left in an earlier one is what this turn has to give back.
    pub fn is_own(&self, path: &Path, stamp: &Stamp) -> bool {
        let written = path.to_str().and_then(|path| self.wire.written.get(path)?.read());
        let Some(written) = written else { return false };
        let runs = self.wire.turn.as_ref().map(|turn| &turn.id);
        if runs.is_none() || written.turn.as_ref() != runs {
            return false;
        }
        let same = written.mtime == stamp.mtime_ns
            && written.ctime == stamp.ctime_ns
            && written.inode == stamp.inode
            && written.size == stamp.size
            && written.mode == stamp.mode;
        // A stamp taken right after the write may hide a second one; then the bytes decide.
        same && match &written.digest {
            Some(known) => digest(path, stamp).as_ref() == Some(known),
            None => true,
        }
    }
}

fn digest(path: &Path, stamp: &Stamp) -> Option<String> {
    if stamp.size > DIGEST_MAX_BYTES {
        return None;
    }
    let dir = crate::fs::Dir::open(path.parent()?).ok()?;
    let name = crate::fs::c_name(path.file_name()?.as_bytes()).ok()?;
    let (file, _) = dir.open_file(&name).ok()?;
    let mut bytes = Vec::new();
    file.take(DIGEST_MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(hex(&Sha256::digest(&bytes)))
}
