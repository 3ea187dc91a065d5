//! The status of a policy: which generation has been checked, and what was found.
//!
//! Upstream: `reconcile`, `pkg/controller/validatingadmissionpolicystatus/controller.go`.

use serde::Serialize;

use crate::plan::check::Warning;

/// The applied fields. `typeChecking` is there without warnings too: it says that the policy has been checked.
#[derive(Debug, Serialize)]
pub struct Configuration<'a> {
    metadata: Name<'a>,
    status: Status<'a>,
}

#[derive(Debug, Serialize)]
struct Name<'a> {
    name: &'a str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    observed_generation: i64,
    type_checking: TypeChecking<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypeChecking<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    expression_warnings: &'a [Warning],
}

impl<'a> Configuration<'a> {
    pub fn new(name: &'a str, generation: i64, warnings: &'a [Warning]) -> Self {
        Self {
            metadata: Name { name },
            status: Status {
                observed_generation: generation,
                type_checking: TypeChecking { expression_warnings: warnings },
            },
        }
    }
}
