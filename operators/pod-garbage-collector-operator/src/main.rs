//! The pod-garbage-collector-operator's process.

use std::process::ExitCode;

use pod_garbage_collector_operator::controller::PodGarbageCollectorOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PodGarbageCollectorOperator>()
}
