//! The requests and limits of a whole pod, in place of those of its containers.
//!
//! While a container is resized, the larger counts of what it asks for and what it has. Left out: node resources that
//! claims stand for, which upstream's quotas leave out too.
//!
//! Upstream: `PodRequests` and `PodLimits`, `staging/src/k8s.io/component-helpers/resource/helpers.go`.

use std::collections::BTreeMap;

use serde::Deserialize;
use shared::api::condition::find;
use shared::api::intern::Text;
use shared::api::object::null_as_default;
use shared::api::quantity::Quantity;

use super::{Spec, Status};
use crate::objects::amounts::{Amounts, TooLarge, add, add_to, raise};
use crate::objects::evaluator::HUGE_PAGES;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    name: Text,
    #[serde(deserialize_with = "null_as_default")]
    resources: Resources,
    restart_policy: Option<Text>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    #[serde(deserialize_with = "null_as_default")]
    requests: Amounts,
    #[serde(deserialize_with = "null_as_default")]
    limits: Amounts,
}

/// The resources that a container has, where it can be resized.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerStatus {
    name: Text,
    resources: Option<Resources>,
    #[serde(deserialize_with = "null_as_default")]
    allocated_resources: Amounts,
}

#[derive(Clone, Copy)]
pub(super) enum Of {
    Requests,
    Limits,
}

impl Resources {
    fn of(&self, half: Of) -> &Amounts {
        match half {
            Of::Requests => &self.requests,
            Of::Limits => &self.limits,
        }
    }
}

pub(super) fn total(spec: &Spec, status: &Status, half: Of) -> Result<Amounts, TooLarge> {
    let mut total = of_containers(spec, status, half)?;
    if let Some(of_pod) = &spec.resources {
        let of_half = of_pod.of(half).iter();
        total.extend(of_half.filter(|(name, _)| is_of_whole_pods(name)).map(|(name, amount)| (name.clone(), *amount)));
    }
    match half {
        Of::Requests => add(&mut total, &spec.overhead)?,
        // A limit that is not there, or 0, is no limit.
        Of::Limits => {
            for (name, overhead) in &spec.overhead {
                if let Some(limit) = total.get_mut(name).filter(|limit| !limit.is_zero()) {
                    add_to(limit, *overhead)?;
                }
            }
        }
    }
    Ok(total)
}

/// Upstream: `IsSupportedPodLevelResource`.
fn is_of_whole_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES)
}

/// Containers run together with all sidecars, and each init container with the sidecars before it.
///
/// Upstream: `AggregateContainerRequests` and `AggregateContainerLimits`.
fn of_containers(spec: &Spec, status: &Status, half: Of) -> Result<Amounts, TooLarge> {
    let statuses = status.container_statuses.iter().chain(&status.init_container_statuses);
    let statuses: BTreeMap<&str, &ContainerStatus> = statuses.map(|status| (&*status.name, status)).collect();
    let is_infeasible = is_resize_infeasible(status);
    let effective =
        |container: &Container| effective(container, statuses.get(&*container.name).copied(), half, is_infeasible);
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &effective(container))?;
    }
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in &spec.init_containers {
        if container.restart_policy.as_deref() == Some("Always") {
            let own = effective(container);
            add(&mut total, &own)?;
            add(&mut sidecars, &own)?;
            raise(&mut most, &sidecars);
        } else {
            let mut own = container.resources.of(half).clone();
            add(&mut own, &sidecars)?;
            raise(&mut most, &own);
        }
    }
    raise(&mut total, &most);
    Ok(total)
}

/// Upstream: `determineEffectiveRequests` and `determineEffectiveLimits`.
fn effective(container: &Container, status: Option<&ContainerStatus>, half: Of, is_infeasible: bool) -> Amounts {
    let asked = container.resources.of(half);
    let Some(ContainerStatus { name: _, resources: Some(has), allocated_resources }) = status else {
        return asked.clone();
    };
    let mut effective = if is_infeasible { Amounts::new() } else { asked.clone() };
    raise(&mut effective, has.of(half));
    if matches!(half, Of::Requests) {
        raise(&mut effective, allocated_resources);
    }
    effective
}

/// Upstream: `IsPodResizeInfeasible`.
fn is_resize_infeasible(status: &Status) -> bool {
    find(&status.conditions, "PodResizePending").is_some_and(|pending| pending.reason == "Infeasible")
}

/// Whether a pod asks for no CPU and no memory, as its status says or its spec.
///
/// Upstream: `GetPodQOS` and `ComputePodQOS`, `pkg/apis/core/v1/helper/qos/qos.go`.
pub(super) fn is_best_effort(spec: &Spec, status: &Status) -> bool {
    if !status.qos_class.is_empty() {
        return status.qos_class == "BestEffort";
    }
    let asks = |resources: &Resources| {
        let mut amounts = resources.requests.iter().chain(&resources.limits);
        amounts.any(|(name, amount)| matches!(&**name, "cpu" | "memory") && *amount > Quantity::ZERO)
    };
    match &spec.resources {
        Some(of_pod) => !asks(of_pod),
        None => !spec.containers.iter().chain(&spec.init_containers).any(|container| asks(&container.resources)),
    }
}
