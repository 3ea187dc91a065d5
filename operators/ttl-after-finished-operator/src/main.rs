//! The ttl-after-finished-operator's process.

use std::process::ExitCode;

use ttl_after_finished_operator::controller::TtlAfterFinishedOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<TtlAfterFinishedOperator>()
}
