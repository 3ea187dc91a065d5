//! Room for objects that were charged and are about to be stored: a count that does not see them yet must keep it.
//!
//! Charges and arrived objects are compared by amounts, because the apiserver charges several objects at once.

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::quantity::Quantity;

use super::counts;
use super::extended_resources::ExtendedResources;
use super::usage::usage;
use crate::objects::amounts::add;
use crate::objects::{Amounts, Evaluator};
use crate::observe::{Objects, Observed};

/// The charges without an object.
pub(super) struct Unstored {
    /// How many limits keep usage for them.
    pub(super) limits: usize,
    pub(super) is_settled: bool,
}

/// Adds the charges without an object to the count, at most up to the usage that includes them.
pub(super) fn keep(
    observed: &Observed,
    counted: &mut Amounts,
    extended: ExtendedResources<'_>,
    now: Timestamp,
) -> Unstored {
    let (charged, mut arrived) = (&observed.open.amounts, Amounts::new());
    for (evaluator, objects) in &observed.arrived {
        let of_kind = usage_of_arrived(observed, evaluator, objects, extended, now);
        // A sum that is too large is left out, so the usage stays.
        let _ = add(&mut arrived, &of_kind);
    }
    let (mut limits, mut is_settled) = (0, true);
    for (name, charged) in charged {
        let arrived = arrived.get(name).copied().unwrap_or(Quantity::ZERO);
        let missing = charged.checked_sub(arrived).filter(|missing| *missing > Quantity::ZERO);
        let (Some(missing), Some(counted)) = (missing, counted.get_mut(name)) else {
            // A kind that is not counted now is not settled.
            is_settled &= missing.is_none() && counted.contains_key(name);
            continue;
        };
        is_settled = false;
        let Some(used) = observed.quota.status.used.get(name).filter(|used| **used > *counted) else { continue };
        limits += 1;
        *counted = counted.checked_add(missing).filter(|with| with < used).unwrap_or(*used);
    }
    Unstored { limits, is_settled }
}

fn usage_of_arrived(
    observed: &Observed,
    evaluator: &Evaluator,
    objects: &Objects,
    extended: ExtendedResources<'_>,
    now: Timestamp,
) -> Amounts {
    let charged = observed.open.amounts.keys();
    let names: Vec<Text> = charged.filter(|name| counts(evaluator, name, extended)).cloned().collect();
    usage(objects, &names, &observed.quota.scopes, extended, now).unwrap_or_default()
}
