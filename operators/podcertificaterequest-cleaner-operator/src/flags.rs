//! The flags: those every operator has. Upstream has none for this controller, whose times are fixed there too.

/// Deletes PodCertificateRequests a quarter of an hour after they were made.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
