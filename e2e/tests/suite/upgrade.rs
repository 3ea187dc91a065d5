//! Operators of another version take over one after the other under load, and go again: a leader's work goes on at once, and
//! what is finished stays as it is.
//!
//! `E2E_FORMER` names the former program (`make e2e-upgrade`). Without it, both versions are the same, and what is left of
//! the test is the way from one process to another.
//! Left out: roles of the former version, which the new manifests replace before the new pods start.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use e2e::operator::{Operator, OperatorSpec};
use futures::future::{try_join, try_join_all};
use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use serde_json::json;
use shared::transport::clock::Clock;

use crate::batch::{behaving, completed, job, pods};
use crate::support::clusters::{program, spec};
use crate::support::{DEADLINE, Scene, daemon_set, deployment, stateful_set, with_cluster};
use crate::takeover::{finish_some_work, finished, settled, versions};

/// Those that the objects below need.
const OPERATORS: [&str; 7] = [
    "daemonset-operator",
    "deployment-operator",
    "garbage-collector-operator",
    "job-operator",
    "replicaset-operator",
    "replicationcontroller-operator",
    "statefulset-operator",
];
/// `--leader-elect-retry-period`: so long a standby would wait that does not see the Lease become free.
const AT_ONCE: SignedDuration = SignedDuration::from_secs(2);
const NODES: i32 = 5;
/// A Deployment's `revisionHistoryLimit` by default.
const KEPT: usize = 10;

fn former() -> PathBuf {
    std::env::var_os("E2E_FORMER").map_or_else(program, PathBuf::from)
}

/// An operator's two replicas.
struct Replicas {
    of: OperatorSpec,
    started: u32,
    leader: Operator,
    standby: Operator,
}

async fn replica(scene: &Scene, of: &OperatorSpec, program: &Path, number: u32) -> Result<Operator> {
    let name = format!("{}-{number}", of.name);
    let spec = OperatorSpec { name, program: program.to_owned(), ..of.clone() };
    let mut replica = scene.cluster.start_operator(&spec).await?;
    replica.wait_ready().await?;
    Ok(replica)
}

/// The Lease once somebody else than `former` holds it.
async fn held(scene: &Scene, operator: &str, former: Option<&str>) -> Result<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(scene.client.clone(), "kube-system");
    scene
        .wait_until(&format!("another leader of {operator}"), DEADLINE, async || {
            let lease = leases.get(operator).await?.spec.context("a Lease without a spec")?;
            let holder = lease.holder_identity.as_deref();
            ensure!(holder.is_some_and(|holder| !holder.is_empty()) && holder != former, "{holder:?} holds it");
            Ok(lease)
        })
        .await
}

impl Replicas {
    async fn start(scene: &Scene, operator: &str, program: &Path) -> Result<Self> {
        let of = spec(&scene.cluster, operator).await?;
        let leader = replica(scene, &of, program, 1).await?;
        held(scene, operator, None).await?;
        let standby = replica(scene, &of, program, 2).await?;
        Ok(Self { of, started: 2, leader, standby })
    }

    /// Replaces the standby and then the leader. Returns how long nobody led after the leader had been told to end.
    async fn replace(&mut self, scene: &Scene, program: &Path) -> Result<SignedDuration> {
        let next = replica(scene, &self.of, program, self.started + 1).await?;
        std::mem::replace(&mut self.standby, next).terminate().await?;
        let former = held(scene, &self.of.name, None).await?.holder_identity;
        let told = Clock::system().now();
        self.leader.terminate().await?;
        let lease = held(scene, &self.of.name, former.as_deref()).await?;
        let last = replica(scene, &self.of, program, self.started + 2).await?;
        self.leader = std::mem::replace(&mut self.standby, last);
        self.started += 2;
        Ok(lease.acquire_time.context("a Lease without acquireTime")?.0.duration_since(told))
    }
}

/// Everyone to the other version, one operator after the other.
async fn replace_all(scene: &Scene, all: &mut [Replicas], program: &Path) -> Result<()> {
    for replicas in all {
        let took = replicas.replace(scene, program).await?;
        eprintln!("{}: nobody led for {took:#}", replicas.of.name);
        ensure!(took <= AT_ONCE, "{} was without a leader for {took:#}", replicas.of.name);
    }
    Ok(())
}

/// Changes a Deployment and runs a Job, again and again until `is_over`. Returns how often.
async fn load(scene: &Scene, is_over: &Cell<bool>) -> Result<u32> {
    scene.apply(&deployment("moving", 5)).await?;
    let exited = json!({"pods.e2e/becomes": "exited", "pods.e2e/after": "100ms"});
    let mut rounds = 0;
    while !is_over.get() {
        rounds += 1;
        let name = format!("job-{rounds}");
        scene.apply(&behaving(job(&name, 2, 6), &exited, "sleep 0.1")).await?;
        scene.kubectl(&format!("set env deployment/moving STEP={rounds}")).await?;
        scene.rolled_out("moving").await?;
        completed(scene, &name).await?;
        let ended = pods(scene, &name).await?.len();
        ensure!(ended == 6, "{ended} pods of {name} instead of 6");
    }
    Ok(rounds)
}

#[test]
fn operators_are_upgraded_and_downgraded_under_load() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let (former, new) = (former(), program());
        let mut all = try_join_all(OPERATORS.map(|operator| Replicas::start(scene, operator, &former))).await?;
        let (sets, moves) = (scene.beside("sets").await?, scene.beside("moves").await?);
        sets.apply(&stateful_set("db", 3, &json!({}))).await?;
        sets.apply(&daemon_set("agent", &json!({}))).await?;
        finish_some_work(scene).await?;
        settled(&sets, "db", 3).await?;
        sets.covered("agent", (NODES, NODES)).await?;
        let at_rest = (finished(scene).await?, versions(&sets).await?);

        let is_over = Cell::new(false);
        let upgrade = async {
            replace_all(scene, &mut all, &new).await?;
            assert_eq!(
                (versions(scene).await?, versions(&sets).await?),
                at_rest,
                "the upgrade wrote what needed no write"
            );
            replace_all(scene, &mut all, &former).await?;
            is_over.set(true);
            Ok(())
        };
        let ((), rounds) = try_join(upgrade, load(&moves, &is_over)).await?;
        assert_eq!(
            (versions(scene).await?, versions(&sets).await?),
            at_rest,
            "the way back wrote what needed no write"
        );
        let revisions: Vec<ReplicaSet> = moves.list("app=moving").await?;
        let expected = usize::try_from(rounds + 1)?.min(KEPT + 1);
        assert_eq!(revisions.len(), expected, "one ReplicaSet for each of {rounds} changes, as far as they are kept");
        Ok(())
    })
}
