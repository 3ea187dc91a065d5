//! The events of pods, in upstream's words.
//!
//! Upstream: `generateVolumeMsg`, `pkg/volume/util/operationexecutor/operation_executor.go`, and `reportMultiAttachError`,
//! `pkg/controller/volume/attachdetach/reconciler/reconciler.go`.

use shared::api::object::ObjectReference;
use shared::working::events::PlannedEvent;

use crate::objects::volume::Spec;
use crate::observe::{Place, Use};

const FAILED_ATTACH_VOLUME: &str = "FailedAttachVolume";
const SUCCESSFUL_ATTACH_VOLUME: &str = "SuccessfulAttachVolume";

pub(super) const BEING_DELETED: &str = "volume attachment is being deleted";

pub(super) fn timed_out(driver: &str, handle: &str) -> String {
    format!("timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}")
}

/// The space at its end is upstream's.
pub(super) fn attached(place: &Place, spec: &Spec) -> Vec<PlannedEvent> {
    let message = format!("AttachVolume.Attach succeeded for volume \"{}\" ", spec.name);
    let event = |used: &Use| PlannedEvent::normal(used.pod.clone(), SUCCESSFUL_ATTACH_VOLUME, message.clone());
    place.wanting().map(event).collect()
}

pub(super) fn attach_failed(place: &Place, spec: &Spec, error: &str) -> Vec<PlannedEvent> {
    let message = format!("AttachVolume.Attach failed for volume \"{}\" : {error}", spec.name);
    place.wanting().map(|used| failed(used, message.clone())).collect()
}

/// The event of a pod names only pods of its own namespace.
pub(super) fn multi_attach(place: &Place, spec: &Spec, others: &[&Place]) -> Vec<PlannedEvent> {
    let event = |used: &Use| {
        let why = used_by(used.pod.key.namespace(), others);
        failed(used, format!("Multi-Attach error for volume \"{}\" {why}", spec.name))
    };
    place.wanting().map(event).collect()
}

fn used_by(namespace: &str, others: &[&Place]) -> String {
    let using = others.iter().flat_map(|other| other.wanting());
    let (near, far): (Vec<&Use>, Vec<&Use>) = using.partition(|used| used.pod.key.namespace() == namespace);
    let near: Vec<&str> = near.iter().map(|used| used.pod.key.name()).collect();
    match (near.is_empty(), far.len()) {
        (true, 0) => "Volume is already exclusively attached to one node and can't be attached to another".to_owned(),
        (true, far) => format!("Volume is already used by {far} pod(s) in different namespaces"),
        (false, 0) => format!("Volume is already used by pod(s) {}", near.join(", ")),
        (false, far) => {
            format!("Volume is already used by pod(s) {} and {far} pod(s) in different namespaces", near.join(", "))
        }
    }
}

fn failed(used: &Use, message: String) -> PlannedEvent {
    PlannedEvent::warning(used.pod.clone(), FAILED_ATTACH_VOLUME, message)
}

/// The event of pods whose VolumeAttachment cannot be created.
pub(crate) fn not_created(pods: &[ObjectReference], volume: &str, error: &str) -> Vec<PlannedEvent> {
    let message = format!(
        "AttachVolume.Attach failed for volume \"{volume}\" : kubernetes.io/csi: attacher.Attach failed: {error}"
    );
    pods.iter().map(|pod| PlannedEvent::warning(pod.clone(), FAILED_ATTACH_VOLUME, message.clone())).collect()
}
