//! What runs a controller, judged by Leases, by kube-controller-manager's `--controllers` and by its writes.

use facts::needs_cloud;
use jiff::Timestamp;
use serde::Serialize;

use crate::kinds;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;

/// Controllers that `*` does not enable.
///
/// Upstream: `ControllersDisabledByDefault`, cmd/kube-controller-manager/names and each descriptor's `isDisabledByDefault`.
const OFF_BY_DEFAULT: [&str; 3] =
    ["bootstrap-signer-controller", "token-cleaner-controller", "selinux-warning-controller"];

/// Other names that `--controllers` accepts, besides the name without `-controller`.
///
/// Upstream: the `aliases` of each descriptor, cmd/kube-controller-manager/app. Any other name is refused there.
const ALIASES: [(&str, &str); 20] = [
    ("attachdetach", "persistentvolume-attach-detach-controller"),
    ("bootstrapsigner", "bootstrap-signer-controller"),
    ("csrapproving", "certificatesigningrequest-approving-controller"),
    ("csrcleaner", "certificatesigningrequest-cleaner-controller"),
    ("csrsigning", "certificatesigningrequest-signing-controller"),
    ("endpoint", "endpoints-controller"),
    ("endpointslicemirroring", "endpointslice-mirroring-controller"),
    ("garbagecollector", "garbage-collector-controller"),
    ("horizontalpodautoscaling", "horizontal-pod-autoscaler-controller"),
    ("legacy-service-account-token-cleaner", "legacy-serviceaccount-token-cleaner-controller"),
    ("nodeipam", "node-ipam-controller"),
    ("nodelifecycle", "node-lifecycle-controller"),
    ("podgc", "pod-garbage-collector-controller"),
    ("pv-protection", "persistentvolume-protection-controller"),
    ("pvc-protection", "persistentvolumeclaim-protection-controller"),
    ("resource-claim-controller", "resourceclaim-controller"),
    ("root-ca-cert-publisher", "root-ca-certificate-publisher-controller"),
    ("storage-version-gc", "storageversion-garbage-collector-controller"),
    ("svm", "storage-version-migrator-controller"),
    ("tokencleaner", "token-cleaner-controller"),
];

#[derive(Clone, Debug, Default)]
pub struct Manager {
    pub lease: Lookup<Lease>,
    /// If its pod is visible.
    pub controllers: Option<String>,
    /// Whether the process with several operators holds its Lease, in its place.
    pub is_replaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Runner {
    /// By an operator in a process of its own.
    Operator,
    /// By the process with several operators.
    Process,
    Manager,
    Both,
    Nobody,
    /// The Leases or flags are not readable.
    Unknown,
}

/// Whether kube-controller-manager is configured to run this controller; none if unknown.
///
/// Upstream: `IsControllerEnabled`, staging/src/k8s.io/controller-manager/app/helper.go.
pub fn is_on(manager: &Manager, controller: &str) -> Option<bool> {
    if is_of_cloud(controller) {
        return Some(false);
    }
    let words: Vec<&str> = manager.controllers.as_deref()?.split(',').map(str::trim).collect();
    let told = words.iter().find_map(|word| match word.strip_prefix('-') {
        Some(word) => is_called(controller, word).then_some(false),
        None => is_called(controller, word).then_some(true),
    });
    Some(told.unwrap_or_else(|| words.contains(&"*") && !OFF_BY_DEFAULT.contains(&controller)))
}

/// kube-controller-manager skips the controllers of clouds, and from 1.37 on does not know them.
fn is_of_cloud(controller: &str) -> bool {
    let operator = controller.strip_suffix("-controller").map(|name| format!("{name}-operator"));
    operator.is_some_and(|operator| needs_cloud(&operator))
}

fn is_called(controller: &str, word: &str) -> bool {
    let alias = ALIASES.iter().find(|(_, name)| *name == controller).map(|(alias, _)| *alias);
    word == controller || alias.or_else(|| controller.strip_suffix("-controller")) == Some(word)
}

/// `wrote`: kube-controller-manager wrote as this controller while the operator held its Lease.
pub fn runner(operator: &Lookup<Lease>, manager: &Manager, controller: &str, wrote: bool, now: Timestamp) -> Runner {
    let fresh = |lease: &Lookup<Lease>| match lease {
        Lookup::Found(lease) => Some(lease.is_fresh(now)),
        Lookup::Absent => Some(false),
        Lookup::Unreadable => None,
    };
    let theirs = match fresh(&manager.lease) {
        Some(true) if manager.is_replaced => Some(false),
        Some(true) => is_on(manager, controller),
        Some(false) => Some(false),
        None => None,
    };
    match (fresh(operator), theirs) {
        (Some(true), Some(true)) => Runner::Both,
        (Some(true), _) if wrote => Runner::Both,
        (Some(true), _) if operator.known().is_some_and(|lease| lease.common().is_some()) => Runner::Process,
        (Some(true), _) => Runner::Operator,
        (_, Some(true)) => Runner::Manager,
        // Its flags are unknown: assume that it runs what no operator runs.
        (Some(false), None) if fresh(&manager.lease) == Some(true) => Runner::Manager,
        (Some(false), Some(false)) => Runner::Nobody,
        (Some(false) | None, None) | (None, Some(false)) => Runner::Unknown,
    }
}

/// Time after which a write of kube-controller-manager shows that both run the controller; none unless both are
/// running. A restart with other flags acquires the Lease again.
pub fn both_since(operator: &Lookup<Lease>, manager: &Manager, now: Timestamp) -> Option<Timestamp> {
    let ours = operator.known().filter(|lease| lease.is_fresh(now))?.acquired?;
    match &manager.lease {
        Lookup::Found(lease) if lease.is_fresh(now) => Some(lease.acquired.map_or(ours, |theirs| theirs.max(ours))),
        Lookup::Found(_) | Lookup::Absent => None,
        Lookup::Unreadable => Some(ours),
    }
}

/// Last status write of kube-controller-manager, for kinds whose status only one controller writes.
pub fn manager_wrote(object: Object<'_>) -> Option<Timestamp> {
    if kinds::is_status_shared(object.group(), object.kind()) { None } else { manager_wrote_status(object) }
}

/// Last status write of kube-controller-manager, by any of its controllers.
pub fn manager_wrote_status(object: Object<'_>) -> Option<Timestamp> {
    let entries = object.list("/metadata/managedFields");
    let own = entries
        .filter(|entry| entry.text("/manager") == "kube-controller-manager" && entry.text("/subresource") == "status");
    own.filter_map(|entry| entry.time("/time")).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::CONTROLLERS;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn held(renewed: i64) -> Lookup<Lease> {
        let holder = "pod-a_b".to_owned();
        Lookup::Found(Lease { holder, renewed: Some(at(renewed)), acquired: Some(at(0)), seconds: 15 })
    }

    #[test]
    fn a_controller_is_run_by_whoever_holds_a_fresh_lease() {
        let all = Some("*,-deployment-controller".to_owned());
        let row = |ours: &Lookup<Lease>, theirs: &Lookup<Lease>, flags: &Option<String>, wrote, expected| {
            let manager = Manager { lease: theirs.clone(), controllers: flags.clone(), is_replaced: false };
            let found = runner(ours, &manager, "deployment-controller", wrote, at(20));
            assert_eq!(found, expected, "{ours:?} {theirs:?} {flags:?} {wrote}");
        };
        row(&held(15), &Lookup::Absent, &None, false, Runner::Operator);
        row(&held(15), &held(15), &None, false, Runner::Operator);
        row(&held(15), &held(15), &None, true, Runner::Both);
        row(&held(15), &held(15), &all, false, Runner::Operator);
        row(&held(15), &held(15), &Some("*".to_owned()), false, Runner::Both);
        row(&held(0), &held(15), &None, false, Runner::Manager);
        row(&held(0), &held(15), &all, false, Runner::Nobody);
        row(&held(0), &Lookup::Absent, &None, false, Runner::Nobody);
        row(&Lookup::Absent, &held(0), &None, false, Runner::Nobody);
        row(&Lookup::Unreadable, &Lookup::Absent, &None, false, Runner::Unknown);
        row(&Lookup::Unreadable, &held(15), &Some("*".to_owned()), false, Runner::Manager);
        row(&Lookup::Absent, &Lookup::Unreadable, &None, false, Runner::Unknown);
    }

    #[test]
    fn one_process_runs_what_it_holds_the_lease_of_and_nothing_else() {
        let by_process = |renewed| {
            let lease = held(renewed).known().cloned().unwrap();
            Lookup::Found(Lease { holder: "kube-system/kube-controller-manager".to_owned(), ..lease })
        };
        let row = |ours: &Lookup<Lease>, is_replaced, wrote, expected| {
            let manager = Manager { lease: held(15), controllers: Some("*".to_owned()), is_replaced };
            let found = runner(ours, &manager, "deployment-controller", wrote, at(20));
            assert_eq!(found, expected, "{ours:?} {is_replaced} {wrote}");
        };
        row(&by_process(15), true, false, Runner::Process);
        row(&by_process(15), true, true, Runner::Both);
        row(&by_process(15), false, false, Runner::Both);
        row(&by_process(0), true, false, Runner::Nobody);
        row(&held(15), true, false, Runner::Operator);
        row(&Lookup::Absent, true, false, Runner::Nobody);
    }

    #[test]
    fn what_the_star_leaves_out_is_off() {
        let on = |flags: &str, controller| {
            is_on(&Manager { controllers: Some(flags.to_owned()), ..Manager::default() }, controller)
        };
        assert_eq!(on("*", "job-controller"), Some(true));
        assert_eq!(on("*,-job-controller", "job-controller"), Some(false));
        assert_eq!(on("cronjob-controller", "job-controller"), Some(false));
        assert_eq!(on("*", "token-cleaner-controller"), Some(false));
        assert_eq!(on("*, token-cleaner-controller", "token-cleaner-controller"), Some(true));
        assert_eq!(is_on(&Manager::default(), "job-controller"), None);
    }

    #[test]
    fn kube_controller_manager_runs_no_controller_of_a_cloud() {
        for flags in [None, Some("*"), Some("*,service-lb-controller")] {
            let manager = Manager { lease: held(15), controllers: flags.map(str::to_owned), is_replaced: false };
            for controller in ["cloud-node-controller", "service-lb-controller", "node-route-controller"] {
                assert_eq!(is_on(&manager, controller), Some(false), "{flags:?} {controller}");
                assert_eq!(runner(&held(15), &manager, controller, false, at(20)), Runner::Operator);
            }
        }
    }

    #[test]
    fn a_controller_goes_by_its_former_name_too_and_the_first_word_counts() {
        let row = |flags: &str, controller, expected| {
            let manager = Manager { controllers: Some(flags.to_owned()), ..Manager::default() };
            assert_eq!(is_on(&manager, controller), Some(expected), "{flags} {controller}");
        };
        row("*,-deployment", "deployment-controller", false);
        row("*,-podgc", "pod-garbage-collector-controller", false);
        row("*,-root-ca-cert-publisher", "root-ca-certificate-publisher-controller", false);
        row("tokencleaner,*", "token-cleaner-controller", true);
        row("*,-job", "cronjob-controller", true);
        row("*,-resource-claim-controller", "resourceclaim-controller", false);
        row("*,-job,job-controller", "job-controller", false);
        row("job-controller,-job,*", "job-controller", true);
    }

    #[test]
    fn former_names_are_those_of_controllers() {
        for (alias, controller) in ALIASES {
            assert!(CONTROLLERS.iter().any(|(name, _)| *name == controller), "{controller}");
            assert!(!CONTROLLERS.iter().any(|(name, _)| *name == alias), "{alias}");
        }
    }

    #[test]
    fn a_write_counts_since_both_are_at_work() {
        let lease = held(15).known().cloned().unwrap();
        let at_work = |acquired| Lookup::Found(Lease { acquired: Some(at(acquired)), ..lease.clone() });
        let row = |ours: Lookup<Lease>, theirs: Lookup<Lease>, expected: Option<i64>| {
            let manager = Manager { lease: theirs, ..Manager::default() };
            assert_eq!(both_since(&ours, &manager, at(20)), expected.map(at), "{ours:?} {manager:?}");
        };
        row(at_work(5), at_work(3), Some(5));
        row(at_work(5), at_work(7), Some(7));
        row(at_work(5), Lookup::Unreadable, Some(5));
        row(at_work(5), Lookup::Absent, None);
        row(at_work(5), held(0), None);
        row(held(0), at_work(3), None);
        row(Lookup::Absent, at_work(3), None);
    }

    #[test]
    fn a_status_that_several_controllers_write_shows_nothing() {
        let wrote = |api_version: &str, kind: &str| {
            let time = at(1).to_string();
            let entry = json!({"manager": "kube-controller-manager", "subresource": "status", "time": time});
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"managedFields": [entry]}});
            manager_wrote(Object(&object))
        };
        assert_eq!(wrote("apps/v1", "Deployment"), Some(at(1)));
        assert_eq!(wrote("v1", "ReplicationController"), Some(at(1)));
        assert_eq!(wrote("v1", "Node"), None);
        assert_eq!(wrote("v1", "Pod"), None);
    }
}
