//! Quotas, and what they count, built in a line.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use resourcequota_operator::memory::charges::Open;
use resourcequota_operator::objects::{Amounts, Countable, Evaluator, ResourceQuota, Scope};
use resourcequota_operator::observe::{Known, Objects, Observed};
use resourcequota_operator::plan::extended_resources::ExtendedResources;
use resourcequota_operator::plan::usage::usage;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::testing::{NOW, ObjectBuilder, object};

pub(crate) fn quota(hard: &Value) -> ObjectBuilder {
    object("v1", "ResourceQuota", "team").set(&["spec", "hard"], hard.clone())
}

/// A scope as `spec.scopeSelector` has it.
pub(crate) fn scope(name: &str, operator: &str, values: &[&str]) -> Scope {
    serde_json::from_value(json!({ "scopeName": name, "operator": operator, "values": values })).unwrap()
}

/// The facts of an object, read from its JSON alone: lists of what is counted are asked for as JSON.
pub(crate) fn facts<T: Countable>(object: &ObjectBuilder) -> T::Facts {
    serde_json::from_str::<T>(&object.json().to_string()).unwrap().facts()
}

/// The usage under these names, as `name=amount`.
pub(crate) fn used(objects: &Objects, names: &str, scopes: &[Scope]) -> String {
    let names: Vec<Text> = names.split_whitespace().map(Text::new).collect();
    text(&usage(objects, &names, scopes, ExtendedResources::default(), NOW).unwrap())
}

pub(crate) fn text(amounts: &Amounts) -> String {
    amounts.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn observed(quota: &ObjectBuilder, kinds: Vec<(Evaluator, Known)>) -> Observed {
    let quota: Arc<ResourceQuota> = quota.build();
    Observed {
        quota,
        kinds: kinds.into_iter().collect(),
        reported: BTreeSet::new(),
        open: Open::default(),
        arrived: BTreeMap::new(),
    }
}
