//! The views of a token's metadata, of its ServiceAccount, and of the ConfigMap with the first day of tracking.

pub mod day;
pub mod pod;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::resource::Resource;

use day::Day;

pub const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");

pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");

pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");

/// The field selector of tokens; no other Secret is read. Upstream: `SecretTypeServiceAccountToken`.
pub const TOKENS: &str = "type=kubernetes.io/service-account-token";

/// The label in which the apiserver records the day of the last use. Upstream: `LastUsedLabelKey`.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The label that makes the apiserver refuse a token. Upstream: `InvalidSinceLabelKey`.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Namespace and name of the apiserver's ConfigMap with the first day of tracking. Upstream: `ConfigMapName`,
/// `pkg/controlplane/controller/legacytokentracking/controller.go`.
pub const TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

pub fn tracking_key() -> Key {
    let (namespace, name) = TRACKING;
    Key::new(namespace, name)
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawTracking")]
pub struct Tracking {
    pub metadata: Meta,
    /// The first day of tracking; none if it has none.
    pub since: Option<Day>,
}

shared::view!(Tracking, CONFIG_MAPS);

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Token {
    pub metadata: Meta<AccountName>,
}

impl Token {
    pub fn day(&self, label: &str) -> LabelledDay {
        match self.metadata.labels.get(label) {
            None => LabelledDay::None,
            Some(text) => Day::parse(text).map_or(LabelledDay::Unreadable, LabelledDay::Day),
        }
    }
}

/// The value of a label that should be a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelledDay {
    None,
    /// It is not a day.
    Unreadable,
    Day(Day),
}

impl LabelledDay {
    pub fn read(self) -> Option<Day> {
        match self {
            Self::None | Self::Unreadable => None,
            Self::Day(day) => Some(day),
        }
    }
}

/// The annotations of a token that name its account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AccountName {
    /// The name; `""` for no account.
    #[serde(rename = "kubernetes.io/service-account.name")]
    pub name: Text,
    /// The uid; `""` for any account of that name.
    #[serde(rename = "kubernetes.io/service-account.uid")]
    pub uid: Text,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawServiceAccount")]
pub struct ServiceAccount {
    pub metadata: Meta,
    /// The names of the Secrets that it lists: the tokens that a controller created for it, none that a person created.
    pub secrets: Box<[Text]>,
}

shared::view!(ServiceAccount, SERVICE_ACCOUNTS);

impl ServiceAccount {
    /// Whether a token that names its name belongs to it.
    ///
    /// Upstream: `getServiceAccount`.
    pub fn is_of(&self, token: &Token) -> bool {
        let uid = &token.metadata.annotations.uid;
        uid.is_empty() || Uid::parse(uid) == self.metadata.uid
    }

    /// Whether it lists the token.
    ///
    /// Upstream: `hasSecretReference`.
    pub fn lists(&self, token: &Token) -> bool {
        self.secrets.iter().any(|secret| *secret == *token.metadata.name())
    }
}

#[derive(Deserialize)]
struct RawTracking {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    data: TrackingData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TrackingData {
    since: String,
}

impl From<RawTracking> for Tracking {
    fn from(RawTracking { metadata, data }: RawTracking) -> Self {
        Self { metadata, since: Day::parse(&data.since) }
    }
}

#[derive(Deserialize)]
struct RawServiceAccount {
    metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    secrets: Vec<RawReference>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawReference {
    name: Text,
}

impl From<RawServiceAccount> for ServiceAccount {
    fn from(RawServiceAccount { metadata, secrets }: RawServiceAccount) -> Self {
        Self { metadata, secrets: secrets.into_iter().map(|RawReference { name }| name).collect() }
    }
}
