//! The leader's pod: its Lease names the pod, or the node of one in the host network, as in
//! `manifests/components/daemonset`. Whoever may write the Lease may name any pod, so only one that runs as the operator
//! is asked.

use anyhow::{Context, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use shared::api::names::is_dns1123_subdomain;

use crate::words::why_not;

const PORT: u16 = 10257;

pub(super) async fn find(pods: &Api<Pod>, operator: &str, leader: &str) -> Result<(String, u16)> {
    // It becomes a part of a path.
    ensure!(is_dns1123_subdomain(leader), "its leader {leader:?} is not a name of a pod");
    let named = pods.get_opt(leader).await.map_err(|error| anyhow!("cannot get pod {leader}: {}", why_not(&error)))?;
    if let Some(pod) = named {
        let account = account(&pod);
        ensure!(account == operator, "its leader {leader} runs as ServiceAccount {account:?}: not asked");
        return Ok((leader.to_owned(), port(&pod).unwrap_or(PORT)));
    }
    let of_it = ListParams::default().labels(&format!("app.kubernetes.io/name={operator}"));
    let listed = pods.list(&of_it).await.context("cannot list its pods")?;
    match listed.items.iter().find_map(|pod| on_node(pod, operator, leader)) {
        Some(found) => Ok(found),
        None => bail!("its leader {leader} is not a pod of this cluster; set its address with --server"),
    }
}

/// The host is the node's name or its first label.
fn on_node(pod: &Pod, operator: &str, host: &str) -> Option<(String, u16)> {
    let spec = pod.spec.as_ref().filter(|_| account(pod) == operator)?;
    let node = spec.node_name.as_deref()?;
    let is_there = node == host || node.split('.').next() == Some(host);
    let port = port(pod)?;
    (spec.host_network == Some(true) && is_there).then(|| (pod.name_any(), port))
}

fn account(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or_default()
}

fn port(pod: &Pod) -> Option<u16> {
    pod.spec.as_ref()?.containers.iter().find_map(serving)
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
        assert_eq!(on_node(&pod("node-1", true, "https"), "a-operator", "node-1"), found);
        assert_eq!(on_node(&pod("node-1.example", true, "https"), "a-operator", "node-1"), found);
        assert_eq!(on_node(&pod("node-1", true, "https"), "b-operator", "node-1"), None, "another account");
        for (other, why) in [
            (pod("node-2", true, "https"), "another node"),
            (pod("node-1", false, "https"), "a network of its own"),
            (pod("node-1", true, "metrics"), "another port"),
        ] {
            assert_eq!(on_node(&other, "a-operator", "node-1"), None, "{why}");
        }
    }
}
