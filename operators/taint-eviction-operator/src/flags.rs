//! The flags: those every operator has. Upstream has none for this controller, which has eight workers there too.

/// Deletes pods whose nodes have taints that they do not tolerate.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
