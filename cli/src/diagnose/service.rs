//! The endpoints of a Service, and why it has none.

use shared::api::labels::Labels;

use crate::cause::Cause;
use crate::cause::service::Services;
use crate::diagnose::{operators, pods};
use crate::evidence::Evidence;
use crate::object::Object;
use crate::words::nearest;

pub(crate) fn cause(evidence: &Evidence, service: Object<'_>) -> Cause {
    let found = if service.text("/spec/type") == "ExternalName" {
        Services::ExternalName { name: service.text("/spec/externalName").to_owned() }
    } else {
        let found = of_selector(evidence, service);
        let is_led = matches!(found, Services::Leads { .. } | Services::NoSelector { .. });
        let missing = if is_led { without_address(evidence, service) } else { None };
        missing.unwrap_or(found)
    };
    found.into()
}

/// The operator of load balancers.
const BALANCERS: &str = "service-lb-operator";

/// The reasons of events about a load balancer that is missing.
const NO_BALANCER: [&str; 2] = ["SyncLoadBalancerFailed", "AddressNotAssigned"];

fn without_address(evidence: &Evidence, service: Object<'_>) -> Option<Services> {
    let wants_one = service.text("/spec/type") == "LoadBalancer";
    if !wants_one || service.list("/status/loadBalancer/ingress").next().is_some() {
        return None;
    }
    let class = service.text("/spec/loadBalancerClass").to_owned();
    // The operator also answers about Services of other classes, which it leaves alone.
    let is_left_alone = operators::decides(evidence, BALANCERS, service, "notWanted");
    let word = if is_left_alone { None } else { operators::word_of(evidence, BALANCERS, service) };
    let told = || evidence.event(service, &NO_BALANCER).map(|event| event.text("/message").to_owned());
    let word = word.or_else(told).unwrap_or_default();
    Some(Services::NoAddress { class, word })
}

fn endpoints(evidence: &Evidence, service: Object<'_>) -> (i64, i64) {
    let is_its = |slice: &Object<'_>| {
        slice.namespace() == service.namespace()
            && slice.text("/metadata/labels/kubernetes.io~1service-name") == service.name()
    };
    let slices: Vec<Object<'_>> = evidence.of_kind("EndpointSlice").filter(is_its).collect();
    // A dual-stack pod has an endpoint in each family.
    let families: Vec<&str> = slices.iter().map(|slice| slice.text("/addressType")).collect();
    let first = families.iter().min().copied().unwrap_or_default();
    let own = slices.iter().filter(|slice| slice.text("/addressType") == first);
    let all: Vec<Object<'_>> = own.flat_map(|slice| slice.list("/endpoints")).collect();
    let ready = all.iter().filter(|endpoint| !endpoint.has("/conditions/ready") || endpoint.is("/conditions/ready"));
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    (number(ready.count()), number(all.len()))
}

fn text(labels: &Labels) -> String {
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

/// Pods that match all labels but one.
fn similar(evidence: &Evidence, service: Object<'_>, selector: &Labels) -> Vec<String> {
    let near = |pod: Object<'_>| {
        let labels = pod.labels("/metadata/labels");
        let wrong: Vec<&str> =
            selector.iter().filter(|(key, value)| labels.get(key) != Some(value)).map(|(key, _)| key).collect();
        let [key] = wrong[..] else { return None };
        // With one label, most pods have another value; only a similar value may be meant.
        let (value, wanted) = (labels.get(key), selector.get(key).unwrap_or_default());
        let is_near = selector.iter().count() > 1 || !nearest(wanted, value.into_iter(), 1).is_empty();
        let has = value.map_or_else(|| format!("no {key}"), |value| format!("{key}={value}"));
        is_near.then(|| format!("pod/{} with {has}", pod.name()))
    };
    let pods = evidence.of_kind("Pod").filter(|pod| pod.namespace() == service.namespace());
    pods.filter_map(near).take(3).collect()
}

fn of_selector(evidence: &Evidence, service: Object<'_>) -> Services {
    let selector = service.labels("/spec/selector");
    let (published, all) = endpoints(evidence, service);
    if selector.is_empty() {
        return Services::NoSelector { endpoints: all };
    }
    let is_its = |pod: &Object<'_>| {
        pod.namespace() == service.namespace()
            && pods::is_active(*pod)
            && pod.labels("/metadata/labels").contains_all(&selector)
    };
    let own: Vec<Object<'_>> = evidence.of_kind("Pod").filter(is_its).collect();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    if own.is_empty() && all == 0 {
        let similar = similar(evidence, service, &selector);
        return Services::SelectsNothing { selector: text(&selector), similar };
    }
    if let Some((port, pod)) = unknown_port(service, &own) {
        return Services::UnknownPort { port, pod };
    }
    let counts_all = service.is("/spec/publishNotReadyAddresses");
    let ready = own.iter().filter(|pod| counts_all || pods::is_ready(**pod)).count();
    if let Some(pod) = own.first().filter(|_| ready == 0) {
        let trouble = pods::trouble(evidence, *pod).map(|trouble| trouble.to_string()).unwrap_or_default();
        return Services::NoneReady { pods: number(own.len()), example: format!("{}: {trouble}", pod.name()) };
    }
    if published != number(ready) && !own.is_empty() {
        return Services::NotPublished { ready: number(ready), endpoints: published };
    }
    Services::Leads { ready: published, endpoints: all }
}

/// A target port whose name no pod has.
fn unknown_port(service: Object<'_>, own: &[Object<'_>]) -> Option<(String, String)> {
    let has = |pod: &Object<'_>, name: &str| {
        let containers = pod.list("/spec/containers").chain(pod.list("/spec/initContainers"));
        containers.flat_map(|container| container.list("/ports")).any(|port| port.text("/name") == name)
    };
    let names = service.list("/spec/ports").map(|port| port.text("/targetPort")).filter(|name| !name.is_empty());
    let first = own.first()?;
    let unknown = names.into_iter().find(|name| !own.iter().any(|pod| has(pod, name)))?;
    Some((unknown.to_owned(), format!("pod/{}", first.name())))
}
