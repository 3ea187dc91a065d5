//! Discovery of the kinds that autoscalers name, and of the version of custom metrics: read once, and again after a
//! failed request. Each sync looks again for a kind that is not served.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::api::resource::Resource;
use shared::transport::api_error::ApiError;
use shared::working::control::Control;

pub(super) const CUSTOM_METRICS: &str = "custom.metrics.k8s.io";
const CUSTOM_METRICS_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// Why a kind or a version is unknown, in client-go's words.
pub(super) enum Unknown {
    Failed(ApiError),
    NotServed(String),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "{error}"),
            Self::NotServed(message) => f.write_str(message),
        }
    }
}

impl From<ApiError> for Unknown {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// The kinds by group and name, and the version of custom metrics.
#[derive(Default)]
pub struct Kinds(Mutex<State>);

#[derive(Default)]
struct State {
    resources: BTreeMap<(String, String), Resource>,
    custom_metrics: Option<String>,
}

impl Kinds {
    /// The resource of a kind, in the version that the server prefers.
    ///
    /// Upstream: `RESTMappings`, `staging/src/k8s.io/client-go/restmapper/discovery.go`, which tries the resource of
    /// every version; each leads to the preferred one.
    pub(super) async fn resource_of(&self, control: &Control, group: &str, kind: &str) -> Result<Resource, Unknown> {
        let key = (group.to_owned(), kind.to_owned());
        let known = self.state().resources.get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(resource) = control.find_in_group(group, |version| version.resource_of(kind)).await? else {
            return Err(Unknown::NotServed(format!("no matches for kind {kind:?} in group {group:?}")));
        };
        self.state().resources.insert(key, resource.clone());
        Ok(resource)
    }

    /// Upstream: `PreferredVersion`, `staging/src/k8s.io/metrics/pkg/client/custom_metrics/discovery.go`.
    pub(super) async fn custom_metrics_version(&self, control: &Control) -> Result<String, Unknown> {
        let known = self.state().custom_metrics.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let served = control.versions_of(CUSTOM_METRICS).await?;
        if served.is_empty() {
            return Err(Unknown::NotServed(format!("no custom metrics API ({CUSTOM_METRICS}) registered")));
        }
        let version = served.into_iter().find(|version| CUSTOM_METRICS_VERSIONS.contains(&version.as_str()));
        let version =
            version.ok_or_else(|| Unknown::NotServed("no known available metric versions found".to_owned()))?;
        self.state().custom_metrics = Some(version.clone());
        Ok(version)
    }

    pub(super) fn forget_resource(&self, group: &str, kind: &str) {
        self.state().resources.remove(&(group.to_owned(), kind.to_owned()));
    }

    pub(super) fn forget_custom_metrics(&self) {
        self.state().custom_metrics = None;
    }

    pub(crate) fn start_over(&self) {
        *self.state() = State::default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
