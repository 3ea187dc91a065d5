//! The view of a pod: its readiness and its requests.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared::api::condition::{Condition, FALSE, TRUE, find};
use shared::api::intern::Text;
use shared::api::object::{Meta, null_as_default};
use shared::api::pod::Phase;
use shared::api::pod::container::is_sidecar;
use shared::api::quantity::Quantity;
use shared::api::resource::PODS;
use shared::api::time::Time;

pub type Amounts = BTreeMap<Text, Quantity>;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawPod")]
pub struct Pod {
    pub metadata: Meta,
    pub phase: Phase,
    pub ready: Option<Ready>,
    pub start: Option<Time>,
    pub requests: Requests,
}

shared::view!(Pod, PODS);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub is_true: bool,
    /// Neither holds if the status is Unknown.
    pub is_false: bool,
    pub since: Option<Time>,
}

impl Pod {
    pub fn is_ready(&self) -> bool {
        self.ready.is_some_and(|ready| ready.is_true)
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    pub containers: Vec<ContainerRequests>,
    pub init_containers: Vec<ContainerRequests>,
    pub pod: Amounts,
    pub overhead: Amounts,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerRequests {
    pub name: Text,
    /// Whether it is an init container that keeps running.
    pub is_sidecar: bool,
    pub requests: Amounts,
}

#[derive(Deserialize)]
struct RawPod {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: RawSpec,
    #[serde(default, deserialize_with = "null_as_default")]
    status: RawStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawSpec {
    #[serde(deserialize_with = "null_as_default")]
    containers: Vec<RawContainer>,
    #[serde(deserialize_with = "null_as_default")]
    init_containers: Vec<RawContainer>,
    #[serde(deserialize_with = "null_as_default")]
    resources: RawResources,
    #[serde(deserialize_with = "null_as_default")]
    overhead: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawContainer {
    name: Text,
    #[serde(deserialize_with = "null_as_default")]
    restart_policy: String,
    #[serde(deserialize_with = "null_as_default")]
    resources: RawResources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResources {
    #[serde(deserialize_with = "null_as_default")]
    requests: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawStatus {
    #[serde(deserialize_with = "null_as_default")]
    phase: Phase,
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<Condition>,
    start_time: Option<Time>,
}

impl From<RawContainer> for ContainerRequests {
    fn from(RawContainer { name, restart_policy, resources }: RawContainer) -> Self {
        Self { name, is_sidecar: is_sidecar(&restart_policy), requests: resources.requests }
    }
}

impl From<RawPod> for Pod {
    fn from(RawPod { metadata, spec, status }: RawPod) -> Self {
        let RawSpec { containers, init_containers, resources, overhead } = spec;
        let RawStatus { phase, conditions, start_time } = status;
        let each = |containers: Vec<RawContainer>| containers.into_iter().map(ContainerRequests::from).collect();
        let ready = find(&conditions, "Ready").map(|condition| Ready {
            is_true: condition.status == TRUE,
            is_false: condition.status == FALSE,
            since: condition.last_transition_time,
        });
        let requests = Requests {
            containers: each(containers),
            init_containers: each(init_containers),
            pod: resources.requests,
            overhead,
        };
        Self { metadata, phase, ready, start: start_time, requests }
    }
}
