//! Versions of our JSON files: each states the version of its format, and a newer one is told apart from damage.
//! Independent of what the files contain.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned, de::Error as _,
};

use crate::{
    error::{Error, Result},
    state::version_of,
};

/// The version that we read and write. The state of an older build is set aside (see [`older`](super::older)), so
/// there is nothing to migrate.
pub(super) const VERSION: u32 = 2;

/// The key `version` of a file: its value is always the version that this build writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatVersion;

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(VERSION)
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            VERSION => Ok(Self),
            found => Err(D::Error::custom(format!("version {found} is not {VERSION}"))),
        }
    }
}

/// The content of a file.
pub(super) fn to_json(file: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(file).expect("strings and numbers are always JSON");
    bytes.push(b'\n');
    bytes
}

/// Reads a file with a [`FormatVersion`]; `what` names it in messages.
///
/// # Errors
///
/// [`Error::FormatTooNew`] or [`Error::Damaged`].
pub(super) fn from_json<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|err| match version_of(bytes) {
        Ok(found) if found > VERSION => {
            Error::FormatTooNew { what: what.to_owned(), found, known: VERSION }
        }
        Ok(_) | Err(_) => Error::damaged(what, err.to_string()),
    })
}
