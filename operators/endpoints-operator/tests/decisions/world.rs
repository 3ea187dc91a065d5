//! A Service with its pods and Endpoints, on which plans are made and carried out as an apiserver would.

use std::sync::Arc;

use endpoints_operator::objects::{Endpoints, MANAGED_BY, Pod, Service};
use endpoints_operator::observe::{Observed, Seen};
use endpoints_operator::plan::{Creation, Deletion, Plan, Update, plan};
use serde_json::{Value, json};
use shared::api::object::{Key, Object};
use shared::testing::{ObjectBuilder, object, pod, uid};

/// Selects `foo=bar`, has a port 8080 and no IP; of IPv4.
pub(crate) fn service() -> ObjectBuilder {
    object("v1", "Service", "foo")
        .set(&["spec", "ports"], json!([{ "protocol": "TCP", "port": 80, "targetPort": 8080 }]))
        .set(&["spec", "selector"], json!({ "foo": "bar" }))
        .set(&["spec", "ipFamilies"], json!(["IPv4"]))
}

/// `testPod`, `endpoints_controller_test.go`: of both families, with two named ports.
pub(crate) fn new_pod(n: usize, ready: bool) -> ObjectBuilder {
    let pod = pod(&format!("pod{n:04}")).label("foo", "bar");
    let ports = json!([
        { "name": "port0", "containerPort": 8080, "protocol": "TCP" },
        { "name": "port1", "containerPort": 8081, "protocol": "TCP" },
    ]);
    let pod = pod.set(&["spec", "containers"], json!([{ "ports": ports }]));
    let pod = ips(pod, &[&format!("1.2.{}.{}", 3 + (4 + n) / 256, (4 + n) % 256), &format!("2000::{:x}", 4 + n)]);
    if ready { pod.ready() } else { pod }
}

/// Gives a pod these addresses.
pub(crate) fn ips(pod: ObjectBuilder, ips: &[&str]) -> ObjectBuilder {
    let all: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    pod.set(&["status", "podIP"], ips.first().copied().unwrap_or_default()).set(&["status", "podIPs"], all)
}

/// Pods that are ready, and as many more that are not.
pub(crate) fn pods(ready: usize, not_ready: usize) -> Vec<ObjectBuilder> {
    (0..ready + not_ready).map(|n| new_pod(n, n < ready)).collect()
}

/// The address of a pod as it is written.
pub(crate) fn address(n: usize) -> Value {
    let name = format!("pod{n:04}");
    json!({
        "ip": format!("1.2.{}.{}", 3 + (4 + n) / 256, (4 + n) % 256),
        "nodeName": "node",
        "targetRef": { "kind": "Pod", "namespace": "default", "name": name, "uid": uid(&name).to_string() },
    })
}

/// Endpoints with the labels that this controller gives them.
pub(crate) fn endpoints(subsets: Value) -> Value {
    let own = object("v1", "Endpoints", "foo")
        .label("endpoints.kubernetes.io/managed-by", MANAGED_BY)
        .label("service.kubernetes.io/headless", "");
    own.set(&["subsets"], subsets).json().clone()
}

/// All that a plan depends on.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) service: Option<ObjectBuilder>,
    pub(crate) pods: Vec<ObjectBuilder>,
    pub(crate) endpoints: Option<Value>,
}

impl World {
    /// The Service `foo` with these pods, and no Endpoints yet.
    pub(crate) fn new(service: ObjectBuilder, pods: Vec<ObjectBuilder>) -> Self {
        Self { service: Some(service), pods, endpoints: None }
    }

    pub(crate) fn with(self, endpoints: Value) -> Self {
        Self { endpoints: Some(endpoints), ..self }
    }

    pub(crate) fn observed(&self) -> Observed {
        let service = self.service.as_ref().map(ObjectBuilder::build::<Service>);
        let selector = service.as_ref().and_then(|service| service.selects());
        let is_selected = |pod: &Arc<Pod>| selector.is_some_and(|selector| pod.metadata.labels.contains_all(selector));
        let pods: Vec<Arc<Pod>> = self.pods.iter().map(ObjectBuilder::build).filter(is_selected).collect();
        let endpoints: Option<Endpoints> =
            self.endpoints.as_ref().map(|endpoints| serde_json::from_value(endpoints.clone()).unwrap());
        Observed {
            key: Key::new("default", "foo"),
            trigger: service.as_ref().and_then(|service| service.meta().creation),
            service,
            pods,
            endpoints: endpoints.map_or(Seen::Absent, |endpoints| Seen::There(Arc::new(endpoints))),
            state: Arc::default(),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed())
    }

    /// Plans, carries it out, and says what was planned.
    pub(crate) fn sync(&mut self) -> String {
        let plan = self.plan();
        self.apply(&plan);
        plan.to_string()
    }

    /// The subsets as they are.
    pub(crate) fn subsets(&self) -> Value {
        self.endpoints.as_ref().map(|endpoints| endpoints["subsets"].clone()).unwrap_or_default()
    }

    pub(crate) fn metadata(&self, field: &str) -> Value {
        self.endpoints.as_ref().map(|endpoints| endpoints["metadata"][field].clone()).unwrap_or_default()
    }

    pub(crate) fn apply(&mut self, plan: &Plan) {
        match plan {
            Plan::Nothing(_) => {}
            Plan::Create(Creation { labels, subsets, is_truncated, trigger, why: _ }) => {
                assert_eq!(self.endpoints, None);
                let made = object("v1", "Endpoints", "foo").set(&["metadata", "labels"], json!(labels));
                let made = made.set(&["subsets"], json!(subsets));
                let made = if *is_truncated { made.annotation(OVER_CAPACITY, "truncated") } else { made };
                let made = trigger.iter().fold(made, |made, time| made.annotation(TRIGGER_TIME, &time.to_string()));
                self.endpoints = Some(made.json().clone());
            }
            Plan::Update(update) => self.update(update),
            Plan::Delete(Deletion { uid }) => {
                let endpoints = self.endpoints.take().unwrap();
                assert_eq!(endpoints["metadata"]["uid"], uid.to_string());
            }
        }
    }

    fn update(&mut self, update: &Update) {
        let Update { uid, resource_version, labels, subsets, is_truncated, trigger, why: _ } = update;
        let endpoints = self.endpoints.as_mut().unwrap();
        let metadata = &mut endpoints["metadata"];
        assert_eq!(metadata["uid"], uid.to_string());
        assert_eq!(metadata["resourceVersion"], resource_version.to_string());
        metadata["resourceVersion"] = (resource_version.0 + 1).to_string().into();
        let capacity = is_truncated.then(|| "truncated".to_owned());
        let annotations = [(OVER_CAPACITY, capacity), (TRIGGER_TIME, trigger.map(|time| time.to_string()))];
        for (key, value) in annotations {
            set(&mut metadata["annotations"], key, value.as_deref());
        }
        for (key, value) in labels {
            set(&mut metadata["labels"], key, value.as_deref());
        }
        if let Some(subsets) = subsets {
            endpoints["subsets"] = json!(subsets);
        }
    }
}

pub(crate) const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

fn set(entries: &mut Value, key: &str, value: Option<&str>) {
    match value {
        Some(value) => entries[key] = value.into(),
        None => {
            if let Some(entries) = entries.as_object_mut() {
                entries.remove(key);
            }
        }
    }
}
