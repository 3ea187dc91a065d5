//! Causes of Services.

use serde::Serialize;

use crate::cause::state::State;
use crate::words::{line, list, many};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "case")]
pub enum Services {
    /// `type: ExternalName`.
    ExternalName {
        name: String,
    },
    NoSelector {
        endpoints: i64,
    },
    SelectsNothing {
        selector: String,
        similar: Vec<String>,
    },
    NoneReady {
        pods: i64,
        example: String,
    },
    UnknownPort {
        port: String,
        pod: String,
    },
    /// Ready pods are missing in the `EndpointSlices`.
    NotPublished {
        ready: i64,
        endpoints: i64,
    },
    /// It is to have a load balancer, and has no address of one.
    NoAddress {
        /// Its class, which says whose load balancer it is.
        class: String,
        /// What the operator or an event says about it.
        word: String,
    },
    Leads {
        ready: i64,
        endpoints: i64,
    },
}

impl Services {
    pub fn state(&self) -> State {
        match self {
            Self::NoSelector { endpoints: 0 }
            | Self::SelectsNothing { .. }
            | Self::NoneReady { .. }
            | Self::UnknownPort { .. }
            | Self::NoAddress { .. } => State::Stuck,
            Self::NotPublished { .. } => State::InProgress,
            Self::ExternalName { .. } | Self::NoSelector { .. } | Self::Leads { .. } => State::AtRest,
        }
    }

    pub fn text(&self) -> String {
        match self {
            Self::ExternalName { name } if name.is_empty() => "externalName is empty".to_owned(),
            Self::ExternalName { name } => format!("alias for `{name}` (ExternalName); has no endpoints"),
            Self::NoSelector { endpoints: 0 } => "no selector and no endpoints".to_owned(),
            Self::NoSelector { endpoints } => {
                format!("no selector; {} written by another client", many(*endpoints, "endpoint"))
            }
            Self::SelectsNothing { selector, similar } if similar.is_empty() => {
                format!("no endpoints: no pod matches selector {selector}")
            }
            Self::SelectsNothing { selector, similar } => {
                format!("no endpoints: no pod matches selector {selector}; closest match: {}", list(similar))
            }
            Self::NoneReady { pods, example } => {
                format!("no ready endpoints: 0 of {} ready: {example}", many(*pods, "pod"))
            }
            Self::UnknownPort { port, pod } => {
                format!("no endpoints: no container of {pod} has a port named `{port}`")
            }
            Self::NotPublished { ready, endpoints } => {
                format!("{} ready, but {endpoints} in its EndpointSlices", many(*ready, "pod"))
            }
            Self::NoAddress { class, word } => {
                let of_class = if class.is_empty() { String::new() } else { format!(" of class `{class}`") };
                let word = if word.is_empty() { "no reason is known" } else { word };
                format!("no address of a load balancer{of_class}: {}", line(word))
            }
            Self::Leads { ready, endpoints } => format!("{ready} of {} ready", many(*endpoints, "endpoint")),
        }
    }
}
