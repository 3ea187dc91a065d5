//! The ports of a slice, their order, and the key that groups slices with equal ports.
//!
//! Upstream: `NewPortMapKey`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::api::hash::fnv1a_128;
use crate::api::intern::Text;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// Its name; may be `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<Text>,
}

/// Sorted ports: the key that groups slices.
pub type PortMapKey = Vec<EndpointPort>;

pub fn port_map_key(ports: &[EndpointPort]) -> PortMapKey {
    let mut key = ports.to_vec();
    key.sort_unstable();
    key
}

/// Sort ports as upstream does, by a hash of their text in Go, so that slices of both compare.
///
/// Upstream: `NewPortMapKey`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.
pub fn in_order(mut ports: Vec<EndpointPort>) -> Vec<EndpointPort> {
    if ports.len() > 1 {
        ports.sort_by_cached_key(|port| fnv1a_128(printed(port).into_bytes()));
    }
    ports
}

fn printed(EndpointPort { name, protocol, port, app_protocol }: &EndpointPort) -> String {
    let mut text = String::from("(v1.EndpointPort){");
    let port = port.map(|port| port.to_string());
    let text_of = |value: &Option<Text>| value.as_ref().map(ToString::to_string);
    let fields = [
        ("Name:(*string)", text_of(name)),
        (" Protocol:(*v1.Protocol)", text_of(protocol)),
        (" Port:(*int32)", port),
        (" AppProtocol:(*string)", text_of(app_protocol)),
    ];
    for (field, value) in fields {
        // Writing to a string does not fail.
        let _ = write!(text, "{field}{}", value.as_deref().unwrap_or("<nil>"));
    }
    text.push('}');
    text
}
