//! A Service: what its load balancer depends on.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::kept::{Digest, Kept};
use shared::api::object::{Meta, NoAnnotations, Object, null_as_default};
use shared::api::raw::raw_of;

use super::{FINALIZER, Ingress, SERVICES, trimmed};

const LOAD_BALANCER: &str = "LoadBalancer";

#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct Service {
    pub metadata: Meta,
    pub is_load_balancer: bool,
    /// Whether `spec.loadBalancerClass` is set, which gives the Service to somebody else.
    pub has_class: bool,
    /// What else its load balancer depends on; none where it has none.
    shape: Option<Box<Shape>>,
    /// The addresses in its status.
    pub ingress: Ingress,
    /// Its JSON for the provider; none where it has no load balancer.
    whole: Option<Kept>,
}

shared::view!(Service, SERVICES);

/// The fields whose changes lead to an Ensure.
///
/// Upstream: `needsUpdate`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Shape {
    #[serde(deserialize_with = "null_as_default")]
    load_balancer_source_ranges: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    ports: Vec<Port>,
    #[serde(deserialize_with = "null_as_default")]
    session_affinity: Text,
    session_affinity_config: Value,
    #[serde(rename = "loadBalancerIP", deserialize_with = "null_as_default")]
    load_balancer_ip: String,
    #[serde(rename = "externalIPs", deserialize_with = "null_as_default")]
    external_ips: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    external_traffic_policy: Text,
    #[serde(deserialize_with = "null_as_default")]
    health_check_node_port: i32,
    /// How many families. Their order follows from the cluster IPs, which never change.
    #[serde(rename = "ipFamilies", deserialize_with = "length")]
    families: usize,
    #[serde(skip)]
    annotations: Option<Digest>,
}

/// Upstream: `portEqualForLB`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    #[serde(deserialize_with = "null_as_default")]
    name: Text,
    #[serde(deserialize_with = "null_as_default")]
    protocol: Text,
    #[serde(rename = "port", deserialize_with = "null_as_default")]
    number: i32,
    #[serde(rename = "nodePort", deserialize_with = "null_as_default")]
    on_nodes: i32,
    #[serde(rename = "targetPort")]
    target: Value,
    app_protocol: Option<Text>,
}

fn length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let list = Option::<Vec<IgnoredAny>>::deserialize(deserializer)?;
    Ok(list.map_or(0, |list| list.len()))
}

impl Service {
    /// Whether its load balancer is one of the provider's.
    ///
    /// Upstream: `wantsLoadBalancer`.
    pub fn wants_load_balancer(&self) -> bool {
        self.is_load_balancer && !self.has_class
    }

    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Upstream: `needsCleanup`.
    pub fn needs_cleanup(&self) -> bool {
        self.has_finalizer() && (self.metadata.is_being_deleted() || !self.is_load_balancer)
    }

    /// Whether a load balancer of this state is not as one of the earlier state `old`.
    ///
    /// Upstream: `needsUpdate`.
    pub fn needs_update(&self, old: &Self) -> bool {
        if !old.wants_load_balancer() || !self.wants_load_balancer() {
            return old.wants_load_balancer() != self.wants_load_balancer();
        }
        self.metadata.uid != old.metadata.uid || self.shape != old.shape
    }

    /// Its JSON for the provider, unless that is too large for a cache.
    pub fn whole(&self) -> Option<&RawValue> {
        self.whole.as_ref()?.whole()
    }

    /// What identifies it to the provider.
    pub fn identity(&self) -> Box<RawValue> {
        let (key, uid) = (&self.metadata.key, self.metadata.uid);
        raw_of(&json!({ "metadata": { "namespace": key.namespace(), "name": key.name(), "uid": uid } }))
    }
}

#[derive(Deserialize)]
struct RawService {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(rename = "type", deserialize_with = "null_as_default")]
    type_: Text,
    load_balancer_class: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    load_balancer: Ingress,
}

#[derive(Deserialize)]
struct Shaped {
    metadata: Annotated,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: Box<Shape>,
}

#[derive(Deserialize)]
struct Annotated {
    #[serde(default)]
    annotations: Value,
}

impl TryFrom<Box<RawValue>> for Service {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        let RawService { metadata, spec, status } = serde_json::from_str(whole.get())?;
        let is_load_balancer = spec.type_ == *LOAD_BALANCER;
        let mut service = Self {
            metadata,
            is_load_balancer,
            has_class: spec.load_balancer_class.is_some(),
            shape: None,
            ingress: status.load_balancer,
            whole: None,
        };
        if service.wants_load_balancer() || service.has_finalizer() {
            let Shaped { metadata, mut spec } = serde_json::from_str(whole.get())?;
            spec.annotations = Some(Digest::of(&metadata.annotations.to_string()));
            service.shape = Some(spec);
            service.whole = Some(Kept::new(trimmed(&whole, |_| ())?));
        }
        Ok(service)
    }
}

/// A Service as a live read gives it, with its JSON for the provider at any size.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct LiveService {
    pub metadata: Meta,
    pub whole: Box<RawValue>,
}

impl Object for LiveService {
    type Annotations = NoAnnotations;

    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl TryFrom<Box<RawValue>> for LiveService {
    type Error = serde_json::Error;

    fn try_from(whole: Box<RawValue>) -> Result<Self, Self::Error> {
        #[derive(Deserialize)]
        struct Identified {
            metadata: Meta,
        }
        let Identified { metadata } = serde_json::from_str(whole.get())?;
        Ok(Self { metadata, whole: trimmed(&whole, |_| ())? })
    }
}
