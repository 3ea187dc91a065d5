//! Asks every operator how it is.
//!
//! Left out: standbys. Whether they are ready their pods say.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use shared::api::explain::STATUS_PATH;

use crate::evidence::Seen;
use crate::lease::Lease;
use crate::object::Object;
use crate::reach::Reach;
use crate::read::asked::manager;
use crate::read::{list, why_not};
use crate::status::{Survey, Surveyed};

/// The label by which an operator's pods are its own.
const NAME: &str = "/metadata/labels/app.kubernetes.io~1name";

/// Everything that `status` shows.
pub async fn survey(client: &Client, reach: &Reach, now: impl Fn() -> Timestamp) -> Result<Survey> {
    let namespace = reach.namespace();
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let of_ours = "&labelSelector=app.kubernetes.io%2Fpart-of%3Dkubernetes-operators";
    let (leases, pods, manager) =
        tokio::join!(list(client, &leases, ""), list(client, &pods, of_ours), manager(client));
    let leases = leases.map_err(|error| anyhow::anyhow!(why_not(&error)));
    let leases = leases.with_context(|| format!("list the Leases in {namespace}"))?;
    let lease_of = |name: &str| leases.iter().find(|lease| Object(lease).name() == name).map(Lease::read);
    let with_lease = leases.iter().map(|lease| Object(lease).name()).filter(|name| name.ends_with("-operator"));
    let names: BTreeSet<&str> = with_lease.chain(reach.servers()).collect();
    let asked = names.into_iter().map(async |name| {
        let lease = lease_of(name);
        let mut surveyed = Surveyed {
            operator: name.to_owned(),
            ready: pods.as_ref().ok().filter(|_| !reach.knows(name)).map(|pods| ready(pods, name)),
            ..Surveyed::default()
        };
        let pod = lease.as_ref().map(|lease| lease.pod().to_owned()).unwrap_or_default();
        match reach.ask(name, &pod, STATUS_PATH).await {
            Ok(said) => surveyed.said = Some(said),
            Err(error) => surveyed.silence = Some(format!("{error:#}")),
        }
        surveyed.lease = lease.map_or(Seen::Absent, Seen::Is);
        surveyed
    });
    let operators = join_all(asked).await;
    Ok(Survey { now: now(), operators, manager })
}

/// How many pods of this operator are ready.
fn ready(pods: &[Value], operator: &str) -> usize {
    pods.iter().map(Object).filter(|pod| pod.text(NAME) == operator && pod.holds("Ready")).count()
}
