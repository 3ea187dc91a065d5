//! The views of quotas, and of what they count: of each object only the facts that make a difference to some quota.
//!
//! Left out: everything else of an object. Of one that is only counted not even its facts are read, only its name.

pub mod amounts;
pub mod claim;
pub mod device_class;
pub mod evaluator;
pub mod pod;
pub mod quota;
pub mod resource_claim;
pub mod service;

use serde::Deserialize;
use shared::api::object::{Key, Meta, ResourceVersion, Versioned};

pub use amounts::{Amounts, TooLarge};
pub use claim::{Claim, ClaimFacts};
pub use device_class::{DeviceClass, DeviceClassFacts};
pub use evaluator::{Evaluator, GroupResource};
pub use pod::{Pod, PodFacts};
pub use quota::{QuotaStatus, RESOURCE_QUOTAS, ResourceQuota, Scope};
pub use resource_claim::{ResourceClaim, ResourceClaimFacts};
pub use service::{Service, ServiceFacts};

/// The reason of the event about a kind that a quota names and that cannot be counted.
pub const USAGE_NOT_COUNTED: &str = "UsageNotCounted";

/// An object that quotas count.
pub trait Countable: Versioned {
    /// All that makes a difference to a quota.
    type Facts: Clone + PartialEq + Send + Sync + 'static;
    /// The facts of this state.
    fn facts(&self) -> Self::Facts;
}

/// Makes a view of `key`, `resource_version` and `facts` one of an object that counts.
macro_rules! countable {
    ($view:ty, $facts:ty) => {
        impl shared::api::object::Versioned for $view {
            fn key(&self) -> &shared::api::object::Key {
                &self.key
            }

            fn resource_version(&self) -> shared::api::object::ResourceVersion {
                self.resource_version
            }
        }

        impl crate::objects::Countable for $view {
            type Facts = $facts;
            fn facts(&self) -> $facts {
                self.facts.clone()
            }
        }
    };
}
pub(crate) use countable;

/// An object that counts by being there.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(from = "RawNamed")]
pub struct Named {
    /// Namespace and name.
    pub key: Key,
    /// The version of this state.
    pub resource_version: ResourceVersion,
}

impl Versioned for Named {
    fn key(&self) -> &Key {
        &self.key
    }

    fn resource_version(&self) -> ResourceVersion {
        self.resource_version
    }
}

impl Countable for Named {
    type Facts = ();
    fn facts(&self) {}
}

#[derive(Deserialize)]
struct RawNamed {
    metadata: Meta,
}

impl From<RawNamed> for Named {
    fn from(RawNamed { metadata }: RawNamed) -> Self {
        Self { key: metadata.key, resource_version: metadata.resource_version }
    }
}
