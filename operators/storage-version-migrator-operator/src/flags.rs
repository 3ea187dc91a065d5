//! The flags: those every operator has. Upstream has none for this controller, which has five workers there too.

/// Rewrites the objects of a resource in its current storage version.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
