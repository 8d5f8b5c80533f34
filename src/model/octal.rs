//! Permission bits as octal text, as `chmod` takes them. For `#[serde(with = "octal")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

/// Serializes permission bits.
///
/// # Errors
///
/// As the serializer does.
pub fn serialize<S: Serializer>(bits: &u32, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{bits:o}"))
}

/// Deserializes permission bits, at most 7777.
///
/// # Errors
///
/// Fails for any other text.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
    let bits = u32::from_str_radix(&text, 8).ok().filter(|bits| *bits <= 0o7777);
    bits.ok_or_else(|| D::Error::custom("not permission bits"))
}
