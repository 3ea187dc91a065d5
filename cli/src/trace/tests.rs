use jiff::Timestamp;
use serde_json::{Value, json};
use shared::api::explain::{Decision, Explanation, KeyState, Outcome, Role, Stage, Standing, Subject, Version};

use super::*;
use crate::evidence::{Asked, Evidence, Target};

/// Milliseconds after two o'clock.
fn at(milliseconds: i64) -> Timestamp {
    let two: Timestamp = "2026-11-22T14:00:00Z".parse().unwrap();
    Timestamp::from_millisecond(two.as_millisecond() + milliseconds).unwrap()
}

/// `pods team/web-a@12`.
fn version(text: &str) -> Version {
    let (resource, rest) = text.split_once(' ').unwrap();
    let (object, version) = rest.split_once('@').unwrap();
    Version { resource: resource.to_owned(), object: object.to_owned(), version: version.parse().unwrap() }
}

/// One decision of an operator about a key, and what led to it; `""` where no change did.
fn sync(operator: &str, key: &str, time: i64, cause: &str, decided: &str, wrote: &[&str]) -> (Asked, Decision) {
    let decision = Decision {
        time: at(time),
        first: at(time),
        count: 1,
        stages: vec![Stage { text: decided.to_owned(), reason: Value::Null }],
        outcome: Outcome::Done,
        error: None,
        cause: (!cause.is_empty()).then(|| version(cause)),
        wrote: wrote.iter().map(|text| version(text)).collect(),
        more_written: 0,
    };
    let state = KeyState {
        queue: operator.trim_end_matches("-operator").to_owned(),
        key: key.to_owned(),
        now: Vec::new(),
        last: vec![decision.clone()],
        standing: Standing::default(),
    };
    let (namespace, name) = key.split_once('/').unwrap();
    let object = Subject {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "things".to_owned(),
        namespace: namespace.to_owned(),
        name: format!("{name}-{time}"),
    };
    let answer = Explanation {
        operator: operator.to_owned(),
        version: String::new(),
        role: Role::Leader,
        time: at(time),
        object,
        keys: vec![state],
        caches: Vec::new(),
    };
    (Asked { operator: operator.to_owned(), answers: vec![answer], ..Asked::default() }, decision)
}

/// An object at a version, which these have changed, each at a second after two.
fn object(kind: &str, name: &str, version: u64, rest: &Value, writers: &[(&str, i64)]) -> Value {
    let fields = writers.iter().map(
        |(manager, second)| json!({ "manager": manager, "time": at(second * 1000).strftime("%FT%TZ").to_string() }),
    );
    let mut object = json!({
        "kind": kind,
        "apiVersion": if ["Pod", "Service"].contains(&kind) { "v1" } else { "apps/v1" },
        "metadata": { "name": name, "namespace": "team", "uid": name, "resourceVersion": version.to_string() },
    });
    for (key, value) in rest.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    object["metadata"]["managedFields"] = fields.collect();
    object
}

/// All that was said, of each key in the order of the rows.
fn evidence(syncs: &[(Asked, Decision)], objects: Vec<Value>) -> Evidence {
    let mut evidence = Evidence { objects, now: at(60_000), ..Evidence::default() };
    evidence.target = Target {
        group: "apps".to_owned(),
        kind: "Deployment".to_owned(),
        namespace: "team".to_owned(),
        name: "web".to_owned(),
        ..Target::default()
    };
    for (asked, decision) in syncs {
        let same = |known: &&mut Asked| {
            (&known.operator, &known.answers[0].keys[0].key) == (&asked.operator, &asked.answers[0].keys[0].key)
        };
        match evidence.operators.iter_mut().find(same) {
            Some(known) => known.answers[0].keys[0].last.insert(0, decision.clone()),
            None => evidence.operators.push(asked.clone()),
        }
    }
    evidence
}

fn told(evidence: &Evidence) -> Vec<String> {
    join(evidence).to_string().lines().map(str::to_owned).collect()
}

const WEB: &str = "deployments.apps team/web";
const SET: &str = "replicasets.apps team/web-6d4";

/// An edit of web, and all that came of it.
fn rollout() -> Vec<(Asked, Decision)> {
    let (web, set) = (|version| format!("{WEB}@{version}"), |version| format!("{SET}@{version}"));
    let mut created = sync("replicaset-operator", "team/web-6d4", 1_060, &set(12), "create 6", &[]);
    created.1.wrote = [14, 15, 16, 17].map(|v| version(&format!("pods team/web-{v}@{v}"))).to_vec();
    created.1.more_written = 2;
    created.0.answers[0].keys[0].last = vec![created.1.clone()];
    vec![
        sync("deployment-operator", "team/web", 1_012, &web(10), "new ReplicaSet web-6d4", &[&set(12), &web(13)]),
        created,
        sync(
            "endpointslice-operator",
            "team/web",
            2_500,
            "pods team/web-15@15",
            "update",
            &["endpointslices.discovery.k8s.io team/web-x@20"],
        ),
    ]
}

#[test]
fn an_edit_leads_through_all_operators_with_the_time_between() {
    let web = object("Deployment", "web", 10, &json!({ "generation": 4 }), &[("kubectl-edit", 1)]);
    assert_eq!(
        told(&evidence(&rollout(), vec![web])),
        [
            "web: 3 recorded syncs by 3 operators",
            "2026-11-22",
            "14:00:01     deployments/web@10, generation 4: changed by kubectl-edit",
            "14:00:01.012   +<1 s deployment-operator syncs web: new ReplicaSet web-6d4 -> wrote replicasets/web-6d4@12, deployments/web@13",
            "14:00:01.060     +48 ms replicaset-operator syncs web-6d4 due to replicasets/web-6d4@12: create 6 -> wrote pods/web-14@14, pods/web-15@15, pods/web-16@16, pods/web-17@17, 2 more",
            "14:00:02.500       +1.4 s endpointslice-operator syncs web due to pods/web-15@15: update -> wrote endpointslices/web-x@20",
        ]
    );
}

#[test]
fn the_last_write_before_the_cause_is_followed_and_what_is_inferred_is_said() {
    let set = |version| format!("{SET}@{version}");
    let row = |cause: &str, objects: Vec<Value>, expected: Option<(&str, Link)>| {
        let syncs = vec![
            sync("deployment-operator", "team/web", 1_000, "", "scale to 1", &[&set(12)]),
            sync("deployment-operator", "team/web", 2_000, "", "scale to 2", &[&set(22)]),
            sync("replicaset-operator", "team/web-6d4", 3_000, cause, "create", &["pods team/a@30"]),
        ];
        let trace = join(&evidence(&syncs, objects));
        let below = trace
            .stories
            .iter()
            .flat_map(|story| &story.syncs)
            .find_map(|step| step.followed.first().map(|next| (step.decided.as_str(), next.link.clone())));
        assert_eq!(below, expected, "{cause}");
    };
    row(&set(12), Vec::new(), Some(("scale to 1", Link::Exact)));
    row(&set(22), Vec::new(), Some(("scale to 2", Link::Exact)));
    row(&set(21), Vec::new(), Some(("scale to 1", Link::Later { wrote: 12, by: None })));
    row(&set(11), Vec::new(), None);
    row("replicasets.apps other/web-6d4@12", Vec::new(), None);
    row("pods team/web-6d4@12", Vec::new(), None);
    row("", Vec::new(), None);
    // The object itself says who has written since, and whether that is the very version.
    let by = |is_inferred| Some(Writer { manager: "kubectl-scale".to_owned(), time: at(2_000), is_inferred });
    let scaled = |version| {
        vec![object("ReplicaSet", "web-6d4", version, &json!({}), &[("a", 1), ("kubectl-scale", 2), ("b", 9)])]
    };
    row(&set(25), scaled(25), Some(("scale to 2", Link::Later { wrote: 22, by: by(false) })));
    row(&set(25), scaled(26), Some(("scale to 2", Link::Later { wrote: 22, by: by(true) })));
}

#[test]
fn a_write_that_changed_nothing_leads_to_nothing() {
    let web = |version| format!("{WEB}@{version}");
    // The second one was answered with the version that had led to it.
    let syncs = [
        sync("a-operator", "team/web", 1_000, "", "label", &[&web(10)]),
        sync("b-operator", "team/web", 2_000, &web(10), "label", &[&web(10)]),
        sync("c-operator", "team/web", 3_000, &web(10), "count", &[&web(11)]),
    ];
    let trace = join(&evidence(&syncs, Vec::new()));
    let [story] = &trace.stories[..] else { panic!("{trace}") };
    let [first] = &story.syncs[..] else { panic!("{trace}") };
    let followed: Vec<(&str, &Link)> = first.followed.iter().map(|next| (next.operator.as_str(), &next.link)).collect();
    assert_eq!(followed, [("b-operator", &Link::Exact), ("c-operator", &Link::Exact)]);
    assert!(first.followed[0].wrote.is_empty());
    assert!(trace.to_string().ends_with("1 sync wrote nothing (see -o json)\n"), "{trace}");
}

#[test]
fn what_was_created_without_being_named_is_its_owners() {
    let pod = |name: &str, created: i64| {
        let owner = json!([{ "kind": "ReplicaSet", "name": "web-6d4", "uid": "web-6d4", "controller": true }]);
        let created = at(created * 1000).strftime("%FT%TZ").to_string();
        object("Pod", name, 19, &json!({ "ownerReferences": owner, "creationTimestamp": created }), &[("kubelet", 2)])
    };
    let row = |pod: Value, expected: &str| {
        let mut syncs = rollout();
        syncs[2] = sync(
            "endpointslice-operator",
            "team/web",
            2_500,
            "pods team/web-x@19",
            "update",
            &["endpointslices.discovery.k8s.io team/web-x@20"],
        );
        let told = told(&evidence(&syncs, vec![pod]));
        assert!(told.iter().any(|line| line.ends_with(expected)), "{told:#?}");
    };
    let update = ": update -> wrote endpointslices/web-x@20";
    row(
        pod("web-x", 1),
        &format!(
            "       +1.4 s endpointslice-operator syncs web due to pods/web-x@19 (probably one of its unnamed writes){update}"
        ),
    );
    // It was there before.
    row(pod("web-x", 0), "pods/web-x@19: changed by kubelet");
    row(
        pod("web-y", 1),
        "pods/web-x@19: changed by an unknown client: no recorded decision wrote it"
            .trim_start_matches("pods/web-x@19: "),
    );
}

#[test]
fn what_is_missing_is_said() {
    let mut evidence = evidence(
        &[sync("replicaset-operator", "team/web-6d4", 3_000, &format!("{SET}@12"), "create", &["pods team/a@30"])],
        vec![object(
            "ReplicaSet",
            "web-6d4",
            14,
            &json!({}),
            &[("deployment-operator", 2), ("replicaset-operator", 4)],
        )],
    );
    let silence = Some("you lack permission to read its Lease in kube-system".to_owned());
    evidence.operators.push(Asked { operator: "deployment-operator".to_owned(), silence, ..Asked::default() });
    assert_eq!(
        told(&evidence),
        [
            "web: 1 recorded sync by 1 operator",
            "2026-11-22",
            "14:00:02     replicasets/web-6d4@12: probably written by deployment-operator, whose decision is not recorded: displaced by later ones, lost in a restart, or not requested",
            "14:00:03.000   +<1 s replicaset-operator syncs web-6d4: create -> wrote pods/a@30",
            "not read: deployment-operator: you lack permission to read its Lease in kube-system",
        ]
        .map(|line| line.replace("+<1 s", "+1 s"))
    );
}

#[test]
fn repetitions_and_failures_are_told_and_an_answer_counts_once() {
    let (mut asked, mut decision) = sync("replicaset-operator", "team/web-6d4", 3_000, "", "create 3", &[]);
    decision.count = 7;
    decision.outcome = Outcome::Failed;
    decision.error = Some("exceeded quota\nby far".to_owned());
    asked.answers[0].keys[0].last = vec![decision.clone()];
    asked.answers.push(asked.answers[0].clone());
    assert_eq!(
        told(&evidence(&[(asked, decision)], Vec::new())),
        [
            "web: 1 recorded sync by 1 operator",
            "2026-11-22",
            "             no change: a timer, a retry or a start",
            "14:00:03.000    replicaset-operator syncs web-6d4: create 3, 7 times -> failed: exceeded quota",
        ]
    );
}

#[test]
fn versions_that_began_anew_make_no_circle() {
    let syncs = [
        sync("a-operator", "team/a", 1_000, "pods team/b@20", "a", &["pods team/a@10"]),
        sync("b-operator", "team/b", 2_000, "pods team/a@10", "b", &["pods team/b@20"]),
    ];
    let trace = join(&evidence(&syncs, Vec::new()));
    assert_eq!(trace.steps().count(), 2, "{trace:?}");
    assert!(matches!(trace.stories[..], [Story { origin: Origin::Change { .. }, .. }]), "{trace:?}");
}

#[test]
fn the_order_of_answers_is_irrelevant() {
    let mut syncs = rollout();
    let expected = join(&evidence(&syncs, Vec::new()));
    syncs.reverse();
    assert_eq!(join(&evidence(&syncs, Vec::new())), expected);
}
