//! The ports of a slice: one that is written, the order in which they are, and the key that groups slices of the same.
//!
//! Left out: which ports there are.
//!
//! Upstream: `NewPortMapKey`, `staging/src/k8s.io/endpointslice/util/controller_utils.go`.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use crate::api::hash::fnv1a_128;
use crate::api::intern::Text;

/// One port of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointPort {
    /// Its name, which may be `""`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// `TCP`, `UDP` or `SCTP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    /// The application protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<Text>,
}

/// Ports in an order of their own: the key under which slices are grouped.
pub type PortMapKey = Vec<EndpointPort>;

/// The key of these ports, in whatever order they are.
pub fn port_map_key(ports: &[EndpointPort]) -> PortMapKey {
    let mut key = ports.to_vec();
    key.sort_unstable();
    key
}

/// Ports in the order in which upstream writes them: that of a hash of how Go prints them. So slices of both compare.
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
