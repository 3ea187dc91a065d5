//! A Job `pi`, its pods, and one whole sync of them as a text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jiff::{SignedDuration, Timestamp};
use job_operator::apply::Tracked;
use job_operator::memory::backoff::BackoffRecord;
use job_operator::objects::Job;
use job_operator::objects::pod::Pod;
use job_operator::objects::status::JobStatus;
use job_operator::observe::Observed;
use job_operator::plan::tracking::{Executed, Tracking, plan_tracking};
use job_operator::plan::{Plan, Pods, plan};
use job_operator::status::next_status;
use serde_json::{Value, json};
use shared::api::object::{ResourceVersion, Uid};
use shared::testing::{self, NOW, ObjectBuilder, uid};
use shared::transport::api_error::ApiError;
use shared::working::expectations::Outstanding;

pub(crate) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
pub(crate) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(crate) const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// With this parallelism and so many completions; six pods may fail.
pub(crate) fn job(parallelism: i32, completions: impl Into<Option<i32>>) -> ObjectBuilder {
    testing::object("batch/v1", "Job", "pi")
        .set(&["spec", "parallelism"], parallelism)
        .set(&["spec", "completions"], completions.into())
        .set(&["spec", "backoffLimit"], 6)
        .set(&["spec", "selector"], json!({ "matchLabels": { "job": "pi" } }))
        .set(
            &["spec", "template"],
            json!({ "metadata": { "labels": { "job": "pi" } }, "spec": { "restartPolicy": "Never", "containers": [] } }),
        )
}

pub(crate) fn indexed(parallelism: i32, completions: i32) -> ObjectBuilder {
    job(parallelism, completions).set(&["spec", "completionMode"], "Indexed")
}

/// Its `spec` with one field more.
pub(crate) trait Spec {
    fn with(self, field: &str, value: impl Into<Value>) -> Self;
    fn said(self, field: &str, value: impl Into<Value>) -> Self;
    fn condition(self, type_: &str, status: &str, reason: &str, message: &str) -> Self;
    fn started(self, at: Timestamp) -> Self;
}

impl Spec for ObjectBuilder {
    fn with(self, field: &str, value: impl Into<Value>) -> Self {
        self.set(&["spec", field], value)
    }

    fn said(self, field: &str, value: impl Into<Value>) -> Self {
        self.set(&["status", field], value)
    }

    fn condition(self, type_: &str, status: &str, reason: &str, message: &str) -> Self {
        let mut conditions = self.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.push(json!({ "type": type_, "status": status, "reason": reason, "message": message }));
        self.said("conditions", conditions)
    }

    fn started(self, at: Timestamp) -> Self {
        self.said("startTime", at.to_string())
    }
}

/// A pod of `pi`'s in this phase, with the finalizer.
pub(crate) fn pod(name: &str, phase: &str) -> ObjectBuilder {
    untracked(name, phase).set(&["metadata", "finalizers"], json!([FINALIZER]))
}

/// One without the finalizer.
pub(crate) fn untracked(name: &str, phase: &str) -> ObjectBuilder {
    orphan(name, phase).owned_by(&*job(1, 1).build::<Job>())
}

/// A pod that matches and has no controller.
pub(crate) fn orphan(name: &str, phase: &str) -> ObjectBuilder {
    testing::pod(name).label("job", "pi").phase(phase)
}

/// A pod of this index, called `pi-<index>` and a letter.
pub(crate) fn pod_of(index: i32, letter: &str, phase: &str) -> ObjectBuilder {
    pod(&format!("pi-{index}{letter}"), phase).annotation(INDEX, &index.to_string())
}

/// A failed container of this exit code.
pub(crate) fn exits(pod: ObjectBuilder, container: &str, code: i32) -> ObjectBuilder {
    let finished = NOW.to_string();
    pod.set(
        &["status", "containerStatuses"],
        json!([{ "name": container, "state": { "terminated": { "exitCode": code, "finishedAt": finished } } }]),
    )
}

/// So that nothing waits for its failure any more.
pub(crate) fn long_ago(pod: ObjectBuilder) -> ObjectBuilder {
    pod.created(testing::ago(3600))
}

/// All that one sync starts from.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) job: ObjectBuilder,
    pub(crate) pods: Vec<ObjectBuilder>,
    pub(crate) outstanding: bool,
    pub(crate) backoff: BackoffRecord,
    pub(crate) released: Vec<&'static str>,
    /// At most so many pods are made or deleted.
    pub(crate) writes_max: usize,
    /// Whether finalizers stay although they should go.
    pub(crate) patches_fail: bool,
}

pub(crate) fn case(job: ObjectBuilder, pods: impl IntoIterator<Item = ObjectBuilder>) -> Case {
    Case {
        job,
        pods: pods.into_iter().collect(),
        outstanding: false,
        backoff: BackoffRecord::default(),
        released: Vec::new(),
        writes_max: usize::MAX,
        patches_fail: false,
    }
}

impl Case {
    pub(crate) fn outstanding(mut self) -> Self {
        self.outstanding = true;
        self
    }

    pub(crate) fn released(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.released = names.into_iter().collect();
        self
    }

    pub(crate) fn backoff(mut self, failures: i64, last_failure: Timestamp) -> Self {
        self.backoff = BackoffRecord { failures, last_failure: Some(shared::api::time::Time::of(last_failure)) };
        self
    }

    pub(crate) fn at_most(mut self, writes_max: usize) -> Self {
        self.writes_max = writes_max;
        self
    }

    pub(crate) fn patches_fail(mut self) -> Self {
        self.patches_fail = true;
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let expires = NOW + SignedDuration::from_mins(5);
        Observed {
            job: self.job.build(),
            pods: self.pods.iter().map(ObjectBuilder::build::<Pod>).collect(),
            outstanding: self.outstanding.then_some(Outstanding { creations: 1, deletions: 0, expires }),
            released: self.released.iter().map(|name| uid(name)).collect(),
            backoff: self.backoff,
        }
    }

    /// The result of a plan of whose writes the first ones succeed, as many as `writes_max`.
    pub(crate) fn executed(&self, plan: Plan) -> Executed {
        let Plan { claim: _, pods, reason: _, ending, outstanding: _, wake: _, counts } = plan;
        let limit = |uids: Vec<Uid>| -> BTreeSet<Uid> { uids.into_iter().take(self.writes_max).collect() };
        let (created, deleted) = match pods {
            Pods::Leave => (0, BTreeSet::new()),
            Pods::Create(new) => (new.len().min(self.writes_max), BTreeSet::new()),
            Pods::Delete(surplus) => (0, limit(surplus.iter().map(|surplus| surplus.pod.uid).collect())),
            Pods::End(pods) => (0, limit(pods.iter().map(|pod| pod.uid).collect())),
        };
        Executed { counts, ending, created, deleted }
    }

    /// The first decision as a text, and the second.
    pub(crate) fn tracking(&self) -> (String, Tracking) {
        let observed = self.observed();
        let plan = plan(&observed, NOW);
        let text = plan.to_string();
        let tracking = plan_tracking(&observed, &self.executed(plan), NOW).expect("there is something to do");
        (text, tracking)
    }

    /// One whole sync: what is done to pods, each status that is written, which pods are let go.
    pub(crate) fn sync(&self) -> String {
        let (mut text, tracking) = self.tracking();
        let names = self.names();
        if tracking.is_news {
            write!(text, "\n{}", say(&tracking.status, &names)).unwrap();
        }
        if !tracking.release.is_empty() {
            let released: Vec<&str> = tracking.release.iter().map(|pod| pod.key.name()).collect();
            write!(text, "\nlet go {}", short(&released)).unwrap();
        }
        let (with_finalizer, failure) =
            (tracking.tracked.clone(), (!tracking.release.is_empty()).then_some(ApiError::NotLeading));
        let mut tracked = all_released(tracking);
        if self.patches_fail {
            tracked = Tracked { tracked: with_finalizer, failure, ..tracked };
        }
        if let Some(last) = next_status(&tracked, NOW) {
            write!(text, "\n{}", say(&last.status, &names)).unwrap();
        }
        text
    }

    fn names(&self) -> BTreeMap<Uid, String> {
        let names = self.pods.iter().map(|pod| pod.build::<Pod>().metadata.name().to_owned());
        names.map(|name| (uid(&name), name)).collect()
    }
}

/// The result of counting where every write succeeds.
pub(crate) fn all_released(tracking: Tracking) -> Tracked {
    let Tracking { status, is_news: _, release, end, suspension: _, backoff: _, policy_actions: _, mut tracked } =
        tracking;
    for pod in &release {
        tracked.remove(&pod.uid);
    }
    Tracked { version: ResourceVersion::default(), status, tracked, end, failure: None, error: None }
}

fn short(names: &[&str]) -> String {
    if names.len() > 6 { format!("{} pods", names.len()) } else { names.join(" ") }
}

/// A status, without what is zero or missing.
pub(crate) fn say(status: &JobStatus, names: &BTreeMap<Uid, String>) -> String {
    let mut parts = Vec::new();
    let mut count = |name: &str, count: i32| {
        if count != 0 {
            parts.push(format!("{name} {count}"));
        }
    };
    count("active", status.active);
    count("ready", status.ready.unwrap_or(-1));
    count("terminating", status.terminating.unwrap_or(-1));
    count("succeeded", status.succeeded);
    count("failed", status.failed);
    if !status.completed_indexes.is_empty() {
        parts.push(format!("completed [{}]", status.completed_indexes));
    }
    if let Some(failed) = &status.failed_indexes {
        parts.push(format!("failed [{failed}]"));
    }
    let uncounted = status.uncounted_terminated_pods.clone().expect("it is always said");
    let name = |uid: &Uid| names.get(uid).map_or("gone", String::as_str);
    let list = |uids: &[Uid]| short(&uids.iter().map(name).collect::<Vec<_>>());
    if !uncounted.succeeded.is_empty() {
        parts.push(format!("+({})", list(&uncounted.succeeded)));
    }
    if !uncounted.failed.is_empty() {
        parts.push(format!("-({})", list(&uncounted.failed)));
    }
    if status.start_time.is_none() {
        parts.push("not started".to_owned());
    }
    parts.extend(status.conditions.iter().map(|condition| {
        let not = if condition.is_true() { "" } else { "not " };
        format!("{not}{} {}", condition.type_, condition.reason)
    }));
    if status.completion_time.is_some() {
        parts.push("completed".to_owned());
    }
    format!("said: {}", if parts.is_empty() { "all zero".to_owned() } else { parts.join(", ") })
}

/// Runs a table: rows of a name, a case and what comes of it.
#[track_caller]
pub(crate) fn check(rows: impl IntoIterator<Item = (&'static str, Case, &'static str)>) {
    let mut wrong = String::new();
    for (name, case, expected) in rows {
        let got = case.sync();
        if got != expected {
            write!(wrong, "--- {name}\n{got}\n=== expected\n{expected}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
