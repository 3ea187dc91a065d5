//! The job-operator's process.

use std::process::ExitCode;

use job_operator::controller::JobOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<JobOperator>()
}
