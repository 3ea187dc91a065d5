//! The persistentvolumeclaim-protection-operator's process.

use std::process::ExitCode;

use persistentvolumeclaim_protection_operator::controller::PersistentVolumeClaimProtectionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PersistentVolumeClaimProtectionOperator>()
}
