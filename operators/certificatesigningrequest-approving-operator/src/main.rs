//! The certificatesigningrequest-approving-operator's process.

use std::process::ExitCode;

use certificatesigningrequest_approving_operator::controller::CertificateSigningRequestApprovingOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CertificateSigningRequestApprovingOperator>()
}
