//! The views of a token, of its ServiceAccount, and of the ConfigMap that says since when the use of tokens is noted.
//!
//! Left out: the content of a Secret. A token is read by its metadata alone.

pub mod day;
pub mod pod;

use serde::Deserialize;
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::resource::Resource;

use day::Day;

/// `v1` `Secret`.
pub const SECRETS: Resource = Resource::namespaced("", "v1", "Secret", "secrets");

/// `v1` `ServiceAccount`.
pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");

/// `v1` `ConfigMap`.
pub const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");

/// The field selector of tokens; no other Secret is read. Upstream: `SecretTypeServiceAccountToken`.
pub const TOKENS: &str = "type=kubernetes.io/service-account-token";

/// The label by which the apiserver notes the day of the last use. Upstream: `LastUsedLabelKey`.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The label with which the apiserver takes a token no more. Upstream: `InvalidSinceLabelKey`.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Namespace and name of the apiserver's ConfigMap that says since when it notes uses. Upstream: `ConfigMapName`,
/// `pkg/controlplane/controller/legacytokentracking/controller.go`.
pub const TRACKING: (&str, &str) = ("kube-system", "kube-apiserver-legacy-service-account-token-tracking");

/// The key of that ConfigMap.
pub fn tracking_key() -> Key {
    let (namespace, name) = TRACKING;
    Key::new(namespace, name)
}

/// That ConfigMap.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawTracking")]
pub struct Tracking {
    /// Its metadata.
    pub metadata: Meta,
    /// Since when uses are noted; none if it does not say a day.
    pub since: Option<Day>,
}

shared::view!(Tracking, CONFIG_MAPS);

/// A Secret that holds a token.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Token {
    /// Its metadata, and the account that it names.
    pub metadata: Meta<AccountName>,
}

impl Token {
    /// The day that one of its labels says; [`LabelledDay::None`] without that label.
    pub fn day(&self, label: &str) -> LabelledDay {
        match self.metadata.labels.get(label) {
            None => LabelledDay::None,
            Some(text) => Day::parse(text).map_or(LabelledDay::Unreadable, LabelledDay::Day),
        }
    }
}

/// The value of a label that is to be a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelledDay {
    /// It is not there.
    None,
    /// It is no day.
    Unreadable,
    /// This day.
    Day(Day),
}

impl LabelledDay {
    /// The day, if it is one.
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
    /// In the token's namespace; `""` for none.
    #[serde(rename = "kubernetes.io/service-account.name")]
    pub name: Text,
    /// `""` for any account of that name.
    #[serde(rename = "kubernetes.io/service-account.uid")]
    pub uid: Text,
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "RawServiceAccount")]
pub struct ServiceAccount {
    /// Its metadata.
    pub metadata: Meta,
    /// The names of the Secrets that it lists. A token that was made for it by a controller is among them; one that a
    /// person made is not.
    pub secrets: Box<[Text]>,
}

shared::view!(ServiceAccount, SERVICE_ACCOUNTS);

impl ServiceAccount {
    /// Whether a token of an account of this name is this one's.
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
