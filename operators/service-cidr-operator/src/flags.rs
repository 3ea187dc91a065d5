//! The flags: those every operator has. Upstream has none for this controller, which has five workers there too.

/// Lets a ServiceCIDR go only when no Service needs its addresses.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
