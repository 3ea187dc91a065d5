//! The persistentvolume-expander-operator's process.

use std::process::ExitCode;

use persistentvolume_expander_operator::controller::PersistentVolumeExpanderOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PersistentVolumeExpanderOperator>()
}
