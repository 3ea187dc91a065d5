//! The endpointslice-operator's process.

use std::process::ExitCode;

use endpointslice_operator::EndpointSliceOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<EndpointSliceOperator>()
}
