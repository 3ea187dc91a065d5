//! Reads the objects around the target: owners, dependents, related objects and events.

use std::collections::HashSet;

use futures::future::join_all;
use serde_json::Value;

use super::{Reader, get, list};
use crate::diagnose::pods;
use crate::discovery::Kind;
use crate::object::Object;

const OWNERS_MAX: usize = 4;
const PODS_MAX: usize = 5;
const EVENTS_MAX: usize = 20;
const COLLECTED: [&str; 2] = ["foregroundDeletion", "orphan"];

fn query(labels: Option<&Value>) -> String {
    let pairs = labels.and_then(Value::as_object).into_iter().flatten();
    let pairs = pairs.filter_map(|(key, value)| Some(format!("{}%3D{}", key.replace('/', "%2F"), value.as_str()?)));
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() { String::new() } else { format!("&labelSelector={}", pairs.join("%2C")) }
}

fn dependents_of<K: Copy>(uid: &str, mut others: Vec<(K, Vec<Value>)>) -> Vec<(K, Vec<Value>)> {
    let mut found = Vec::new();
    let mut owners = HashSet::from([uid.to_owned()]);
    let mut looked_for = 0;
    while looked_for < owners.len() {
        looked_for = owners.len();
        for (kind, objects) in &mut others {
            let is_owned = |object: &Value| Object(object).owners().any(|owner| owners.contains(owner.uid));
            let (own, rest): (Vec<Value>, Vec<Value>) = std::mem::take(objects).into_iter().partition(is_owned);
            *objects = rest;
            owners.extend(own.iter().map(|object| Object(object).uid().to_owned()));
            found.push((*kind, own));
        }
    }
    found
}

impl Reader<'_> {
    pub(super) async fn around(&mut self, kind: &Kind) {
        self.owners().await;
        let Some(object) = self.evidence.object().map(|object| object.0.clone()) else { return };
        let object = Object(&object);
        self.below(object).await;
        let finalizers = object.texts("/metadata/finalizers");
        if object.deleted().is_some() && finalizers.iter().any(|name| COLLECTED.contains(name)) {
            self.dependents(object).await;
        }
        if kind.is_namespaced {
            self.namespace(object).await;
        }
        self.nodes().await;
        self.events().await;
    }

    /// Lists a kind in the target's namespace and keeps what `keep` accepts.
    async fn collect(&mut self, (api_version, kind): (&str, &str), query: &str, keep: impl Fn(Object<'_>) -> bool) {
        let Some(kind) = self.kinds.of(api_version, kind) else { return };
        let path = kind.path(&self.evidence.target.namespace, "");
        match list(self.client, &path, query).await {
            Ok(mut objects) => {
                self.hide_rest(&kind.plural, objects.len());
                objects.retain(|object| keep(Object(object)));
                self.add(objects, kind);
            }
            Err(error) => self.hide(&kind.plural, &error),
        }
    }

    async fn owners(&mut self) {
        let mut looked_for: Vec<String> = Vec::new();
        for _ in 0..OWNERS_MAX {
            let unknown = self.evidence.all().flat_map(Object::owners);
            let unknown = unknown.filter(|owner| !looked_for.iter().any(|uid| uid == owner.uid));
            let text = |owner: crate::object::Owner<'_>| {
                [owner.api_version, owner.kind, owner.name, owner.uid].map(str::to_owned)
            };
            let unknown: Vec<[String; 4]> = unknown.map(text).collect();
            if unknown.is_empty() {
                return;
            }
            let namespace = self.evidence.target.namespace.clone();
            for [api_version, kind, name, uid] in unknown {
                looked_for.push(uid.clone());
                let Some(kind) = self.kinds.of(&api_version, &kind) else { continue };
                match self.get(&kind.path(&namespace, &name)).await {
                    Ok(found) => {
                        if found.as_ref().is_none_or(|found| Object(found).uid() != uid) {
                            self.evidence.absent_owners.push(uid);
                        }
                        self.add(found.into_iter().collect(), kind);
                    }
                    Err(error) => self.hide(&format!("{}/{name}", kind.kind.to_lowercase()), &error),
                }
            }
        }
    }

    async fn below(&mut self, object: Object<'_>) {
        let selected = query(object.0.pointer("/spec/selector/matchLabels"));
        let everything = |_: Object<'_>| true;
        match object.kind() {
            "Deployment" => {
                self.collect(("apps/v1", "ReplicaSet"), &selected, everything).await;
                self.collect(("v1", "Pod"), &selected, everything).await;
            }
            "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" => {
                self.collect(("v1", "Pod"), &selected, everything).await;
            }
            "ReplicationController" => {
                let selected = query(object.0.pointer("/spec/selector"));
                self.collect(("v1", "Pod"), &selected, everything).await;
            }
            "CronJob" => self.below_cron_job(object).await,
            "Service" => {
                let of = format!("&labelSelector=kubernetes.io%2Fservice-name%3D{}", object.name());
                self.collect(("discovery.k8s.io/v1", "EndpointSlice"), &of, everything).await;
                self.collect(("v1", "Pod"), "", everything).await;
            }
            _ => {}
        }
        if ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"].contains(&object.kind()) {
            self.collect((object.text("/apiVersion"), object.kind()), "", everything).await;
            self.collect(("autoscaling/v2", "HorizontalPodAutoscaler"), "", everything).await;
            self.collect(("policy/v1", "PodDisruptionBudget"), "", everything).await;
        }
    }

    async fn below_cron_job(&mut self, object: Object<'_>) {
        let uid = object.uid();
        self.collect(("batch/v1", "Job"), "", |job| job.is_owned_by(uid)).await;
        let jobs: Vec<String> = self.evidence.of_kind("Job").map(|job| job.uid().to_owned()).collect();
        let of_job = |pod: Object<'_>| jobs.iter().any(|uid| pod.is_owned_by(uid));
        self.collect(("v1", "Pod"), "&labelSelector=batch.kubernetes.io%2Fjob-name", of_job).await;
    }

    async fn dependents(&mut self, object: Object<'_>) {
        let in_namespace = !object.namespace().is_empty();
        let kinds = self.kinds.0.iter().filter(|kind| kind.is_listable && kind.kind != "Event");
        let kinds = kinds.filter(|kind| kind.is_namespaced || !in_namespace);
        let (client, namespace) = (self.client, object.namespace());
        let lists = kinds.map(async |kind| (kind, list(client, &kind.path(namespace, ""), "").await));
        let mut others = Vec::new();
        for (kind, objects) in join_all(lists).await {
            match objects {
                Ok(objects) => {
                    self.hide_rest(&kind.plural, objects.len());
                    others.push((kind, objects));
                }
                Err(error) => self.hide(&kind.plural, &error),
            }
        }
        for (kind, objects) in dependents_of(object.uid(), others) {
            self.add(objects, kind);
        }
    }

    async fn namespace(&mut self, object: Object<'_>) {
        self.collect(("v1", "ResourceQuota"), "", |_| true).await;
        let Some(kind) = self.kinds.of("v1", "Namespace") else { return };
        match self.get(&kind.path("", object.namespace())).await {
            Ok(found) => self.add(found.into_iter().collect(), kind),
            Err(error) => self.hide("the namespace", &error),
        }
    }

    fn troubled(&self) -> Vec<Object<'_>> {
        let evidence = &self.evidence;
        evidence.of_kind("Pod").filter(|pod| pods::trouble(evidence, *pod).is_some()).take(PODS_MAX).collect()
    }

    async fn nodes(&mut self) {
        let Some(kind) = self.kinds.of("v1", "Node") else { return };
        let mut names: Vec<String> = self.troubled().iter().map(|pod| pod.text("/spec/nodeName").to_owned()).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        names.dedup();
        let client = self.client;
        let reads = names.iter().map(async |name| get(client, &kind.path("", name)).await);
        for found in join_all(reads).await {
            match found {
                Ok(found) => self.add(found.into_iter().collect(), kind),
                Err(error) => self.hide("nodes", &error),
            }
        }
    }

    async fn events(&mut self) {
        let Some(kind) = self.kinds.of("v1", "Event") else { return };
        let Some(object) = self.evidence.object() else { return };
        let own = self.evidence.owned_by(object.uid()).filter(|owned| owned.kind() != "Pod");
        let owners = object.owners().filter_map(|owner| self.evidence.with_uid(owner.uid));
        let about = std::iter::once(object).chain(owners).chain(own).chain(self.troubled());
        let uids: Vec<String> = about.take(EVENTS_MAX).map(|about| about.uid().to_owned()).collect();
        // Events of a cluster-scoped object are in the default namespace.
        let namespace = if object.namespace().is_empty() { "default" } else { object.namespace() };
        let (client, path) = (self.client, kind.path(namespace, ""));
        let lists = uids
            .iter()
            .map(async |uid| list(client, &path, &format!("&fieldSelector=involvedObject.uid%3D{uid}")).await);
        for events in join_all(lists).await {
            match events {
                Ok(events) => self.add(events, kind),
                Err(error) => self.hide("events", &error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_belongs_to_a_dependent_belongs_to_its_owner_too() {
        let object = |uid: &str, owner: &str| json!({"metadata": {"uid": uid, "ownerReferences": [{"uid": owner}]}});
        let pods = vec![object("web-a-x", "web-a"), object("api-a-x", "api-a")];
        let sets = vec![object("web-a", "web"), object("api-a", "api")];
        let found = dependents_of("web", vec![("pods", pods), ("replicasets", sets)]);
        let found: Vec<(&str, &str)> =
            found.iter().flat_map(|(kind, own)| own.iter().map(move |own| (*kind, Object(own).uid()))).collect();
        assert_eq!(found, [("replicasets", "web-a"), ("pods", "web-a-x")]);
    }
}
