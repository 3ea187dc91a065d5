//! Creating and deleting pods for a controller, with the events that tell its owner how that went.
//!
//! Left out: which and how many ([`crate::working::control::slow_start`]), and expectations; both are the caller's.
//!
//! Upstream: `RealPodControl`, `pkg/controller/controller_utils.go`.

use bytes::Bytes;

use crate::api::object::{Key, ObjectReference, Uid};
use crate::api::resource::PODS;
use crate::controllers::rejections::{REJECTED_POD_BACKOFF, Rejection};
use crate::transport::api_error::ApiError;
use crate::working::control::{Control, DeleteOptions, Written};
use crate::working::events::{EventType, Recorder};

/// A pod could not be created.
pub const FAILED_CREATE: &str = "FailedCreate";
pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
/// A pod could not be deleted.
pub const FAILED_DELETE: &str = "FailedDelete";
pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";

/// Writes pods and tells of it; cheap to clone.
#[derive(Clone)]
pub struct PodControl {
    control: Control,
    recorder: Recorder,
}

impl PodControl {
    pub fn new(control: Control, recorder: Recorder) -> Self {
        Self { control, recorder }
    }

    /// Creates a pod in the owner's namespace; `body` is [`crate::api::pod::creation::pod_body`]'s.
    pub async fn create(&self, owner: &ObjectReference, body: Bytes) -> Result<Written, ApiError> {
        match self.control.for_key(&owner.key, owner.uid).create(&PODS, owner.key.namespace(), body).await {
            Ok(pod) => {
                let message = format!("Created pod: {}", pod.metadata.name());
                self.recorder.event(owner, EventType::Normal, SUCCESSFUL_CREATE, message);
                Ok(pod)
            }
            Err(error) => {
                // A namespace that is being deleted takes no new objects: that needs no event.
                if !error.is_namespace_terminating() {
                    let message = format!("Error creating: {error}");
                    self.recorder.event(owner, EventType::Warning, FAILED_CREATE, message);
                }
                Err(error)
            }
        }
    }

    /// Deletes this very pod; gives whether it was there.
    pub async fn delete(&self, owner: &ObjectReference, pod: &Key, uid: Uid) -> Result<bool, ApiError> {
        match self.control.for_key(&owner.key, owner.uid).delete(&PODS, pod, &DeleteOptions::of(uid)).await {
            Ok(()) => {
                let message = format!("Deleted pod: {}", pod.name());
                self.recorder.event(owner, EventType::Normal, SUCCESSFUL_DELETE, message);
                Ok(true)
            }
            Err(error) if error.is_not_found() => Ok(false),
            // A conflict, too: another pod may have taken the name, of which the cache will tell before the next try,
            // or a webhook has refused in these words, and the pod is still there.
            Err(error) => {
                let message = format!("Error deleting: {error}");
                self.recorder.event(owner, EventType::Warning, FAILED_DELETE, message);
                Err(error)
            }
        }
    }

    /// Tells that replacements of rejected pods wait from now on.
    pub fn tell_of_back_off(&self, owner: &ObjectReference, begun: &Rejection) {
        self.recorder.event(owner, EventType::Warning, REJECTED_POD_BACKOFF, begun.to_string());
    }
}
