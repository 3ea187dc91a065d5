//! The requests of each pod for a resource, in thousandths.
//!
//! The gate `PodLevelResources` counts as on, because an apiserver without it stores no such requests.
//!
//! Upstream: `calculateRequests`, `pkg/controller/podautoscaler/replica_calculator.go`, and `PodRequests`,
//! `staging/src/k8s.io/component-helpers/resource/helpers.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use shared::api::quantity::Quantity;

use crate::objects::Pod;
use crate::objects::pod::{Amounts, ContainerRequests, Requests};

/// The requests by the name of the pod: of all of its containers, or of the one of this name. Pods that have ended are
/// left out, because their requests hold nothing; upstream fails if one of them requests nothing.
pub fn calculate_requests<'a>(
    pods: &'a [Arc<Pod>],
    container: &str,
    resource: &str,
) -> Result<BTreeMap<&'a str, i64>, String> {
    let each = pods.iter().filter(|pod| !pod.has_ended()).map(|pod| {
        let name = pod.metadata.name();
        let requests = &pod.requests;
        let request = if is_set_for_pod(&requests.pod) && container.is_empty() {
            of_pod(requests, resource)
                .ok_or_else(|| format!("missing pod-level request for {resource} in Pod {name}"))?
                .milli_value()
        } else {
            of_containers(requests, name, container, resource)?
        };
        Ok((name, request))
    });
    each.collect()
}

/// Upstream: `calculatePodRequestsFromContainers`.
fn of_containers(requests: &Requests, pod: &str, container: &str, resource: &str) -> Result<i64, String> {
    let sidecars = requests.init_containers.iter().filter(|container| container.is_sidecar);
    let mut sum = 0_i64;
    for ContainerRequests { name, is_sidecar: _, requests } in requests.containers.iter().chain(sidecars) {
        if container.is_empty() || name == container {
            let request = requests
                .get(resource)
                .ok_or_else(|| format!("missing request for {resource} in container {name} of Pod {pod}"))?;
            sum = sum.saturating_add(request.milli_value());
        }
        // Names are unique.
        if name == container {
            return Ok(sum);
        }
    }
    if container.is_empty() { Ok(sum) } else { Err(format!("container {container} not found in Pod {pod}")) }
}

/// Upstream: `IsPodLevelRequestsSet`.
fn is_set_for_pod(requests: &Amounts) -> bool {
    requests.keys().any(|resource| is_supported_for_pod(resource))
}

/// Upstream: `IsSupportedPodLevelResource`.
fn is_supported_for_pod(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// The request of the pod itself, or else of its containers, plus the overhead of its runtime.
fn of_pod(requests: &Requests, resource: &str) -> Option<Quantity> {
    let own = requests.pod.get(resource).filter(|_| is_supported_for_pod(resource)).copied();
    sum([own.or_else(|| aggregate(requests, resource)), requests.overhead.get(resource).copied()])
}

/// Regular containers run together. Init containers run one at a time, beside the sidecars that started before.
///
/// Upstream: `AggregateContainerRequests`.
fn aggregate(requests: &Requests, resource: &str) -> Option<Quantity> {
    let of = |container: &ContainerRequests| container.requests.get(resource).copied();
    let mut running = requests.containers.iter().map(of).fold(None, |all, next| sum([all, next]));
    let (mut sidecars, mut starting) = (None, None);
    for container in &requests.init_containers {
        let now = if container.is_sidecar {
            running = sum([running, of(container)]);
            sidecars = sum([sidecars, of(container)]);
            sidecars
        } else {
            sum([of(container), sidecars])
        };
        starting = starting.max(now);
    }
    running.max(starting)
}

fn sum(amounts: [Option<Quantity>; 2]) -> Option<Quantity> {
    amounts.into_iter().flatten().reduce(|a, b| a.checked_add(b).unwrap_or_else(|| a.max(b)))
}
