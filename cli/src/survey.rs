//! Asks every leader for its status.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use shared::api::explain::STATUS_PATH;

use crate::controllers::CONTROLLERS;
use crate::diagnose::operators::controller_of;
use crate::discovery::Kinds;
use crate::kinds::status_of;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::reach::Reach;
use crate::read::asked::manager;
use crate::read::{get, list, why_not};
use crate::runner::{both_since, manager_wrote_status};
use crate::status::{Survey, Surveyed};

const OBJECTS_MAX: usize = 500;
const NAME: &str = "/metadata/labels/app.kubernetes.io~1name";

pub async fn survey(client: &Client, reach: &Reach, kinds: &Kinds, now: impl Fn() -> Timestamp) -> Result<Survey> {
    let namespace = reach.namespace();
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let of_ours = "&labelSelector=app.kubernetes.io%2Fpart-of%3Dkubernetes-operators";
    let (leases, pods, manager) =
        tokio::join!(list(client, &leases, ""), list(client, &pods, of_ours), manager(client));
    let leases = leases.map_err(|error| anyhow::anyhow!(why_not(&error)));
    let leases = leases.with_context(|| format!("cannot list the Leases in {namespace}"))?;
    let lease_of = |name: &str| leases.iter().find(|lease| Object(lease).name() == name).map(Lease::read);
    let with_lease = leases.iter().map(|lease| Object(lease).name()).filter(|name| is_operator(name));
    let names: BTreeSet<&str> = with_lease.chain(reach.servers()).collect();
    let asked = names.into_iter().map(async |name| {
        let lease = lease_of(name);
        let pod = lease.as_ref().map(|lease| lease.pod().to_owned()).unwrap_or_default();
        let pods = pods.as_ref().ok().filter(|_| !reach.knows(name));
        let mut surveyed = Surveyed {
            operator: name.to_owned(),
            ready: pods.map(|pods| ready(pods, name)),
            lease: lease.map_or(Lookup::Absent, Lookup::Found),
            ..Surveyed::default()
        };
        if both_since(&surveyed.lease, &manager, now()).is_some() {
            surveyed.wrote = manager_wrote(client, kinds, name).await;
        }
        match reach.ask(name, &pod, STATUS_PATH).await {
            Ok(said) => surveyed.said = Some(said),
            Err(error) => surveyed.silence = Some(format!("{error:#}")),
        }
        surveyed
    });
    let operators = join_all(asked).await;
    Ok(Survey { now: now(), operators, manager })
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

fn ready(pods: &[Value], operator: &str) -> usize {
    pods.iter().map(Object).filter(|pod| pod.text(NAME) == operator && pod.holds("Ready")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lease_that_is_called_after_a_controller_is_an_operators() {
        assert!(is_operator("deployment-operator") && is_operator("pod-garbage-collector-operator"));
        for name in ["prometheus-operator", "deployment-controller", "kube-controller-manager", "-operator"] {
            assert!(!is_operator(name), "{name}");
        }
    }
}
