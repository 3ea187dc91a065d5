//! The endpointslice-mirroring-operator as a process.

use std::process::ExitCode;

use endpointslice_mirroring_operator::EndpointSliceMirroringOperator;

pub(crate) fn main() -> ExitCode {
    shared::runtime::run::main::<EndpointSliceMirroringOperator>()
}
