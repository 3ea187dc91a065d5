//! The ephemeral-volume-operator's process.

use std::process::ExitCode;

use ephemeral_volume_operator::controller::EphemeralVolumeOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<EphemeralVolumeOperator>()
}
