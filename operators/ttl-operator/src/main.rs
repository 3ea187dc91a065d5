//! The ttl-operator's process.

use std::process::ExitCode;

use ttl_operator::controller::TtlOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<TtlOperator>()
}
