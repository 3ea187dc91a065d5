//! The taint-eviction-operator's process.

use std::process::ExitCode;

use taint_eviction_operator::controller::TaintEvictionOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<TaintEvictionOperator>()
}
