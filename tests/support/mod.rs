//! What tests stand on: a world to run in, directories that go away, a walk that knows no cache, a
//! store in memory.

pub(crate) mod dice;
pub(crate) mod memory;
pub(crate) mod real;
pub(crate) mod sandbox;
pub(crate) mod temp;
pub(crate) mod tmux;
pub(crate) mod walk;
pub(crate) mod world;
