//! The usage of one kind: a sum over its objects for each limit, 0 where there are none.
//!
//! Upstream: `CalculateUsageStats`, `staging/src/k8s.io/apiserver/pkg/quota/v1/generic/evaluator.go`, and `Usage` of
//! each evaluator, `pkg/quota/v1/evaluator/core`.

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::quantity::Quantity;

use super::extended_resources::ExtendedResources;
use super::scopes::{has_claim, has_pod};
use crate::objects::amounts::{add_to, count};
use crate::objects::evaluator::{
    CLAIMS_OF_CLASS, DEVICES, HUGE_PAGES, LIMITS, REQUESTS, STORAGE_OF_CLASS, extended_resource, is_extended,
};
use crate::objects::{Amounts, ClaimFacts, PodFacts, ResourceClaimFacts, Scope, ServiceFacts, TooLarge};
use crate::observe::Objects;

pub fn usage(
    objects: &Objects,
    names: &[Text],
    scopes: &[Scope],
    extended: ExtendedResources<'_>,
    now: Timestamp,
) -> Result<Amounts, TooLarge> {
    match objects {
        Objects::Pods(pods) => {
            let in_scope = |pod: &&PodFacts| scopes.iter().all(|scope| has_pod(scope, pod));
            let pods: Vec<&PodFacts> = pods.iter().filter(in_scope).collect();
            sum(&pods, names, |pod, name| of_pod(pod, name, now))
        }
        Objects::Claims(claims) => {
            let in_scope = |claim: &&ClaimFacts| scopes.iter().all(|scope| has_claim(scope, claim));
            let claims: Vec<&ClaimFacts> = claims.iter().filter(in_scope).collect();
            sum(&claims, names, |claim, name| of_claim(claim, name))
        }
        Objects::Services(services) => {
            sum(in_no_scope(services, scopes), names, |service, name| Some(of_service(service, name)))
        }
        Objects::ResourceClaims(claims) => sum(in_no_scope(claims, scopes), names, |claim, name| {
            let Some(resource) = extended_resource(name) else { return of_resource_claim(claim, name) };
            extended.claimed(claim, resource, claims, now)
        }),
        Objects::DeviceClasses(_) => Ok(Amounts::new()),
        Objects::Number(number) => {
            let number = if scopes.is_empty() { *number } else { 0 };
            Ok(names.iter().map(|name| (name.clone(), count(number))).collect())
        }
    }
}

fn in_no_scope<'a, T>(objects: &'a [T], scopes: &[Scope]) -> &'a [T] {
    if scopes.is_empty() { objects } else { &[] }
}

fn sum<T>(
    objects: &[T],
    names: &[Text],
    amount_of: impl Fn(&T, &str) -> Option<Quantity>,
) -> Result<Amounts, TooLarge> {
    let mut sums = Amounts::new();
    for name in names {
        let mut sum = Quantity::ZERO;
        for amount in objects.iter().filter_map(|object| amount_of(object, name)) {
            add_to(&mut sum, amount)?;
        }
        sums.insert(name.clone(), sum);
    }
    Ok(sums)
}

/// Upstream: `PodUsageFunc` and `podComputeUsageHelper`, `pkg/quota/v1/evaluator/core/pods.go`.
fn of_pod(pod: &PodFacts, name: &str, now: Timestamp) -> Option<Quantity> {
    if name == "count/pods" {
        return Some(count(1));
    }
    if !pod.counts(now) {
        return None;
    }
    if let Some(limited) = name.strip_prefix(LIMITS) {
        return pod.charge.limit(limited);
    }
    let plain = name.strip_prefix(REQUESTS);
    match plain.unwrap_or(name) {
        "pods" => Some(count(1)),
        requested @ ("cpu" | "memory" | "ephemeral-storage") => pod.charge.request(requested),
        requested if requested.starts_with(HUGE_PAGES) => pod.charge.request(requested),
        requested if plain.is_some() && is_extended(requested) => pod.charge.request(requested),
        _ => None,
    }
}

/// Upstream: `Usage`, `pkg/quota/v1/evaluator/core/services.go`.
fn of_service(service: &ServiceFacts, name: &str) -> Quantity {
    match name {
        "services.nodeports" => count(service.node_ports),
        "services.loadbalancers" => count(u8::from(service.is_load_balancer)),
        _ => count(1),
    }
}

/// Upstream: `Usage`, `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`.
fn of_claim(claim: &ClaimFacts, name: &str) -> Option<Quantity> {
    let is_of = |class: &str| claim.class.as_deref() == Some(class);
    match name {
        "count/persistentvolumeclaims" | "persistentvolumeclaims" => Some(count(1)),
        "requests.storage" => claim.storage,
        _ => match (name.strip_suffix(CLAIMS_OF_CLASS), name.strip_suffix(STORAGE_OF_CLASS)) {
            (Some(class), _) if is_of(class) => Some(count(1)),
            (_, Some(class)) if is_of(class) => claim.storage,
            _ => None,
        },
    }
}

/// Upstream: `Usage`, `pkg/quota/v1/evaluator/core/resource_claims.go`.
fn of_resource_claim(claim: &ResourceClaimFacts, name: &str) -> Option<Quantity> {
    match name.strip_suffix(DEVICES) {
        Some(class) => claim.devices.get(class).map(|number| count(*number)),
        None => Some(count(1)),
    }
}
