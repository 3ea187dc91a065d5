//! The kinds of the API, by the names that kubectl takes: `deploy`, `deployments.apps`, `job.v1.batch`.

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::core::discovery::v2::APIGroupDiscoveryList;

use crate::words::nearest;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub other_names: Vec<String>,
    pub is_namespaced: bool,
    pub is_listable: bool,
}

impl Kind {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Path of an object; of all objects if `name` is empty, in all namespaces if `namespace` is.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let namespace = if namespace.is_empty() || !self.is_namespaced {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        format!("{root}/{}{namespace}/{}{name}", self.api_version(), self.plural)
    }

    fn is_called(&self, name: &str) -> bool {
        self.plural == name || self.other_names.iter().any(|other| other == name)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Kinds(pub Vec<Kind>);

impl Kinds {
    pub async fn read(client: &Client) -> Result<Self> {
        let (core, groups) =
            tokio::try_join!(client.list_core_api_versions_aggregated(), client.list_api_groups_aggregated())
                .context("cannot discover the API's kinds")?;
        Ok(Self([core, groups].into_iter().flat_map(kinds).collect()))
    }

    pub fn called(&self, word: &str) -> Result<&Kind> {
        let lower = word.to_lowercase();
        let (name, rest) = lower.split_once('.').unwrap_or((&lower, ""));
        let fits = |kind: &&Kind| {
            let with_version = format!("{}.{}", kind.version, kind.group);
            kind.is_called(name)
                && (rest.is_empty() || kind.group == rest || with_version.trim_end_matches('.') == rest)
        };
        if let Some(kind) = self.0.iter().find(fits) {
            return Ok(kind);
        }
        let names = self.0.iter().flat_map(|kind| kind.other_names.iter().chain([&kind.plural]));
        match nearest(name, names.map(String::as_str), 1).first() {
            Some(near) => bail!("unknown kind {word:?}; did you mean {near:?}?"),
            None => bail!("unknown kind {word:?}; see `kubectl api-resources`"),
        }
    }

    pub fn of(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.0.iter().find(|known| known.kind == kind && known.api_version() == api_version)
    }
}

/// The first version of a group is the preferred one.
fn kinds(list: APIGroupDiscoveryList) -> Vec<Kind> {
    let mut found = Vec::new();
    for item in list.items {
        let group = item.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        for version in item.versions {
            for resource in version.resources {
                let name = version.version.clone().unwrap_or_default();
                let Some(kind) = resource.response_kind.and_then(|kind| kind.kind) else { continue };
                let singular = resource.singular_resource.filter(|name| !name.is_empty());
                let other_names =
                    resource.short_names.into_iter().chain([kind.to_lowercase()]).chain(singular).collect();
                found.push(Kind {
                    group: group.clone(),
                    version: name,
                    kind,
                    plural: resource.resource.unwrap_or_default(),
                    other_names,
                    is_namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    is_listable: resource.verbs.iter().any(|verb| verb == "list"),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Kinds {
        let kind = |group: &str, kind: &str, plural: &str, short: &str| Kind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            other_names: vec![short.to_owned(), kind.to_lowercase()],
            is_namespaced: true,
            is_listable: true,
        };
        Kinds(vec![
            kind("", "Event", "events", "ev"),
            kind("apps", "Deployment", "deployments", "deploy"),
            kind("batch", "Job", "jobs", "jo"),
            kind("events.k8s.io", "Event", "events", "ev"),
        ])
    }

    #[test]
    fn a_kind_is_found_by_every_name_that_kubectl_takes() {
        let row = |word: &str, expected: &str| {
            assert_eq!(known().called(word).map(|kind| kind.path("a", "b")).unwrap(), expected, "{word}");
        };
        for word in ["deploy", "deployment", "Deployment", "deployments", "deployments.apps", "deploy.v1.apps"] {
            row(word, "/apis/apps/v1/namespaces/a/deployments/b");
        }
        row("job.batch", "/apis/batch/v1/namespaces/a/jobs/b");
        row("events", "/api/v1/namespaces/a/events/b");
        row("events.events.k8s.io", "/apis/events.k8s.io/v1/namespaces/a/events/b");
        row("events.v1", "/api/v1/namespaces/a/events/b");
    }

    #[test]
    fn a_kind_that_is_not_there_has_a_neighbour() {
        let error = |word: &str| known().called(word).unwrap_err().to_string();
        assert_eq!(error("deploymnet"), "unknown kind \"deploymnet\"; did you mean \"deployment\"?");
        assert!(error("quux").ends_with("see `kubectl api-resources`"));
    }
}
