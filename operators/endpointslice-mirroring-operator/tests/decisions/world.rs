//! Endpoints with their Service and their slices, on which plans are made and carried out as an apiserver would.

use std::sync::Arc;

use endpointslice_mirroring_operator::objects::{EndpointSlice, Endpoints, MANAGED_BY, Service};
use endpointslice_mirroring_operator::observe::Observed;
use endpointslice_mirroring_operator::plan::{CleanUp, Config, Mirrored, Plan, plan};
use serde_json::{Value, json};
use shared::api::object::Key;
use shared::testing::slices::Slices;
use shared::testing::{ObjectBuilder, object};

pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Endpoints with these subsets.
pub(crate) fn endpoints(subsets: &[Value]) -> ObjectBuilder {
    object("v1", "Endpoints", "test-ep").set(&["subsets"], json!(subsets))
}

/// `http` on one port, or `http` and `https` on two.
pub(crate) fn ports(numbers: &[i32]) -> Value {
    let names = [("http", "TCP"), ("https", "UDP")];
    let ports = numbers.iter().zip(names);
    ports.map(|(port, (name, protocol))| json!({ "name": name, "port": port, "protocol": protocol })).collect()
}

/// Addresses with host names and nodes.
pub(crate) fn addresses(ips: &[&str]) -> Value {
    let numbered = ips.iter().enumerate();
    let address = |(n, ip)| json!({ "ip": ip, "hostname": format!("pod-{n}"), "nodeName": format!("node-{n}") });
    numbered.map(address).collect()
}

/// Ready addresses on these ports.
pub(crate) fn subset(ips: &[&str], numbers: &[i32]) -> Value {
    json!({ "addresses": addresses(ips), "ports": ports(numbers) })
}

/// A slice of `test-ep` as this operator labels it, on these ports.
pub(crate) fn slice(name: &str, address_type: &str, numbers: &[i32], endpoints: Value) -> ObjectBuilder {
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", name).set(&["addressType"], address_type);
    let slice = slice.label("kubernetes.io/service-name", "test-ep");
    let slice = slice.label("endpointslice.kubernetes.io/managed-by", MANAGED_BY);
    slice.set(&["ports"], ports(numbers)).set(&["endpoints"], endpoints)
}

/// All that a plan depends on.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) service: Option<ObjectBuilder>,
    pub(crate) endpoints: Option<ObjectBuilder>,
    pub(crate) slices: Slices,
    pub(crate) max: usize,
}

impl World {
    /// A Service without a selector, its Endpoints, and no slices yet.
    pub(crate) fn new(endpoints: ObjectBuilder) -> Self {
        let service = object("v1", "Service", "test-ep");
        Self { service: Some(service), endpoints: Some(endpoints), slices: Slices::default(), max: 1000 }
    }

    pub(crate) fn with(mut self, slices: impl IntoIterator<Item = ObjectBuilder>) -> Self {
        for slice in slices {
            let json = slice.json();
            self.slices.insert(json["metadata"]["name"].as_str().unwrap().to_owned(), json.clone());
        }
        self
    }

    pub(crate) fn observed(&self) -> Observed {
        let slices = self.slices.values().map(|slice| Arc::new(serde_json::from_value(slice.clone()).unwrap()));
        Observed {
            key: Key::new("default", "test-ep"),
            service: self.service.as_ref().map(ObjectBuilder::build::<Service>),
            endpoints: self.endpoints.as_ref().map(ObjectBuilder::build::<Endpoints>),
            slices: slices.collect(),
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.observed(), Config { max_endpoints_per_subset: self.max })
    }

    /// Plans, carries it out, and says what was planned.
    pub(crate) fn sync(&mut self) -> String {
        let plan = self.plan();
        self.apply(&plan);
        plan.to_string()
    }

    /// The same, of Endpoints that are to be mirrored.
    pub(crate) fn mirror(&mut self) -> Mirrored {
        let plan = self.plan();
        self.apply(&plan);
        let Plan::Mirror(mirrored) = plan else { panic!("{plan}") };
        mirrored
    }

    pub(crate) fn apply(&mut self, plan: &Plan) {
        match plan {
            Plan::CleanUp(CleanUp { why: _, delete }) => delete.iter().for_each(|gone| self.slices.delete(gone)),
            Plan::Mirror(mirrored) => self.slices.apply(&*mirrored.endpoints, &mirrored.writes),
        }
    }

    /// The slices, as this operator reads them.
    pub(crate) fn read(&self) -> Vec<Arc<EndpointSlice>> {
        self.observed().slices
    }

    /// The addresses of each slice in the order of their names: `IPv4 80,443: 10.0.0.1 10.0.0.2`, with a `!` where one is
    /// not ready.
    pub(crate) fn shown(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.slices.values().map(line).collect();
        lines.sort();
        lines
    }
}

fn line(slice: &Value) -> String {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut ports: Vec<i64> = list(&slice["ports"]).iter().filter_map(|port| port["port"].as_i64()).collect();
    ports.sort_unstable();
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    let endpoints = list(&slice["endpoints"]);
    let addresses = endpoints.iter().map(|endpoint| {
        let mark = if endpoint["conditions"]["ready"] == true { "" } else { "!" };
        format!(" {mark}{}", endpoint["addresses"][0].as_str().unwrap_or_default())
    });
    let address_type = slice["addressType"].as_str().unwrap_or_default();
    format!("{address_type} {}:{}", ports.join(","), addresses.collect::<String>())
}
