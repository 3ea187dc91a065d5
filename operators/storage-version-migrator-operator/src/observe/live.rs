//! Live reads: how the apiserver serves a resource, its definition, its version, and one page of its objects.

use anyhow::Context;
use serde::Deserialize;
use shared::api::object::{Key, ResourceVersion};
use shared::api::resource::Resource;
use shared::transport::api_error::{ApiError, ResultExt};
use shared::transport::client::Accept;
use shared::transport::discovery::GroupVersion;
use shared::working::control::{Control, Preconditions, Rest, Selection};

use super::{Observed, ObservedResource};
use crate::objects::GroupResource;
use crate::objects::definition::{CUSTOM_RESOURCE_DEFINITIONS, Definition};

/// A namespace that cannot exist: a list in it reads no object, and has the version of the resource.
///
/// Upstream: `fakeSVMNamespaceName`, `pkg/controller/storageversionmigrator/resourceversion.go`.
const NO_NAMESPACE: &str = "@fake:svm_ns!";

/// Upstream: `verbsRequiredForMigration`, `pkg/controller/storageversionmigrator/resourceversion.go`.
pub const REQUIRED_VERBS: [&str; 3] = ["update", "patch", "list"];

/// How the apiserver serves a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Served {
    Not,
    /// In this version first.
    In(Resource),
}

/// The same, and the version of the resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ServedVersion {
    Not,
    /// Without one of the [`REQUIRED_VERBS`].
    Unmigratable(Resource),
    In {
        resource: Resource,
        version: ResourceVersion,
    },
}

/// The answer to a request for a page of objects.
#[derive(Clone, Debug, PartialEq)]
pub enum Page {
    Objects {
        objects: Vec<Target>,
        /// Asks for the next page; empty after the last one.
        token: String,
        /// How many objects follow, where the apiserver says so.
        left: Option<u64>,
    },
    /// The token is not valid any more: the list begins again.
    Expired,
    /// The apiserver refuses the list for good.
    Refused(String),
}

/// An object to rewrite, with its uid and version as the apiserver wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub key: Key,
    pub uid: Box<str>,
    pub version: Box<str>,
}

impl Target {
    pub fn preconditions(&self) -> Preconditions<&str, &str> {
        Preconditions { uid: &self.uid, resource_version: Some(&self.version) }
    }
}

#[derive(Deserialize)]
struct RawObject {
    metadata: RawMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta {
    namespace: String,
    name: String,
    uid: Box<str>,
    resource_version: Box<str>,
}

impl From<RawObject> for Target {
    fn from(RawObject { metadata }: RawObject) -> Self {
        let RawMeta { namespace, name, uid, resource_version } = metadata;
        Self { key: Key::new(&namespace, &name), uid, version: resource_version }
    }
}

/// Adds how the resource is served or, if that is known, the next page of its objects.
pub(crate) async fn read(control: &Control, observed: Observed) -> anyhow::Result<Observed> {
    let migration = &observed.migration;
    Ok(match &observed.served {
        Some(Served::In(resource)) => {
            let token = migration.progress().token;
            let page = page(control, resource, &token).await.context("cannot list the objects")?;
            Observed { page: Some(page), ..observed }
        }
        Some(Served::Not) | None => {
            let found = find(control, &migration.target).await?;
            let served = found.map_or(Served::Not, |Found { resource, is_migratable: _ }| Served::In(resource));
            Observed { served: Some(served), ..observed }
        }
    })
}

async fn page(control: &Control, resource: &Resource, token: &str) -> Result<Page, ApiError> {
    let mut objects = Vec::new();
    let each = |object: RawObject| objects.push(object.into());
    match control.list_page(resource, Selection::default(), Accept::Metadata, token, each).await {
        Ok(Rest { token, left }) => Ok(Page::Objects { objects, token, left }),
        // A token that nobody gave is a bad request.
        Err(error) if !token.is_empty() && (error.is_gone() || error.code() == Some(400)) => Ok(Page::Expired),
        // The first page has no token that could be dropped: the sync is retried.
        Err(error) if is_final(&error) && !error.is_gone() => Ok(Page::Refused(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Adds the definition of a custom resource.
///
/// Upstream: `crdForGroupResource`, `pkg/controller/storageversionmigrator/migrationrunner.go`.
pub(crate) async fn definition(
    control: &Control,
    target: &GroupResource,
    observed: ObservedResource,
) -> anyhow::Result<ObservedResource> {
    let key = target.key();
    let read = control.get::<Definition>(&CUSTOM_RESOURCE_DEFINITIONS, &key).await;
    let definition = read.unless_absent().context("cannot read the CustomResourceDefinition")?;
    Ok(ObservedResource { definition: Some(definition), ..observed })
}

/// Adds how the resource is served, and its version.
///
/// Upstream: `getLatestResourceVersion`, `pkg/controller/storageversionmigrator/resourceversion.go`.
pub(crate) async fn version(
    control: &Control,
    target: &GroupResource,
    observed: ObservedResource,
) -> anyhow::Result<ObservedResource> {
    let served = match find(control, target).await? {
        None => ServedVersion::Not,
        Some(Found { resource, is_migratable: false }) => ServedVersion::Unmigratable(resource),
        Some(Found { resource, is_migratable: true }) => {
            let namespace = if resource.namespaced { NO_NAMESPACE } else { "" };
            let version = control.latest_version(&resource, namespace).await;
            let version =
                version.with_context(|| format!("error getting latest resourceVersion for {}", resource.gvr()))?;
            ServedVersion::In { resource, version }
        }
    };
    Ok(ObservedResource { served: Some(served), ..observed })
}

struct Found {
    resource: Resource,
    is_migratable: bool,
}

/// Finds the resource in the first version that has it.
///
/// Upstream: `resourceFor` and `isResourceMigratable`, `pkg/controller/storageversionmigrator/resourceversion.go`.
async fn find(control: &Control, GroupResource { group, resource }: &GroupResource) -> anyhow::Result<Option<Found>> {
    let find = |version: &GroupVersion| {
        let found = version.resource_named(resource)?;
        Some(Found { resource: found, is_migratable: version.has_verbs(resource, &REQUIRED_VERBS) })
    };
    control.find_in_group(group, find).await.context("cannot discover the resource")
}

/// Whether the apiserver would refuse the same request again, however often it is sent. A resource that is not served any
/// more is discovered again instead.
///
/// Upstream: `isRetriableError`, `pkg/controller/storageversionmigrator/storageversionmigrator.go`.
pub(crate) fn is_final(error: &ApiError) -> bool {
    let passes = error.is_too_many_requests() || error.is_unauthorized() || error.is_not_found();
    error.code().is_some_and(|code| code < 500) && !passes
}
