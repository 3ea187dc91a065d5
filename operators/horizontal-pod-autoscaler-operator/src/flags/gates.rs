//! `--feature-gates`, as kube-controller-manager reads it. Gates that have no effect here are refused.

use std::str::FromStr;

use shared::process::flags::read_gates;

const CONFIGURABLE_TOLERANCE: &str = "HPAConfigurableTolerance";
const SCALE_TO_ZERO: &str = "HPAScaleToZero";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether an autoscaler may have tolerances of its own.
    pub configurable_tolerance: bool,
    /// Whether an autoscaler may scale to zero, and back.
    pub scale_to_zero: bool,
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self { configurable_tolerance: true, scale_to_zero: false };
        let known = &mut [
            (CONFIGURABLE_TOLERANCE, &mut gates.configurable_tolerance),
            (SCALE_TO_ZERO, &mut gates.scale_to_zero),
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
        let read =
            |text: &str| text.parse::<FeatureGates>().map(|gates| (gates.configurable_tolerance, gates.scale_to_zero));
        assert_eq!(read(""), Ok((true, false)));
        assert_eq!(read("HPAConfigurableTolerance=false,HPAScaleToZero=true"), Ok((false, true)));
        assert!(read("MaxUnavailableStatefulSet=true").is_err());
    }
}
