//! The calls of the protocol, and the log of those that the scriptable cloud got.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// A call that reached the cloud, as one line of the log of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    pub call: Call,
    /// The name of the Service, Node or route; empty if the call is about none.
    pub object: String,
    /// What the call changed or why it failed; empty if it changed nothing.
    pub outcome: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Call {
    GetLoadBalancer,
    EnsureLoadBalancer,
    UpdateLoadBalancer,
    DeleteLoadBalancer,
    InstanceExists,
    InstanceIsShutdown,
    InstanceMetadata,
    ListRoutes,
    CreateRoute,
    DeleteRoute,
}

impl Noted {
    /// Append to the log of calls.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let mut line = serde_json::to_vec(self).context("print a call")?;
        line.push(b'\n');
        let mut log = File::options()
            .create(true)
            .append(true)
            .open(path.with_added_extension("calls"))
            .context("open the log")?;
        log.write_all(&line).context("append to the log of calls")
    }

    /// The log of calls, in the order of their ends.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let log = match fs::read_to_string(path.with_added_extension("calls")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            log => log.context("read the log of calls")?,
        };
        // A cloud that was killed may have left half a line.
        Ok(log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}
