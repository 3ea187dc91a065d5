//! `--feature-gates`, as kube-controller-manager reads it.
//!
//! Left out: its gates that change nothing here, which are refused.

use std::str::FromStr;

use shared::process::flags::read_gates;

/// The feature gate for `spec.updateStrategy.rollingUpdate.maxUnavailable`.
const MAX_UNAVAILABLE: &str = "MaxUnavailableStatefulSet";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    /// Whether a rolling update takes down as many pods at a time as `maxUnavailable` allows, and not one.
    pub max_unavailable: bool,
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = Self::default();
        read_gates(text, &mut [(MAX_UNAVAILABLE, &mut gates.max_unavailable)])?;
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_is_off_unless_it_is_asked_for() {
        let is_on = |text: &str| text.parse::<FeatureGates>().map(|gates| gates.max_unavailable);
        for (text, expected) in [
            ("", false),
            ("MaxUnavailableStatefulSet=true", true),
            ("MaxUnavailableStatefulSet=True,", true),
            (" MaxUnavailableStatefulSet = 1 ", true),
            ("MaxUnavailableStatefulSet=true,MaxUnavailableStatefulSet=false", false),
        ] {
            assert_eq!(is_on(text), Ok(expected), "{text}");
        }
        for (text, error) in [
            ("MaxUnavailableStatefulSet", "missing bool value for MaxUnavailableStatefulSet"),
            ("MaxUnavailableStatefulSet=yes", "invalid value of MaxUnavailableStatefulSet=yes"),
            ("PodDeletionCost=true", "unrecognized feature gate: PodDeletionCost"),
        ] {
            assert_eq!(is_on(text), Err(error.to_owned()), "{text}");
        }
    }
}
