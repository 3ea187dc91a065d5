//! The trouble of one pod: whichever component has to act next.

use jiff::SignedDuration;

use crate::cause::trouble::Trouble;
use crate::evidence::Evidence;
use crate::object::Object;
use crate::words::line;

/// Age below which a pod counts as starting.
const NEW: SignedDuration = SignedDuration::from_secs(10);

const IMAGE_REASONS: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
    "ImageInspectError",
];
const START_REASONS: [&str; 5] =
    ["CreateContainerError", "RunContainerError", "PostStartHookError", "PreCreateHookError", "PreStartHookError"];

pub(crate) fn is_active(pod: Object<'_>) -> bool {
    pod.deleted().is_none() && !["Succeeded", "Failed"].contains(&pod.text("/status/phase"))
}

pub(crate) fn is_ready(pod: Object<'_>) -> bool {
    is_active(pod) && pod.holds("Ready")
}

/// None for a pod that is ready or completed.
pub(crate) fn trouble(evidence: &Evidence, pod: Object<'_>) -> Option<Trouble> {
    if pod.text("/status/phase") == "Succeeded" || is_ready(pod) {
        return None;
    }
    if let Some(node) = lost_node(evidence, pod) {
        return Some(Trouble::NodeLost { node: node.to_owned() });
    }
    if pod.deleted().is_some() {
        let finalizers = pod.texts("/metadata/finalizers").into_iter().map(str::to_owned).collect();
        return Some(Trouble::Ending { finalizers });
    }
    if pod.text("/status/phase") == "Failed" {
        return Some(failed(pod));
    }
    if pod.text("/spec/nodeName").is_empty() {
        return Some(unscheduled(evidence, pod));
    }
    let found = of_init(evidence, pod).or_else(|| of_containers(evidence, pod));
    Some(found.or_else(|| of_gates(pod)).unwrap_or(Trouble::Starting))
}

/// The pod's node, if it does not respond.
fn lost_node<'a>(evidence: &Evidence, pod: Object<'a>) -> Option<&'a str> {
    let name = pod.text("/spec/nodeName");
    let node = evidence.of_kind("Node").find(|node| node.name() == name);
    let is_lost = node.and_then(|node| node.condition("Ready")).is_some_and(|ready| ready.status == "Unknown");
    (!name.is_empty() && (is_lost || pod.text("/status/reason") == "NodeLost")).then_some(name)
}

fn failed(pod: Object<'_>) -> Trouble {
    let ended = statuses(pod).find(|status| status.count("/state/terminated/exitCode") != 0);
    let reason = pod.text("/status/reason");
    match ended {
        Some(status) if reason.is_empty() => crashed(pod, status, "/state/terminated"),
        Some(_) | None => {
            let reason = if reason.is_empty() { "Failed" } else { reason };
            Trouble::Failed { reason: reason.to_owned(), message: line(pod.text("/status/message")) }
        }
    }
}

fn unscheduled(evidence: &Evidence, pod: Object<'_>) -> Trouble {
    let said = pod.condition("PodScheduled").filter(|condition| condition.status == "False");
    match said {
        Some(condition) if condition.reason == "SchedulingGated" => {
            let gates = pod.list("/spec/schedulingGates").map(|gate| gate.text("/name").to_owned()).collect();
            Trouble::Gated { gates }
        }
        Some(condition) => Trouble::Unschedulable { message: line(condition.message) },
        None if pod.created().is_some_and(|created| evidence.now.duration_since(created) < NEW) => Trouble::Starting,
        None => Trouble::Unseen { scheduler: pod.text("/spec/schedulerName").to_owned() },
    }
}

fn statuses(pod: Object<'_>) -> impl Iterator<Item = Object<'_>> {
    pod.list("/status/initContainerStatuses").chain(pod.list("/status/containerStatuses"))
}

/// Init containers run in order; a sidecar counts as done once it is started and ready.
fn of_init(evidence: &Evidence, pod: Object<'_>) -> Option<Trouble> {
    let all: Vec<Object<'_>> = pod.list("/status/initContainerStatuses").collect();
    let is_done = |status: &&Object<'_>| {
        status.number("/state/terminated/exitCode") == Some(0) || (status.is("/started") && status.is("/ready"))
    };
    let done = all.iter().filter(is_done).count();
    let current = *all.iter().find(|status| !is_done(status))?;
    let container = current.text("/name").to_owned();
    if current.has("/state/running") {
        return Some(Trouble::Init { container, done, of: all.len() });
    }
    of_container(evidence, pod, current)
}

fn of_containers(evidence: &Evidence, pod: Object<'_>) -> Option<Trouble> {
    let found = pod.list("/status/containerStatuses").filter(|status| !status.is("/ready"));
    let mut found: Vec<Trouble> = found.filter_map(|status| of_container(evidence, pod, status)).collect();
    if found.is_empty() && pod.list("/status/containerStatuses").next().is_none() {
        found.extend(of_preparation(evidence, pod));
    }
    found.into_iter().max_by_key(Trouble::weight)
}

fn of_container(evidence: &Evidence, pod: Object<'_>, status: Object<'_>) -> Option<Trouble> {
    let container = status.text("/name").to_owned();
    let (reason, message) = (status.text("/state/waiting/reason"), line(status.text("/state/waiting/message")));
    if IMAGE_REASONS.contains(&reason) {
        let image = status.text("/image").to_owned();
        return Some(Trouble::Image { container, image, reason: reason.to_owned(), message });
    }
    if reason == "CreateContainerConfigError" {
        return Some(Trouble::Config { container, message });
    }
    if START_REASONS.contains(&reason) {
        return Some(Trouble::Start { container, message });
    }
    if reason == "CrashLoopBackOff" {
        return Some(crashed(pod, status, "/lastState/terminated"));
    }
    if status.has("/state/terminated") {
        let well = status.number("/state/terminated/exitCode") == Some(0);
        return (!well || status.count("/restartCount") > 0).then(|| crashed(pod, status, "/state/terminated"));
    }
    if status.has("/state/running") {
        return Some(not_ready(evidence, pod, status));
    }
    of_preparation(evidence, pod)
}

fn crashed(pod: Object<'_>, status: Object<'_>, ended: &str) -> Trouble {
    let container = status.text("/name").to_owned();
    let restarts = status.count("/restartCount");
    if status.text(&format!("{ended}/reason")) == "OOMKilled" {
        let own = pod.list("/spec/containers").chain(pod.list("/spec/initContainers"));
        let own = own.filter(|spec| spec.text("/name") == container);
        let limit = own.map(|spec| spec.text("/resources/limits/memory")).find(|limit| !limit.is_empty());
        return Trouble::OutOfMemory { container, limit: limit.unwrap_or_default().to_owned(), restarts };
    }
    let reason = status.text(&format!("{ended}/reason"));
    let reason = if reason.is_empty() { "Error" } else { reason }.to_owned();
    Trouble::CrashLoop { container, exit_code: status.count(&format!("{ended}/exitCode")), reason, restarts }
}

fn not_ready(evidence: &Evidence, pod: Object<'_>, status: Object<'_>) -> Trouble {
    if status.text("/lastState/terminated/reason") == "OOMKilled" {
        return crashed(pod, status, "/lastState/terminated");
    }
    let said = evidence.event(pod, &["Unhealthy"]).map(|event| line(event.text("/message")));
    let is_new = status.time("/state/running/startedAt").is_some_and(|at| evidence.now.duration_since(at) < NEW);
    if said.is_none() && is_new {
        return Trouble::Starting;
    }
    Trouble::NotReady { container: status.text("/name").to_owned(), message: said.unwrap_or_default() }
}

fn of_preparation(evidence: &Evidence, pod: Object<'_>) -> Option<Trouble> {
    let event =
        evidence.event(pod, &["FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox"])?;
    let message = line(event.text("/message"));
    let is_sandbox = event.text("/reason") == "FailedCreatePodSandBox";
    Some(if is_sandbox { Trouble::Sandbox { message } } else { Trouble::Volume { message } })
}

fn of_gates(pod: Object<'_>) -> Option<Trouble> {
    let started = pod.holds("ContainersReady");
    let gates = pod.list("/spec/readinessGates").map(|gate| gate.text("/conditionType"));
    let closed = gates.into_iter().find(|gate| !pod.holds(gate));
    closed.filter(|_| started).map(|gate| Trouble::ReadinessGate { gate: gate.to_owned() })
}
