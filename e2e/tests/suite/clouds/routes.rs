//! The routes to the pods of nodes: one for each, whatever fails, and none to a node that is gone.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::cloud::{Action, Call, CloudState, Fault, Refusal, ScriptedCloud};
use kube::api::{DeleteParams, PostParams};

use super::{count, hold, nodes, start, struck, with_operator};
use crate::support::objects::{has_route, routed_node};
use crate::support::{DEADLINE, Scene};

const OPERATOR: &str = "node-route-operator";
const PERIOD: &str = "--route-reconciliation-period=500ms";

/// Creates a node with a range of `--cluster-cidr` for its pods.
async fn create(scene: &Scene, number: u8) -> Result<String> {
    let (name, cidr) = (format!("routed-{number}"), format!("10.127.{number}.0/24"));
    nodes(scene).create(&PostParams::default(), &routed_node(&name, &cidr)).await?;
    Ok(name)
}

/// Waits until the cloud has exactly the routes of these nodes, one for each, and each node says so.
async fn routed(scene: &Scene, cloud: &ScriptedCloud, numbers: &[u8]) -> Result<()> {
    scene
        .wait_until(&format!("routes to {numbers:?}"), DEADLINE, async || {
            let CloudState { routes, .. } = cloud.state()?;
            let targets: BTreeSet<&str> = routes.values().map(|route| route.target_node.as_str()).collect();
            let names: BTreeSet<String> = numbers.iter().map(|number| format!("routed-{number}")).collect();
            ensure!(targets.iter().copied().eq(names.iter().map(String::as_str)), "{routes:?}");
            ensure!(routes.len() == numbers.len(), "one node has two routes: {routes:?}");
            for name in &names {
                let node = nodes(scene).get(name).await?;
                ensure!(has_route(&node), "{node:?}");
            }
            Ok(())
        })
        .await
}

#[test]
fn each_node_has_one_route_whatever_gets_lost() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, _operator| {
        let refused = || Action::Refuse(Refusal::Failed { message: "no quota".to_owned() });
        for (call, action) in [
            (Call::CreateRoute, Action::LoseAnswer),
            (Call::CreateRoute, refused()),
            (Call::ListRoutes, refused()),
            (Call::DeleteRoute, Action::LoseAnswer),
            (Call::DeleteRoute, refused()),
        ] {
            cloud.add(Fault::new(call, action))?;
        }
        for number in 1..=3 {
            create(scene, number).await?;
        }
        routed(scene, cloud, &[1, 2, 3]).await?;
        for number in [1, 2] {
            nodes(scene).delete(&format!("routed-{number}"), &DeleteParams::default()).await?;
        }
        routed(scene, cloud, &[3]).await?;
        struck(scene, cloud).await?;
        for number in 1..=3 {
            let made = count(cloud, Call::CreateRoute, &format!("routed-{number}"), "made")?;
            ensure!(made == 1, "{made} routes were made for routed-{number}");
        }
        Ok(())
    })
}

#[test]
fn each_node_has_one_route_although_operator_and_provider_die_in_the_middle() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, mut victim| {
        for (number, has_worked) in [(1, false), (2, true)] {
            cloud.add(hold(Call::CreateRoute, has_worked))?;
            create(scene, number).await?;
            struck(scene, cloud).await?;
            victim.kill_and_restart()?;
            cloud.clear()?;
        }
        routed(scene, cloud, &[1, 2]).await?;
        for (number, action) in [(3, Action::DieBefore), (4, Action::DieAfter)] {
            cloud.add(Fault::new(Call::CreateRoute, action))?;
            create(scene, number).await?;
            cloud.died().await?;
            cloud.restart().await?;
        }
        routed(scene, cloud, &[1, 2, 3, 4]).await
    })
}

/// Yesterday there were no routes: all are created again, which makes none twice. Then there are those of a node that is
/// gone.
#[test]
fn a_provider_that_lists_yesterdays_routes_gets_no_second_ones_and_keeps_none() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, _operator| {
        for number in 1..=2 {
            create(scene, number).await?;
        }
        routed(scene, cloud, &[1, 2]).await?;
        let stale = || Fault { times: Some(3), ..Fault::new(Call::ListRoutes, Action::Yesterday) };
        cloud.add(stale())?;
        struck(scene, cloud).await?;
        routed(scene, cloud, &[1, 2]).await?;
        cloud.keep_yesterday()?;
        nodes(scene).delete("routed-1", &DeleteParams::default()).await?;
        routed(scene, cloud, &[2]).await?;
        cloud.add(stale())?;
        struck(scene, cloud).await?;
        routed(scene, cloud, &[2]).await
    })
}

#[test]
fn two_processes_at_work_make_one_route_for_each_node() -> Result<()> {
    with_operator(OPERATOR, &[PERIOD], async |scene, cloud, _first| {
        let _second = start(scene, OPERATOR, "second", &[PERIOD]).await?;
        for number in 1..=4 {
            create(scene, number).await?;
        }
        routed(scene, cloud, &[1, 2, 3, 4]).await?;
        nodes(scene).delete("routed-4", &DeleteParams::default()).await?;
        routed(scene, cloud, &[1, 2, 3]).await
    })
}
