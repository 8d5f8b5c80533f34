//! File attributes besides bytes and permissions: owner, hard links and extended attributes. A
//! restored file takes them over from the file it replaces, where the system permits it.

use std::{ffi::CStr, fs::File, io};

use rustix::{
    fs::{
        AtFlags, Gid, Uid, XattrFlags, chownat, fgetxattr, flistxattr, flistxattr_query, fsetxattr,
        statat,
    },
    process::geteuid,
};

use super::Dir;

/// Limit for the list of attribute names and for one value. Longer ones are not copied.
const NOTES_MAX_BYTES: usize = 64 << 10;

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

    /// Copies the `user.*` attributes and the access list of the file `name` to the file that will
    /// replace it.
    pub fn copy_attributes(&self, name: &CStr, to: &File) {
        let Ok((from, _)) = self.open_file(name) else { return };
        if !matches!(flistxattr_query(&from), Ok(1..=NOTES_MAX_BYTES)) {
            return;
        }
        let mut names = vec![0; NOTES_MAX_BYTES];
        let Ok(length) = flistxattr(&from, &mut names[..]) else { return };
        let mut value = vec![0; NOTES_MAX_BYTES];
        for note in names[..length].split(|&byte| byte == 0) {
            let is_kept = note.starts_with(b"user.") || note == b"system.posix_acl_access";
            if is_kept && let Ok(length) = fgetxattr(&from, note, &mut value[..]) {
                let _noted = fsetxattr(to, note, &value[..length], XattrFlags::empty());
            }
        }
    }
}
