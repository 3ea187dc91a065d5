//! Jobs and CronJobs as people use them, with kubectl: what comes of each field, and what is left in the end.
//!
//! Where it matters which pod ends when, the tests play the kubelet; elsewhere pods end by themselves.
//! Left out: every combination of limits and policies, which tables over plans show.

mod adoption;
mod completion;
pub(crate) mod cronjob;
mod ending;
mod failures;
mod metrics;
mod orphans;
mod policies;
mod suspension;
mod takeover;
mod ttl;

use anyhow::{Result, ensure};
use k8s_openapi::api::batch::v1::{Job, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

/// Annotation and label of an Indexed Job's pods.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// On each pod that is not counted yet.
const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

/// A Job whose pods succeed at once.
pub(crate) fn job(name: &str, parallelism: i32, completions: impl Into<Option<i32>>) -> Value {
    let container = json!({"name": "main", "image": "busybox:1.37", "command": ["true"]});
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": parallelism,
            "completions": completions.into(),
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": {}},
                "spec": {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [container]},
            },
        },
    })
}

/// One whose pods have an index each.
pub(crate) fn indexed(name: &str, parallelism: i32, completions: i32) -> Value {
    with(job(name, parallelism, completions), &json!({"completionMode": "Indexed"}))
}

/// Its pods run until somebody ends them.
pub(crate) fn running(job: Value) -> Value {
    behaving(job, &json!({"pods.e2e/becomes": "running"}), "sleep 3600")
}

/// Its pods exit so.
pub(crate) fn exiting(job: Value, code: u8) -> Value {
    let becomes = json!({"pods.e2e/becomes": "exited", "pods.e2e/exit-code": code.to_string()});
    behaving(job, &becomes, &format!("exit {code}"))
}

/// The Job with annotations for kwok, and a script that does the same on a real node.
pub(crate) fn behaving(mut job: Value, annotations: &Value, script: &str) -> Value {
    let template = &mut job["spec"]["template"];
    template["metadata"]["annotations"] = annotations.clone();
    template["spec"]["containers"][0]["command"] = json!(["sh", "-c", script]);
    job
}

/// With these fields of its spec.
pub(crate) fn with(mut job: Value, fields: &Value) -> Value {
    for (name, value) in fields.as_object().into_iter().flatten() {
        job["spec"][name] = value.clone();
    }
    job
}

pub(crate) async fn status(scene: &Scene, job: &str) -> Result<JobStatus> {
    Ok(scene.fetch::<Job>(job).await?.status.unwrap_or_default())
}

/// Reason and message of a Job's condition, if it is true.
fn condition<'a>(status: &'a JobStatus, type_: &str) -> Option<(&'a str, &'a str)> {
    let mut conditions = status.conditions.iter().flatten();
    let found = conditions.find(|condition| condition.type_ == type_ && condition.status == "True")?;
    Some((found.reason.as_deref().unwrap_or(""), found.message.as_deref().unwrap_or("")))
}

/// Waits as a person does; a Job that has succeeded has no pod left to count.
pub(crate) async fn completed(scene: &Scene, job: &str) -> Result<JobStatus> {
    scene.kubectl(&format!("wait --for=condition=complete job/{job} --timeout=60s")).await?;
    settled(scene, job).await
}

/// Waits for its failure, which has this reason.
async fn failed(scene: &Scene, job: &str, reason: &str) -> Result<JobStatus> {
    scene.kubectl(&format!("wait --for=condition=failed job/{job} --timeout=60s")).await?;
    let status = settled(scene, job).await?;
    let seen = condition(&status, "Failed");
    ensure!(seen.is_some_and(|(seen, _)| seen == reason), "{seen:?} instead of {reason}");
    ensure!(condition(&status, "FailureTarget") == seen, "the announcement differs: {:?}", status.conditions);
    Ok(status)
}

/// Checks a Job that is over: nothing is left to count, and no pod keeps the finalizer.
async fn settled(scene: &Scene, job: &str) -> Result<JobStatus> {
    let status = status(scene, job).await?;
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    ensure!(uncounted.succeeded.is_none() && uncounted.failed.is_none(), "{uncounted:?} is not counted");
    ensure!(status.active.unwrap_or(0) + status.terminating.unwrap_or(0) == 0, "pods still run: {status:?}");
    let tracked: Vec<String> =
        pods(scene, job).await?.iter().filter(|pod| is_tracked(pod)).map(ResourceExt::name_any).collect();
    ensure!(tracked.is_empty(), "{tracked:?} keep the finalizer");
    Ok(status)
}

fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

/// A Job's pods, those that have ended too.
pub(crate) async fn pods(scene: &Scene, job: &str) -> Result<Vec<Pod>> {
    scene.list(&format!("batch.kubernetes.io/job-name={job}")).await
}

/// The index a pod works on.
pub(crate) fn index(pod: &Pod) -> i32 {
    pod.annotations().get(INDEX).and_then(|index| index.parse().ok()).unwrap_or(-1)
}

/// Waits until exactly so many pods run, and gives them in the order of their indexes.
async fn run(scene: &Scene, job: &str, count: usize) -> Result<Vec<Pod>> {
    scene
        .wait_until(&format!("{count} pods of {job} run"), DEADLINE, async || {
            let mut running = pods(scene, job).await?;
            running.retain(|pod| pod.metadata.deletion_timestamp.is_none() && phase(pod) == "Running");
            ensure!(running.len() == count, "{} run", running.len());
            running.sort_by_key(index);
            Ok(running)
        })
        .await
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("")
}

/// Waits until the status of a Job is as `is_meant` says.
async fn says(scene: &Scene, job: &str, what: &str, is_meant: impl Fn(&JobStatus) -> bool) -> Result<JobStatus> {
    scene
        .wait_until(&format!("{job} says: {what}"), DEADLINE, async || {
            let status = status(scene, job).await?;
            ensure!(is_meant(&status), "{status:?}");
            Ok(status)
        })
        .await
}

/// Changes the spec, as a person does.
async fn edit(scene: &Scene, job: &str, spec: &Value) -> Result<()> {
    let patch = json!({ "spec": spec });
    scene.kubectl(&format!("patch job/{job} --type=merge --patch={patch}")).await.map(drop)
}

/// The only container's exit, in place of the kubelet.
pub(crate) async fn end(scene: &Scene, pod: &Pod, exit_code: i32) -> Result<()> {
    scene.end_pod(&pod.name_any(), exit_code).await
}
