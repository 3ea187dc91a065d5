//! The node-route-operator's process.

use std::process::ExitCode;

use node_route_operator::controller::NodeRouteOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<NodeRouteOperator>()
}
