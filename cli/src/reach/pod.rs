//! The leader's pod: its Lease names the pod, or the node of one in the host network, as in
//! `manifests/components/daemonset`. Whoever may write the Lease may name any pod, so only one that runs as the operator
//! is asked.

use anyhow::{Context, Result, anyhow, bail, ensure};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use shared::api::names::is_dns1123_subdomain;

use super::Leader;
use crate::words::why_not;

const PORT: u16 = 10257;
/// The label of kube-controller-manager's static pod, which the process with several controllers takes over.
const STATIC: &str = "component=kube-controller-manager";

pub(super) async fn find(pods: &Api<Pod>, leader: &Leader) -> Result<(String, u16)> {
    let Leader { lease, account: wanted, pod: host } = leader;
    // It becomes a part of a path.
    ensure!(is_dns1123_subdomain(host), "its leader {host:?} is not a name of a pod");
    let named = pods.get_opt(host).await.map_err(|error| anyhow!("cannot get pod {host}: {}", why_not(&error)))?;
    if let Some(pod) = named {
        let account = account(&pod);
        ensure!(account == wanted, "its leader {host} runs as ServiceAccount {account:?}: not asked");
        return Ok((host.clone(), port(&pod).unwrap_or(PORT)));
    }
    let of_it = format!("app.kubernetes.io/name={wanted}");
    if let Some(found) = listed(pods, &of_it).await?.iter().find_map(|pod| on_node(pod, wanted, host)) {
        return Ok(found);
    }
    if leader.is_all() {
        let is_there = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| is_on(spec, host));
        if let Some(pod) = listed(pods, STATIC).await?.iter().find(|pod| is_there(pod)) {
            let (namespace, pod) = (pod.namespace().unwrap_or_default(), pod.name_any());
            bail!(
                "its process is static pod {pod}, which has no ServiceAccount to recognize it by: run `kubectl \
                 --namespace {namespace} port-forward pod/{pod} {PORT}`, and add --server \
                 {lease}=https://127.0.0.1:{PORT}"
            );
        }
    }
    bail!("its leader {host} is not a pod of this cluster; set its address with --server {lease}=…")
}

async fn listed(pods: &Api<Pod>, labels: &str) -> Result<Vec<Pod>> {
    Ok(pods.list(&ListParams::default().labels(labels)).await.context("cannot list its pods")?.items)
}

fn on_node(pod: &Pod, wanted: &str, host: &str) -> Option<(String, u16)> {
    let spec = pod.spec.as_ref().filter(|spec| account(pod) == wanted && is_on(spec, host))?;
    let port = spec.containers.iter().find_map(serving)?;
    Some((pod.name_any(), port))
}

/// Whether it is in the network of this host: the node's name or its first label.
fn is_on(spec: &PodSpec, host: &str) -> bool {
    let node = spec.node_name.as_deref().unwrap_or_default();
    spec.host_network == Some(true) && (node == host || node.split('.').next() == Some(host))
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
