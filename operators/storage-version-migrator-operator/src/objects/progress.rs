//! How far a migration has come. An annotation of the migration keeps it over a restart.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use shared::api::object::Uid;

pub const PROGRESS: &str = "storage-version-migrator-operator/progress";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The uid of the migration.
    pub uid: Uid,
    /// Asks for the next page of objects; empty before the first one.
    #[serde(rename = "continue")]
    pub token: String,
    /// How many objects were in the pages so far.
    pub objects: u64,
}

impl Progress {
    /// The beginning.
    pub fn new(uid: Uid) -> Self {
        Self { uid, token: String::new(), objects: 0 }
    }
}

/// The annotation as it was read; none if it is missing or cannot be read, which means to begin again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProgressAnnotation {
    #[serde(rename = "storage-version-migrator-operator/progress", deserialize_with = "read")]
    pub progress: Option<Progress>,
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Progress>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}
