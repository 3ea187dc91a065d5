//! The sets of steps. Each is a module below: the texts of its page, and its steps in turn. Objects are made before them
//! and cleared away after them, unmeasured.

mod all;
mod batch;
mod clouds;
mod devices;
mod garbage;
mod identity;
mod nodes;
mod quota;
mod services;
mod sets;
mod storage;
mod workloads;

use anyhow::Result;

use crate::about::About;
use crate::measure::Bench;
use crate::options::{BenchOptions, Set};

/// Whose work the steps of `set` are, and what its page says.
pub(crate) fn about(set: Set, options: &BenchOptions) -> Result<About> {
    Ok(match set {
        Set::Workloads => workloads::about(options),
        Set::Batch => batch::about(options),
        Set::Services => services::about(options),
        Set::Garbage => garbage::about(options),
        Set::Sets => sets::about(options),
        Set::Nodes => nodes::about(options),
        Set::Identity => identity::about(options),
        Set::Quota => quota::about(options),
        Set::Storage => storage::about(options),
        Set::Devices => devices::about(options),
        Set::Clouds => clouds::about(options),
        Set::All => all::about(options)?,
    })
}

pub(crate) async fn run(set: Set, bench: &mut Bench<'_>) -> Result<()> {
    match set {
        Set::Workloads => workloads::run(bench).await,
        Set::Batch => batch::run(bench).await,
        Set::Services => services::run(bench).await,
        Set::Garbage => garbage::run(bench).await,
        Set::Sets => sets::run(bench).await,
        Set::Nodes => nodes::run(bench).await,
        Set::Identity => identity::run(bench).await,
        Set::Quota => quota::run(bench).await,
        Set::Storage => storage::run(bench).await,
        Set::Devices => devices::run(bench).await,
        Set::Clouds => clouds::run(bench).await,
        Set::All => all::run(bench).await,
    }
}
