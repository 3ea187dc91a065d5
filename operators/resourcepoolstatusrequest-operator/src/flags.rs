//! The flags: those every operator has. Upstream has none for this controller, whose times are fixed there too.

/// Answers ResourcePoolStatusRequests with the devices of their pools.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
