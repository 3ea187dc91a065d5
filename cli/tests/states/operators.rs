//! Operators that don't run, may not, don't see, or wait: always of a Deployment of which a pod is missing.

use cli::cause::State::{AtRest, InProgress, Stuck};
use cli::evidence::Evidence;
use cli::lookup::Lookup;
use serde_json::{Value, json};
use shared::api::explain::{Explanation, Held};

use super::scene::{Row, at, deployment, evidence, fails, hidden, lease, operator, pods, replica_set, row, says, time};

/// Two wanted, and one there.
fn short(rest: &Value) -> Evidence {
    let mut objects = vec![deployment(2, rest), replica_set(2, &json!({}))];
    objects.extend(pods(1));
    evidence(objects)
}

fn said(change: impl FnOnce(&mut Explanation)) -> Evidence {
    says(short(&json!({})), "replicaset-operator", ("replicasets.apps", "web-6d4"), change)
}

fn with_lease(found: Lookup<cli::lease::Lease>) -> Evidence {
    operator(short(&json!({})), "deployment-operator", |asked| asked.lease = found)
}

fn at_work() -> Vec<Row> {
    let written = json!({ "metadata": { "managedFields": [
        { "manager": "kube-controller-manager", "subresource": "status", "time": time(-8) },
    ] } });
    let wrote = short(&written);
    let mut told = short(&json!({}));
    told.manager.lease = lease("kcm_1", -1);
    told.manager.controllers = Some(String::from("*"));
    let mut theirs = with_lease(Lookup::Absent);
    theirs.manager = told.manager.clone();
    // Enough for it to be the other's: it is at rest, and only on its way.
    theirs.operators.iter_mut().for_each(|asked| asked.lease = Lookup::Absent);
    vec![
        row(
            with_lease(Lookup::Absent),
            Stuck,
            "web: not reconciled: neither deployment-operator nor kube-controller-manager's deployment-controller is running",
        ),
        row(with_lease(lease("", -2)), Stuck, "web: not reconciled: no replica of deployment-operator holds its Lease"),
        row(
            with_lease(lease("op-0_1", -60)),
            Stuck,
            "web: not reconciled: the Lease of deployment-operator expired 45 s ago (last holder op-0)",
        ),
        row(
            wrote,
            Stuck,
            "web: reconciled twice: deployment-operator and kube-controller-manager's deployment-controller are both running (kube-controller-manager last wrote 8 s ago)",
        ),
        row(
            told,
            Stuck,
            "web: reconciled twice: deployment-operator and kube-controller-manager's deployment-controller are both running",
        ),
        row(theirs, InProgress, "web: scaling: 1 of 2 pods ready, 1 created"),
        // An object at rest needs nobody.
        row(
            operator(
                evidence([vec![deployment(3, &json!({})), replica_set(3, &json!({}))], pods(3)].concat()),
                "deployment-operator",
                |asked| asked.lease = Lookup::Absent,
            ),
            AtRest,
            "web: 3 of 3 pods ready",
        ),
    ]
}

fn blind() -> Vec<Row> {
    let own = says(short(&json!({})), "deployment-operator", ("deployments.apps", "web"), |said| {
        "deployments.apps".clone_into(&mut said.caches[0].resource);
        said.caches[0].unreadable.insert("team/web".to_owned(), "invalid type: string, expected i32".to_owned());
    });
    // Whose it is cannot be told but by its name.
    let mut unseen = said(|said| {
        for name in ["team/other", "team/web-6d4-x"] {
            said.caches[0].unreadable.insert(name.to_owned(), "unknown phase".to_owned());
        }
    });
    unseen.unread.push(hidden("pods"));
    vec![
        row(
            own,
            Stuck,
            "web: deployment-operator cannot decode deployments.apps team/web and uses an older state: invalid type: string, expected i32",
        ),
        row(
            said(|said| {
                said.caches[0].unreadable.insert("team/web-0".to_owned(), "unknown phase".to_owned());
            }),
            Stuck,
            "web: replicaset-operator cannot decode pods team/web-0 and uses an older state: unknown phase",
        ),
        // One of another's pods keeps nobody.
        row(
            says(
                evidence([vec![deployment(6, &json!({})), replica_set(6, &json!({}))], pods(5)].concat()),
                "replicaset-operator",
                ("replicasets.apps", "web-6d4"),
                |said| {
                    said.caches[0].unreadable.insert("team/web-6d4-x".to_owned(), "unknown phase".to_owned());
                },
            ),
            InProgress,
            "web: scaling: 5 of 6 pods ready, 5 created",
        ),
        row(
            unseen,
            Stuck,
            "web: replicaset-operator cannot decode pods team/web-6d4-x and uses an older state: unknown phase",
        ),
        row(
            said(|said| said.caches[0].failing = Some("connection refused".to_owned())),
            Stuck,
            "web: replicaset-operator cannot list or watch pods: connection refused",
        ),
        row(
            said(|said| {
                said.caches[0].failing = Some("pods is forbidden: User \"x\" cannot list resource \"pods\"".to_owned());
            }),
            Stuck,
            "web: replicaset-operator lacks a permission: User \"x\" cannot list resource \"pods\"",
        ),
        row(
            said(|said| said.caches[0].heard = Some(at(-600))),
            Stuck,
            "web: replicaset-operator has received nothing about pods for 10 min",
        ),
        row(
            said(|said| {
                said.keys[0].standing.held =
                    vec![Held { resource: "pods".to_owned(), until: "the first list".to_owned() }];
            }),
            Stuck,
            "web: replicaset-operator has not listed pods yet",
        ),
    ]
}

fn waiting() -> Vec<Row> {
    let held = || Held { resource: "pods".to_owned(), until: "version 4711".to_owned() };
    vec![
        row(
            said(|said| {
                said.keys[0].standing.processing = Some(at(-8));
                said.keys[0].standing.held = vec![held()];
            }),
            Stuck,
            "web: replicaset-operator has been waiting for 8 s for its caches to have version 4711 of pods",
        ),
        row(
            said(|said| fails(said, "create 1", "etcdserver: request timed out")),
            Stuck,
            "web: replicaset-operator failed 4 times in a row, next retry in 12 s: etcdserver: request timed out",
        ),
        // The operator's failure comes before the cache that it cannot fill.
        row(
            said(|said| {
                said.caches[0].failing = Some("connection refused".to_owned());
                fails(said, "create 1", "etcdserver: leader changed");
            }),
            Stuck,
            "web: replicaset-operator failed 4 times in a row, next retry in 12 s: etcdserver: leader changed",
        ),
        row(
            says(short(&json!({})), "deployment-operator", ("deployments.apps", "web"), |said| {
                let refused =
                    "\"web-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
                fails(said, "create web-1", refused);
            }),
            Stuck,
            "web: deployment-operator failed 4 times in a row, next retry in 12 s: denied by policy `p`: no",
        ),
        row(
            said(|said| said.keys[0].standing.queued = Some(at(-9))),
            Stuck,
            "web: queued in replicaset-operator for 9 s",
        ),
        row(
            said(|said| said.keys[0].standing.processing = Some(at(-90))),
            Stuck,
            "web: a sync of replicaset-operator has been running for 90 s",
        ),
        // A moment in the queue is no reason.
        row(
            says(
                evidence([vec![deployment(4, &json!({})), replica_set(4, &json!({}))], pods(3)].concat()),
                "replicaset-operator",
                ("replicasets.apps", "web-6d4"),
                |said| said.keys[0].standing.queued = Some(at(-1)),
            ),
            InProgress,
            "web: scaling: 3 of 4 pods ready, 3 created",
        ),
    ]
}

pub(crate) fn rows() -> Vec<Row> {
    [at_work(), blind(), waiting()].concat()
}
