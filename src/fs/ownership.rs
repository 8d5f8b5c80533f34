//! Gives files created under sudo to the owner of their directory. Otherwise root would leave files
//! in the user's home that the user can neither read nor replace, and later calls would fail.

use std::{fs::File, os::unix::fs::MetadataExt, path::Path, sync::OnceLock};

use rustix::{
    fs::{Gid, Uid, fchown, stat},
    process::geteuid,
};

/// Whether a file belongs to a user other than the one this process runs as. For root none does: what it
/// creates is handed over.
pub fn is_another_users(path: &Path) -> bool {
    let (owner, ours) = (stat(path).map(|found| found.st_uid), geteuid());
    !ours.is_root() && owner != Ok(ours.as_raw())
}

/// Gives the file that root has created at `path` to the owner of the directory that contains it.
/// Does nothing for other users. Works on the open file, so that no other file can be swapped in,
/// and skips a file with a second name, which may belong to another user.
pub fn hand_over(made: &File, path: &Path) {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    if !*IS_ROOT.get_or_init(|| geteuid().is_root()) {
        return;
    }
    let is_ours = made.metadata().is_ok_and(|found| found.is_dir() || found.nlink() == 1);
    let Some(above) = path.parent().and_then(|dir| stat(dir).ok()).filter(|_| is_ours) else {
        return;
    };
    if above.st_uid != 0 {
        let (user, group) = (Uid::from_raw(above.st_uid), Gid::from_raw(above.st_gid));
        // If the system refuses, the file stays root's; it is private either way.
        let _as_far_as_can_be = fchown(made, Some(user), Some(group));
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::lchown};

    use super::*;

    #[test]
    fn a_file_with_another_hard_link_keeps_its_owner() {
        if !geteuid().is_root() {
            return;
        }
        let dir = std::env::temp_dir().join(format!("beforehand-heir-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let (roots, planted) = (dir.with_extension("roots"), dir.join("planted"));
        let file = File::create(&roots).unwrap();
        fs::hard_link(&roots, &planted).unwrap();
        lchown(&dir, Some(1234), Some(1235)).unwrap();
        let owner = || fs::metadata(&roots).unwrap().uid();
        hand_over(&File::open(&planted).unwrap(), &planted);
        assert_eq!(owner(), 0);
        fs::remove_file(&planted).unwrap();
        hand_over(&file, &planted);
        assert_eq!(owner(), 1234, "it has that name alone");
        fs::remove_file(&roots).and_then(|()| fs::remove_dir(&dir)).unwrap();
    }
}
