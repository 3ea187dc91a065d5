//! The endpointslice-mirroring-operator's process.

use std::process::ExitCode;

use endpointslice_mirroring_operator::EndpointSliceMirroringOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<EndpointSliceMirroringOperator>()
}
