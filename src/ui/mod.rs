//! How things look: names, numbers, times, tables and differences, made for people.
//!
//! Pure but for [`ask`]: what a terminal can do and what time it is are told, never looked up.

mod escape;

pub use escape::{escape, escape_line, escape_path};
