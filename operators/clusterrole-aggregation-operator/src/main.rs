//! The clusterrole-aggregation-operator's process.

use std::process::ExitCode;

use clusterrole_aggregation_operator::controller::ClusterRoleAggregationOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<ClusterRoleAggregationOperator>()
}
