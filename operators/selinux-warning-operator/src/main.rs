//! The selinux-warning-operator's process.

use std::process::ExitCode;

use selinux_warning_operator::controller::SelinuxWarningOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<SelinuxWarningOperator>()
}
