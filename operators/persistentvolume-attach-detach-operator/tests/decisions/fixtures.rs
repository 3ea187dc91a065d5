//! Builders of a volume on its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use persistentvolume_attach_detach_operator::memory::Remembered;
use persistentvolume_attach_detach_operator::objects::volume::{Spec, VolumeName};
use persistentvolume_attach_detach_operator::observe::{Observed, ObservedNode, Place, Use, Wants};
use persistentvolume_attach_detach_operator::plan::{Config, Next, Plan, plan};
use serde_json::json;
use shared::api::intern::Text;
use shared::api::object::{Kind, ObjectReference, ResourceVersion};
use shared::api::resource::PODS;
use shared::testing::{ObjectBuilder, object, uid};

pub(crate) const DRIVER: &str = "csi.example.com";
pub(crate) const CONFIG: Config = Config { forces_on_timeout: true, verifies: true };

pub(crate) fn volume() -> VolumeName {
    VolumeName::csi(DRIVER, "data")
}

/// A node that is ready, managed, and reports and uses these volumes.
pub(crate) fn node(name: &str, reported: &[&VolumeName], used: &[&VolumeName]) -> ObjectBuilder {
    let reported: Vec<_> = reported.iter().map(|name| json!({ "name": name.as_str() })).collect();
    let used: Vec<&str> = used.iter().map(|name| name.as_str()).collect();
    object("v1", "Node", name)
        .namespace("")
        .annotation("volumes.kubernetes.io/controller-managed-attach-detach", "true")
        .set(&["status", "conditions"], json!([{ "type": "Ready", "status": "True" }]))
        .set(&["status", "volumesAttached"], reported)
        .set(&["status", "volumesInUse"], used)
}

pub(crate) fn not_ready(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["status", "conditions"], json!([{ "type": "Ready", "status": "False" }]))
}

pub(crate) fn out_of_service(node: ObjectBuilder) -> ObjectBuilder {
    node.set(&["spec", "taints"], json!([{ "key": "node.kubernetes.io/out-of-service", "effect": "NoExecute" }]))
}

/// The VolumeAttachment of [`volume`] for this node, without an answer.
pub(crate) fn attachment(node: &str) -> ObjectBuilder {
    let key = volume().attachment(node).map(|key| key.name().to_owned()).unwrap_or_default();
    object("storage.k8s.io/v1", "VolumeAttachment", &key).namespace("").set(&["spec", "nodeName"], node)
}

pub(crate) fn attached(attachment: ObjectBuilder) -> ObjectBuilder {
    attachment.set(&["status", "attached"], true)
}

pub(crate) fn place(node: &str) -> Place {
    Place {
        node: Text::new(node),
        state: None,
        attachment: None,
        is_left_unused: false,
        uses: Vec::new(),
        remembered: Remembered::default(),
        live: None,
    }
}

/// The volume on an existing node.
pub(crate) fn on(node: &ObjectBuilder) -> Place {
    let name = node.json()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Place { state: Some(node.build()), ..place(&name) }
}

/// A use by the pod `namespace/name`.
pub(crate) fn used_by(pod: &str, wants: Wants, allows_multi_attach: bool) -> Use {
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    let key = shared::api::object::Key::new(namespace, name);
    let pod = ObjectReference { resource: PODS, key, uid: uid(name), resource_version: ResourceVersion(1) };
    let spec = Spec { volume: volume(), name: Text::new("pv"), allows_multi_attach, inline: None };
    Use { pod, created: None, spec: Arc::new(spec), wants }
}

/// The place, where this pod wants the volume for one node.
pub(crate) fn wanted(mut place: Place, pod: &str) -> Place {
    place.uses.push(used_by(pod, Wants::Attached, false));
    place
}

pub(crate) fn with(mut place: Place, attachment: &ObjectBuilder) -> Place {
    place.attachment = Some(attachment.build());
    place
}

pub(crate) fn remembering(mut place: Place, remembered: Remembered) -> Place {
    place.remembered = remembered;
    place
}

pub(crate) fn unneeded_for(minutes: u64) -> Remembered {
    Remembered { unneeded: Some(Duration::from_mins(minutes)), ..Remembered::default() }
}

pub(crate) fn observed(places: &[Place]) -> Observed {
    observed_as(&volume(), places)
}

pub(crate) fn observed_as(volume: &VolumeName, places: &[Place]) -> Observed {
    Observed { volume: volume.clone(), places: places.to_vec(), at: Instant::now() }
}

pub(crate) fn planned(observed: &Observed, config: Config) -> Plan {
    match plan(observed, config) {
        Next::Execute(plan) => plan,
        Next::Ask(live_read) => panic!("{live_read}"),
    }
}

#[track_caller]
pub(crate) fn check(places: &[Place], expected: &str) {
    assert_eq!(plan(&observed(places), CONFIG).to_string(), expected);
}

/// A node with its volumes.
pub(crate) fn observed_node(node: &ObjectBuilder, places: &[(VolumeName, Place)]) -> ObservedNode {
    let state: Arc<persistentvolume_attach_detach_operator::objects::node::Node> = node.build();
    let name = Text::new(state.meta_name());
    let places: BTreeMap<VolumeName, Place> = places.iter().cloned().collect();
    ObservedNode { name, node: Some(state), places }
}

trait Named {
    fn meta_name(&self) -> &str;
}

impl<T: Kind> Named for T {
    fn meta_name(&self) -> &str {
        self.meta().name()
    }
}
