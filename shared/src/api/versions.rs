//! The kinds that apiservers of several Kubernetes versions serve in different versions of the API.
//!
//! What operators read and write of them is the same in each of these versions. Code names a kind by one constant, in the
//! version that upstream's controller uses, and requests are made in the version that the apiserver serves.

use std::borrow::Cow;
use std::iter;

use super::resource::Resource;

/// Group, kind and versions, the preferred version first: one that is on by default and stays before one that goes.
const SEVERAL: [(&str, &str, &[&str]); 5] = [
    ("certificates.k8s.io", "ClusterTrustBundle", &["v1", "v1beta1", "v1alpha1"]),
    ("certificates.k8s.io", "PodCertificateRequest", &["v1", "v1beta1"]),
    ("resource.k8s.io", "DeviceTaintRule", &["v1", "v1beta2"]),
    ("scheduling.k8s.io", "PodGroup", &["v1beta1", "v1alpha3", "v1alpha2"]),
    ("storagemigration.k8s.io", "StorageVersionMigration", &["v1", "v1beta1"]),
];

/// The versions in which an apiserver may serve a resource, the preferred one first.
pub(crate) fn versions(resource: &Resource) -> impl Iterator<Item = Resource> {
    let is_it = |(group, kind, _): &&(&str, &str, _)| *group == resource.group && *kind == resource.kind;
    let several = SEVERAL.iter().find(is_it).map(|(_, _, versions)| *versions);
    let own = iter::once(resource.clone()).filter(move |_| several.is_none());
    let others = several.unwrap_or_default().iter();
    own.chain(others.map(|version| Resource { version: Cow::Borrowed(version), ..resource.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::resource::{POD_GROUPS, PODS};

    #[test]
    fn a_kind_of_one_version_is_asked_for_in_that_one() {
        assert!(versions(&PODS).eq([PODS]));
    }

    #[test]
    fn the_versions_of_a_kind_contain_that_of_its_constant() {
        let group = |version| Resource::namespaced("scheduling.k8s.io", version, "PodGroup", "podgroups");
        assert!(versions(&POD_GROUPS).eq(["v1beta1", "v1alpha3", "v1alpha2"].map(group)));
        assert!(versions(&POD_GROUPS).any(|version| version == POD_GROUPS));
    }
}
