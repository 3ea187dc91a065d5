//! The certificatesigningrequest-signing-operator's process.

use std::process::ExitCode;

use certificatesigningrequest_signing_operator::controller::CertificateSigningRequestSigningOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CertificateSigningRequestSigningOperator>()
}
