//! How calls to the scriptable cloud fail, and which ones.

use std::time::Duration;

use cloud::CloudError;
use serde::{Deserialize, Serialize};

use super::calls::Call;

/// What happens to some calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Fault {
    pub call: Call,
    /// The name of the Service, Node or route; any if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// How many calls pass before the fault fires.
    #[serde(default)]
    pub skip: u32,
    /// How many more calls it strikes; all if it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// The call does its work after so long. It never does if the caller is gone by then.
    Delay { milliseconds: u64 },
    /// The call does its work, and answers after so long.
    DelayAnswer { milliseconds: u64 },
    /// Nothing happens, and this is the answer.
    Refuse(Refusal),
    /// The call does its work, and the caller gets an error.
    LoseAnswer,
    /// The process kills itself before it does anything.
    DieBefore,
    /// The process kills itself between its work and the answer.
    DieAfter,
    /// A read is answered from `yesterday`. A write acts on the state as usual.
    Yesterday,
}

/// Errors of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Refusal {
    ImplementedElsewhere,
    RetryAfter { milliseconds: u64, message: String },
    Failed { message: String },
}

impl From<Refusal> for CloudError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::ImplementedElsewhere => Self::ImplementedElsewhere,
            Refusal::RetryAfter { milliseconds, message } => {
                Self::RetryAfter { after: Duration::from_millis(milliseconds), message }
            }
            Refusal::Failed { message } => Self::Failed(message),
        }
    }
}

impl Fault {
    /// A fault that strikes the next call once.
    pub fn new(call: Call, action: Action) -> Self {
        Self { call, object: None, skip: 0, times: Some(1), action }
    }

    /// Every call from now on.
    #[must_use]
    pub fn always(self) -> Self {
        Self { times: None, ..self }
    }

    #[must_use]
    pub fn about(self, object: &str) -> Self {
        Self { object: Some(object.to_owned()), ..self }
    }

    /// Whether it will strike no more.
    pub fn is_over(&self) -> bool {
        self.times == Some(0)
    }

    fn matches(&self, call: Call, object: &str) -> bool {
        self.call == call && self.object.as_ref().is_none_or(|own| own == object)
    }
}

/// What happens to this call, which counts for every fault that it passes.
pub(super) fn strike(faults: &mut [Fault], call: Call, object: &str) -> Option<Action> {
    for fault in faults.iter_mut().filter(|fault| fault.matches(call, object)) {
        match (&mut fault.skip, &mut fault.times) {
            (0, Some(0)) => {}
            (0, None) => return Some(fault.action.clone()),
            (0, Some(times)) => {
                *times -= 1;
                return Some(fault.action.clone());
            }
            (skip, _) => *skip -= 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_the_calls_that_it_names_as_often_as_it_says() {
        let mut faults = [Fault { skip: 1, ..Fault::new(Call::ListRoutes, Action::LoseAnswer) }];
        let struck: Vec<bool> = (0..4).map(|_| strike(&mut faults, Call::ListRoutes, "").is_some()).collect();
        assert_eq!(struck, [false, true, false, false]);
        assert_eq!(strike(&mut faults, Call::CreateRoute, ""), None);
    }

    #[test]
    fn the_first_fault_that_fires_counts() {
        let named = Fault::new(Call::InstanceExists, Action::DieBefore).about("b");
        let any = Fault::new(Call::InstanceExists, Action::Yesterday).always();
        let mut faults = [named, any];
        let mut struck = |node| strike(&mut faults, Call::InstanceExists, node);
        assert_eq!(struck("a"), Some(Action::Yesterday));
        assert_eq!(struck("b"), Some(Action::DieBefore));
        assert_eq!(struck("b"), Some(Action::Yesterday));
    }

    #[test]
    fn a_fault_is_written_as_a_person_would_write_it() {
        let text = r#"{"call": "ensureLoadBalancer", "object": "web", "action": {"refuse": {"retryAfter":
                       {"milliseconds": 100, "message": "busy"}}}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        let refusal = Refusal::RetryAfter { milliseconds: 100, message: "busy".to_owned() };
        let expected = Fault::new(Call::EnsureLoadBalancer, Action::Refuse(refusal)).about("web").always();
        assert_eq!(fault, expected);
    }
}
