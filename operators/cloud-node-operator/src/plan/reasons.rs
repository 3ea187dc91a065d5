//! The reasons of decisions, for programs and in words.

use std::fmt;

use serde::Serialize;
use shared::working::decisions;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The node was deleted meanwhile.
    Gone,
    Initialized,
    /// Labels differ from the deprecated ones that they replace.
    StaleLabels,
    /// It is not initialized, and the provider knows its instance.
    Uninitialized,
    /// The provider has nothing to say about its instance yet.
    Unsaid,
    /// The provider does not know its instance.
    NotFound,
    /// The provider gives it no provider ID, by which other controllers find its instance.
    NoProviderId,
    /// The addresses that its kubelet was given are not the cloud's.
    InvalidIp {
        error: String,
    },
    /// The provider wants to be asked again later.
    Later {
        message: String,
    },
    /// The provider does not know instances.
    NotSupported,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AddressReason {
    /// The node was deleted meanwhile.
    Gone,
    /// It gets its addresses when it is initialized.
    Uninitialized,
    /// They are those of the cloud, or the cloud has none.
    Right,
    Different,
    /// The provider has nothing to say about its instance yet.
    Unsaid,
    /// The provider does not know its instance.
    NotFound,
    /// The addresses that its kubelet was given are not the cloud's.
    InvalidIp {
        error: String,
    },
    /// The provider wants to be asked again later.
    Later {
        message: String,
    },
    /// The provider does not know instances.
    NotSupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Question {
    Uninitialized,
    /// Whether its addresses have changed.
    Addresses,
}

impl decisions::Reason for Reason {}
impl decisions::Reason for AddressReason {}
impl decisions::Reason for Question {}

const GONE: &str = "the node is gone";
const UNSAID: &str = "the provider has nothing to say about its instance yet";
const NOT_FOUND: &str = "the provider does not know its instance";
const NOT_SUPPORTED: &str = "the provider does not support instances";

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str(GONE),
            Self::Initialized => f.write_str("initialized"),
            Self::StaleLabels => f.write_str("deprecated labels say something else"),
            Self::Uninitialized => f.write_str("the cloud has its instance"),
            Self::Unsaid => f.write_str(UNSAID),
            Self::NotFound => f.write_str(NOT_FOUND),
            Self::NoProviderId => f.write_str("the provider sets no provider ID"),
            Self::InvalidIp { error } => f.write_str(error),
            Self::Later { message } => write!(f, "the provider asks for patience: {message}"),
            Self::NotSupported => f.write_str(NOT_SUPPORTED),
        }
    }
}

impl fmt::Display for AddressReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str(GONE),
            Self::Uninitialized => f.write_str("not initialized"),
            Self::Right => f.write_str("they are the cloud's"),
            Self::Different => f.write_str("the cloud has others"),
            Self::Unsaid => f.write_str(UNSAID),
            Self::NotFound => f.write_str(NOT_FOUND),
            Self::InvalidIp { error } => f.write_str(error),
            Self::Later { message } => write!(f, "the provider asks for patience: {message}"),
            Self::NotSupported => f.write_str(NOT_SUPPORTED),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uninitialized => "not initialized",
            Self::Addresses => "its addresses may have changed",
        })
    }
}
