//! The token-cleaner-operator's process.

use std::process::ExitCode;

use token_cleaner_operator::controller::TokenCleanerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<TokenCleanerOperator>()
}
