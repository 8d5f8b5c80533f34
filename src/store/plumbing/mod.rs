//! Git's formats, and how a checkpoint is laid out in them: objects, packs, trees, modes, refs and
//! indexes, of the user's repositories and of private ones, read and written with gix and directly.
//! Never runs git, nor anything that a repository configures. Does not decide when something is
//! saved, freed or restored.

pub(in crate::store) mod borrowed;
pub(in crate::store) mod files;
pub(in crate::store) mod head;
pub(in crate::store) mod index;
pub(in crate::store) mod loose;
pub(in crate::store) mod modes;
pub(in crate::store) mod names;
pub(in crate::store) mod objects;
pub(in crate::store) mod pack;
pub(in crate::store) mod packed_refs;
pub(in crate::store) mod refs;
pub(in crate::store) mod repo;
pub(in crate::store) mod restore_index;
pub(in crate::store) mod stream;
pub(in crate::store) mod tree;
