//! `turnback show`: what one checkpoint is and holds.

use serde_json::{Value, json};

use crate::model::Skipped;

/// What was left out, for scripts.
pub(crate) fn skipped_json(skipped: &Skipped) -> Value {
    let path = String::from_utf8_lossy(&skipped.path);
    json!({ "path": path, "reason": skipped.reason.name(), "size": skipped.size })
}
