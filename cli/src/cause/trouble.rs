//! The reason why one pod is not ready, as its conditions, its containers and the events about it say.

use std::fmt;

use serde::Serialize;

/// The trouble of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is")]
pub enum Trouble {
    /// No node takes it.
    Unschedulable {
        /// The scheduler's words.
        message: String,
    },
    /// It is not to be scheduled yet.
    Gated {
        /// The gates; their authors take them away.
        gates: Vec<String>,
    },
    /// No scheduler has looked at it.
    Unseen {
        /// Its `schedulerName`.
        scheduler: String,
    },
    /// An image cannot be pulled.
    Image {
        /// Of this container.
        container: String,
        /// Which one.
        image: String,
        /// `ImagePullBackOff`.
        reason: String,
        /// The words of the registry or the kubelet.
        message: String,
    },
    /// It refers to something that is not there, such as a `ConfigMap` or a key of a Secret.
    Config {
        /// This container does.
        container: String,
        /// The error about the missing object or key.
        message: String,
    },
    /// A container cannot be started.
    Start {
        /// This one.
        container: String,
        /// The container runtime's words.
        message: String,
    },
    /// A container ends again and again.
    CrashLoop {
        /// This one.
        container: String,
        /// How it last ended.
        exit_code: i64,
        /// `Error`, `Completed`.
        reason: String,
        /// How often it was started again.
        restarts: i64,
    },
    /// A container needed more memory than its limit.
    OutOfMemory {
        /// This one.
        container: String,
        /// `128Mi`; `""` for none: the node had no more.
        limit: String,
        /// How often it was started again.
        restarts: i64,
    },
    /// A volume is not there yet.
    Volume {
        /// The words of the kubelet or the attacher.
        message: String,
    },
    /// It has no network or sandbox.
    Sandbox {
        /// The kubelet's words.
        message: String,
    },
    /// Init containers come first.
    Init {
        /// This one runs.
        container: String,
        /// So many of them are done.
        done: usize,
        /// So many there are.
        of: usize,
    },
    /// It runs, and its readiness probe says no.
    NotReady {
        /// This container does.
        container: String,
        /// The probe's words.
        message: String,
    },
    /// Somebody else has to say that it is ready.
    ReadinessGate {
        /// The condition that has to be true.
        gate: String,
    },
    /// It was evicted, or ended by its node.
    Failed {
        /// `Evicted`, `NodeShutdown`.
        reason: String,
        /// The `message` of its status.
        message: String,
    },
    /// Its node does not answer.
    NodeLost {
        /// Which one.
        node: String,
    },
    /// It is being deleted.
    Ending {
        /// Its finalizers; none where its containers are still ending.
        finalizers: Vec<String>,
    },
    /// All goes its way.
    Starting,
}

impl Trouble {
    /// Whether it takes care of itself.
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

    /// Which of several troubles is named: the one that explains most.
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

/// A colon and the words, if there are any.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unschedulable { message } => write!(f, "no node takes it{}", Said(message)),
            Self::Gated { gates } => write!(f, "held back by the scheduling gate {}", crate::words::list(gates)),
            Self::Unseen { scheduler } => write!(f, "scheduler `{scheduler}` has not looked at it"),
            Self::Image { image, reason, message, .. } => {
                write!(f, "image `{image}` cannot be pulled ({reason}){}", Said(message))
            }
            Self::Config { container, message } => {
                write!(f, "container {container} cannot be configured{}", Said(message))
            }
            Self::Start { container, message } => write!(f, "container {container} cannot be started{}", Said(message)),
            Self::CrashLoop { container, exit_code, reason, restarts } => {
                write!(f, "container {container} keeps ending (exit code {exit_code}, {reason}; {restarts} restarts)")
            }
            Self::OutOfMemory { container, limit, restarts } if limit.is_empty() => {
                write!(f, "container {container} is killed as its node runs out of memory ({restarts} restarts)")
            }
            Self::OutOfMemory { container, limit, restarts } => {
                write!(f, "container {container} needs more memory than its limit of {limit} ({restarts} restarts)")
            }
            Self::Volume { message } => write!(f, "waiting for a volume{}", Said(message)),
            Self::Sandbox { message } => write!(f, "it has no sandbox{}", Said(message)),
            Self::Init { container, done, of } => {
                write!(f, "init container {container} runs ({done} of {of} are done)")
            }
            Self::NotReady { container, message } => write!(f, "container {container} is not ready{}", Said(message)),
            Self::ReadinessGate { gate } => write!(f, "readiness gate {gate} is not true"),
            Self::Failed { reason, message } => write!(f, "it failed ({reason}){}", Said(message)),
            Self::NodeLost { node } => write!(f, "node {node} does not answer"),
            Self::Ending { finalizers } if finalizers.is_empty() => write!(f, "its containers are ending"),
            Self::Ending { finalizers } => {
                write!(f, "it is deleted and has the finalizer {}", crate::words::list(finalizers))
            }
            Self::Starting => write!(f, "its containers are starting"),
        }
    }
}
