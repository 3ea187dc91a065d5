//! The persistentvolume-protection-operator's process.

use std::process::ExitCode;

use persistentvolume_protection_operator::controller::PersistentVolumeProtectionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PersistentVolumeProtectionOperator>()
}
