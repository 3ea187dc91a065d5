//! The flags: those every operator has. Upstream has none for this controller, which has one worker there too.

/// Signs the cluster's information with each bootstrap token.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {}
