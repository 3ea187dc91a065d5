//! The device-taint-eviction-operator's process.

use std::process::ExitCode;

use device_taint_eviction_operator::controller::DeviceTaintEvictionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<DeviceTaintEvictionOperator>()
}
