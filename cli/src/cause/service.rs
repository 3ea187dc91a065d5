//! Causes of Services: why they lead to pods, or to none.

use serde::Serialize;

use crate::cause::State;
use crate::words::{list, many};

/// Why a Service leads where it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Services {
    /// `type: ExternalName`.
    ExternalName {
        /// A name in DNS.
        name: String,
    },
    /// It has no selector: somebody else writes its endpoints.
    NoSelector {
        /// How many endpoints there are.
        endpoints: i64,
    },
    /// No pod has its labels.
    SelectsNothing {
        /// `app=web`.
        selector: String,
        /// Pods that have all of these labels but one, if any: `pod/web (app=wbe)`.
        similar: Vec<String>,
    },
    /// Pods are there, and none is ready.
    NoneReady {
        /// So many pods.
        pods: i64,
        /// One of them, and why.
        example: String,
    },
    /// A port's name is none that the pods have.
    UnknownPort {
        /// The name.
        port: String,
        /// One of the pods.
        pod: String,
    },
    /// Pods are ready, and its `EndpointSlices` don't have them yet.
    NotPublished {
        /// So many pods are ready.
        ready: i64,
        /// So many endpoints are.
        endpoints: i64,
    },
    /// It leads somewhere.
    Leads {
        /// So many endpoints are ready.
        ready: i64,
        /// So many there are.
        endpoints: i64,
    },
}

impl Services {
    /// Whether anybody has to do something.
    pub fn state(&self) -> State {
        match self {
            Self::NoSelector { endpoints: 0 }
            | Self::SelectsNothing { .. }
            | Self::NoneReady { .. }
            | Self::UnknownPort { .. } => State::Stuck,
            Self::NotPublished { .. } => State::InProgress,
            Self::ExternalName { .. } | Self::NoSelector { .. } | Self::Leads { .. } => State::AtRest,
        }
    }

    /// In words.
    pub fn text(&self) -> String {
        match self {
            Self::ExternalName { name } if name.is_empty() => "it is a name for nothing (externalName)".to_owned(),
            Self::ExternalName { name } => format!("it is a name for `{name}` (ExternalName), and has no endpoints"),
            Self::NoSelector { endpoints: 0 } => {
                "it has no selector, and nobody has written endpoints for it".to_owned()
            }
            Self::NoSelector { endpoints } => {
                format!("it has no selector; somebody wrote {} for it", many(*endpoints, "endpoint"))
            }
            Self::SelectsNothing { selector, similar } if similar.is_empty() => {
                format!("it leads nowhere: no pod has the labels {selector}")
            }
            Self::SelectsNothing { selector, similar } => {
                format!("it leads nowhere: no pod has the labels {selector}; there is {}", list(similar))
            }
            Self::NoneReady { pods, example } => {
                format!("it leads nowhere: none of its {} is ready: {example}", many(*pods, "pod"))
            }
            Self::UnknownPort { port, pod } => {
                format!("it leads nowhere: no container of {pod} has a port called `{port}`")
            }
            Self::NotPublished { ready, endpoints } => {
                format!("{} ready, and its EndpointSlices have {endpoints} of them", many(*ready, "pod"))
            }
            Self::Leads { ready, endpoints } => format!("{ready} of {} ready", many(*endpoints, "endpoint")),
        }
    }
}
