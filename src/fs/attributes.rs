//! File attributes besides bytes and permissions: owner, hard links and extended attributes. A
//! restored file takes them over from the file it replaces, where the system permits it.

use std::{ffi::CStr, fs::File, io, os::unix::fs::MetadataExt, path::Path, sync::OnceLock};

use rustix::{
    fs::{
        AtFlags, Gid, Uid, XattrFlags, chownat, fchown, fgetxattr, fgetxattr_query, flistxattr,
        flistxattr_query, fsetxattr, stat, statat,
    },
    process::geteuid,
};

use super::{Dir, system};

/// Limit for the list of attribute names.
const NAMES_MAX_BYTES: usize = 64 << 10;
/// Limit for one value. Linux has none over 64 KiB; on macOS a resource fork is one.
const VALUE_MAX_BYTES: usize = 16 << 20;

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    user: u32,
    group: u32,
}

impl Dir {
    /// The owner of `name`, and how many hard links it has. A symlink is not followed.
    ///
    /// # Errors
    ///
    /// Fails if there is no such name.
    pub fn owner_of(&self, name: &CStr) -> io::Result<(Owner, u64)> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        #[expect(clippy::allow_attributes, reason = "needless only on some platforms")]
        #[allow(clippy::useless_conversion, reason = "another width elsewhere")]
        let names = u64::from(stat.st_nlink);
        Ok((Owner { user: stat.st_uid, group: stat.st_gid }, names))
    }

    /// The space that the file `name` takes on the disk; less than its size if the file is sparse.
    ///
    /// # Errors
    ///
    /// Fails if there is no such name.
    pub fn allocated_bytes(&self, name: &CStr) -> io::Result<u64> {
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512))
    }

    /// The owner for a new file in this directory. Under root it is the directory's owner; any
    /// other user can only create files of their own.
    pub fn new_owner(&self) -> Option<Owner> {
        if !geteuid().is_root() {
            return None;
        }
        let stat = rustix::fs::fstat(&self.0).ok()?;
        Some(Owner { user: stat.st_uid, group: stat.st_gid })
    }

    /// Gives `name`, which we just created, to `owner`, or at least to the group. Keeps it as it is
    /// if the system refuses.
    pub fn give(&self, name: &CStr, owner: Owner) {
        let is_id = |id: &u32| *id != u32::MAX;
        let user = Some(owner.user).filter(is_id).map(Uid::from_raw);
        let group = Some(owner.group).filter(is_id).map(Gid::from_raw);
        if self.owner_of(name).is_ok_and(|(now, _)| now == owner) {
            return;
        }
        let to = |user| chownat(&self.0, name, user, group, AtFlags::SYMLINK_NOFOLLOW);
        let _given = to(user).or_else(|_| to(None));
    }

    /// Copies the extended attributes of the file `name` to the file that will replace it, with its access
    /// list. Returns whether it then has all of them; a file that cannot be read is not asked.
    pub fn copy_attributes(&self, name: &CStr, to: &File) -> bool {
        let Ok((from, _)) = self.open_file(name) else { return true };
        match flistxattr_query(&from) {
            Ok(1..=NAMES_MAX_BYTES) => (),
            Ok(0) | Err(_) => return true,
            Ok(_) => return false,
        }
        let mut names = vec![0; NAMES_MAX_BYTES];
        let Ok(length) = flistxattr(&from, &mut names[..]) else { return false };
        let names = names[..length].split(|&byte| byte == 0).filter(|name| !name.is_empty());
        names.filter(|name| !copy_attribute(&from, name, to)).count() == 0
    }
}

/// Returns whether `to` has an attribute of that name then: the system may set some by itself.
fn copy_attribute(from: &File, name: &[u8], to: &File) -> bool {
    let length_in = |file: &File| fgetxattr_query(file, name).ok();
    let copy = || {
        let length = length_in(from)?;
        let mut value = vec![0; Some(length).filter(|length| *length <= VALUE_MAX_BYTES)?];
        let length = fgetxattr(from, name, &mut value[..]).ok()?;
        fsetxattr(to, name, &value[..length], XattrFlags::empty()).ok()
    };
    (system::is_users_attribute(name) && copy().is_some()) || length_in(to).is_some()
}

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
    let Some(above) = path.parent().and_then(|dir| stat(dir).ok()) else { return };
    let is_ours = || made.metadata().is_ok_and(|found| found.is_dir() || found.nlink() == 1);
    if above.st_uid != 0 && is_ours() {
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
