//! Flags without which a controller does nothing within a test's time, from the facts of each operator.

use std::path::Path;

use facts::Facts;

use crate::cloud;

/// Stands for the folder of the cluster's CA and keys.
const PKI: &str = "{pki}";
/// Stands for the endpoint of the cluster's cloud.
const CLOUD: &str = "{cloud}";

/// The operators' flag with the endpoint of a cloud.
pub const CLOUD_ENDPOINT: &str = "--cloud-provider-endpoint";
/// The same of upstream's controllers of clouds.
pub(super) const UPSTREAMS_CLOUD_ENDPOINT: &str = "--cloud-config";

/// The folders of a cluster's run that flags name.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) run: &'a Path,
    pub(crate) pki: &'a Path,
}

/// The flags of one operator.
pub(crate) fn needed_flags(facts: &Facts, places: Places<'_>) -> impl Iterator<Item = String> {
    let Places { run, pki } = places;
    facts
        .needed_flags
        .iter()
        .map(move |flag| flag.replace(PKI, &pki.display().to_string()).replace(CLOUD, &cloud::endpoint_in(run)))
}

/// The flags of all operators, for a process of several.
pub(crate) fn all_needed_flags(places: Places<'_>) -> impl Iterator<Item = String> {
    facts::ALL.iter().flat_map(move |facts| needed_flags(facts, places))
}

/// The flags of all operators that kube-controller-manager has too. It runs no controller of a cloud.
pub(crate) fn upstreams_flags(places: Places<'_>) -> impl Iterator<Item = String> {
    facts::ALL.iter().filter(|facts| !facts.needs_cloud()).flat_map(move |facts| needed_flags(facts, places))
}

/// The flags of all operators that work with a cloud, as upstream's controllers of clouds have them.
pub(crate) fn upstreams_flags_of_clouds(places: Places<'_>) -> impl Iterator<Item = String> {
    let flags = of_clouds().flat_map(move |facts| needed_flags(facts, places));
    let flags = flags.map(|flag| flag.replace(CLOUD_ENDPOINT, UPSTREAMS_CLOUD_ENDPOINT));
    flags.chain(["--cloud-provider=scripted".to_owned()])
}

/// The facts of the operators that work with a cloud.
pub(super) fn of_clouds() -> impl Iterator<Item = &'static Facts> {
    facts::ALL.iter().copied().filter(|facts| facts.needs_cloud())
}

/// Whether an operator works with a cloud; without a name, whether any does.
pub(crate) fn needs_cloud(operator: Option<&str>) -> bool {
    match operator {
        Some(operator) => facts::needs_cloud(operator),
        None => of_clouds().next().is_some(),
    }
}
