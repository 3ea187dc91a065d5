//! The version of the API in which a resource of several versions is asked for.

use std::borrow::Cow;
use std::sync::{PoisonError, RwLock};

use crate::api::resource::Resource;

/// The resources that were found under a version, one for each kind.
#[derive(Default)]
pub(super) struct Spoken(RwLock<Vec<Resource>>);

impl Spoken {
    pub(super) fn note(&self, served: &Resource) {
        let mut spoken = self.0.write().unwrap_or_else(PoisonError::into_inner);
        spoken.retain(|known| !is_same_kind(known, served));
        spoken.push(served.clone());
    }

    /// The resource in the version that was found, or as it is.
    pub(super) fn of<'a>(&self, resource: &'a Resource) -> Cow<'a, Resource> {
        let spoken = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = spoken.iter().find(|known| is_same_kind(known, resource));
        found.map_or(Cow::Borrowed(resource), |found| Cow::Owned(found.clone()))
    }
}

fn is_same_kind(one: &Resource, other: &Resource) -> bool {
    one.group == other.group && one.kind == other.kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::{POD_GROUPS, PODS};

    #[test]
    fn the_last_version_that_was_found_counts() {
        let spoken = Spoken::default();
        assert_eq!(*spoken.of(&POD_GROUPS), POD_GROUPS);
        for version in ["v1alpha3", "v1beta1"] {
            let served = Resource { version: Cow::Borrowed(version), ..POD_GROUPS };
            spoken.note(&served);
            assert_eq!(*spoken.of(&POD_GROUPS), served);
        }
        assert_eq!(*spoken.of(&PODS), PODS);
    }
}
