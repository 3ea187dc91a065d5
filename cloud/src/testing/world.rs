//! What exists in the cloud of a test.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::error::CloudError;
use crate::objects::{InstanceMetadata, LoadBalancer, Route};

/// Everything in a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// By the uid of the Service.
    pub balancers: BTreeMap<String, Balancer>,
    /// By the name of the node.
    pub instances: BTreeMap<String, Instance>,
    pub routes: Vec<Route>,
    /// The status of each load balancer, instead of an address of its own.
    pub status: Option<Value>,
    /// How many load balancers were created, whether they still exist or not.
    pub balancers_created: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balancer {
    pub name: String,
    /// Namespace and name of its Service.
    pub service: String,
    /// The names of the nodes behind it.
    pub nodes: Vec<String>,
    pub status: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instance {
    pub provider_id: String,
    pub is_shutdown: bool,
    /// None if the cloud has nothing to say about it yet.
    pub metadata: Option<InstanceMetadata>,
}

/// The fields by which a cloud knows a Service or a Node.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Known {
    pub(super) metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    namespace: String,
    name: String,
    pub(super) uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: String,
}

impl Known {
    /// `namespace/name`, or the name of a Node.
    pub(super) fn key(&self) -> String {
        let Metadata { namespace, name, uid: _ } = &self.metadata;
        if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") }
    }

    /// Upstream: `DefaultLoadBalancerName`, cloud.go.
    fn balancer_name(&self) -> String {
        let uid = self.metadata.uid.replace('-', "");
        format!("a{uid}").chars().take(32).collect()
    }
}

pub(super) fn read(object: &RawValue) -> Result<Known, CloudError> {
    serde_json::from_str(object.get()).map_err(|error| CloudError::Failed(format!("this is no object: {error}")))
}

pub(super) fn names(nodes: &[Box<RawValue>]) -> Result<Vec<String>, CloudError> {
    let mut names: Vec<String> =
        nodes.iter().map(|node| read(node).map(|node| node.metadata.name)).collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

impl World {
    pub(super) fn get_balancer(&self, service: &Known) -> Result<LoadBalancer, CloudError> {
        let status = self.balancers.get(&service.metadata.uid).map(|balancer| raw(&balancer.status)).transpose()?;
        Ok(LoadBalancer { name: service.balancer_name(), status })
    }

    pub(super) fn ensure_balancer(&mut self, service: &Known, nodes: Vec<String>) -> Result<Box<RawValue>, CloudError> {
        let Self { balancers, status, balancers_created, .. } = self;
        let balancer = balancers.entry(service.metadata.uid.clone()).or_insert_with(|| {
            *balancers_created += 1;
            let status = json!({ "ingress": [{ "ip": format!("192.0.2.{balancers_created}") }] });
            Balancer { name: service.balancer_name(), service: service.key(), nodes: Vec::new(), status }
        });
        balancer.nodes = nodes;
        if let Some(status) = status {
            balancer.status = status.clone();
        }
        raw(&balancer.status)
    }

    pub(super) fn update_balancer(&mut self, service: &Known, nodes: Vec<String>) -> Result<(), CloudError> {
        let balancer = self.balancers.get_mut(&service.metadata.uid);
        balancer.ok_or_else(|| CloudError::Failed("no such load balancer".to_owned()))?.nodes = nodes;
        Ok(())
    }

    pub(super) fn instance(&self, node: &Known) -> Option<&Instance> {
        let id = &node.spec.provider_id;
        let by_id = || self.instances.values().find(|instance| instance.provider_id == *id);
        if id.is_empty() { self.instances.get(&node.metadata.name) } else { by_id() }
    }

    pub(super) fn create_route(&mut self, name_hint: &str, route: &Route) {
        let is_known = self
            .routes
            .iter()
            .any(|other| other.target_node == route.target_node && other.destination_cidr == route.destination_cidr);
        if !is_known {
            let name = format!("{name_hint}-{}", route.destination_cidr);
            self.routes.push(Route { name, ..route.clone() });
        }
    }
}

fn raw(status: &Value) -> Result<Box<RawValue>, CloudError> {
    to_raw_value(status).map_err(|error| CloudError::Failed(error.to_string()))
}
