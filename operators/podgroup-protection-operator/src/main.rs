//! The podgroup-protection-operator's process.

use std::process::ExitCode;

use podgroup_protection_operator::controller::PodGroupProtectionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PodGroupProtectionOperator>()
}
