//! The load balancers of Services: one for each, whatever fails, and none without a Service.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::cloud::{Action, Call, CloudState, Fault, Refusal, ScriptedCloud};
use k8s_openapi::api::core::v1::Service;
use serde_json::json;

use super::{balanced, balanced_by_one, count, gone_with_balancer, hold, start, struck, with_operator};
use crate::support::behind::{Gate, nth_work};
use crate::support::{DEADLINE, Scene};

const OPERATOR: &str = "service-lb-operator";
/// How much later one of two processes sees Services.
const LATE: Duration = Duration::from_millis(300);

/// A Service from its creation to its end; something is prepared before each change and goes wrong after it, and it ends
/// well all the same.
async fn end_well(
    scene: &Scene,
    cloud: &ScriptedCloud,
    name: &str,
    prepare: impl Fn(Change) -> Result<()>,
    mut strike: impl AsyncFnMut(Change) -> Result<()>,
) -> Result<()> {
    for change in [Change::Created, Change::Edited, Change::Deleted] {
        prepare(change)?;
        match change {
            Change::Created => drop(scene.apply(&balanced(name, 80)).await?),
            Change::Edited => {
                scene.patch::<Service>(name, &json!({"spec": {"ports": [{"port": 81}]}})).await?;
            }
            Change::Deleted => drop(scene.kubectl(&format!("delete service/{name} --wait=false")).await?),
        }
        strike(change).await?;
        settled(scene, cloud, name, change).await?;
    }
    Ok(())
}

/// Such a Service, with one balancer in all its life.
async fn live(
    scene: &Scene,
    cloud: &ScriptedCloud,
    name: &str,
    prepare: impl Fn(Change) -> Result<()>,
    strike: impl AsyncFnMut(Change) -> Result<()>,
) -> Result<()> {
    end_well(scene, cloud, name, prepare, strike).await?;
    ensure!(count(cloud, Call::EnsureLoadBalancer, name, "made")? == 1, "{name} had more than one balancer");
    ensure!(count(cloud, Call::DeleteLoadBalancer, name, "deleted")? == 1, "{name}'s balancer was not deleted once");
    Ok(())
}

async fn settled(scene: &Scene, cloud: &ScriptedCloud, name: &str, change: Change) -> Result<()> {
    match change {
        Change::Created => balanced_by_one(scene, cloud, name, 80).await.map(drop),
        Change::Edited => balanced_by_one(scene, cloud, name, 81).await.map(drop),
        Change::Deleted => gone_with_balancer(scene, cloud, name).await,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Created,
    Edited,
    Deleted,
}

impl Change {
    /// What it asks of the cloud.
    fn call(self) -> Call {
        match self {
            Self::Created | Self::Edited => Call::EnsureLoadBalancer,
            Self::Deleted => Call::DeleteLoadBalancer,
        }
    }
}

/// The finalizer is added, the status written and the finalizer taken away: each of them happens or not, and the operator
/// is killed before it learns that.
#[test]
fn an_operator_killed_at_each_write_makes_and_deletes_one_balancer() -> Result<()> {
    with_operator(OPERATOR, &[], async |scene, cloud, mut victim| {
        for (write, happens) in [(1, false), (1, true), (2, false), (2, true), (3, false), (3, true)] {
            let gate = Gate::new();
            victim.proxy.add(nth_work(if happens { gate.after() } else { gate.before() }, write));
            let name = format!("web-{write}-{happens}");
            live(
                scene,
                cloud,
                &name,
                |_| Ok(()),
                async |change| {
                    tokio::select! {
                        () = gate.reached() => {}
                        done = settled(scene, cloud, &name, change) => done?,
                    }
                    if gate.is_reached() { victim.kill_and_restart() } else { Ok(()) }
                },
            )
            .await?;
            ensure!(gate.is_reached(), "a life with less than {write} writes");
        }
        Ok(())
    })
}

#[test]
fn an_operator_killed_at_each_call_makes_and_deletes_one_balancer() -> Result<()> {
    with_operator(OPERATOR, &[], async |scene, cloud, mut victim| {
        for has_worked in [false, true] {
            let name = format!("web-{has_worked}");
            let prepare = |change: Change| cloud.add(hold(change.call(), has_worked));
            live(scene, cloud, &name, prepare, async |change| {
                struck(scene, cloud).await?;
                if has_worked && change == Change::Created {
                    made(scene, cloud).await?;
                }
                victim.kill_and_restart()?;
                cloud.clear()
            })
            .await?;
        }
        Ok(())
    })
}

async fn made(scene: &Scene, cloud: &ScriptedCloud) -> Result<()> {
    scene
        .wait_until("there is a balancer", DEADLINE, async || {
            let CloudState { balancers, .. } = cloud.state()?;
            ensure!(balancers.len() == 1, "{balancers:?}");
            Ok(())
        })
        .await
}

/// Upstream waits 5 s after a failure; it is the provider's own word that makes it sooner.
#[test]
fn lost_answers_and_refusals_make_no_second_balancer_and_leave_none_behind() -> Result<()> {
    let busy = || Action::Refuse(Refusal::RetryAfter { milliseconds: 100, message: "busy".to_owned() });
    with_operator(OPERATOR, &[], async |scene, cloud, _operator| {
        for (name, action) in [("lost", Action::LoseAnswer), ("refused", busy())] {
            for call in [Call::EnsureLoadBalancer, Call::DeleteLoadBalancer] {
                cloud.add(Fault::new(call, action.clone()))?;
            }
            live(scene, cloud, name, |_| Ok(()), async |_| Ok(())).await?;
            struck(scene, cloud).await?;
            cloud.clear()?;
        }
        Ok(())
    })
}

#[test]
fn a_provider_that_dies_in_the_middle_is_asked_again_once_it_is_back() -> Result<()> {
    with_operator(OPERATOR, &[], async |scene, cloud, _operator| {
        for (name, action) in [("before", Action::DieBefore), ("after", Action::DieAfter)] {
            let prepare = |change: Change| cloud.add(Fault::new(change.call(), action.clone()));
            live(scene, cloud, name, prepare, async |_| {
                cloud.died().await?;
                cloud.restart().await
            })
            .await?;
            cloud.clear()?;
        }
        Ok(())
    })
}

/// A provider that does not know yet of what it has made says that there is nothing to delete.
#[test]
fn a_provider_that_answers_yesterdays_state_keeps_no_balancer_without_a_service() -> Result<()> {
    with_operator(OPERATOR, &[], async |scene, cloud, _operator| {
        cloud.keep_yesterday()?;
        cloud.add(Fault::new(Call::GetLoadBalancer, Action::Yesterday).always())?;
        live(scene, cloud, "web", |_| Ok(()), async |_| Ok(())).await
    })
}

/// Between its look at a Service and its call, one process may make once more what the other one deletes meanwhile.
#[test]
fn two_processes_at_work_leave_one_balancer_and_in_the_end_none() -> Result<()> {
    with_operator(OPERATOR, &[], async |scene, cloud, first| {
        let late = start(scene, OPERATOR, "late", &[]).await?;
        ensure!(late.proxy.delay_watches("**/services", LATE) > 0, "the late one does not follow Services");
        for number in 0..5 {
            let name = format!("web-{number}");
            end_well(scene, cloud, &name, |_| Ok(()), async |_| Ok(())).await?;
            scene
                .wait_until("whatever was made is deleted", DEADLINE, async || {
                    let made = count(cloud, Call::EnsureLoadBalancer, &name, "made")?;
                    let deleted = count(cloud, Call::DeleteLoadBalancer, &name, "deleted")?;
                    ensure!(made > 0 && made == deleted, "{made} made, {deleted} deleted");
                    Ok(())
                })
                .await?;
        }
        ensure!(!first.work().is_empty() && !late.work().is_empty(), "only one was at work");
        Ok(())
    })
}
