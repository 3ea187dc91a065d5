//! The storageversion-garbage-collector-operator's process.

use std::process::ExitCode;

use storageversion_garbage_collector_operator::controller::StorageVersionGarbageCollectorOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<StorageVersionGarbageCollectorOperator>()
}
