//! What empties a volume: a pod, the template that it is made from, and the events about it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use shared::api::intern::Text;
use shared::api::object::{Key, Meta, Uid, null_as_default};
use shared::api::pod::Phase;
use shared::api::quantity::Quantity;
use shared::api::resource::{EVENTS, PODS};

use super::volume::{HOST_PATH, NFS, PersistentVolume};

/// A recycler pod is named by this and its volume.
///
/// Upstream: `internalRecycleVolumeByWatchingPodUntilCompletion`, `pkg/volume/util/recyclerclient/recycler_client.go`.
pub const RECYCLER_FOR: &str = "recycler-for-";

const MILLIS_PER_GI: i64 = 1000 << 30;

/// A pod that empties a volume.
#[derive(Debug, PartialEq, Deserialize)]
pub struct RecyclerPod {
    pub metadata: Meta,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: PodStatus,
}

shared::view!(RecyclerPod, PODS);

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    pub phase: Phase,
    pub message: Option<Box<str>>,
}

/// A pod of this identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodId {
    pub key: Key,
    pub uid: Uid,
}

impl RecyclerPod {
    pub fn id(&self) -> PodId {
        PodId { key: self.metadata.key.clone(), uid: self.metadata.uid }
    }

    /// The volume that it is named after.
    pub fn volume(&self) -> Option<Key> {
        volume_of(self.metadata.name())
    }
}

fn volume_of(pod: &str) -> Option<Key> {
    pod.strip_prefix(RECYCLER_FOR).map(|volume| Key::new("", volume))
}

/// What somebody says about a pod.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodEvent {
    pub metadata: Meta,
    #[serde(default)]
    involved_object: Involved,
    #[serde(default)]
    r#type: Text,
    #[serde(default)]
    pub message: Box<str>,
}

shared::view!(PodEvent, EVENTS);

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Involved {
    name: Box<str>,
    uid: Option<Uid>,
}

impl PodEvent {
    /// The identity of the pod.
    pub const fn pod(&self) -> Option<Uid> {
        self.involved_object.uid
    }

    /// The volume that the pod is named after.
    pub fn volume(&self) -> Option<Key> {
        volume_of(&self.involved_object.name)
    }

    pub fn is_warning(&self) -> bool {
        self.r#type == "Warning"
    }
}

/// A pod that the recycler pods of a plugin are made from: as it was written, so that no field is lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Arc<Value>);

impl Default for Template {
    /// Upstream: `NewPersistentVolumeRecyclerPodTemplate`, `pkg/volume/plugins.go`.
    fn default() -> Self {
        let empty = "test -e /scrub && find /scrub -mindepth 1 -delete && test -z \"$(ls -A /scrub)\" || exit 1";
        let container = json!({
            "name": "pv-recycler", "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
            "command": ["/bin/sh"], "args": ["-c", empty],
            "volumeMounts": [{ "name": "vol", "mountPath": "/scrub" }],
        });
        let spec = json!({ "restartPolicy": "Never", "volumes": [{ "name": "vol" }], "containers": [container] });
        let metadata = json!({ "namespace": "default" });
        Self(Arc::new(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })))
    }
}

impl Template {
    /// Takes a pod that says where it runs and has the volume that is replaced.
    ///
    /// Upstream: `LoadPodFromFile`, `pkg/volume/util/util.go`, and `ValidateRecyclerPodTemplate`, `pkg/volume/plugins.go`.
    pub fn new(pod: Value) -> Result<Self, &'static str> {
        if pod["apiVersion"] != "v1" || pod["kind"] != "Pod" {
            return Err("it is no v1 Pod");
        }
        if !pod["spec"]["volumes"][0].is_object() {
            return Err("does not contain any volume(s)");
        }
        if pod["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
            return Err("does not name a namespace");
        }
        Ok(Self(Arc::new(pod)))
    }

    pub fn namespace(&self) -> &str {
        self.0["metadata"]["namespace"].as_str().unwrap_or_default()
    }
}

/// How the volumes of one plugin are emptied.
#[derive(Clone, Debug, PartialEq)]
pub struct Recycler {
    pub template: Template,
    /// The least seconds that a pod may take.
    pub minimum_timeout: i32,
    /// The seconds that it may take for each GiB.
    pub increment_timeout: i32,
}

impl Recycler {
    /// The pod that empties this volume.
    pub fn key(&self, volume: &str) -> Key {
        Key::new(self.template.namespace(), &format!("{RECYCLER_FOR}{volume}"))
    }

    /// Upstream: `Recycle`, `pkg/volume/hostpath/host_path.go` and `pkg/volume/nfs/nfs.go`.
    fn pod(&self, volume: &PersistentVolume, source: &Value) -> (Key, Value) {
        let (key, mut pod) = (self.key(volume.metadata.name()), (*self.template.0).clone());
        pod["metadata"]["name"] = json!(key.name());
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("generateName");
        }
        let name = pod["spec"]["volumes"][0]["name"].take();
        let mut emptied = json!({ "name": name });
        if let (Some(emptied), Some(source)) = (emptied.as_object_mut(), source.as_object()) {
            emptied.extend(source.clone());
        }
        pod["spec"]["volumes"][0] = emptied;
        pod["spec"]["activeDeadlineSeconds"] = json!(self.timeout(volume.capacity()));
        (key, pod)
    }

    /// Upstream: `CalculateTimeoutForVolume`, `pkg/volume/util/util.go`.
    fn timeout(&self, size: Quantity) -> i64 {
        let whole = size.rounded_up(0).milli_value() / MILLIS_PER_GI;
        whole.saturating_mul(self.increment_timeout.into()).max(self.minimum_timeout.into())
    }
}

/// How volumes are emptied, by plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Recyclers {
    pub host_path: Recycler,
    pub nfs: Recycler,
}

impl Recyclers {
    /// The recycler of this volume's plugin.
    ///
    /// Upstream: `FindRecyclablePluginBySpec`, `pkg/volume/plugins.go`.
    pub fn of(&self, volume: &PersistentVolume) -> Option<&Recycler> {
        match volume.plugin() {
            Some(HOST_PATH) => Some(&self.host_path),
            Some(NFS) => Some(&self.nfs),
            Some(_) | None => None,
        }
    }

    /// The pod that empties this volume, with its JSON; none if no plugin can.
    pub fn pod(&self, volume: &PersistentVolume) -> Option<(Key, Value)> {
        let recycler = self.of(volume)?;
        let source = match (&volume.spec.host_path, &volume.spec.nfs) {
            (Some(host_path), _) => json!({ "hostPath": { "path": host_path.path } }),
            (None, Some(nfs)) => json!({ "nfs": { "server": nfs.server, "path": nfs.path } }),
            (None, None) => return None,
        };
        Some(recycler.pod(volume, &source))
    }

    /// The namespace of all recycler pods; none if there are two.
    pub fn namespace(&self) -> Option<&str> {
        let (host_path, nfs) = (self.host_path.template.namespace(), self.nfs.template.namespace());
        (host_path == nfs).then_some(nfs)
    }
}
