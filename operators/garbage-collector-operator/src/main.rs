//! The garbage-collector-operator's process.

use std::process::ExitCode;

use garbage_collector_operator::controller::GarbageCollectorOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<GarbageCollectorOperator>()
}
