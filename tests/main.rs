//! Every test that looks at turnback from outside, in one binary.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agents;
mod cli;
mod consent;
mod costs;
mod covered;
mod crash;
mod crates;
mod damage;
mod elsewhere;
mod find;
mod formats;
mod guard;
mod head;
mod hostile;
mod house;
mod identity;
mod install;
mod kinds;
mod mounts;
mod naming;
mod notice;
mod oracle;
mod outside;
mod outside_random;
mod picker;
mod readme;
mod rebuild;
mod reliability;
mod repository;
mod restore;
mod scan;
mod served;
mod shells;
mod store;
mod storm;
mod support;
mod talk;
mod terminal;
mod tidy;
mod turns;
mod unread;
mod unseen;
mod upkeep;
mod warm;
