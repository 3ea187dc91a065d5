//! The flags: those every operator has. Upstream has none for this controller, whose times are fixed there too.

/// Deletes PodCertificateRequests 15 minutes after their creation.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
