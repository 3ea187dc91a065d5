//! `--feature-gates`, as kube-controller-manager reads it.
//!
//! Left out: its gates that change nothing here, which are refused. `DRAAdminAccess` is one: it is locked to true.

use std::str::FromStr;

use shared::process::flags::read_gates;

/// The feature gate for templates with a list of alternatives.
const PRIORITIZED_LIST: &str = "DRAPrioritizedList";
/// The feature gate for the claims of PodGroups.
const WORKLOAD_RESOURCE_CLAIMS: &str = "DRAWorkloadResourceClaims";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether claims are made from templates with `firstAvailable`.
    pub prioritized_list: bool,
    /// Whether PodGroups have claims.
    pub workload_resource_claims: bool,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { prioritized_list: true, workload_resource_claims: false }
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        read_gates(
            text,
            &mut [
                (PRIORITIZED_LIST, &mut gates.prioritized_list),
                (WORKLOAD_RESOURCE_CLAIMS, &mut gates.workload_resource_claims),
            ],
        )?;
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_upstreams_and_gates_can_be_set() {
        for (text, prioritized_list, workload_resource_claims) in [
            ("", true, false),
            ("DRAPrioritizedList=false", false, false),
            ("DRAWorkloadResourceClaims=true,DRAPrioritizedList=true", true, true),
        ] {
            let gates = FeatureGates { prioritized_list, workload_resource_claims };
            assert_eq!(text.parse(), Ok(gates), "{text}");
        }
        let error = "DRAAdminAccess=true".parse::<FeatureGates>().unwrap_err();
        assert_eq!(error, "unrecognized feature gate: DRAAdminAccess");
    }
}
