//! What one wants to see of a test that failed: its objects, its events, and the end of each operator's log.

use std::fmt::Write;

use e2e::apply::api;
use kube::api::ListParams;

use super::scene::Scene;

const KINDS: [(&str, &str); 6] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("v1", "ReplicationController"),
    ("v1", "Pod"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("v1", "Event"),
];
const LOG_LINES: usize = 12;
/// Of each kind, or a cluster of pods would bury the rest.
const OBJECTS: usize = 30;

/// Never fails: it is for reading, and reports on whatever it gets.
pub(super) async fn dump(scene: &Scene) -> String {
    let mut text = format!("---- namespace {}\n", scene.namespace);
    for (api_version, kind) in KINDS {
        let listed = match api(&scene.client, api_version, kind, &scene.namespace).await {
            Ok(api) => api.list(&ListParams::default()).await.map_err(anyhow::Error::from),
            Err(error) => Err(error),
        };
        match listed {
            Ok(list) => {
                let _ = writeln!(text, "-- {} of {kind}", list.items.len());
                for object in list.items.into_iter().take(OBJECTS) {
                    let name = object.metadata.name.unwrap_or_default();
                    let data = object.data;
                    let shown = match kind {
                        "Event" => format!("{} {} {}", data["type"], data["reason"], data["message"]),
                        "Pod" => format!("{} {:?}", data["status"]["phase"], object.metadata.deletion_timestamp),
                        "EndpointSlice" => {
                            let endpoints = data["endpoints"].as_array().map_or(0, Vec::len);
                            format!("{endpoints} endpoints {:?}", object.metadata.labels)
                        }
                        _ => format!("replicas {} status {}", data["spec"]["replicas"], data["status"]),
                    };
                    let _ = writeln!(text, "{name}: {shown}");
                }
            }
            Err(error) => {
                let _ = writeln!(text, "-- no list of {kind}: {error:#}");
            }
        }
    }
    for (name, tail) in scene.cluster.operator_logs(LOG_LINES).unwrap_or_default() {
        let _ = writeln!(text, "---- log of {name}\n{tail}");
    }
    text
}
