//! The views: the metadata of active namespaces, and of the ServiceAccounts called `default`.

use serde::Deserialize;
use shared::api::object::Meta;
use shared::api::resource::Resource;

pub use shared::api::namespace::Namespace;

pub const DEFAULT: &str = "default";

/// `v1` `ServiceAccount`.
pub const SERVICE_ACCOUNTS: Resource = Resource::namespaced("", "v1", "ServiceAccount", "serviceaccounts");

/// A ServiceAccount called [`DEFAULT`].
#[derive(Debug, Deserialize)]
pub struct ServiceAccount {
    pub metadata: Meta,
}

shared::view!(ServiceAccount, SERVICE_ACCOUNTS);
