//! A template that differs from its revision because the apiserver began to set a default, as after an upgrade.
//!
//! The generation tells this from an edit: the apiserver raises it with each edit, and with nothing else. A template of a
//! generation whose revision was written already differs by no edit. The revision is read live, as a cache does not keep
//! its data, and if it only lacks fields, a label of the revision keeps the result: a later edit of another field, such
//! as a scale, finds it.
//!
//! Upstream sets the defaults that it was compiled with: `setMatchesLatestExistingRevision`,
//! `pkg/controller/statefulset/stateful_set_control.go`.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ControllerRevision;
use super::data::Data;
use crate::api::intern::Text;
use crate::api::object::{Key, Meta};
use crate::api::resource::CONTROLLER_REVISIONS;
use crate::transport::api_error::ApiError;
use crate::working::control::Control;
use crate::working::decisions::{self, LiveRead};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unknown {
    /// Whether the template differs from its revision by defaults alone.
    Defaults { revision: Text },
}

/// Plans to read a revision whose template differs without an edit.
pub fn read_revision(revision: &ControllerRevision) -> LiveRead<Unknown> {
    let reason = Unknown::Defaults { revision: Text::new(revision.metadata.name()) };
    LiveRead { step: "read its newest revision", reason }
}

pub async fn live_data(control: &Control, key: &Key) -> Result<Arc<RawValue>, ApiError> {
    Ok(control.get::<Stored>(&CONTROLLER_REVISIONS, key).await?.data.into())
}

/// Whether data lack some fields of a template, and differ from it by nothing else. `null` counts as lacking.
pub fn only_lacks(stored: &RawValue, template: &Data) -> bool {
    let values = [stored.get(), template.text()].map(serde_json::from_str::<Value>);
    matches!(&values, [Ok(stored), Ok(template)] if is_within(stored, template))
}

fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(field, value)| {
            let found = whole.get(field);
            value.is_null() || found.is_some_and(|found| is_within(value, found))
        }),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_within(part, whole))
        }
        _ => part == whole,
    }
}

/// The view of a ControllerRevision with its data, whatever they are.
#[derive(Debug, Deserialize)]
struct Stored {
    metadata: Meta,
    #[serde(default)]
    data: Box<RawValue>,
}

crate::view!(Stored, CONTROLLER_REVISIONS);

impl decisions::Reason for Unknown {}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Defaults { revision } = self;
        write!(f, "the template differs from {revision} although nobody edited it")
    }
}
