//! The flags: those every operator has. Upstream has none for this controller; its five workers are a constant, as here.

/// Rewrites the objects of a resource in its current storage version.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
