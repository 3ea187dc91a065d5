//! The Job of one run: its name, which is also the lock on the run, and its JSON.
//!
//! Left out: the creationTimestamp that upstream sends and the apiserver ignores.
//!
//! Upstream: `getJobFromTemplate2`, `getJobName` and `getTimeHashInMinutes`, `pkg/controller/cronjob`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::value::RawValue;
use shared::api::owner::OwnerReference;
use shared::api::resource::JOBS;

use super::cron::load_zone;
use crate::objects::{CronJob, SCHEDULED_TIMESTAMP};

/// The name of the Job that is due at this time.
pub fn name(cron_job: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron_job.metadata.name(), due.as_second() / 60)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<&'a RawValue>,
    annotations: BTreeMap<&'a str, &'a str>,
    owner_references: [OwnerReference<'a>; 1],
}

/// The JSON of the Job that is due at this time.
pub fn body(cron_job: &CronJob, due: Timestamp) -> String {
    let template = &cron_job.spec.job_template;
    let metadata = template.metadata.as_ref();
    let timestamp = scheduled_timestamp(cron_job, due);
    let given = metadata.and_then(|metadata| metadata.annotations.as_ref()).into_iter().flatten();
    let annotations = given
        .map(|(key, value)| (&**key, &**value))
        .chain(std::iter::once((SCHEDULED_TIMESTAMP, timestamp.as_str())))
        .collect();
    let owner = cron_job.owner();
    let body = Body {
        api_version: JOBS.api_version(),
        kind: &JOBS.kind,
        metadata: Metadata {
            name: name(cron_job, due),
            labels: metadata.and_then(|metadata| metadata.labels.as_deref()),
            annotations,
            owner_references: [owner.controller_ref()],
        },
        spec: template.spec.as_deref(),
    };
    // Maps of texts and raw values are always JSON.
    serde_json::to_string(&body).unwrap_or_default()
}

/// As Go's RFC 3339 layout prints it: an offset of zero is `Z`.
fn scheduled_timestamp(cron_job: &CronJob, due: Timestamp) -> String {
    let zone = cron_job.spec.time_zone.as_deref().and_then(|zone| load_zone(zone).ok()).unwrap_or(TimeZone::UTC);
    let due = due.to_zoned(zone);
    let layout = if due.offset().seconds() == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    due.strftime(layout).to_string()
}
