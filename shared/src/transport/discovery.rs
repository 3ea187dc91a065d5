//! Discovery: every resource with its verbs, built in, custom and aggregated, in two requests.
//!
//! A group version that cannot be read (its API service is down) is reported by itself and hides no other.
//! Where one kind is asked for, the document of its group version is enough; it is small, and names subresources.
//! Left out: short names and categories.
//!
//! Upstream: `aggregated_discovery.go`, `ServerPreferredResources` and `ServerResourcesForGroupVersion`,
//! staging/src/k8s.io/client-go/discovery.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use http::Method;
use serde::{Deserialize, Deserializer};

use crate::api::intern::Text;
use crate::api::resource::Resource;
use crate::api::url::{is_segment, segment};
use crate::transport::api_error::ApiError;
use crate::transport::client::{Accept, Client};

/// The core group's document, and that of all others.
const PATHS: [&str; 2] = ["/api", "/apis"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub resource: Resource,
    /// For example `delete`, `deletecollection`, `list`.
    pub verbs: BTreeSet<Text>,
    /// Whether this is the version to use where any would do: one for each group and plural.
    pub is_preferred: bool,
}

impl Served {
    pub fn has_verbs(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.contains(*verb))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// Every resource in every version, in the server's order.
    pub served: Vec<Served>,
    /// The group versions (`metrics.k8s.io/v1beta1`) that cannot be read at the moment, and why.
    pub failed: BTreeMap<String, String>,
}

impl Discovery {
    /// Asks the apiserver.
    ///
    /// # Errors
    /// When one of the two documents does not come or is not what this build understands.
    pub async fn read(client: &Client) -> Result<Self, ApiError> {
        let mut discovery = Self::default();
        for path in PATHS {
            let body = client.get_bytes(path, Accept::Discovery).await?;
            let groups: GroupList = serde_json::from_slice(&body).map_err(ApiError::unread(&Method::GET, path))?;
            discovery.add(groups);
        }
        Ok(discovery)
    }

    /// One version of each resource: the preferred one where it can be read and has the resource, else the next.
    pub fn preferred(&self) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(|served| served.is_preferred)
    }

    /// The resource whose objects have this apiVersion and kind, in exactly this version.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resources = self.served.iter().map(|served| &served.resource);
        resources.into_iter().find(|found| found.group == group && found.version == version && found.kind == kind)
    }

    /// The failed group versions, in the words of client-go's error; none if all could be read.
    pub fn failure(&self) -> Option<PartialFailure<'_>> {
        (!self.failed.is_empty()).then_some(PartialFailure(&self.failed))
    }

    fn add(&mut self, groups: GroupList) {
        for group in groups.items {
            let mut seen = BTreeSet::new();
            for version in group.versions {
                let group_version = group_version(&group.metadata.name, &version.name);
                if version.freshness == "Stale" {
                    let error = format!("stale GroupVersion discovery: {group_version}");
                    self.failed.insert(group_version, error);
                    continue;
                }
                for found in version.resources {
                    let Some(kind) = found.response_kind.kind.filter(|kind| !kind.is_empty()) else { continue };
                    let is_preferred = seen.insert(found.resource.clone());
                    let resource = Resource {
                        group: Cow::Owned(group.metadata.name.clone()),
                        version: Cow::Owned(version.name.clone()),
                        kind: Cow::Owned(kind),
                        plural: Cow::Owned(found.resource),
                        namespaced: found.scope == "Namespaced",
                    };
                    self.served.push(Served { resource, verbs: found.verbs, is_preferred });
                }
            }
        }
    }
}

/// The resources of one group version, and their subresources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupVersion {
    group: String,
    version: String,
    listed: Vec<Listed>,
}

impl GroupVersion {
    /// Asks the apiserver; a group version that is not served has no resources.
    ///
    /// # Errors
    /// When the document does not come or is not what this build understands.
    pub async fn read(client: &Client, api_version: &str) -> Result<Self, ApiError> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let root = match group {
            "" => "/api".to_owned(),
            group => format!("/apis/{}", segment(group)),
        };
        // An ownerReference may name anything.
        if !is_segment(version) || !(group.is_empty() || is_segment(group)) {
            return Ok(Self::default());
        }
        match client.get::<ResourceList>(&format!("{root}/{}", segment(version))).await {
            Ok(ResourceList { resources }) => Ok(Self::of(group, version, resources)),
            Err(error) if error.is_not_found() => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn of(group: &str, version: &str, listed: Vec<Listed>) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), listed }
    }

    /// The resource whose objects have this kind.
    pub fn resource_of(&self, kind: &str) -> Option<Resource> {
        let is_it = |listed: &&Listed| listed.kind == kind && !listed.name.contains('/');
        self.listed.iter().find(is_it).map(|listed| self.resource(listed))
    }

    fn resource(&self, listed: &Listed) -> Resource {
        let Listed { name, kind, namespaced, group: _, version: _, verbs: _ } = listed.clone();
        let (group, version) = (Cow::Owned(self.group.clone()), Cow::Owned(self.version.clone()));
        Resource { group, version, kind: Cow::Owned(kind), plural: Cow::Owned(name), namespaced }
    }

    /// The resource of this name (`deployments`).
    pub fn resource_named(&self, plural: &str) -> Option<Resource> {
        self.listed_as(plural).map(|listed| self.resource(listed))
    }

    /// Whether the resource of this name takes all these verbs, such as `list`.
    pub fn has_verbs(&self, plural: &str, verbs: &[&str]) -> bool {
        self.listed_as(plural).is_some_and(|listed| verbs.iter().all(|verb| listed.verbs.contains(*verb)))
    }

    fn listed_as(&self, name: &str) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.name == name)
    }

    /// The apiVersion and kind in which the objects of a resource have this subresource, if they do.
    pub fn subresource(&self, resource: &Resource, subresource: &str) -> Option<(String, &str)> {
        let is_it = |listed: &&Listed| {
            listed.name.split_once('/').is_some_and(|(plural, name)| plural == resource.plural && name == subresource)
        };
        let listed = self.listed.iter().find(is_it)?;
        let or_own = |told: &str, own: &str| if listed.version.is_empty() { own.to_owned() } else { told.to_owned() };
        let (group, version) = (or_own(&listed.group, &self.group), or_own(&listed.version, &self.version));
        Some((group_version(&group, &version), &listed.kind))
    }
}

/// The versions of a group, the preferred one first; none if it is not served.
///
/// # Errors
/// When the document does not come or is not what this build understands.
pub(crate) async fn versions_of(client: &Client, group: &str) -> Result<Vec<String>, ApiError> {
    match group {
        "" => return Ok(vec!["v1".to_owned()]),
        // A reference may name anything.
        group if !is_segment(group) => return Ok(Vec::new()),
        _ => {}
    }
    match client.get::<ApiGroup>(&format!("/apis/{}", segment(group))).await {
        Ok(found) => Ok(found.versions()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Prints as client-go's `ErrGroupDiscoveryFailed`.
#[derive(Clone, Copy, Debug)]
pub struct PartialFailure<'a>(&'a BTreeMap<String, String>);

impl PartialFailure<'_> {
    /// How many group versions failed.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for PartialFailure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unable to retrieve the complete list of server APIs: ")?;
        for (at, (group_version, error)) in self.0.iter().enumerate() {
            write!(f, "{}{group_version}: {error}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// Go writes an empty list as `null`, too; one server that does so must hide no other.
fn null_as_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(deserialize_with = "null_as_empty")]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: GroupMeta,
    #[serde(default, deserialize_with = "null_as_empty")]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct GroupMeta {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "version")]
    name: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    resources: Vec<Found>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    resource: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    response_kind: ResponseKind,
    #[serde(default)]
    scope: String,
    #[serde(default, deserialize_with = "null_as_empty")]
    verbs: BTreeSet<Text>,
}

#[derive(Default, Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: Option<String>,
}

/// Upstream: `APIGroup`, staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup {
    #[serde(default, deserialize_with = "null_as_empty")]
    versions: Vec<ApiVersion>,
    #[serde(default, deserialize_with = "null_as_empty")]
    preferred_version: ApiVersion,
}

#[derive(Default, Deserialize)]
struct ApiVersion {
    #[serde(default)]
    version: String,
}

impl ApiGroup {
    fn versions(self) -> Vec<String> {
        let preferred = self.preferred_version.version;
        let mut versions: Vec<String> = self.versions.into_iter().map(|found| found.version).collect();
        versions.sort_by_key(|version| *version != preferred);
        versions
    }
}

#[derive(Deserialize)]
struct ResourceList {
    #[serde(default, deserialize_with = "null_as_empty")]
    resources: Vec<Listed>,
}

/// A resource (`deployments`) or a subresource (`deployments/scale`) of a group version's own document. One in another
/// group version than the document's says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Listed {
    name: String,
    kind: String,
    namespaced: bool,
    group: String,
    version: String,
    #[serde(deserialize_with = "null_as_empty")]
    verbs: BTreeSet<Text>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(plural: &str, kind: &str, verbs: &str) -> String {
        format!(
            r#"{{"resource":"{plural}","responseKind":{{"group":"","version":"","kind":"{kind}"}},"scope":"Namespaced",
                "singularResource":"x","verbs":[{verbs}],"subresources":[{{"subresource":"status"}}]}}"#
        )
    }

    fn discovery(groups: &str) -> Discovery {
        let mut discovery = Discovery::default();
        discovery
            .add(serde_json::from_str(&format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{groups}]}}"#)).unwrap());
        discovery
    }

    /// Lists `plural@group/version`, preferred ones with a star.
    #[track_caller]
    fn check(discovery: &Discovery, expected: &str) {
        let resources: Vec<String> = discovery
            .served
            .iter()
            .map(|served| {
                let star = if served.is_preferred { "*" } else { "" };
                format!("{star}{}@{}", served.resource.plural, served.resource.api_version())
            })
            .collect();
        assert_eq!(resources.join(" "), expected);
    }

    #[test]
    fn the_first_version_that_has_a_resource_is_preferred() {
        let (widgets, gadgets) = (resource("widgets", "Widget", r#""delete""#), resource("gadgets", "Gadget", ""));
        let groups = format!(
            r#"{{"metadata":{{"name":"example.com"}},"versions":[
                {{"version":"v1","resources":[{widgets}],"freshness":"Current"}},
                {{"version":"v1beta1","resources":[{widgets},{gadgets}],"freshness":"Current"}}]}}"#
        );
        let discovery = discovery(&groups);
        check(&discovery, "*widgets@example.com/v1 widgets@example.com/v1beta1 *gadgets@example.com/v1beta1");
        let found = discovery.resource_of("example.com/v1beta1", "Widget").unwrap();
        assert_eq!(found.collection_path("ns"), "/apis/example.com/v1beta1/namespaces/ns/widgets");
        assert_eq!(discovery.resource_of("example.com/v2", "Widget"), None);
        assert!(discovery.served[0].has_verbs(&["delete"]) && !discovery.served[0].has_verbs(&["delete", "list"]));
        assert!(discovery.failure().is_none());
    }

    #[test]
    fn a_version_that_cannot_be_read_hides_no_other() {
        let widgets = resource("widgets", "Widget", r#""delete""#);
        let groups = format!(
            r#"{{"metadata":{{"name":"down.example.com"}},"versions":[
                {{"version":"v2","resources":[{widgets}],"freshness":"Stale"}},
                {{"version":"v1","resources":[{widgets}],"freshness":"Current"}}]}},
               {{"metadata":{{"name":"also.example.com"}},"versions":[{{"version":"v1","freshness":"Stale"}}]}},
               {{"metadata":{{}},"versions":[{{"version":"v1","resources":[{widgets}]}}]}}"#
        );
        let discovery = discovery(&groups);
        check(&discovery, "*widgets@down.example.com/v1 *widgets@v1");
        let failure = discovery.failure().unwrap();
        assert_eq!(failure.count(), 2);
        assert_eq!(
            failure.to_string(),
            "unable to retrieve the complete list of server APIs: \
             also.example.com/v1: stale GroupVersion discovery: also.example.com/v1, \
             down.example.com/v2: stale GroupVersion discovery: down.example.com/v2"
        );
    }

    #[test]
    fn lists_that_a_server_leaves_empty_may_be_null() {
        let groups = r#"{"metadata":{"name":"g"},"versions":[
            {"version":"v1","resources":[{"resource":"odd","responseKind":{"kind":"Odd"},"verbs":null}]},
            {"version":"v2","resources":null}]},{"metadata":{"name":"h"},"versions":null}"#;
        check(&discovery(groups), "*odd@g/v1");
        assert!(serde_json::from_str::<GroupList>(r#"{"items":null}"#).unwrap().items.is_empty());
    }

    #[test]
    fn what_has_no_kind_is_no_resource() {
        let groups = r#"{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"odd"}]}]}"#;
        check(&discovery(groups), "");
    }

    #[test]
    fn the_preferred_version_of_a_group_comes_first() {
        let read = |json: &str| serde_json::from_str::<ApiGroup>(json).unwrap().versions();
        let versions = r#""versions":[{"groupVersion":"g/v1","version":"v1"},{"groupVersion":"g/v2","version":"v2"}]"#;
        assert_eq!(read(&format!(r#"{{{versions},"preferredVersion":{{"version":"v2"}}}}"#)), ["v2", "v1"]);
        assert_eq!(read(&format!("{{{versions}}}")), ["v1", "v2"]);
        assert_eq!(read(r#"{"versions":null,"preferredVersion":null}"#), [""; 0]);
    }

    #[test]
    fn the_document_of_a_group_version_tells_kinds_and_subresources() {
        let document = r#"{"resources":[
            {"name":"widgets/status","kind":"Widget","namespaced":true},
            {"name":"widgets/scale","kind":"Scale","namespaced":true,"group":"autoscaling","version":"v1"},
            {"name":"widgets","kind":"Widget","namespaced":true,"verbs":["list","patch"]},
            {"name":"gadgets","kind":"Gadget","namespaced":false,"verbs":null},{"name":"gadgets/scale","kind":"Gadget"}]}"#;
        let ResourceList { resources } = serde_json::from_str(document).unwrap();
        let served = GroupVersion::of("example.com", "v1", resources);
        let widgets = served.resource_of("Widget").unwrap();
        assert_eq!(widgets, Resource::namespaced("example.com", "v1", "Widget", "widgets"));
        let gadgets = served.resource_of("Gadget").unwrap();
        assert_eq!(gadgets, Resource::cluster_scoped("example.com", "v1", "Gadget", "gadgets"));
        assert_eq!(served.resource_of("Scale"), None);
        let named = ["gadgets", "widgets/gone"].map(|plural| served.resource_named(plural));
        assert_eq!(named, [Some(gadgets.clone()), None]);
        let verbs = ["widgets", "gadgets", "gone"].map(|plural| served.has_verbs(plural, &["list", "patch"]));
        assert_eq!(verbs, [true, false, false]);
        assert!(!served.has_verbs("widgets", &["list", "update"]));
        assert_eq!(served.subresource(&widgets, "scale"), Some(("autoscaling/v1".to_owned(), "Scale")));
        assert_eq!(served.subresource(&gadgets, "scale"), Some(("example.com/v1".to_owned(), "Gadget")));
        assert_eq!(served.subresource(&gadgets, "status"), None);
        assert!(serde_json::from_str::<ResourceList>(r#"{"resources":null}"#).unwrap().resources.is_empty());
    }
}
