//! The namespace-operator's process.

use std::process::ExitCode;

use namespace_operator::controller::NamespaceOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<NamespaceOperator>()
}
