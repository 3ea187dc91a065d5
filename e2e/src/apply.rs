//! Server-side apply of any object.
//! Left out: pruning, and waiting for what was applied to become something.

use anyhow::{Context, Result};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, ApiResource, Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

/// The field manager of all that the suite applies.
pub const FIELD_MANAGER: &str = "e2e";

pub async fn apply(client: &Client, namespace: &str, object: &Value) -> Result<DynamicObject> {
    let (kind, name) = (text(object, "/kind")?, text(object, "/metadata/name")?);
    let api = api(client, text(object, "/apiVersion")?, kind, text(object, "/metadata/namespace").unwrap_or(namespace));
    api.await?
        .patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object))
        .await
        .with_context(|| format!("apply {kind} {name}"))
}

/// The API of any kind; `namespace` is not used where the kind has none.
pub async fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Result<Api<DynamicObject>> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities): (ApiResource, ApiCapabilities) =
        pinned_kind(client, &gvk).await.with_context(|| format!("find {kind} in {api_version}"))?;
    Ok(match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
    })
}

/// The objects in a YAML text; empty documents are none.
pub fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_yaml::from_multiple(yaml).context("read YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// The text at `pointer` of an object.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("an object without {pointer}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_and_empty_ones_dropped() {
        let all = documents("a: 1\n---\n# nothing\n---\nkind: Pod\nmetadata: {name: p}\n").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(text(&all[1], "/metadata/name").unwrap(), "p");
        assert!(text(&all[0], "/kind").is_err());
    }
}
