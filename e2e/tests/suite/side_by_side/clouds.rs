//! Services with load balancers, and nodes that a cloud initializes, routes to, shuts down and loses: what is left of
//! them, what the cloud has, and what people are told.
//!
//! Upstream's controllers and the operators work with the same scriptable cloud. Each life ends before the next one
//! begins, as either side looks after all nodes. Left out: how often an event is repeated.

mod nodes;
mod services;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cloud::{Action, Call, Fault, Refusal, ScriptedCloud};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::operator::Operator;
use facts::Names;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{Event, Node};
use kube::Api;
use kube::api::ListParams;

use super::{difference, mask};
use crate::support::clusters::spec;
use crate::support::{DEADLINE, Scene, with_cluster};

/// Flags that let operators look more often than once in seconds or minutes.
const OFTEN: [(&str, &str); 3] = [
    ("cloud-node-operator", "--node-status-update-frequency=1s"),
    ("cloud-node-lifecycle-operator", "--node-monitor-period=1s"),
    ("node-route-operator", "--route-reconciliation-period=1s"),
];

/// The names of the operators that work with a cloud.
fn operators() -> impl Iterator<Item = Names> {
    facts::ALL.iter().filter(|facts| facts.needs_cloud()).map(|facts| facts.names)
}

/// One of the two lives.
struct Life<'a> {
    scene: &'a Scene,
    cloud: &'a ScriptedCloud,
    /// The first part of its nodes' names.
    name: &'static str,
    nodes: Api<Node>,
}

impl<'a> Life<'a> {
    async fn new(scene: &'a Scene, name: &'static str) -> Result<Self> {
        Ok(Self { scene, cloud: scene.cluster.cloud().await?, name, nodes: Api::all(scene.client.clone()) })
    }

    fn node(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Lives, and gives a line for each of what is left and of what people were told.
    async fn run(&self) -> Result<Vec<String>> {
        self.change_services().await?;
        let mut lines = self.left_of_services().await?;
        self.end_services().await?;
        self.change_nodes().await?;
        lines.extend(self.left_of_nodes().await?);
        self.end_nodes().await?;
        lines.extend(self.events().await?);
        Ok(lines)
    }

    async fn wait(&self, what: &str, look: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        self.scene.wait_until(what, DEADLINE, look).await
    }

    /// Waits until an event says this of an object: a Service, or a node by its whole name.
    async fn told(&self, name: &str, reason: &str, words: &str) -> Result<()> {
        self.wait(&format!("{name} is told {reason} {words}"), async || {
            let events = self.own_events().await?;
            let is_meant = |event: &Event| {
                let message = event.message.as_deref().unwrap_or_default();
                event.involved_object.name.as_deref() == Some(name)
                    && event.reason.as_deref() == Some(reason)
                    && message.contains(words)
            };
            ensure!(events.iter().any(is_meant), "{events:?}");
            Ok(())
        })
        .await
    }

    /// The events about the Services and the nodes of this life.
    async fn own_events(&self) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = self.scene.list("").await?;
        let about_nodes: Api<Event> = Api::namespaced(self.scene.client.clone(), "default");
        let is_own =
            |event: &Event| event.involved_object.name.as_deref().is_some_and(|name| name.starts_with(&self.node("")));
        let about_nodes = about_nodes.list(&ListParams::default()).await.context("list events")?;
        events.extend(about_nodes.items.into_iter().filter(is_own));
        Ok(events)
    }

    async fn events(&self) -> Result<Vec<String>> {
        let mut lines = BTreeSet::new();
        for event in self.own_events().await? {
            let component = event.source.and_then(|source| source.component).unwrap_or_default();
            if !operators().any(|names| names.event_source == component) {
                continue;
            }
            let about = event.involved_object;
            let (version, kind) = (about.api_version.unwrap_or_default(), about.kind.unwrap_or_default());
            let (name, has_uid) = (about.name.unwrap_or_default(), about.uid.is_some());
            let (type_, reason) = (event.type_.unwrap_or_default(), event.reason.unwrap_or_default());
            let message = without_time(&reason, &event.message.unwrap_or_default());
            let line = format!("{component} {version} {kind} {name} uid:{has_uid} {type_} {reason} {message}");
            lines.insert(self.without_names(&line));
        }
        Ok(lines.into_iter().collect())
    }

    fn without_names(&self, line: &str) -> String {
        line.replace(&self.scene.namespace, "<namespace>").replace(&self.node(""), "<side>-")
    }

    fn refuse(&self, call: Call, object: &str, message: &str) -> Result<()> {
        let refusal = Refusal::Failed { message: message.to_owned() };
        self.cloud.add(Fault::new(call, Action::Refuse(refusal)).about(object))
    }
}

/// The message of a route that failed has the node's uid and the time that the call took.
fn without_time(reason: &str, message: &str) -> String {
    if reason != "FailedToCreateRoute" {
        return message.to_owned();
    }
    let mut is_time = false;
    let words = message.split(' ').enumerate().map(|(at, word)| {
        let shown = if at == 4 || is_time { "?" } else { word };
        is_time = word == "after";
        shown
    });
    words.collect::<Vec<_>>().join(" ")
}

async fn start_operators(scene: &Scene) -> Result<Vec<Operator>> {
    try_join_all(operators().map(async |Names { operator, .. }| {
        let mut spec = spec(&scene.cluster, operator).await?;
        spec.flags.extend(OFTEN.iter().filter(|(of, _)| *of == operator).map(|(_, flag)| (*flag).to_owned()));
        let mut operator = scene.cluster.start_operator(&spec).await?;
        operator.wait_ready().await?;
        Ok(operator)
    }))
    .await
}

#[test]
fn the_operators_leave_of_services_nodes_and_routes_what_upstream_leaves() -> Result<()> {
    let flags = OFTEN.map(|(_, flag)| flag.to_owned()).to_vec();
    let controller_manager = Some(ControllerManager { flags, ..ControllerManager::of_clouds() });
    let options = ClusterOptions { nodes: 2, controller_manager, ..ClusterOptions::default() };
    with_cluster(options, async |scene| {
        let expected = Life::new(&scene.beside("upstream").await?, "upstream").await?.run().await?;
        assert!(expected.len() > 30, "{expected:?}");
        scene.cluster.stop_controller_manager().await?;
        let _operators = start_operators(scene).await?;
        let found = Life::new(&scene.beside("ours").await?, "ours").await?.run().await?;
        ensure!(found == expected, "{}", difference(&expected, &found));
        Ok(())
    })
}
