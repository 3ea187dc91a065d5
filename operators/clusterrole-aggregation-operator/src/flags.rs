//! The flags: those every operator has. Upstream has none for this controller, which has five workers there too.

/// Gives aggregated roles the rules of the roles that they select.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
