//! The volumeattributesclass-protection-operator's process.

use std::process::ExitCode;

use volumeattributesclass_protection_operator::controller::VolumeAttributesClassProtectionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<VolumeAttributesClassProtectionOperator>()
}
