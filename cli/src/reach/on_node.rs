//! The pod of an operator in the host network: its Lease names the node, as in `manifests/components/daemonset`.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

pub(super) async fn find(pods: &Api<Pod>, operator: &str, host: &str) -> Result<Option<(String, u16)>> {
    let of_it = ListParams::default().labels(&format!("app.kubernetes.io/name={operator}"));
    let listed = pods.list(&of_it).await.context("cannot list its pods")?;
    Ok(listed.items.iter().find_map(|pod| at(pod, operator, host)))
}

/// The host is the node's name or its first label. Only a pod with the operator's ServiceAccount gets a token.
fn at(pod: &Pod, operator: &str, host: &str) -> Option<(String, u16)> {
    let spec = pod.spec.as_ref().filter(|spec| spec.service_account_name.as_deref() == Some(operator))?;
    let node = spec.node_name.as_deref()?;
    let is_there = node == host || node.split('.').next() == Some(host);
    let port = spec.containers.iter().find_map(serving)?;
    (spec.host_network == Some(true) && is_there).then(|| (pod.name_any(), port))
}

fn serving(container: &Container) -> Option<u16> {
    let ports = container.ports.iter().flatten();
    let port = ports.into_iter().find(|port| port.name.as_deref() == Some("https"))?;
    u16::try_from(port.container_port).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_leader_in_the_network_of_its_node_is_found_by_the_node() {
        let pod = |node: &str, host_network: bool, port: &str| -> Pod {
            let container = json!({"name": "operator", "ports": [{"name": port, "containerPort": 10315}]});
            let spec = json!({
                "nodeName": node, "hostNetwork": host_network, "serviceAccountName": "a-operator",
                "containers": [container],
            });
            serde_json::from_value(json!({"metadata": {"name": "a-operator-x"}, "spec": spec})).unwrap()
        };
        let found = Some(("a-operator-x".to_owned(), 10315));
        assert_eq!(at(&pod("node-1", true, "https"), "a-operator", "node-1"), found);
        assert_eq!(at(&pod("node-1.example", true, "https"), "a-operator", "node-1"), found);
        assert_eq!(at(&pod("node-1", true, "https"), "b-operator", "node-1"), None, "another account");
        for (other, why) in [
            (pod("node-2", true, "https"), "another node"),
            (pod("node-1", false, "https"), "a network of its own"),
            (pod("node-1", true, "metrics"), "another port"),
        ] {
            assert_eq!(at(&other, "a-operator", "node-1"), None, "{why}");
        }
    }
}
