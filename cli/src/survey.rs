//! Asks every leader once for the status of its operators.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow};
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use shared::api::explain::{OperatorStatus, Role, STATUS_PATH};

use crate::controllers::CONTROLLERS;
use crate::diagnose::operators::controller_of;
use crate::discovery::Kinds;
use crate::kinds::status_of;
use crate::object::Object;
use crate::reach::{Leader, Reach};
use crate::read::asked::manager;
use crate::read::leases::{Leases, MANAGER};
use crate::read::{get, list};
use crate::runner::{both_since, manager_wrote_status};
use crate::status::{Survey, Surveyed};

const OBJECTS_MAX: usize = 500;
const NAME: &str = "/metadata/labels/app.kubernetes.io~1name";

pub async fn survey(client: &Client, reach: &Reach, kinds: &Kinds, now: impl Fn() -> Timestamp) -> Result<Survey> {
    let namespace = reach.namespace();
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let of_ours = "&labelSelector=app.kubernetes.io%2Fpart-of%3Dkubernetes-operators";
    let (leases, pods, mut manager) =
        tokio::join!(Leases::read(client, namespace), list(client, &pods, of_ours), manager(client));
    let held = leases.all().map_err(|why| anyhow!("cannot list the Leases in {namespace}: {why}"))?;
    manager.is_replaced = leases.are_of_one_process(&manager.lease, now());
    let with_lease = held.keys().map(String::as_str).filter(|name| is_operator(name));
    let names: BTreeSet<&str> = with_lease.chain(reach.servers().filter(|name| *name != MANAGER)).collect();
    let leaders = names.into_iter().map(|name| (name, leases.leader(name, reach)));
    let leaders: BTreeMap<&str, Leader> = leaders.collect();
    let distinct: BTreeSet<&Leader> = leaders.values().collect();
    let asked = distinct.into_iter().map(async |leader| {
        let said = reach.ask::<Vec<OperatorStatus>>(leader, STATUS_PATH).await;
        (leader, said.map_err(|error| format!("{error:#}")))
    });
    let said: BTreeMap<&Leader, Said> = join_all(asked).await.into_iter().collect();
    let surveyed = leaders.iter().map(async |(name, leader)| {
        let pods = pods.as_ref().ok().filter(|_| !reach.knows(leader.lease()));
        let mut surveyed = Surveyed {
            operator: (*name).to_owned(),
            ready: pods.and_then(|pods| ready(pods, leader)),
            lease: leases.of(name),
            leader: leader.pod().to_owned(),
            ..Surveyed::default()
        };
        if both_since(&surveyed.lease, &manager, now()).is_some() {
            surveyed.wrote = manager_wrote(client, kinds, name).await;
        }
        surveyed.take(leader, &said);
        surveyed
    });
    let operators = join_all(surveyed).await;
    Ok(Survey { now: now(), operators, manager })
}

type Said = Result<Vec<OperatorStatus>, String>;

impl Surveyed {
    fn take(&mut self, leader: &Leader, said: &BTreeMap<&Leader, Said>) {
        let of_it = |all: &[OperatorStatus]| all.iter().find(|status| status.operator == self.operator).cloned();
        match said.get(leader) {
            Some(Ok(all)) => {
                self.said = of_it(all);
                if self.said.is_none() {
                    self.silence = Some("its controller is not among those that run there".to_owned());
                }
            }
            Some(Err(error)) => self.silence = Some(error.clone()),
            None => {}
        }
        let mut others = said.iter().filter(|(other, _)| **other != leader && other.is_process());
        let claims = |(other, said): (&&Leader, &Said)| {
            let status = of_it(said.as_ref().ok()?)?;
            (status.role == Role::Leader).then(|| other.pod().to_owned())
        };
        self.rival = others.find_map(claims);
    }
}

/// Other projects have Leases of operators, too.
fn is_operator(name: &str) -> bool {
    let controller = controller_of(name);
    name.ends_with("-operator") && CONTROLLERS.iter().any(|(known, _)| *known == controller)
}

/// Last status write of kube-controller-manager on the operator's objects, first page only.
async fn manager_wrote(client: &Client, kinds: &Kinds, operator: &str) -> Option<Timestamp> {
    let of = status_of(operator)?;
    let kind = kinds.0.iter().find(|known| (known.group.as_str(), known.kind.as_str()) == of)?;
    let page = get(client, &format!("{}?limit={OBJECTS_MAX}", kind.path("", ""))).await.ok()??;
    Object(&page).list("/items").filter_map(manager_wrote_status).max()
}

/// None for the process that is none of these pods, such as a static pod.
fn ready(pods: &[Value], leader: &Leader) -> Option<usize> {
    let ready = pods.iter().map(Object).filter(|pod| pod.text(NAME) == leader.account() && pod.holds("Ready"));
    Some(ready.count()).filter(|count| *count > 0 || !leader.is_process())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reach::fakes::{Operator, apiserver, refusal};

    fn status(operator: &str, role: Role) -> Value {
        json!({
            "operator": operator, "controller": "", "version": "v0.1.0", "kubernetes": "", "role": role,
            "time": "1970-01-01T00:00:00Z", "caches": [], "queues": [],
        })
    }

    #[tokio::test]
    async fn one_process_is_asked_once_and_what_it_claims_of_a_pods_is_noted() {
        let (standby, leader) = (Role::Standby, Role::Leader);
        let process = Operator::start(json!([
            status("deployment-operator", leader),
            status("job-operator", leader),
            status("cronjob-operator", standby),
        ]))
        .await
        .unwrap();
        let now = Timestamp::from_second(1_000_000).unwrap();
        let (client, _) = apiserver(move |asked| {
            let lease = |name: &str, holder: &str| {
                let spec = json!({
                    "holderIdentity": holder, "renewTime": now, "acquireTime": now, "leaseDurationSeconds": 15,
                });
                json!({"metadata": {"name": name}, "spec": spec})
            };
            let common = "kube-system/kube-controller-manager";
            let leases = [
                lease(MANAGER, "node-1_x"),
                lease("deployment-operator", common),
                lease("statefulset-operator", common),
                lease("job-operator", "job-operator-x_1"),
                lease("cronjob-operator", "cronjob-operator-x_1"),
            ];
            match asked {
                _ if asked.contains("/leases?") => (200, json!({"items": leases})),
                _ if asked.ends_with("/leases/kube-controller-manager") => (200, leases[0].clone()),
                _ => refusal(404),
            }
        });
        let reach = process.reach_as(MANAGER, client.clone()).unwrap();
        let survey = survey(&client, &reach, &Kinds::default(), || now).await.unwrap();
        assert_eq!(process.log.all(), ["/debug/status Bearer for kubernetes-operators"]);
        assert!(survey.manager.is_replaced);
        let told = |surveyed: &Surveyed| {
            let said = surveyed.said.as_ref().map_or("nothing", |said| said.version.as_str());
            format!("{} {} {said} {:?}", surveyed.operator, surveyed.leader, surveyed.rival)
        };
        let told: Vec<String> = survey.operators.iter().map(told).collect();
        assert_eq!(
            told,
            [
                "cronjob-operator cronjob-operator-x nothing None",
                "deployment-operator node-1 v0.1.0 None",
                "job-operator job-operator-x nothing Some(\"node-1\")",
                "statefulset-operator node-1 nothing None",
            ]
        );
        let silence = survey.operators.last().and_then(|surveyed| surveyed.silence.as_deref());
        assert_eq!(silence, Some("its controller is not among those that run there"));
    }

    #[test]
    fn only_a_lease_that_is_called_after_a_controller_is_an_operators() {
        assert!(is_operator("deployment-operator") && is_operator("pod-garbage-collector-operator"));
        for name in ["prometheus-operator", "deployment-controller", "kube-controller-manager", "-operator"] {
            assert!(!is_operator(name), "{name}");
        }
    }
}
