//! The table of states: the evidence, and its first line.

mod states {
    pub(crate) mod batch;
    pub(crate) mod deletion;
    pub(crate) mod operators;
    pub(crate) mod pods;
    pub(crate) mod scene;
    pub(crate) mod services;
    pub(crate) mod workloads;
}

use states::scene::Row;

fn all() -> Vec<Row> {
    [
        states::workloads::rows(),
        states::pods::rows(),
        states::batch::rows(),
        states::services::rows(),
        states::services::balancers(),
        states::deletion::rows(),
        states::operators::rows(),
    ]
    .concat()
}

#[test]
fn every_state_has_its_first_line() {
    let wrong: Vec<String> = all()
        .iter()
        .filter_map(|row| {
            let found = cli::diagnose::diagnose(&row.evidence);
            (found.summary != row.expected || found.state != row.state).then(|| {
                format!(
                    "{:?}\n  expected {:?}\n  found    {:?} {}",
                    row.state, row.expected, found.state, found.summary
                )
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_enough_of_them_and_none_twice() {
    let rows = all();
    let cases: std::collections::BTreeSet<String> = rows
        .iter()
        .map(|row| {
            let cause = serde_json::to_value(cli::diagnose::diagnose(&row.evidence).cause).unwrap();
            let part = |name: &str| cause.pointer(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
            format!("{} {}{}", part("/case"), part("/refusal/by"), part("/trouble/is"))
        })
        .collect();
    assert!(cases.len() >= 60, "{}: {cases:?}", cases.len());
    let lines: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.expected).collect();
    assert_eq!(lines.len(), rows.len(), "two rows expect the same line");
}

/// No input may make it panic: each piece of the evidence is removed or set to null in turn.
#[test]
fn evidence_with_holes_is_diagnosed_too() {
    for row in all() {
        for index in 0..row.evidence.objects.len() {
            let mut without = row.evidence.clone();
            without.objects.remove(index);
            assert!(!cli::diagnose::diagnose(&without).to_string().is_empty());
            for field in ["/metadata", "/spec", "/status"] {
                let mut holed = row.evidence.clone();
                if let Some(value) = holed.objects[index].pointer_mut(field) {
                    *value = serde_json::Value::Null;
                }
                assert!(!cli::diagnose::diagnose(&holed).to_string().is_empty());
            }
        }
    }
}

#[test]
fn the_chain_goes_from_owners_down_to_pods() {
    let found = cli::diagnose::diagnose(&states::workloads::quota());
    assert_eq!(
        found.to_string(),
        "web: 3 of 20 pods missing: ReplicaSet web-6d4 cannot create pods: quota `team` exceeded (pods 17/17); next retry in 12 s
  deployment/web: 20 desired, 17 current, 20 updated, 17 ready, 17 available (60 min ago)
    replicaset/web-6d4: 20 desired, 17 current, 17 ready, 17 available (10 min ago)
      event FailedCreate: pods \"web-6d4-\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=17, limited: pods=17 (9 times) (30 s ago)
      replicaset-operator: would do now: create 3 (17 of 20 active) [4 failures in a row, next retry in 12 s]
      replicaset-operator: last decision: create 3 (17 of 20 active), failed: pods \"web-6d4-\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=17, limited: pods=17 (20 s ago)
      17 pods: ready or completed
  resourcequota/team: exhausted: pods 17/17
not read: nodes: permission denied"
    );
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["cause"]["case"], "refused");
    assert_eq!(json["cause"]["refusal"], serde_json::json!({"by": "quota", "quota": "team", "used": "pods 17/17"}));
    assert_eq!(json["state"], "stuck");
    assert!(!found.coloured().lines().next().unwrap().starts_with("web"), "colours");
}

#[test]
fn a_pod_is_followed_up_to_what_owns_it() {
    let found = cli::diagnose::diagnose(&states::pods::owned());
    let lines: Vec<String> = found.chain.iter().map(|link| format!("{} {}", link.depth, link.about)).collect();
    assert_eq!(lines, ["0 deployment/web", "1 replicaset/web-6d4", "2 pod/web-a"]);
}
