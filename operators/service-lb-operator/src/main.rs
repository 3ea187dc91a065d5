//! The service-lb-operator's process.

use std::process::ExitCode;

use service_lb_operator::controller::ServiceLbOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ServiceLbOperator>()
}
