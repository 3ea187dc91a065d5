//! Checks a scale's selector: it must exist, be valid, and select no pods of another autoscaler.
//!
//! Upstream: `validateAndParseSelector`, `pkg/controller/podautoscaler/horizontal.go`.

use std::collections::BTreeSet;

use shared::api::object::Key;
use shared::api::selector::Selector;

use crate::objects::{condition_reasons, events};
use crate::observe::Measured;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorFault {
    pub event: &'static str,
    pub word: &'static str,
    pub message: String,
    pub condition: String,
}

pub fn selector_fault(selector: &str, measured: &Measured) -> Option<SelectorFault> {
    if selector.is_empty() {
        return Some(SelectorFault {
            event: events::SELECTOR_REQUIRED,
            word: condition_reasons::INVALID_SELECTOR,
            message: "selector is required".to_owned(),
            condition: "the HPA target's scale is missing a selector".to_owned(),
        });
    }
    if let Err(error) = Selector::parse_text(selector) {
        let message = format!("couldn't convert selector into a corresponding internal selector object: {error}");
        return Some(SelectorFault {
            event: events::INVALID_SELECTOR,
            word: condition_reasons::INVALID_SELECTOR,
            condition: message.clone(),
            message,
        });
    }
    let autoscalers = controlling(measured);
    if autoscalers.len() < 2 {
        return None;
    }
    let names: Vec<&str> = autoscalers.iter().map(|key| key.as_str()).collect();
    let message = format!("pods by selector {selector} are controlled by multiple HPAs: [{}]", names.join(" "));
    Some(SelectorFault {
        event: events::AMBIGUOUS_SELECTOR,
        word: condition_reasons::AMBIGUOUS_SELECTOR,
        condition: message.clone(),
        message,
    })
}

/// The autoscalers whose selectors match one of the pods, sorted.
///
/// Upstream: `hpasControllingPodsUnderSelector`, which does not sort them.
fn controlling(measured: &Measured) -> BTreeSet<&Key> {
    let Ok(pods) = &measured.pods else { return BTreeSet::new() };
    let selects = |selector: &Selector| pods.iter().any(|pod| selector.matches(&pod.metadata.labels));
    measured.selectors.iter().filter(|(_, selector)| selects(selector)).map(|(key, _)| key).collect()
}
