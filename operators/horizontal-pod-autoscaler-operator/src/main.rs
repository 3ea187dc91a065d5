//! The horizontal-pod-autoscaler-operator as a process.

use std::process::ExitCode;

use horizontal_pod_autoscaler_operator::controller::HorizontalPodAutoscalerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<HorizontalPodAutoscalerOperator>()
}
