//! A condition to merge into the status of a migration.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::json;
use shared::api::condition::{FALSE, TRUE};
use shared::api::time::Time;

use super::{FAILED, RUNNING, SUCCEEDED};

/// Upstream: `pkg/controller/storageversionmigrator/storageversionmigrator.go`.
pub const SUCCEEDED_REASON: &str = "StorageVersionMigrationSucceeded";
pub const IN_PROGRESS_REASON: &str = "StorageVersionMigrationInProgress";
pub const FAILED_REASON: &str = "StorageVersionMigrationFailed";

/// A condition to merge into the status of a migration.
///
/// Upstream: `setStatusConditions`, `pkg/controller/storageversionmigrator/util.go`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionPatch<'a> {
    pub type_: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: &'a str,
    pub generation: Option<i64>,
    pub time: Time,
}

impl<'a> ConditionPatch<'a> {
    /// The end of a migration that has rewritten everything.
    pub fn succeeded(now: Timestamp) -> Self {
        Self::new(SUCCEEDED, SUCCEEDED_REASON, "", now)
    }

    fn new(type_: &'static str, reason: &'static str, message: &'a str, now: Timestamp) -> Self {
        Self { type_, status: TRUE, reason, message, generation: None, time: Time::of(now) }
    }

    pub fn failed(message: &'a str, now: Timestamp) -> Self {
        Self::new(FAILED, FAILED_REASON, message, now)
    }

    pub fn running(now: Timestamp) -> Self {
        Self::new(RUNNING, "MigrationRunning", "The migration is running", now)
    }

    /// Upstream: `cleanupAdmission`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
    pub fn completed(generation: i64, now: Timestamp) -> Self {
        let ended = Self::new(RUNNING, "MigrationCompleted", "Migration completed", now);
        Self { status: FALSE, generation: Some(generation), ..ended }
    }
}

impl Serialize for ConditionPatch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { type_, status, reason, message, generation, time } = self;
        let mut condition = json!({ "type": type_, "status": status, "reason": reason, "message": message });
        condition["lastTransitionTime"] = json!(time);
        if let Some(generation) = generation {
            condition["observedGeneration"] = json!(generation);
        }
        json!({ "status": { "conditions": [condition] } }).serialize(serializer)
    }
}
