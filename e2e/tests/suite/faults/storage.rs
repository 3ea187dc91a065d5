//! Volumes whose operators are killed at each write, get no answers, do not see what changes, are two, or find another
//! etcd: no volume is given to two claims or attached to two nodes, none is lost, and nothing is left.
//!
//! The driver's provisioner, attacher and resizer are the suite's own. Left out: two processes that both attach without an
//! election, which the operator's own tests have. One that sees pods late would attach for them what the other one has just
//! detached, until it sees them.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::apply::apply;
use e2e::proxy::{Action, Exchange};
use futures::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::core::v1::{Event, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::failover::{FLAGS, hold_third_write, leader_first, wakes_in_vain};
use super::{kill_at_each, on_quiet_cluster, with_operators};
use crate::support::behind::Behind;
use crate::support::clusters::PATIENT;
use crate::support::csi::{
    Driver, NO_CLASS, attached, bound, claim, class, ephemeral, manage_nodes, phase, user, volume,
};
use crate::support::{DEADLINE, Scene, uid};

const BINDER: &str = "persistentvolume-binder-operator";
const ATTACH_DETACH: &str = "persistentvolume-attach-detach-operator";
const ALL: [&str; 5] = [
    BINDER,
    ATTACH_DETACH,
    "persistentvolume-protection-operator",
    "persistentvolumeclaim-protection-operator",
    "ephemeral-volume-operator",
];
const NODES: [&str; 2] = ["node-0", "node-1"];

/// So many claims of `kill_at_each` find volumes.
const OFFERS: usize = 8;

/// Makes a volume and waits until it can be had.
async fn offer(scene: &Scene, name: &str, class: &str) -> Result<()> {
    apply(&scene.client, "", &volume(name, class, "1Gi")).await?;
    phase(scene, name, "Available").await
}

/// An error if a volume has two claims, a claim two volumes, or one does not know the other. Gives how many are bound.
async fn each_has_its_own(scene: &Scene) -> Result<usize> {
    let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
    let volumes = volumes.list(&ListParams::default()).await.context("list volumes")?.items;
    let claims: Vec<PersistentVolumeClaim> = scene.list("").await?;
    let mut of_claims = BTreeSet::new();
    for claim in &claims {
        let Some(name) = claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()) else { continue };
        let volume = volumes.iter().find(|volume| volume.name_any() == name).context("a claim lost its volume")?;
        let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        ensure!(reference.and_then(|reference| reference.uid.as_deref()) == Some(&*uid(claim)), "{volume:?}");
        ensure!(of_claims.insert(name), "two claims have {volume:?}");
    }
    let claimed = volumes.iter().filter(|volume| volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_some()));
    let claimed = claimed.count();
    ensure!(claimed == of_claims.len(), "{claimed} volumes for {} claims", of_claims.len());
    Ok(claimed)
}

#[test]
fn a_claim_gets_one_volume_though_the_binder_is_killed_at_each_write() -> Result<()> {
    with_operators([BINDER], async |scene, [mut victim]| {
        for at in 0..OFFERS {
            let class = format!("class-{at}");
            for name in ["a", "b"] {
                offer(scene, &format!("{name}-{at}"), &class).await?;
            }
        }
        let writes = kill_at_each(
            scene,
            &mut victim,
            async |at| scene.apply(&claim(&format!("data-{at}"), &format!("class-{at}"), "1Gi")).await.map(drop),
            async |at| bound(scene, &format!("data-{at}")).await.map(drop),
        )
        .await?;
        ensure!(writes == 4, "{writes} writes for a binding");
        let claims = scene.list::<PersistentVolumeClaim>("").await?.len();
        ensure!(each_has_its_own(scene).await? == claims, "not all of {claims}");
        Ok(())
    })
}

#[test]
fn a_volume_is_on_one_node_at_a_time_though_its_operator_is_killed_at_each_write() -> Result<()> {
    with_operators([ATTACH_DETACH, BINDER], async |scene, [mut victim, _binder]| {
        let driver = Driver::start(&scene.client);
        manage_nodes(scene).await?;
        offer(scene, "data", NO_CLASS).await?;
        scene.apply(&claim("data", NO_CLASS, "1Gi")).await?;
        bound(scene, "data").await?;
        scene.apply(&user("pod-0", "data", NODES[0])).await?;
        attached(scene, "data", &NODES[..1]).await?;
        let node = |at: u32| NODES[usize::from(at.is_multiple_of(2))];
        let writes = kill_at_each(
            scene,
            &mut victim,
            async |at| {
                scene.delete_pod(&format!("pod-{at}")).await?;
                scene.apply(&user(&format!("pod-{}", at + 1), "data", node(at))).await.map(drop)
            },
            async |at| attached(scene, "data", &[node(at)]).await,
        )
        .await?;
        ensure!(writes == 4, "{writes} writes for a move");
        let disks = driver.disks();
        ensure!(disks.most_nodes == 1 && disks.attached == 7, "{disks:?}");
        Ok(())
    })
}

/// Volumes that are provisioned, move from node to node with their pods, and go.
async fn live(scene: &Scene, driver: &Driver, step: usize) -> Result<()> {
    let made = driver.disks().made;
    let name = |kind: &str| format!("{kind}-{step}");
    for kind in ["a", "b"] {
        scene.apply(&claim(&name(kind), "fast", "1Gi")).await?;
        scene.apply(&user(&name(kind), &name(kind), NODES[0])).await?;
    }
    scene.apply(&ephemeral(&name("own"), "fast", NODES[0])).await?;
    let claims = [name("a"), name("b"), format!("{}-data", name("own"))];
    let volumes = try_join_all(claims.iter().map(|claim| bound(scene, claim))).await?;
    for volume in &volumes {
        attached(scene, &volume.name_any(), &NODES[..1]).await?;
    }
    ensure!(each_has_its_own(scene).await? == 3, "not all of three");
    for kind in ["a", "b"] {
        scene.delete_pod(&name(kind)).await?;
        scene.apply(&user(&format!("{}-moved", name(kind)), &name(kind), NODES[1])).await?;
    }
    for volume in &volumes[..2] {
        attached(scene, &volume.name_any(), &NODES[1..]).await?;
    }
    // Claims that their pods still use go with these.
    let pods = [format!("{}-moved", name("a")), format!("{}-moved", name("b")), name("own")];
    for claim in &claims {
        scene.api::<PersistentVolumeClaim>().delete(claim, &DeleteParams::default()).await?;
    }
    for pod in &pods {
        scene.delete_pod(pod).await?;
    }
    for claim in &claims {
        scene.gone::<PersistentVolumeClaim>(claim).await?;
    }
    let all: Api<PersistentVolume> = Api::all(scene.client.clone());
    for volume in &volumes {
        scene.gone_from(&all, &volume.name_any()).await?;
    }
    let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
    let left = attachments.list(&ListParams::default()).await?.items;
    let disks = driver.disks();
    ensure!(left.is_empty() && disks.there.is_empty(), "{left:?} and {disks:?}");
    ensure!(disks.made == made + 3 && disks.most_nodes == 1, "{disks:?}");
    Ok(())
}

#[test]
fn volumes_come_move_and_go_whatever_is_lost_refused_or_late() -> Result<()> {
    with_operators(ALL, async |scene, operators| {
        let driver = Driver::start(&scene.client);
        manage_nodes(scene).await?;
        class(scene, "fast", "Immediate").await?;
        live(scene, &driver, 0).await?;
        let late = Duration::from_millis(300);
        let actions = [
            Action::LoseResponse,
            Action::reply(StatusCode::INTERNAL_SERVER_ERROR),
            Action::reply(StatusCode::CONFLICT),
            Action::Delay(late),
        ];
        for (step, action) in (1..).zip(&actions) {
            for behind in &operators {
                behind.proxy.forget_requests();
                behind.strike_work(action);
            }
            live(scene, &driver, step).await?;
            for behind in &operators {
                let name = behind.operator.name();
                let writes = behind.work();
                let is_struck = |write: &Exchange| write.status != write.upstream_status;
                let is_spared = matches!(action, Action::Delay(_));
                ensure!(is_spared || writes.iter().any(is_struck), "{action:?}: {name} met no fault");
                behind.proxy.clear();
            }
        }
        for behind in &operators {
            ensure!(behind.proxy.delay_watches("**", late) > 0, "{} watches nothing", behind.operator.name());
        }
        live(scene, &driver, 5).await
    })
}

#[test]
fn a_volume_that_was_given_or_detached_is_not_given_or_attached_again_while_that_is_not_seen() -> Result<()> {
    with_operators([BINDER, ATTACH_DETACH], async |scene, [binder, attaching]| {
        let driver = Driver::start(&scene.client);
        manage_nodes(scene).await?;
        offer(scene, "data", NO_CLASS).await?;
        // Once a later one is bound, the binder has seen that this one can be had.
        offer(scene, "probe", "probe").await?;
        scene.apply(&claim("probe", "probe", "1Gi")).await?;
        bound(scene, "probe").await?;
        binder.proxy.freeze_watches("/api/v1/persistentvolumes");
        scene.apply(&claim("first", NO_CLASS, "1Gi")).await?;
        let given = async || {
            let volumes: Api<PersistentVolume> = Api::all(scene.client.clone());
            let claim = volumes.get("data").await?.spec.and_then(|spec| spec.claim_ref?.name);
            ensure!(claim.as_deref() == Some("first"), "{claim:?}");
            Ok(())
        };
        scene.wait_until("the first claim gets it", DEADLINE, given).await?;
        scene.apply(&claim("second", NO_CLASS, "1Gi")).await?;
        scene.told_about("second", "ProvisioningFailed").await?;
        given().await?;
        binder.proxy.thaw_watches();
        bound(scene, "first").await?;
        ensure!(each_has_its_own(scene).await? == 2, "the second claim got one");

        scene.apply(&user("web", "first", NODES[0])).await?;
        attached(scene, "data", &NODES[..1]).await?;
        attaching.proxy.freeze_watches("/apis/storage.k8s.io/v1/volumeattachments");
        scene.delete_pod("web").await?;
        scene.apply(&user("moved", "first", NODES[1])).await?;
        let attachments: Api<VolumeAttachment> = Api::all(scene.client.clone());
        scene
            .wait_until("it is detached", DEADLINE, async || {
                let left = attachments.list(&ListParams::default()).await?.items;
                ensure!(left.is_empty(), "{left:?}");
                Ok(())
            })
            .await?;
        attaching.proxy.thaw_watches();
        attached(scene, "data", &NODES[1..]).await?;
        let disks = driver.disks();
        ensure!((disks.most_nodes, disks.attached) == (1, 2), "{disks:?}");
        Ok(())
    })
}

#[test]
fn two_binders_give_no_volume_away_twice() -> Result<()> {
    on_quiet_cluster(async |scene| {
        const CLAIMS: usize = 12;
        let first = Behind::start(scene, BINDER, "first", &[]).await?;
        let second = Behind::start(scene, BINDER, "second", &[]).await?;
        let late = Duration::from_millis(300);
        for (twin, path) in [(&first, "/api/v1/persistentvolumeclaims"), (&second, "/api/v1/persistentvolumes")] {
            ensure!(twin.proxy.delay_watches(path, late) > 0, "{path} is not watched");
        }
        let (volumes, claims): (Vec<_>, Vec<_>) =
            (0..CLAIMS).map(|at| (format!("volume-{at}"), format!("data-{at}"))).unzip();
        let offers = volumes.iter().map(async |name| apply(&scene.client, "", &volume(name, NO_CLASS, "1Gi")).await);
        let asks = claims.iter().map(async |name| scene.apply(&claim(name, NO_CLASS, "1Gi")).await);
        tokio::try_join!(try_join_all(offers), try_join_all(asks))?;
        try_join_all(claims.iter().map(|claim| bound(scene, claim))).await?;
        let bound = each_has_its_own(scene).await?;
        ensure!(bound == CLAIMS, "{bound} of {CLAIMS}");
        ensure!([first, second].iter().all(|twin| !twin.work().is_empty()), "one of them did all");
        Ok(())
    })
}

#[test]
fn a_standby_completes_the_binding_of_a_leader_that_slept_through_its_lease() -> Result<()> {
    on_quiet_cluster(async |scene| {
        let first = Behind::start(scene, BINDER, "first", &FLAGS).await?;
        let second = Behind::start(scene, BINDER, "second", &FLAGS).await?;
        let mut replicas = [first, second];
        for name in ["a", "b"] {
            offer(scene, name, NO_CLASS).await?;
        }
        let gates = hold_third_write(&replicas);
        scene.apply(&claim("data", NO_CLASS, "1Gi")).await?;
        let [leader, standby] = leader_first(scene, &mut replicas, &gates).await?;
        leader.operator.process().suspend();
        standby.proxy.clear();
        bound(scene, "data").await?;
        wakes_in_vain(leader, &gates).await?;
        let bound = each_has_its_own(scene).await?;
        ensure!(bound == 1, "{bound} volumes for one claim");
        Ok(())
    })
}

/// A binder with these flags doubts what it finds after etcd was restored from before a binding.
fn doubts_after_a_restore(flags: &[&str]) -> Result<()> {
    on_quiet_cluster(async |scene| {
        let mut binder = Behind::start(scene, BINDER, BINDER, flags).await?;
        offer(scene, "data", NO_CLASS).await?;
        scene.cluster.back_up().await?;
        scene.apply(&claim("newer", NO_CLASS, "1Gi")).await?;
        bound(scene, "newer").await?;
        // So many versions will be missing that watches which go on from the last one would be silent for long.
        for step in 0..200 {
            let step = json!({"metadata": {"annotations": {"step": step.to_string()}}});
            scene.patch::<PersistentVolumeClaim>("newer", &step).await?;
        }
        scene.cluster.restore().await?;
        scene.apply(&claim("other", NO_CLASS, "1Gi")).await?;
        let told: Api<Event> = Api::namespaced(scene.client.clone(), "default");
        scene
            .wait_until("people are told whose volume it was", DEADLINE, async || {
                let events = told.list(&ListParams::default()).await?.items;
                let is_told = |event: &Event| {
                    let message = event.message.as_deref().unwrap_or_default();
                    message.contains("/newer\" had this volume before etcd was restored")
                };
                ensure!(events.iter().any(is_told), "{events:?}");
                Ok(())
            })
            .await?;
        scene.told("ProvisioningFailed").await?;
        ensure!(each_has_its_own(scene).await? == 0, "the other claim got the volume");
        scene.apply(&claim("newer", NO_CLASS, "1Gi")).await?;
        bound(scene, "newer").await?;
        let bound = each_has_its_own(scene).await?;
        ensure!(bound == 1, "{bound} volumes for two claims");
        binder.operator.process().check_running()
    })
}

#[test]
fn a_volume_that_a_claim_got_after_the_backup_of_etcd_is_given_to_no_other() -> Result<()> {
    doubts_after_a_restore(&PATIENT)
}

#[test]
fn it_is_given_to_no_other_where_no_leader_is_elected() -> Result<()> {
    doubts_after_a_restore(&[])
}
