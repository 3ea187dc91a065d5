//! Amounts by the names of resources, and their arithmetic.
//!
//! Left out: differences. Usage is only ever summed up.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/quota/v1/resources.go`, and `addResourceList` and `maxResourceList`,
//! `staging/src/k8s.io/component-helpers/resource/helpers.go`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shared::api::intern::Text;
use shared::api::quantity::{Format, Quantity};

/// Amounts by the names of resources.
pub type Amounts = BTreeMap<Text, Quantity>;

/// A sum with more digits than can be kept exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sum has more digits than can be kept")]
pub struct TooLarge;

pub fn count(number: impl Into<i128>) -> Quantity {
    Quantity::new(number.into(), 0, Format::DecimalSi)
}

pub fn add_to(sum: &mut Quantity, amount: Quantity) -> Result<(), TooLarge> {
    *sum = sum.checked_add(amount).ok_or(TooLarge)?;
    Ok(())
}

pub fn add(sum: &mut Amounts, amounts: &Amounts) -> Result<(), TooLarge> {
    for (name, amount) in amounts {
        match sum.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(*amount);
            }
            Entry::Occupied(mut entry) => add_to(entry.get_mut(), *amount)?,
        }
    }
    Ok(())
}

pub fn raise(amounts: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if amounts.get(name).is_none_or(|known| amount > known) {
            amounts.insert(name.clone(), *amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(text: &str) -> Amounts {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(name, amount)| (Text::new(name), amount.parse().unwrap())).collect()
    }

    fn text(amounts: &Amounts) -> String {
        amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
    }

    /// Upstream: `TestAdd`, `TestMax`, `staging/src/k8s.io/apiserver/pkg/quota/v1/resources_test.go`.
    #[test]
    fn sums_and_maxima_have_the_names_of_both() {
        for (left, right, sum, most) in [
            ("cpu=100m", "", "cpu=100m", "cpu=100m"),
            ("cpu=50m", "cpu=100m", "cpu=150m", "cpu=100m"),
            ("cpu=1 memory=50Mi", "cpu=1 gpu=1", "cpu=2 gpu=1 memory=50Mi", "cpu=1 gpu=1 memory=50Mi"),
            ("memory=0", "memory=1Gi", "memory=1Gi", "memory=1Gi"),
        ] {
            let (mut added, mut raised) = (amounts(left), amounts(left));
            add(&mut added, &amounts(right)).unwrap();
            raise(&mut raised, &amounts(right));
            assert_eq!((text(&added), text(&raised)), (sum.to_owned(), most.to_owned()), "{left} and {right}");
        }
    }

    #[test]
    fn a_sum_that_cannot_be_kept_is_an_error() {
        assert_eq!(add(&mut amounts("cpu=1e100"), &amounts("cpu=1")), Err(TooLarge));
    }
}
