//! The statefulset-operator's process.

use std::process::ExitCode;

use statefulset_operator::controller::StatefulSetOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<StatefulSetOperator>()
}
