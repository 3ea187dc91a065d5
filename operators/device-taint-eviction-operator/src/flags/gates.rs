//! `--feature-gates`, as kube-controller-manager reads it. Gates that have no effect here are refused.

use std::str::FromStr;

use shared::process::flags::read_gates;

const DEVICE_TAINT_RULES: &str = "DRADeviceTaintRules";
const WORKLOAD_RESOURCE_CLAIMS: &str = "DRAWorkloadResourceClaims";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether DeviceTaintRules taint devices, and have a condition.
    pub device_taint_rules: bool,
    /// Whether pods use the claims of their PodGroups.
    pub workload_resource_claims: bool,
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        let known = &mut [
            (DEVICE_TAINT_RULES, &mut gates.device_taint_rules),
            (WORKLOAD_RESOURCE_CLAIMS, &mut gates.workload_resource_claims),
        ];
        read_gates(text, known)?;
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_have_upstreams_names_and_defaults() {
        let read = |text: &str| {
            text.parse::<FeatureGates>().map(|gates| (gates.device_taint_rules, gates.workload_resource_claims))
        };
        assert_eq!(read(""), Ok((false, false)));
        assert_eq!(read("DRADeviceTaintRules=true"), Ok((true, false)));
        assert_eq!(read("DRAWorkloadResourceClaims=true"), Ok((false, true)));
        assert!(read("DRADeviceTaints=true").is_err());
    }
}
