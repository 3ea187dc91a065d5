//! The flags: those every operator has. Upstream has none for this controller, whose deadlines are fixed there too.

/// Deletes CertificateSigningRequests whose time is over.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
