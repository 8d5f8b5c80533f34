//! The binary form of a record, as the record cache has it. It is never migrated: what cannot be read
//! is read from the record itself. Any bytes yield a record that its JSON form could have had, or
//! nothing.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use chrono::{DateTime, Datelike, Utc};

use super::{
    Held, Record, StoreKind,
    held::{is_plain_place, is_store_name},
    identity::Identity,
    wire::{agent_name, agent_named},
};
use crate::model::{
    Agent, By, Cause, Checkpoint, CheckpointId, Completeness, ContentId, Head, Reason, SessionId,
    SkipReason, Skipped, TurnId,
};

/// Appends the binary form of a record.
pub(super) fn pack(record: &Record, to: &mut Vec<u8>) {
    record.pack(to);
}

/// Reads the binary form of a record; `None` if it is not one.
pub(super) fn unpack(mut bytes: &[u8]) -> Option<Record> {
    let record = Record::unpack(&mut bytes)?;
    (bytes.is_empty() && is_sound(&record)).then_some(record)
}

/// Whether the JSON form could say the same: no name in it leads elsewhere, and the time has a date.
fn is_sound(record: &Record) -> bool {
    let stores = record.repositories.iter().map(|held| &held.store).chain(&record.store);
    let paths = record.repositories.iter().map(|held| &held.path);
    let pointers = record.pointers().map(|(path, _)| path);
    stores.into_iter().all(|name| is_store_name(name))
        && paths.chain(pointers).all(|path| is_plain_place(path))
        && record.repositories.iter().all(|held| held.permissions <= 0o7777)
        && (0..10_000).contains(&record.checkpoint.taken_at.year())
}

/// A value with a binary form. Every form has at least one byte, so a list is never longer than what
/// is left to read.
trait PackedForm: Sized {
    fn pack(&self, to: &mut Vec<u8>);
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

/// A struct is its fields in this order; a field that is missing here does not compile.
macro_rules! packed {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl PackedForm for $name {
            fn pack(&self, to: &mut Vec<u8>) {
                let Self { $($field),* } = self;
                $($field.pack(to);)*
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                $(let $field = PackedForm::unpack(from)?;)*
                Some(Self { $($field),* })
            }
        }
    )*};
}

packed! {
    Record { checkpoint, keeper, overlay, outside, tree, store, repositories, dangling }
    Checkpoint {
        id, sequence, taken_at, reading_ns, cause, top, files, completeness, skipped, outside,
        head, staged
    }
    Cause { reason, by, tool, summary, of }
    By { agent, session, turn, subagent, prompt, transcript, position }
    Head { branch, commit, in_progress }
    Skipped { path, reason, size }
    Held { path, store, tree, digest, identity, permissions, is_usable, pointers }
    Identity { device, inode, birth }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
impl PackedForm for u64 {
    fn pack(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            to.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        to.push(rest.to_le_bytes()[0]);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let mut number = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = *from.split_off_first()?;
            let bits = Self::from(byte & 0x7f);
            // What does not fit is another spelling of a number, or none.
            if (bits << shift) >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

impl PackedForm for u32 {
    fn pack(&self, to: &mut Vec<u8>) {
        u64::from(*self).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        u64::unpack(from)?.try_into().ok()
    }
}

impl PackedForm for i64 {
    fn pack(&self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from_le_bytes(from.split_off(..8)?.try_into().ok()?))
    }
}

impl PackedForm for u8 {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        from.split_off_first().copied()
    }
}

impl PackedForm for bool {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        match from.split_off_first()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// A record that was read says itself whether its checkpoint is partial.
impl PackedForm for Completeness {
    fn pack(&self, to: &mut Vec<u8>) {
        (!self.is_whole()).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        bool::unpack(from).map(Self::of_record)
    }
}

impl<T: PackedForm> PackedForm for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.is_some().pack(to);
        if let Some(value) = self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        if bool::unpack(from)? { T::unpack(from).map(Some) } else { Some(None) }
    }
}

impl<T: PackedForm> PackedForm for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.len() as u64).pack(to);
        for value in self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        (0..u64::unpack(from)?).map(|_| T::unpack(from)).collect()
    }
}

impl<A: PackedForm, B: PackedForm> PackedForm for (A, B) {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

impl PackedForm for String {
    fn pack(&self, to: &mut Vec<u8>) {
        pack_text(self, to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        unpack_text(from).map(str::to_owned)
    }
}

impl PackedForm for PathBuf {
    fn pack(&self, to: &mut Vec<u8>) {
        self.as_os_str().as_bytes().to_vec().pack(to);
    }

    /// The paths in a record are absolute.
    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Some(Self::from(OsString::from_vec(PackedForm::unpack(from)?)))
            .filter(|path| path.is_absolute())
    }
}

impl PackedForm for DateTime<Utc> {
    fn pack(&self, to: &mut Vec<u8>) {
        (self.timestamp(), self.timestamp_subsec_nanos()).pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        let (seconds, nanoseconds) = PackedForm::unpack(from)?;
        // More of them would be a leap second.
        Self::from_timestamp(seconds, nanoseconds).filter(|_| nanoseconds < 1_000_000_000)
    }
}

impl PackedForm for CheckpointId {
    fn pack(&self, to: &mut Vec<u8>) {
        self.number().pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        Self::from_number(u64::unpack(from)?)
    }
}

/// Always 32 bytes: the id of a git object ends with zeros.
impl PackedForm for ContentId {
    fn pack(&self, to: &mut Vec<u8>) {
        to.extend(self.hash(32));
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        from.split_off(..32).map(Self::new)
    }
}

impl PackedForm for SessionId {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        PackedForm::unpack(from).map(Self)
    }
}

impl PackedForm for TurnId {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Self> {
        PackedForm::unpack(from).map(Self)
    }
}

/// Values that are known by a name, which never changes.
macro_rules! named {
    ($($type:ident: $name:expr, $of:expr;)*) => {$(
        impl PackedForm for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                pack_text($name(*self), to);
            }

            fn unpack(from: &mut &[u8]) -> Option<Self> {
                $of(unpack_text(from)?)
            }
        }
    )*};
}

named! {
    Agent: agent_name, agent_named;
    Reason: Reason::name, Reason::from_name;
    SkipReason: SkipReason::name, SkipReason::from_name;
    StoreKind: StoreKind::name, StoreKind::named;
}

fn pack_text(text: &str, to: &mut Vec<u8>) {
    (text.len() as u64).pack(to);
    to.extend(text.as_bytes());
}

fn unpack_text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::try_from(u64::unpack(from)?).ok()?;
    str::from_utf8(from.split_off(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{
            version::{from_json, to_json},
            wire::{RecordFile, sample},
        },
        *,
    };

    fn packed(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(record, &mut bytes);
        bytes
    }

    /// The record by way of its JSON form.
    fn as_json(record: &Record) -> Option<Record> {
        let json = to_json(&RecordFile::of(record));
        from_json::<RecordFile>("x", &json).ok()?.into_record().ok()
    }

    #[test]
    fn a_record_is_unpacked_as_it_was_packed() {
        let mut record = sample();
        assert_eq!(unpack(&packed(&record)), Some(record.clone()));
        record.checkpoint.cause.by = None;
        record.checkpoint.head = None;
        record.checkpoint.sequence = u64::MAX;
        record.repositories.clear();
        assert_eq!(unpack(&packed(&record)), Some(record));
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_no_record() {
        let bytes = packed(&sample());
        for length in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..length]), None, "{length}");
        }
        assert_eq!(unpack(&[&*bytes, b"x"].concat()), None);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let refused = |change: &dyn Fn(&mut Record)| {
            let mut record = sample();
            change(&mut record);
            assert_eq!(as_json(&record), None);
            assert_eq!(unpack(&packed(&record)), None);
        };
        refused(&|record| record.store = Some("../x".to_owned()));
        refused(&|record| record.repositories[0].store = String::new());
        refused(&|record| record.repositories[0].path = b"../.git".to_vec());
        refused(&|record| record.repositories[0].permissions = 0o10_000);
        refused(&|record| record.repositories[0].pointers[0].0 = b"a//b".to_vec());
        refused(&|record| record.dangling[0].0 = b"/a/../b".to_vec());
        refused(&|record| record.checkpoint.outside[0] = PathBuf::from("x"));
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_what_json_could_say_or_nothing(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = packed(&sample());
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(record) = unpack(&bytes) {
                prop_assert_eq!(as_json(&record), Some(record));
            }
        }

        #[test]
        fn any_bytes_at_all_are_read_or_refused(bytes: Vec<u8>) {
            let _record = unpack(&bytes);
        }
    }
}
