//! Room for what was charged and is about to be stored: a count that does not see it yet must not give it back.
//!
//! What was charged and what has come are compared by amounts, as the apiserver charges several objects at once.
//! Left out: how long this goes on, which the charges know.

use jiff::Timestamp;
use shared::api::intern::Text;
use shared::api::quantity::Quantity;

use super::counts;
use super::usage::{Around, usage};
use crate::objects::amounts::add;
use crate::objects::{Amounts, Evaluator};
use crate::observe::{Objects, Observed};

/// The charges for which no object has come.
pub(super) struct Unstored {
    /// How many limits keep usage for them.
    pub(super) limits: usize,
    /// Whether there are none.
    pub(super) is_settled: bool,
}

/// Raises what was counted by what is charged and has not come, at most to the usage that includes it.
pub(super) fn keep(observed: &Observed, counted: &mut Amounts, around: Around<'_>, now: Timestamp) -> Unstored {
    let (charged, mut arrived) = (&observed.open.amounts, Amounts::new());
    for (evaluator, objects) in &observed.born {
        let born = usage_of_born(observed, evaluator, objects, around, now);
        // More than can be summed up has come: then it is room enough that the usage stays.
        let _ = add(&mut arrived, &born);
    }
    let (mut limits, mut is_settled) = (0, true);
    for (name, charged) in charged {
        let arrived = arrived.get(name).copied().unwrap_or(Quantity::ZERO);
        let missing = charged.checked_sub(arrived).filter(|missing| *missing > Quantity::ZERO);
        let (Some(missing), Some(counted)) = (missing, counted.get_mut(name)) else {
            // Of a kind that is not counted now nothing is known.
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

fn usage_of_born(
    observed: &Observed,
    evaluator: &Evaluator,
    objects: &Objects,
    around: Around<'_>,
    now: Timestamp,
) -> Amounts {
    let charged = observed.open.amounts.keys();
    let names: Vec<Text> = charged.filter(|name| counts(evaluator, name, around)).cloned().collect();
    usage(objects, &names, &observed.quota.scopes, around, now).unwrap_or_default()
}
