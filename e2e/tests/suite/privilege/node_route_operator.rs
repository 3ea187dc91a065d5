//! A Node gets its route, although the cloud refuses it first; another Node of its name gets another.
//!
//! It has no `tamper`: beside upstream's controllers a shadow always differs, because none of them keeps routes.

use anyhow::{Context, Result, ensure};
use e2e::cloud::{Action, Call, Fault, Refusal};
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};

use crate::support::objects::{has_route, routed_node};
use crate::support::{DEADLINE, Scene};

const NAME: &str = "e2e-routed";
/// Two of `--cluster-cidr`, which no other Node gets: node-ipam-operator assigns them from the first on.
const CIDRS: [&str; 2] = ["10.127.0.0/24", "10.127.1.0/24"];

pub(super) const NEEDS: &[&str] = &[];

pub(super) async fn live(scene: &Scene) -> Result<()> {
    let nodes: Api<Node> = Api::all(scene.client.clone());
    let no_quota = Refusal::Failed { message: "no quota".to_owned() };
    scene.cluster.cloud().await?.add(Fault::new(Call::CreateRoute, Action::Refuse(no_quota)))?;
    for cidr in CIDRS {
        nodes.create(&PostParams::default(), &routed_node(NAME, cidr)).await.context("create a node")?;
        scene
            .wait_until(&format!("{NAME} has the route of {cidr}"), DEADLINE, async || {
                let node = nodes.get(NAME).await?;
                ensure!(has_route(&node), "{node:?}");
                Ok(())
            })
            .await?;
        nodes.delete(NAME, &DeleteParams::default()).await.context("delete a node")?;
    }
    let events: Api<Event> = Api::namespaced(scene.client.clone(), "default");
    let refused = ListParams::default().fields("reason=FailedToCreateRoute");
    scene
        .wait_until("a refused route is reported", DEADLINE, async || {
            ensure!(!events.list(&refused).await?.items.is_empty(), "there is no event");
            Ok(())
        })
        .await
}
