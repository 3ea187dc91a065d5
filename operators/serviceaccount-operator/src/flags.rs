//! The flags: those every operator has. Upstream has none for this controller, which has one worker there too.

/// Gives every namespace its default ServiceAccount.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
