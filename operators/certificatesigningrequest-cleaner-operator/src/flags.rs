//! The flags: those every operator has. Upstream has none for this controller, whose deadlines are fixed there too.

/// Deletes old CertificateSigningRequests.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
