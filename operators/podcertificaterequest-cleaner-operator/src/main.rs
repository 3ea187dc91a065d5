//! The podcertificaterequest-cleaner-operator's process.

use std::process::ExitCode;

use podcertificaterequest_cleaner_operator::controller::PodCertificateRequestCleanerOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<PodCertificateRequestCleanerOperator>()
}
