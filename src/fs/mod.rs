//! What the standard library leaves open: directories as descriptors, files that are replaced
//! whole, locks with a deadline, and private places whatever the umask.
//!
//! Everything below a user's directory is reached name by name from an open directory, without
//! following a symlink, so that nothing swapped in meanwhile can lead us elsewhere.

mod dir;
mod lock;
mod private;

pub use dir::{Dir, Listed, stat_path};
pub(crate) use dir::{c_name, stamp_of};
pub use lock::Lock;
pub use private::{
    create_new_synced, create_private_dirs, read_small, replace, replace_synced, sync_dir,
};

/// The system's clock, in nanoseconds since 1970: what stamps of files are compared with.
pub fn now_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}
