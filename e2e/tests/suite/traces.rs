//! Traces of operators in a collector: an edit can be followed through the operators that it concerns.
//! Left out: a slow or absent collector, which tests of `shared` have.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::cluster::ClusterOptions;
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;

use crate::support::clusters::spec;
use crate::support::collector::{Collector, attribute};
use crate::support::{DEADLINE, deployment, with_cluster};

/// The spans that can be reached from an edit of this object: those of the syncs that it led to, and of the syncs that
/// their writes led to.
fn reached<'a>(spans: &'a [Span], (resource, object, version): (&str, &str, &str)) -> Vec<&'a Span> {
    let cause = |span: &Span, name| attribute(&span.attributes, name);
    let is_of_edit = |span: &&Span| {
        cause(span, "cause.resource") == resource
            && cause(span, "cause.object") == object
            && cause(span, "cause.version") == version
    };
    let mut traces: BTreeSet<&[u8]> = spans.iter().filter(is_of_edit).map(|span| &*span.trace_id).collect();
    loop {
        let reached: Vec<&Span> = spans.iter().filter(|span| traces.contains(&*span.trace_id)).collect();
        let linked = reached.iter().flat_map(|span| &span.links).map(|link| &*link.trace_id);
        let known = traces.len();
        traces.extend(linked);
        if traces.len() == known {
            return reached;
        }
    }
}

/// The resources that this controller's reached syncs wrote to.
fn written(reached: &[&Span], queue: &str) -> BTreeSet<String> {
    let of_queue = reached.iter().filter(|span| attribute(&span.attributes, "queue") == queue);
    of_queue.flat_map(|span| &span.links).map(|link| attribute(&link.attributes, "resource")).collect()
}

#[test]
fn the_links_of_traces_lead_from_an_edited_deployment_to_its_new_pods() -> Result<()> {
    with_cluster(ClusterOptions::default(), async |scene| {
        let collector = Collector::start().await?;
        let _operators = try_join_all(["deployment-operator", "replicaset-operator"].map(async |name| {
            let mut spec = spec(&scene.cluster, name).await?;
            spec.flags.push(format!("--otlp-endpoint={}", collector.endpoint()));
            let mut operator = scene.cluster.start_operator(&spec).await?;
            operator.wait_ready().await?;
            anyhow::Ok(operator)
        }))
        .await?;
        scene.apply(&deployment("web", 1)).await?;
        scene.rolled_out("web").await?;
        let labels = json!({"spec": {"template": {"metadata": {"labels": {"edited": "yes"}}}}});
        let edited: Deployment = scene.patch("web", &labels).await?;
        let version = edited.resource_version().context("no version")?;
        let object = format!("{}/web", scene.namespace);
        scene
            .wait_until("the traces reach the pods", DEADLINE, async || {
                let spans = collector.spans();
                let reached = reached(&spans, ("deployments.apps", &object, &version));
                let sets = written(&reached, "deployment");
                ensure!(
                    sets.contains("replicasets.apps"),
                    "of {} spans {} reached: {sets:?}",
                    spans.len(),
                    reached.len()
                );
                let pods = written(&reached, "replicaset");
                ensure!(pods.contains("pods"), "of {} spans {} reached: {pods:?}", spans.len(), reached.len());
                Ok(())
            })
            .await
    })
}
