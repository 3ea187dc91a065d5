//! Flags without which a controller does nothing within a test's time, from the facts of each operator.

use std::path::Path;

use facts::Facts;

/// The flags of one operator. Files are those of the folder `pki`.
pub(crate) fn needed_flags(facts: &Facts, pki: &Path) -> impl Iterator<Item = String> {
    facts.needed_flags.iter().map(move |flag| flag.replace("{pki}", &pki.display().to_string()))
}

/// The flags of all operators, for kube-controller-manager, which runs any controller.
pub(crate) fn all_needed_flags(pki: &Path) -> impl Iterator<Item = String> {
    facts::ALL.iter().flat_map(move |facts| needed_flags(facts, pki))
}
