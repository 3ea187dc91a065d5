//! The flags: those every operator has, and upstream's of this controller.
//!
//! Left out: how often it looks and how long it waits for a node, which are upstream's constants.

use shared::flags::{OperatorFlags, SharedFlags};

/// Deletes pods that nobody else will ever delete.
#[derive(Clone, Debug, clap::Parser)]
pub struct Flags {
    /// Those every operator has.
    #[command(flatten)]
    pub shared: SharedFlags,
    /// Number of terminated pods that can exist before the terminated pod garbage collector starts deleting terminated
    /// pods. If <= 0, the terminated pod garbage collector is disabled.
    #[arg(long, default_value_t = 12_500, allow_negative_numbers = true, value_name = "NUMBER")]
    pub terminated_pod_gc_threshold: i32,
}

impl OperatorFlags for Flags {
    fn shared(&self) -> &SharedFlags {
        &self.shared
    }
}
