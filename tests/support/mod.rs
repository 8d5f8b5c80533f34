//! Test support: worlds, temporary directories, a walk without a cache, an in-memory store.

pub(crate) mod contract;
pub(crate) mod dice;
pub(crate) mod memory;
pub(crate) mod packs;
pub(crate) mod real;
pub(crate) mod sandbox;
pub(crate) mod temp;
pub(crate) mod tmux;
pub(crate) mod walk;
pub(crate) mod world;
