//! The Job of one run: its name, which makes it unique for its time, and its JSON.
//!
//! Labels, annotations and spec of the template stay raw JSON. No Job gets the template's other metadata.
//!
//! Upstream: `getJobFromTemplate2`, `getJobName` and `getTimeHashInMinutes`, `pkg/controller/cronjob`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use shared::api::object::Kind;
use shared::api::owner::OwnerReference;
use shared::api::raw::{RawObject, raw_of};
use shared::api::resource::JOBS;

use super::cron::load_zone;
use crate::objects::{CronJob, SCHEDULED_TIMESTAMP};

pub fn name(cron_job: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron_job.metadata.name(), due.as_second() / 60)
}

#[derive(Debug, thiserror::Error)]
pub enum InvalidTemplate {
    #[error("cannot read the job template: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the job template has no spec")]
    NoSpec,
}

#[derive(Default, Deserialize)]
struct Template<'a> {
    #[serde(borrow, default)]
    metadata: Option<TemplateMetadata<'a>>,
    #[serde(borrow, default)]
    spec: Option<RawObject<'a>>,
}

#[derive(Default, Deserialize)]
struct TemplateMetadata<'a> {
    #[serde(borrow, default)]
    labels: Option<RawObject<'a>>,
    #[serde(borrow, default)]
    annotations: Option<RawObject<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: String,
    kind: &'a str,
    metadata: Metadata<'a>,
    spec: RawObject<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<RawObject<'a>>,
    annotations: RawObject<'a>,
    owner_references: [OwnerReference<'a>; 1],
}

/// The JSON of the Job of a CronJob with this template.
pub fn body(cron_job: &CronJob, template: &RawValue, due: Timestamp) -> Result<String, InvalidTemplate> {
    let template: Option<Template<'_>> = serde_json::from_str(template.get())?;
    let Template { metadata, spec } = template.unwrap_or_default();
    let TemplateMetadata { labels, annotations } = metadata.unwrap_or_default();
    let mut annotations = annotations.unwrap_or_default();
    annotations.insert(SCHEDULED_TIMESTAMP, raw_of(&scheduled_timestamp(cron_job, due)));
    let owner = cron_job.owner();
    let metadata =
        Metadata { name: name(cron_job, due), labels, annotations, owner_references: [owner.controller_ref()] };
    let spec = spec.ok_or(InvalidTemplate::NoSpec)?;
    Ok(serde_json::to_string(&Body { api_version: JOBS.api_version(), kind: &JOBS.kind, metadata, spec })?)
}

/// As Go's RFC 3339 layout prints it: an offset of zero is `Z`.
fn scheduled_timestamp(cron_job: &CronJob, due: Timestamp) -> String {
    let zone = cron_job.spec.time_zone.as_deref().and_then(|zone| load_zone(zone).ok()).unwrap_or(TimeZone::UTC);
    let due = due.to_zoned(zone);
    let layout = if due.offset().seconds() == 0 { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    due.strftime(layout).to_string()
}
