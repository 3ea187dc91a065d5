//! Jobs whose pods succeed as soon as they run, and CronJobs that are all due at one moment.

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Bench, NAMESPACE, PARALLEL, small};

/// How long making all CronJobs may take.
const AHEAD_SECONDS: i64 = 15;

impl Bench {
    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn cron_jobs(&self) -> Api<CronJob> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) async fn create_job(&self, name: &str, parallelism: i32, completions: i32) -> Result<()> {
        let job: Job = serde_json::from_value(json!({
            "metadata": {"name": name}, "spec": job(parallelism, completions),
        }))?;
        self.jobs().create(&PostParams::default(), &job).await?;
        Ok(())
    }

    pub(super) async fn create_jobs(&self, count: u32) -> Result<()> {
        let creations = stream::iter(0..count).map(|at| async move { self.create_job(&small(at), 1, 1).await });
        creations.buffer_unordered(PARALLEL).try_collect().await
    }

    /// Makes CronJobs that are due at the next full minute, or the one after it, and waits for that.
    pub(super) async fn prepare_cron_jobs(&self, count: u32) -> Result<()> {
        let minute = (now().as_second() + AHEAD_SECONDS).div_euclid(60) + 1;
        let due = Timestamp::from_second(minute * 60)?;
        let schedule = due.strftime("%M %H * * *").to_string();
        let create = async |at: u32| -> Result<()> {
            let cron_job: CronJob = serde_json::from_value(json!({
                "metadata": {"name": small(at)},
                "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": {"spec": job(1, 1)}},
            }))?;
            self.cron_jobs().create(&PostParams::default(), &cron_job).await?;
            Ok(())
        };
        stream::iter(0..count).map(create).buffer_unordered(PARALLEL).try_collect::<()>().await?;
        sleep(Duration::try_from(now().duration_until(due)).unwrap_or_default()).await;
        Ok(())
    }

    /// Waits until there are `count` Jobs, all with so many successes. Their last status says that, and that they are
    /// complete. Asking for all of them again and again would be work that counts in the time.
    pub(super) async fn wait_jobs(&self, count: u32, succeeded: i32) -> Result<()> {
        let any = ListParams::default().limit(1);
        let unfinished = any.clone().fields(&format!("status.successful!={succeeded}"));
        self.wait_until("complete", async || {
            let first = self.jobs().list_metadata(&any).await?;
            let others = first.metadata.remaining_item_count.unwrap_or(0);
            let there = i64::try_from(first.items.len())?.saturating_add(others);
            Ok(there == i64::from(count) && self.jobs().list_metadata(&unfinished).await?.items.is_empty())
        })
        .await
    }

    /// Nobody here collects garbage, so nothing may wait for that.
    pub(super) async fn delete_jobs(&self) -> Result<()> {
        let (all, background) = (ListParams::default(), DeleteParams::background());
        self.cron_jobs().delete_collection(&background, &all).await?;
        self.jobs().delete_collection(&background, &all).await?;
        Ok(())
    }
}

fn job(parallelism: i32, completions: i32) -> Value {
    json!({
        "parallelism": parallelism,
        "completions": completions,
        "template": {"spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "work", "image": "busybox:1.37", "command": ["true"],
                "env": [{"name": "MODE", "value": "bench"}],
                "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}},
            }],
        }},
    })
}

/// CronJobs go by the real time.
#[expect(clippy::disallowed_methods, reason = "CronJobs are due by the clock of the machine")]
fn now() -> Timestamp {
    Timestamp::now()
}
