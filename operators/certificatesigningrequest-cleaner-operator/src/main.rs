//! The certificatesigningrequest-cleaner-operator's process.

use std::process::ExitCode;

use certificatesigningrequest_cleaner_operator::controller::CertificateSigningRequestCleanerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<CertificateSigningRequestCleanerOperator>()
}
