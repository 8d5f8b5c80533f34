//! Versions of our file formats: reads the newest, migrates older ones, refuses newer ones.
//! Independent of what the files contain.

use std::cmp::Ordering;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    state::version_of,
};

/// The newest version of our files that we can read, and the one we write.
pub(super) const VERSION: u32 = 1;

pub(super) fn to_json(file: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(file).expect("strings and numbers are always JSON");
    bytes.push(b'\n');
    bytes
}

/// A file format with a version number.
pub(super) trait Versioned: DeserializeOwned {
    fn version(&self) -> u32;
}

pub(super) fn from_json<T: Versioned>(what: &str, bytes: &[u8]) -> Result<T> {
    let damaged = |err: serde_json::Error| Error::damaged(what, err.to_string());
    // Tries the newest version first, which it nearly always is: parsing dominates the cost of a
    // list.
    let read = serde_json::from_slice::<T>(bytes);
    if let Ok(file) = read
        && file.version() == VERSION
    {
        return Ok(file);
    }
    let found = version_of(bytes).map_err(damaged)?;
    match found.cmp(&VERSION) {
        Ordering::Greater => {
            Err(Error::FormatTooNew { what: what.to_owned(), found, known: VERSION })
        }
        Ordering::Equal => serde_json::from_slice(bytes).map_err(damaged),
        Ordering::Less => {
            let old = serde_json::from_slice(bytes).map_err(damaged)?;
            serde_json::from_value(migrated(what, old, found)?).map_err(damaged)
        }
    }
}

/// Migrates a record of an older `version` step by step; the file stays as it is. Each new version
/// adds the step that leads to it, and a frozen sample of the previous version to
/// `fixtures/formats`. Version 1 is the first, so there is no step yet.
pub(super) fn migrated(what: &str, record: Value, version: u32) -> Result<Value> {
    match version {
        // 1 => migrated(what, from_1_to_2(record), 2),
        VERSION => Ok(record),
        _ => Err(Error::damaged(what, format!("there was no version {version}"))),
    }
}

/// Serializes times as RFC 3339 in UTC, with nanoseconds if there are any.
pub(super) mod moment {
    use std::borrow::Cow;

    use chrono::{DateTime, SecondsFormat, Utc};
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        at: &DateTime<Utc>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<DateTime<Utc>, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        match DateTime::parse_from_rfc3339(&text) {
            Ok(at) => Ok(at.to_utc()),
            // Another spelling, which takes longer to parse.
            Err(_) => text.parse().map_err(D::Error::custom),
        }
    }
}
