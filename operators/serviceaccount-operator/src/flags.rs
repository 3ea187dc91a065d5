//! The flags: those every operator has. Upstream has none for this controller, which has one worker there too.

use shared::flags::{OperatorFlags, SharedFlags};

/// Gives every namespace its default ServiceAccount.
#[derive(Clone, Debug, clap::Parser)]
pub struct Flags {
    /// Those every operator has.
    #[command(flatten)]
    pub shared: SharedFlags,
}

impl OperatorFlags for Flags {
    fn shared(&self) -> &SharedFlags {
        &self.shared
    }
}
