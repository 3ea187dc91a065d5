//! The root-ca-certificate-publisher-operator's process.

use std::process::ExitCode;

use root_ca_certificate_publisher_operator::controller::RootCaCertificatePublisherOperator;

pub(crate) fn main() -> ExitCode {
    shared::process::run::main::<RootCaCertificatePublisherOperator>()
}
