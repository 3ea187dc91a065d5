//! The validatingadmissionpolicy-status-operator's process.

use std::process::ExitCode;

use validatingadmissionpolicy_status_operator::controller::ValidatingAdmissionPolicyStatusOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ValidatingAdmissionPolicyStatusOperator>()
}
