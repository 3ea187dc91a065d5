//! The serviceaccount-operator's process.

use std::process::ExitCode;

use serviceaccount_operator::controller::ServiceAccountOperator;

fn main() -> ExitCode {
    shared::runtime::run::main::<ServiceAccountOperator>()
}
