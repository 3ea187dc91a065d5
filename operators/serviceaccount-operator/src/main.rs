//! The serviceaccount-operator's process.

use std::process::ExitCode;

use serviceaccount_operator::controller::ServiceAccountOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ServiceAccountOperator>()
}
