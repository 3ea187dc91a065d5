//! The node-ipam-operator's process.

use std::process::ExitCode;

use node_ipam_operator::controller::NodeIpamOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<NodeIpamOperator>()
}
