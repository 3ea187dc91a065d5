//! A Service with its pods, nodes and slices, on which plans are made and carried out as an apiserver would.

use std::sync::Arc;

use endpointslice_operator::memory::topology::{ServiceHints, zone_ratios};
use endpointslice_operator::objects::{EndpointSlice, MANAGED_BY, Node, Pod, Service};
use endpointslice_operator::observe::Observed;
use endpointslice_operator::plan::{Config, Plan, plan};
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::testing::slices::Slices;
use shared::testing::{ObjectBuilder, object, pod, uid};

/// `newServiceAndEndpointMeta`, `utils_test.go`: headless, of IPv4, selects `foo=bar`, one port 80.
pub(crate) fn service(name: &str) -> ObjectBuilder {
    object("v1", "Service", name)
        .set(&["spec", "ports"], json!([{ "name": name, "protocol": "TCP", "targetPort": 80 }]))
        .set(&["spec", "selector"], json!({ "foo": "bar" }))
        .set(&["spec", "ipFamilies"], json!(["IPv4"]))
}

/// `newPod`, `utils_test.go`: on `node-1`, with an address of its own.
pub(crate) fn new_pod(n: usize, ready: bool) -> ObjectBuilder {
    let name = format!("pod{n:04}");
    let ip = format!("10.2.{}.{}", n / 250, n % 250 + 1);
    let pod = pod(&name).label("foo", "bar").node("node-1");
    let pod = pod.set(&["spec", "containers"], json!([{ "name": "container-1" }]));
    let pod = ips(pod, &[&ip]);
    if ready { pod.ready() } else { pod }
}

/// Gives a pod these addresses.
pub(crate) fn ips(pod: ObjectBuilder, ips: &[&str]) -> ObjectBuilder {
    let all: Vec<Value> = ips.iter().map(|ip| json!({ "ip": ip })).collect();
    pod.set(&["status", "podIP"], ips.first().copied().unwrap_or_default()).set(&["status", "podIPs"], all)
}

/// `count` pods, each third of them not ready.
pub(crate) fn pods(count: usize) -> Vec<ObjectBuilder> {
    (0..count).map(|n| new_pod(n, n % 3 != 0)).collect()
}

/// A ready node in this zone, if it is in one, with this CPU.
pub(crate) fn node(name: &str, zone: &str, cpu: &str) -> ObjectBuilder {
    let node = object("v1", "Node", name).set(&["metadata", "namespace"], "");
    let node = if zone.is_empty() { node } else { node.label("topology.kubernetes.io/zone", zone) };
    node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }]))
        .set(&["status", "allocatable", "cpu"], cpu)
}

/// All that a plan depends on.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) service: ObjectBuilder,
    pub(crate) pods: Vec<ObjectBuilder>,
    pub(crate) nodes: Vec<ObjectBuilder>,
    pub(crate) slices: Slices,
    pub(crate) max: usize,
    pub(crate) hints: ServiceHints,
}

impl World {
    /// The Service `foo` with these pods, one node, and no slices yet.
    pub(crate) fn new(pods: Vec<ObjectBuilder>) -> Self {
        let (slices, hints) = (Slices::default(), ServiceHints::default());
        let nodes = vec![node("node-1", "", "1")];
        Self { service: service("foo"), pods, nodes, slices, max: 100, hints }
    }

    pub(crate) fn with_service(mut self, service: ObjectBuilder) -> Self {
        self.service = service;
        self
    }

    /// Adds a slice of the Service with the endpoints of these pods, as this operator would have written it.
    pub(crate) fn with_slice(mut self, name: &str, pods: &[ObjectBuilder]) -> Self {
        let service = self.service.clone().set(&["metadata", "deletionTimestamp"], Value::Null);
        let alone = Self { service, pods: pods.to_vec(), slices: Slices::default(), max: usize::MAX, ..self.clone() };
        let Plan::Write(slices) = alone.plan() else { panic!("no slices") };
        let family = &slices.families[0];
        let [creation] = family.writes.create.as_slice() else { panic!("{family}") };
        self.slices.create(name, &*self.service.build::<Service>(), creation);
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let service = self.service.build::<Service>();
        let is_selected = |pod: &Arc<Pod>| {
            service.selector.as_ref().is_some_and(|selector| pod.metadata.labels.contains_all(selector))
        };
        let pods: Vec<Arc<Pod>> = self.pods.iter().map(ObjectBuilder::build).filter(is_selected).collect();
        let nodes: Vec<Arc<Node>> = self.nodes.iter().map(ObjectBuilder::build).collect();
        let slices = self.slices.values().map(|slice| Arc::new(serde_json::from_value(slice.clone()).unwrap()));
        Observed {
            trigger: service.metadata.creation,
            state: Arc::default(),
            slices: slices.collect(),
            zones: zone_ratios(nodes.iter().map(|node| &**node)).map(Arc::new),
            nodes: nodes.iter().map(|node| (Text::new(node.metadata.name()), node.zone.clone())).collect(),
            hints: self.hints.clone(),
            service,
            pods,
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed(), Config { max_endpoints_per_slice: self.max })
    }

    /// Plans, carries it out, and says what was planned.
    pub(crate) fn sync(&mut self) -> String {
        let plan = self.plan();
        self.apply(&plan);
        plan.to_string()
    }

    pub(crate) fn apply(&mut self, plan: &Plan) {
        let Plan::Write(slices) = plan else { return };
        let service = self.service.build::<Service>();
        for family in &slices.families {
            self.slices.apply(&*service, &family.writes);
        }
        for deletion in &slices.unsupported {
            self.slices.delete(deletion);
        }
        self.hints = slices.hints.clone();
    }

    /// The slices, as this operator reads them.
    pub(crate) fn read(&self) -> Vec<Arc<EndpointSlice>> {
        self.observed().slices
    }

    /// How many endpoints each slice has, the fullest first.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        let mut lengths: Vec<usize> = self.read().iter().map(|slice| slice.endpoints.len()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        lengths
    }
}

/// A slice of a Service that had the same name before.
pub(crate) fn foreign(mut slice: Value) -> Value {
    slice["metadata"]["ownerReferences"][0]["uid"] = uid("different").to_string().into();
    slice
}

/// The labels that every slice of `foo` has.
pub(crate) fn own_labels() -> Value {
    json!({
        "kubernetes.io/service-name": "foo",
        "endpointslice.kubernetes.io/managed-by": MANAGED_BY,
        "service.kubernetes.io/headless": "",
    })
}
