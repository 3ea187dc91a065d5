//! Jobs whose pods succeed as soon as they run, and CronJobs that are all due at one moment.

use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::about::{About, Reaction, nodes_for};
use crate::audit;
use crate::measure::{Bench, LARGE, NAMESPACE, PROBE, create, in_parallel, small};
use crate::options::BenchOptions;
use crate::sizes::BatchSizes;

/// How long making all CronJobs may take.
const AHEAD_SECONDS: i64 = 15;

pub(crate) fn about(options: &BenchOptions) -> About {
    let BatchSizes { completions, parallelism, jobs, cron_jobs } = &options.batch;
    About {
        operators: ["job-operator", "cronjob-operator"].map(str::to_owned).to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the job and cronjob controllers",
        reaction: Some(Reaction {
            is: "the time from the second a\n\
                 CronJob is due to the request for its Job, as the apiserver's audit log dates it",
            find: audit::delays,
        }),
        steps: format!(
            "one Job of {completions} pods, {parallelism} at a time; {jobs} Jobs of 1 pod; {cron_jobs} CronJobs due \
             at the same minute, from then\nuntil the last of their Jobs is complete. Pods succeed as soon as they run"
        ),
        nodes: nodes_for(*completions.max(jobs).max(cron_jobs)),
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/batch.md",
        targets: None,
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let BatchSizes { completions, parallelism, jobs, cron_jobs } = bench.options.batch;
    bench.create_namespace(NAMESPACE).await?;
    // It is at work before it is measured.
    bench.create_job(PROBE, 1, 1).await?;
    bench.wait_jobs(1, 1).await?;
    bench.delete_jobs().await?;

    let one = async |bench: &mut Bench<'_>| {
        bench.create_job(LARGE, parallelism, completions).await?;
        bench.wait_jobs(1, completions).await
    };
    bench.measure_pods("run one large Job", completions, one).await?;
    bench.delete_jobs().await?;

    let many = async |bench: &mut Bench<'_>| {
        in_parallel(jobs, async |at| bench.create_job(&small(at), 1, 1).await).await?;
        bench.wait_jobs(jobs, 1).await
    };
    bench.measure_pods("run many Jobs of 1 pod", jobs, many).await?;
    bench.delete_jobs().await?;

    // Time begins when it has come.
    bench.create_cron_jobs(cron_jobs).await?;
    let due = async |bench: &mut Bench<'_>| bench.wait_jobs(cron_jobs, 1).await;
    bench.measure_pods("run many CronJobs due at once", cron_jobs, due).await
}

impl Bench<'_> {
    async fn create_job(&self, name: &str, parallelism: u32, completions: u32) -> Result<()> {
        let job = json!({"metadata": {"name": name}, "spec": job(parallelism, completions)});
        create::<Job>(&self.api(), job).await.map(drop)
    }

    /// Makes CronJobs that are due at the next full minute, or the one after it, and waits for that.
    async fn create_cron_jobs(&self, count: u32) -> Result<()> {
        let minute = (now().as_second() + AHEAD_SECONDS).div_euclid(60) + 1;
        let due = Timestamp::from_second(minute * 60)?;
        let schedule = due.strftime("%M %H * * *").to_string();
        in_parallel(count, async |at| {
            let cron_job = json!({
                "metadata": {"name": small(at)},
                "spec": {"schedule": schedule, "timeZone": "Etc/UTC", "jobTemplate": {"spec": job(1, 1)}},
            });
            create::<CronJob>(&self.api(), cron_job).await.map(drop)
        })
        .await?;
        sleep(Duration::try_from(now().duration_until(due)).unwrap_or_default()).await;
        Ok(())
    }

    /// Waits until there are `count` Jobs, all with so many successes. Their last status says that, and that they are
    /// complete. Asking for all of them again and again would be work that counts in the time.
    async fn wait_jobs(&self, count: u32, succeeded: u32) -> Result<()> {
        let jobs = self.api::<Job>();
        let unfinished = ListParams::default().limit(1).fields(&format!("status.successful!={succeeded}"));
        self.wait_until("complete", async || {
            Ok(self.count::<Job>().await? == i64::from(count)
                && jobs.list_metadata(&unfinished).await?.items.is_empty())
        })
        .await
    }

    async fn delete_jobs(&self) -> Result<()> {
        self.delete_all::<CronJob>().await?;
        self.delete_all::<Job>().await?;
        self.delete_pods().await
    }
}

fn job(parallelism: u32, completions: u32) -> Value {
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
