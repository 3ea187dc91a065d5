use serde_json::json;

use super::*;
use crate::preflight::roles::of_manifest;

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn held(ago: i64) -> Lookup<Lease> {
    let renewed = now().checked_sub(jiff::SignedDuration::from_secs(ago)).unwrap();
    Lookup::Found(Lease { holder: "a_b".to_owned(), renewed: Some(renewed), acquired: None, seconds: 15 })
}

/// All as `kubectl apply -k` and kube-controller-manager leave it, before the takeover.
fn installed() -> Facts {
    let operator = "deployment-operator".to_owned();
    let wanted = of_manifest(&operator).unwrap().remove(0);
    let binding = json!({
        "roleRef": { "name": operator },
        "subjects": [{ "kind": "ServiceAccount", "namespace": "kube-system", "name": operator }],
    });
    let container = json!({ "image": "operators.local/deployment-operator:v0.1.0", "args": ["--secure-port=10257"] });
    let deployment = json!({
        "spec": { "replicas": 2, "template": { "spec": { "containers": [container] } } },
        "status": { "readyReplicas": 2 },
    });
    Facts {
        operator,
        namespace: "kube-system".to_owned(),
        now: now(),
        lease: Lookup::Absent,
        manager: Manager { lease: held(1), controllers: Some("*".to_owned()), is_replaced: false },
        manager_flags: Some(Flags::new()),
        own_flags: Flags::new(),
        roles: vec![Bound {
            role: Lookup::Found(json!({ "rules": wanted.rules })),
            wanted,
            binding: Lookup::Found(binding),
        }],
        account: Lookup::Found(json!({})),
        deployment: Lookup::Found(deployment),
        pods: Vec::new(),
        denied: Vec::new(),
    }
}

/// The texts of all checks that are not fine.
fn said(change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let mut facts = installed();
    change(&mut facts);
    let checks = facts.checks();
    let told = checks.iter().filter(|check| check.level != Level::Fine);
    told.map(|Check { about, level, text }| format!("{level:?} {about}: {text}")).collect()
}

#[test]
fn nothing_is_said_where_all_is_as_it_should_be() {
    assert_eq!(said(|_| ()), [""; 0]);
}

#[test]
fn two_at_work_are_a_problem() {
    let row = |lease: Lookup<Lease>, manager: Manager, expected: &[&str]| {
        let found = said(|facts| (facts.lease, facts.manager) = (lease.clone(), manager.clone()));
        assert_eq!(found, expected, "{lease:?} {manager:?}");
    };
    let manager = |lease, controllers: Option<&str>| Manager {
        lease,
        controllers: controllers.map(str::to_owned),
        is_replaced: false,
    };
    let off = Some("*,-deployment-controller");
    row(held(90), manager(held(1), Some("*")), &[]);
    row(
        held(1),
        manager(held(1), Some("*")),
        &[
            "Problem lease: a holds Lease kube-system/deployment-operator, and kube-controller-manager also runs deployment-controller",
        ],
    );
    row(
        held(1),
        manager(held(1), off),
        &["Warning lease: a holds Lease kube-system/deployment-operator: the operator is already running"],
    );
    row(Lookup::Absent, manager(held(1), off), &["Warning lease: deployment-controller is not running"]);
    row(
        Lookup::Absent,
        manager(held(1), None),
        &[
            "Unknown lease: kube-controller-manager is running, but its --controllers is not visible: it must not run deployment-controller when the operator takes over",
        ],
    );
    row(
        Lookup::Unreadable,
        manager(Lookup::Unreadable, None),
        &[
            "Unknown lease: cannot tell what runs deployment-controller: its Lease or kube-controller-manager's is not readable",
        ],
    );
}

#[test]
fn a_controller_of_one_process_is_taken_from_its_flags_before_a_takeover() {
    let by_process = |is_replaced| {
        move |facts: &mut Facts| {
            let lease = held(1).known().cloned().unwrap();
            facts.lease = Lookup::Found(Lease { holder: "kube-system/kube-controller-manager".to_owned(), ..lease });
            facts.manager.is_replaced = is_replaced;
        }
    };
    assert_eq!(said(by_process(true)), [""; 0]);
    assert_eq!(
        said(by_process(false)),
        [
            "Problem lease: kube-system/kube-controller-manager holds Lease kube-system/deployment-operator, and kube-controller-manager also runs deployment-controller",
        ]
    );
}

#[test]
fn a_role_that_differs_from_the_manifest_is_named() {
    let without = |facts: &mut Facts| {
        let mut rules = facts.roles[0].wanted.rules.clone();
        rules.retain(|rule| rule.resources != Some(vec!["deployments/status".to_owned()]));
        facts.roles[0].role = Lookup::Found(json!({ "rules": rules }));
    };
    assert_eq!(
        said(without),
        ["Problem role: ClusterRole deployment-operator does not grant patch deployments.apps/status"]
    );
    let beyond = |facts: &mut Facts| {
        let mut rules = facts.roles[0].wanted.rules.clone();
        let list = |text: &str| Some(vec![text.to_owned()]);
        let verbs = vec!["delete".to_owned()];
        rules.push(PolicyRule { verbs, api_groups: list(""), resources: list("nodes"), ..PolicyRule::default() });
        facts.roles[0].role = Lookup::Found(json!({ "rules": rules }));
    };
    assert_eq!(
        said(beyond),
        ["Warning role: ClusterRole deployment-operator grants more than this version needs: delete nodes"]
    );
    assert_eq!(
        said(|facts| facts.roles[0].role = Lookup::Found(json!({ "rules": "none" }))),
        ["Problem role: ClusterRole deployment-operator has invalid rules"]
    );
    assert_eq!(
        said(|facts| {
            facts.roles[0].binding = Lookup::Found(json!({ "roleRef": { "name": "deployment-operator" } }));
            facts.account = Lookup::Absent;
        }),
        [
            "Problem role: ClusterRoleBinding deployment-operator does not bind ServiceAccount kube-system/deployment-operator to its ClusterRole",
            "Problem role: ServiceAccount kube-system/deployment-operator not found",
        ]
    );
}

#[test]
fn a_role_of_one_namespace_is_named_with_it() {
    let of_namespace = |facts: &mut Facts| {
        let wanted = Role { namespace: "kube-public".to_owned(), rules: Vec::new() };
        facts.roles.push(Bound { wanted, role: Lookup::Unreadable, binding: Lookup::Absent });
    };
    assert_eq!(
        said(of_namespace),
        [
            "Unknown role: Role kube-public/deployment-operator is not readable",
            "Problem role: RoleBinding kube-public/deployment-operator not found",
        ]
    );
}

#[test]
fn what_was_never_installed_is_one_note() {
    let nothing = |facts: &mut Facts| {
        (facts.roles[0].role, facts.roles[0].binding) = (Lookup::Absent, Lookup::Absent);
        facts.account = Lookup::Absent;
        facts.deployment = Lookup::Absent;
    };
    assert_eq!(
        said(nothing),
        ["Warning installation: not installed yet: `kubectl apply -k manifests/deployment-operator`"]
    );
}

#[test]
fn an_image_is_there_once_a_pod_was_started_from_it() {
    let deployment = |replicas: i64, ready: i64| {
        let mut deployment = installed().deployment.known().cloned().unwrap();
        deployment["spec"]["replicas"] = replicas.into();
        deployment["status"]["readyReplicas"] = ready.into();
        Lookup::Found(deployment)
    };
    let image = "operators.local/deployment-operator:v0.1.0";
    let of = "Deployment kube-system/deployment-operator";
    assert_eq!(said(|facts| facts.deployment = deployment(2, 1)), [""; 0]);
    assert_eq!(
        said(|facts| facts.deployment = deployment(2, 0)),
        [format!("Problem image: {image}: no pod of {of} is ready")]
    );
    assert_eq!(
        said(|facts| facts.deployment = deployment(0, 0)),
        [format!("Unknown image: {image}: {of} is scaled to zero")]
    );
    let waiting =
        json!({ "status": { "containerStatuses": [{ "state": { "waiting": { "reason": "ErrImagePull" } } }] } });
    assert_eq!(said(|facts| facts.pods = vec![waiting]), [format!("Problem image: cannot pull {image}")]);
}

#[test]
fn an_operator_of_a_process_with_several_needs_no_deployment() {
    let of_family = |ago: i64| {
        let lease = held(ago).known().cloned().unwrap();
        Lookup::Found(Lease { holder: "kube-system/workloads-group-operator".to_owned(), ..lease })
    };
    let off = Manager { lease: Lookup::Absent, controllers: None, is_replaced: false };
    let image = |lease: Lookup<Lease>| {
        let found = said(|facts| {
            (facts.lease, facts.manager, facts.deployment) = (lease, off.clone(), Lookup::Absent);
        });
        found.into_iter().filter(|text| text.contains(" image: ")).collect::<Vec<_>>()
    };
    assert_eq!(image(of_family(1)), [""; 0]);
    let missing = "Problem image: Deployment kube-system/deployment-operator not found";
    assert_eq!(image(of_family(90)), [missing]);
    assert_eq!(image(held(1)), [missing]);
}

#[test]
fn a_right_that_the_caller_lacks_is_a_problem() {
    let right = Right {
        verb: "list".to_owned(),
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        name: String::new(),
        namespace: String::new(),
    };
    assert_eq!(
        said(|facts| facts.denied = vec![right]),
        ["Problem rights: you lack permission to list deployments.apps"]
    );
}

#[test]
fn another_minor_version_is_said() {
    let row = |version: &str, level, expected: &str| {
        let found = server(version, "v1.36.3");
        assert_eq!((found.level, found.text.as_str()), (level, expected));
    };
    row("v1.36.0+k3s1", Level::Fine, "the cluster runs v1.36.0+k3s1, the operators implement v1.36.3");
    let skew = "the cluster runs v1.35.2, the operators implement v1.36.3: a takeover also changes the version of its controllers";
    row("v1.35.2", Level::Warning, skew);
    row("", Level::Unknown, "cannot parse the cluster's version \"\"");
}
