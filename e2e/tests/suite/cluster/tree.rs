//! Owners and their dependents, three levels of them, of any kinds; and kinds of one's own.
//!
//! Left out: references that mean nothing. Tests that want one write it themselves.

use anyhow::{Context, Result, ensure};
use e2e::apply::{api, apply};
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{DEADLINE, Scene};

/// A finalizer of nobody's: an object with it stays until a test lets it go.
pub(super) const HOLD: &str = "e2e.example/hold";

/// The kind of a tree's objects, and the version in which it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

pub(super) fn config_maps() -> Kind {
    Kind { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() }
}

pub(super) fn secrets() -> Kind {
    Kind { api_version: "v1".to_owned(), kind: "Secret".to_owned() }
}

impl Kind {
    /// An object of this kind with nothing in it but these owners.
    pub(super) fn object(&self, name: &str, owners: &[Value]) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind,
            "metadata": {"name": name, "ownerReferences": owners},
        })
    }

    /// All objects of this kind with these labels, in the scene's namespace.
    pub(super) async fn list(&self, scene: &Scene, selector: &str) -> Result<Vec<DynamicObject>> {
        let api = api(&scene.client, &self.api_version, &self.kind, &scene.namespace).await?;
        let list = api.list(&ListParams::default().labels(selector)).await;
        Ok(list.with_context(|| format!("list {}", self.kind))?.items)
    }

    pub(super) async fn find(&self, scene: &Scene, name: &str) -> Result<Option<DynamicObject>> {
        let api = api(&scene.client, &self.api_version, &self.kind, &scene.namespace).await?;
        api.get_opt(name).await.with_context(|| format!("get {} {name}", self.kind))
    }

    pub(super) async fn merge(&self, scene: &Scene, name: &str, patch: &Value) -> Result<DynamicObject> {
        let api = api(&scene.client, &self.api_version, &self.kind, &scene.namespace).await?;
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.with_context(|| format!("patch {} {name}", self.kind))
    }
}

/// A reference to this object, which does not keep it waiting.
pub(super) fn reference(owner: &DynamicObject) -> Value {
    let types = owner.types.clone().unwrap_or_default();
    json!({"apiVersion": types.api_version, "kind": types.kind, "name": owner.name_any(), "uid": owner.uid()})
}

/// A reference to this object, whose deletion in the foreground waits for who has it.
pub(super) fn blocking(owner: &DynamicObject) -> Value {
    let mut reference = reference(owner);
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

/// `NAME`, which owns `NAME-0` and `NAME-1`, each of which owns two more; each level is of its own kind.
/// Left out of a sprout: whatever has a 1.
pub(super) struct Tree {
    pub(super) name: String,
    pub(super) kinds: [Kind; 3],
}

impl Tree {
    /// Creates the tree; its last leaf is held.
    pub(super) async fn grow(scene: &Scene, name: &str, kinds: [Kind; 3]) -> Result<Self> {
        let tree = Self::plant(scene, name, kinds, &["0", "1"]).await?;
        tree.hold(scene).await?;
        Ok(tree)
    }

    /// Creates a tree of one branch with one leaf, which nobody holds.
    pub(super) async fn sprout(scene: &Scene, name: &str, kinds: [Kind; 3]) -> Result<Self> {
        Self::plant(scene, name, kinds, &["0"]).await
    }

    async fn plant(scene: &Scene, name: &str, kinds: [Kind; 3], suffixes: &[&str]) -> Result<Self> {
        let create = async |kind: &Kind, name: &str, owners: &[Value]| {
            let mut object = kind.object(name, owners);
            object["metadata"]["labels"] = json!({"tree": name.split('-').next()});
            scene.apply(&object).await
        };
        let [roots, branches, leaves] = &kinds;
        let root = create(roots, name, &[]).await?;
        for suffix in suffixes {
            let branch = create(branches, &format!("{name}-{suffix}"), &[blocking(&root)]).await?;
            for suffix in suffixes {
                let leaf = format!("{}-{suffix}", branch.name_any());
                create(leaves, &leaf, &[blocking(&branch)]).await?;
            }
        }
        Ok(Self { name: name.to_owned(), kinds })
    }

    fn held_leaf(&self) -> String {
        format!("{}-1-1", self.name)
    }

    async fn hold(&self, scene: &Scene) -> Result<()> {
        let finalizers = json!({"metadata": {"finalizers": [HOLD]}});
        self.kinds[2].merge(scene, &self.held_leaf(), &finalizers).await.map(drop)
    }

    /// Lets the held leaf go, as whoever has put the finalizer there would.
    pub(super) async fn let_go(&self, scene: &Scene) -> Result<()> {
        let finalizers = json!({"metadata": {"finalizers": null}});
        self.kinds[2].merge(scene, &self.held_leaf(), &finalizers).await.map(drop)
    }

    /// Deletes the root with kubectl, as people do.
    pub(super) async fn delete(&self, scene: &Scene, cascade: &str) -> Result<()> {
        let root = &self.kinds[0];
        let group =
            root.api_version.rsplit_once('/').map_or(String::new(), |(group, version)| format!(".{version}.{group}"));
        let (kind, name) = (&root.kind, &self.name);
        scene.kubectl(&format!("delete {kind}{group}/{name} --cascade={cascade} --wait=false")).await.map(drop)
    }

    /// All that is there: names, those being deleted with a `-` before them.
    pub(super) async fn left(&self, scene: &Scene) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for kind in &self.kinds {
            for object in kind.list(scene, &format!("tree={}", self.name)).await? {
                let mark = if object.metadata.deletion_timestamp.is_some() { "-" } else { "" };
                left.push(format!("{mark}{}", object.name_any()));
            }
        }
        left.sort_by(|a, b| a.trim_start_matches('-').cmp(b.trim_start_matches('-')));
        // Two levels may be of one kind.
        left.dedup();
        Ok(left)
    }

    /// Waits until exactly this is left.
    pub(super) async fn wait_left(&self, scene: &Scene, expected: &[&str]) -> Result<()> {
        scene
            .wait_until(&format!("{expected:?} is left"), DEADLINE, async || {
                let left = self.left(scene).await?;
                ensure!(left == expected, "{left:?}");
                Ok(())
            })
            .await
    }
}

/// Defines a kind in a group of this namespace's own; objects of it are served once this returns.
pub(super) async fn define(scene: &Scene, kind: &str) -> Result<Kind> {
    apply(&scene.client, "", &definition(scene, kind)).await?;
    served(scene, kind).await
}

/// As [`define`], for many kinds at a time.
pub(super) async fn define_all(scene: &Scene, kinds: &[String]) -> Result<Vec<Kind>> {
    for kind in kinds {
        apply(&scene.client, "", &definition(scene, kind)).await?;
    }
    // Asking for each of them again and again would keep the apiserver from serving any.
    let definitions = api(&scene.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "").await?;
    scene
        .wait_until("the kinds are established", DEADLINE, async || {
            let mut left = definitions.list(&ListParams::default()).await?.items;
            left.retain(|definition| !is_established(definition));
            ensure!(left.is_empty(), "{} are not", left.len());
            Ok(())
        })
        .await?;
    let mut all = Vec::new();
    for kind in kinds {
        all.push(served(scene, kind).await?);
    }
    Ok(all)
}

fn is_established(definition: &DynamicObject) -> bool {
    let conditions = definition.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// The name of a kind's definition.
pub(super) fn definition_name(scene: &Scene, kind: &str) -> String {
    format!("{}s.{}.example", kind.to_lowercase(), scene.namespace)
}

/// A namespaced kind of one version that holds anything.
pub(super) fn definition(scene: &Scene, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": definition_name(scene, kind)},
        "spec": {
            "group": format!("{}.example", scene.namespace), "scope": "Namespaced",
            "names": {"kind": kind, "singular": singular, "plural": format!("{singular}s")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

/// The kind, once objects of it are served.
async fn served(scene: &Scene, kind: &str) -> Result<Kind> {
    let kind = Kind { api_version: format!("{}.example/v1", scene.namespace), kind: kind.to_owned() };
    scene
        .wait_until(&format!("{} is served", kind.kind), DEADLINE, async || kind.list(scene, "").await.map(drop))
        .await?;
    Ok(kind)
}
