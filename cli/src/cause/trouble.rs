//! The reason why a pod is not ready, from its conditions, containers and events.

use std::fmt;

use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum Trouble {
    Unschedulable {
        message: String,
    },
    Gated {
        gates: Vec<String>,
    },
    /// Its scheduler has not picked it up.
    Unseen {
        scheduler: String,
    },
    Image {
        container: String,
        image: String,
        reason: String,
        message: String,
    },
    /// A container refers to a `ConfigMap`, Secret or key that does not exist.
    Config {
        container: String,
        message: String,
    },
    Start {
        container: String,
        message: String,
    },
    CrashLoop {
        container: String,
        exit_code: i64,
        reason: String,
        restarts: i64,
    },
    OutOfMemory {
        container: String,
        limit: String,
        restarts: i64,
    },
    /// A volume is not ready.
    Volume {
        message: String,
    },
    Sandbox {
        message: String,
    },
    Init {
        container: String,
        done: usize,
        of: usize,
    },
    /// A container runs and is not ready.
    NotReady {
        container: String,
        message: String,
    },
    /// A readiness gate is not true.
    ReadinessGate {
        gate: String,
    },
    /// Evicted, or ended by its node.
    Failed {
        reason: String,
        message: String,
    },
    /// Its node does not respond.
    NodeLost {
        node: String,
    },
    Ending {
        finalizers: Vec<String>,
    },
    Starting,
}

impl Trouble {
    /// Whether it resolves without help.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Init { .. } | Self::Starting => true,
            Self::Ending { finalizers } => finalizers.is_empty(),
            Self::Unschedulable { .. }
            | Self::Gated { .. }
            | Self::Unseen { .. }
            | Self::Image { .. }
            | Self::Config { .. }
            | Self::Start { .. }
            | Self::CrashLoop { .. }
            | Self::OutOfMemory { .. }
            | Self::Volume { .. }
            | Self::Sandbox { .. }
            | Self::NotReady { .. }
            | Self::ReadinessGate { .. }
            | Self::Failed { .. }
            | Self::NodeLost { .. } => false,
        }
    }

    /// Rank among several troubles: the one that explains most comes first.
    pub fn weight(&self) -> u8 {
        match self {
            Self::Starting => 0,
            Self::Ending { .. } => 1,
            Self::Init { .. } => 2,
            Self::NotReady { .. } | Self::Failed { .. } => 3,
            Self::Unseen { .. } | Self::Gated { .. } | Self::ReadinessGate { .. } | Self::NodeLost { .. } => 4,
            Self::Unschedulable { .. } | Self::Volume { .. } | Self::Sandbox { .. } => 5,
            Self::Image { .. }
            | Self::Config { .. }
            | Self::Start { .. }
            | Self::CrashLoop { .. }
            | Self::OutOfMemory { .. } => 6,
        }
    }
}

struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable { message } => write!(f, "unschedulable{}", Said(message)),
            Self::Gated { gates } => write!(f, "waiting for scheduling gate {}", crate::words::list(gates)),
            Self::Unseen { scheduler } => write!(f, "not yet picked up by scheduler `{scheduler}`"),
            Self::Image { image, reason, message, .. } => {
                write!(f, "cannot pull image `{image}` ({reason}){}", Said(message))
            }
            Self::Config { container, message } => {
                write!(f, "cannot configure container {container}{}", Said(message))
            }
            Self::Start { container, message } => write!(f, "cannot start container {container}{}", Said(message)),
            Self::CrashLoop { container, exit_code, reason, restarts } => {
                write!(f, "container {container} keeps exiting (exit code {exit_code}, {reason}; {restarts} restarts)")
            }
            Self::OutOfMemory { container, limit, restarts } if limit.is_empty() => {
                write!(
                    f,
                    "container {container} was OOM-killed because its node ran out of memory ({restarts} restarts)"
                )
            }
            Self::OutOfMemory { container, limit, restarts } => {
                write!(f, "container {container} exceeds its memory limit of {limit} ({restarts} restarts)")
            }
            Self::Volume { message } => write!(f, "waiting for a volume{}", Said(message)),
            Self::Sandbox { message } => write!(f, "cannot create the pod sandbox{}", Said(message)),
            Self::Init { container, done, of } => {
                write!(f, "init container {container} is running ({done} of {of} done)")
            }
            Self::NotReady { container, message } => write!(f, "container {container} is not ready{}", Said(message)),
            Self::ReadinessGate { gate } => write!(f, "readiness gate {gate} is not true"),
            Self::Failed { reason, message } => write!(f, "failed ({reason}){}", Said(message)),
            Self::NodeLost { node } => write!(f, "node {node} does not respond"),
            Self::Ending { finalizers } if finalizers.is_empty() => write!(f, "its containers are terminating"),
            Self::Ending { finalizers } => {
                write!(f, "being deleted, but held by finalizer {}", crate::words::list(finalizers))
            }
            Self::Starting => write!(f, "its containers are starting"),
        }
    }
}
