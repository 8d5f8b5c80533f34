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
pub use private::{create_private_dirs, read_small, replace, replace_synced, sync_dir};
