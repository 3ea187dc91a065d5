//! The cronjob-operator as a process.

use std::process::ExitCode;

use cronjob_operator::controller::CronJobOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CronJobOperator>()
}
