//! Autoscalers, scales, pods and metrics in a line, and what a sync decides, in words.

#![expect(clippy::unwrap_used, reason = "a fixture that is not read is a broken test")]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use horizontal_pod_autoscaler_operator::memory::History;
use horizontal_pod_autoscaler_operator::objects::{HorizontalPodAutoscaler, Pod};
use horizontal_pod_autoscaler_operator::observe::{Answer, Measured, Observed, ReadScale};
use horizontal_pod_autoscaler_operator::plan::{Action, Config, Plan, PlannedCondition, plan};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::api::resource::DEPLOYMENTS;
use shared::api::selector::Selector;
use shared::testing::{NOW, ObjectBuilder, object, pod};
use shared::transport::clock::instant;

/// The instant at which the wall clock shows [`NOW`], on a machine that runs for a day.
pub(crate) static AT: LazyLock<Instant> = LazyLock::new(|| instant() + Duration::from_hours(24));

/// So many seconds before [`AT`], or after it.
pub(crate) fn before(seconds: i64) -> Instant {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { *AT + distance } else { AT.checked_sub(distance).unwrap() }
}

/// Upstream's values in its tests, but that old values are no matter: there they have no time.
pub(crate) fn config() -> Config {
    Config {
        tolerance: 0.1,
        downscale_stabilization: Duration::from_secs(300),
        cpu_initialization_period: Duration::from_secs(120),
        initial_readiness_delay: Duration::from_secs(10),
        metrics_max_age: Duration::ZERO,
        ignores_surge: false,
        has_scale_to_zero: false,
        has_configurable_tolerance: true,
    }
}

pub(crate) fn read<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// A pod, read as it comes: its lists are asked for as JSON.
pub(crate) fn read_pod(built: &ObjectBuilder) -> Arc<Pod> {
    Arc::new(read(built.json().clone()))
}

/// A ready pod of `app=web` that began long ago, and requests one CPU.
pub(crate) fn web(name: &str) -> ObjectBuilder {
    pod(name)
        .label("app", "web")
        .set(&["status", "startTime"], "2020-01-01T00:00:00Z")
        .ready_since("2020-01-01T00:01:00Z".parse().unwrap())
        .set(&["spec", "containers"], json!([{ "name": "main", "resources": { "requests": { "cpu": "1" } } }]))
}

/// As many of them as a test may need, called `web-0` and on: properties ask for them again and again.
static POOL: LazyLock<Vec<Arc<Pod>>> =
    LazyLock::new(|| (0..50).map(|at| read_pod(&web(&format!("web-{at}")))).collect());

/// An autoscaler of the Deployment `web`, with these bounds and these metrics.
pub(crate) fn autoscaler(min: i32, max: i32, metrics: &Value) -> ObjectBuilder {
    object("autoscaling/v2", "HorizontalPodAutoscaler", "web").set(
        &["spec"],
        json!({
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": min, "maxReplicas": max, "metrics": metrics,
        }),
    )
}

/// A metric of this resource, with a percentage of requests as its target.
pub(crate) fn cpu_metric(percentage: i32) -> Value {
    let target = json!({ "type": "Utilization", "averageUtilization": percentage });
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
}

/// What was observed of it, of a target of so many replicas, whose pods are named `web-0` and on.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) autoscaler: ObjectBuilder,
    pub(crate) replicas: i32,
    pub(crate) has: i32,
    pub(crate) selector: &'static str,
    pub(crate) pods: Vec<Arc<Pod>>,
    pub(crate) others: Vec<(&'static str, &'static str)>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) history: History,
    pub(crate) config: Config,
}

impl Scene {
    pub(crate) fn new(autoscaler: ObjectBuilder, replicas: i32) -> Self {
        let pods = POOL[..usize::try_from(replicas).unwrap()].to_vec();
        let (others, answers, history) = (Vec::new(), Vec::new(), History::default());
        let (has, selector, config) = (replicas, "app=web", config());
        Self { autoscaler, replicas, has, selector, pods, others, answers, history, config }
    }

    /// What the one container of each pod takes, in thousandths, measured a moment ago.
    pub(crate) fn cpu(self, levels: &[i64]) -> Self {
        self.usage(levels, Some(NOW))
    }

    pub(crate) fn usage(mut self, levels: &[i64], timestamp: Option<Timestamp>) -> Self {
        let of = |(at, level): (usize, &i64)| {
            let usage = json!({ "cpu": format!("{level}m"), "memory": format!("{level}Mi") });
            json!({
                "metadata": { "name": format!("web-{at}") }, "timestamp": timestamp.map(|at| at.to_string()),
                "window": "30s", "containers": [{ "name": "main", "usage": usage }],
            })
        };
        let items: Vec<Value> = levels.iter().enumerate().map(of).collect();
        self.answers.push(Answer::Usage(Ok(Arc::new(read(json!(items))))));
        self
    }

    pub(crate) fn cpu_fails(mut self, error: &str) -> Self {
        self.answers.push(Answer::Usage(Err(error.to_owned())));
        self
    }

    /// The value of each pod, or of one object.
    pub(crate) fn objects(mut self, levels: &[i64]) -> Self {
        let of = |(at, level): (usize, &i64)| json!({ "describedObject": { "name": format!("web-{at}") }, "value": format!("{level}m") });
        let items: Vec<Value> = levels.iter().enumerate().map(of).collect();
        self.answers.push(Answer::Objects(Ok(read(json!(items)))));
        self
    }

    pub(crate) fn objects_fail(mut self, error: &str) -> Self {
        self.answers.push(Answer::Objects(Err(error.to_owned())));
        self
    }

    pub(crate) fn external(mut self, levels: &[i64]) -> Self {
        let items: Vec<Value> = levels.iter().map(|level| json!({ "value": format!("{level}m") })).collect();
        self.answers.push(Answer::External(Ok(read(json!(items)))));
        self
    }

    pub(crate) fn external_fails(mut self, error: &str) -> Self {
        self.answers.push(Answer::External(Err(error.to_owned())));
        self
    }

    /// A metric about which nobody can be asked.
    pub(crate) fn nobody(mut self) -> Self {
        self.answers.push(Answer::None);
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let autoscaler: Arc<HorizontalPodAutoscaler> = self.autoscaler.build();
        let served = json!({
            "metadata": { "uid": "00000001-0000-4000-8000-000000000000", "resourceVersion": "5" },
            "spec": { "replicas": self.replicas },
            "status": { "replicas": self.has, "selector": self.selector },
        });
        let scale = read(served.clone());
        let own = (autoscaler.metadata.key.clone(), self.selector);
        let other = |(name, selector): &(&str, &'static str)| {
            (shared::api::object::Key::new(autoscaler.metadata.namespace(), name), *selector)
        };
        let selectors = std::iter::once(own)
            .chain(self.others.iter().map(other))
            .filter_map(|(key, text)| Some((key, Selector::parse_text(text).ok()?)))
            .collect();
        let measured = Measured { pods: Ok(self.pods.clone()), selectors, answers: self.answers.clone() };
        let scale = Ok(ReadScale { resource: DEPLOYMENTS, scale, served });
        Observed { autoscaler, history: self.history.clone(), scale, measured }
    }

    pub(crate) fn plan_at(&self, now: Timestamp, at: Instant) -> Plan {
        plan(&self.observed(), &self.config, (now, at))
    }

    pub(crate) fn plan(&self) -> Plan {
        self.plan_at(NOW, *AT)
    }
}

/// The last word of each condition.
pub(crate) fn words(plan: &Plan) -> String {
    let mut last: Vec<&PlannedCondition> = Vec::new();
    for condition in &plan.conditions {
        match last.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(known) => *known = condition,
            None => last.push(condition),
        }
    }
    last.iter().map(|condition| condition.word).collect::<Vec<_>>().join(" ")
}

/// The number of replicas that the target has after this.
pub(crate) fn replicas_after(plan: &Plan, before: i32) -> i32 {
    match &plan.action {
        Action::Scale(rescale) => rescale.to,
        Action::None | Action::Leave { .. } | Action::Keep { .. } => before,
    }
}
