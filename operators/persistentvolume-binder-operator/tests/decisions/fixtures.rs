//! Claims and volumes as upstream's tests build them, and a cluster in which they are synced one by one.

use std::sync::Arc;
use std::time::Duration;

use persistentvolume_binder_operator::flags::Flags;
use persistentvolume_binder_operator::objects::claim::PersistentVolumeClaim;
use persistentvolume_binder_operator::objects::recycler::{PodId, Recyclers};
use persistentvolume_binder_operator::objects::volume::PersistentVolume;
pub(crate) use persistentvolume_binder_operator::objects::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, BOUND_BY_CONTROLLER, EXTERNAL_FINALIZER, IN_TREE_FINALIZER, MIGRATED_TO,
    STORAGE_PROVISIONER,
};
use persistentvolume_binder_operator::observe::{Caches, Live};
use persistentvolume_binder_operator::plan::edits::{NewRecycler, VolumeEdit};
use persistentvolume_binder_operator::plan::{
    Again, Config, Next, Plan, Reason, Step, claim as claims, volume as volumes,
};
use persistentvolume_binder_operator::status::Phase;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shared::api::object::{Key, Kind};
use shared::testing::{ObjectBuilder, object, store, uid};

pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
pub(crate) const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// Upstream: `annSkipLocalStore`. The apiserver has the object, and the cache does not.
pub(crate) const NOT_CACHED: &str = "pv-testing-skip-local-store";
/// The plugin of upstream's tests that deletes volumes is this one here.
pub(crate) const HOST_PATH: &str = "kubernetes.io/host-path";
pub(crate) const CONFIG: Config = Config { provisions: true, sync_period: Duration::from_secs(15) };

/// As a cache and the apiserver have one object: a list of one, because upstream's helpers take lists.
pub(crate) type Objects = Vec<ObjectBuilder>;

fn annotated_with(mut object: ObjectBuilder, annotations: &[&str], driver: &str) -> ObjectBuilder {
    for name in annotations {
        let value = match *name {
            PROVISIONED_BY | STORAGE_PROVISIONER | BETA_STORAGE_PROVISIONER => driver,
            _ => "yes",
        };
        object = object.annotation(name, value);
    }
    object
}

/// Upstream: `newVolume`. No plugin is left that supports it.
#[expect(clippy::too_many_arguments, reason = "they are those of upstream's function")]
pub(crate) fn volume(
    name: &str,
    capacity: &str,
    claim_uid: &str,
    claim: &str,
    phase: &str,
    policy: &str,
    class: &str,
    annotations: &[&str],
) -> Objects {
    let mut spec = json!({
        "capacity": { "storage": capacity }, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "persistentVolumeReclaimPolicy": policy, "storageClassName": class, "volumeMode": "Filesystem",
        "gcePersistentDisk": {},
    });
    if !claim.is_empty() {
        spec["claimRef"] =
            json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": claim });
        if !claim_uid.is_empty() {
            spec["claimRef"]["uid"] = json!(uid(claim_uid));
        }
    }
    let volume = object("v1", "PersistentVolume", name).namespace("").set(&["spec"], spec).phase(phase);
    vec![annotated_with(volume, annotations, HOST_PATH)]
}

/// Upstream: `newExternalProvisionedVolume`.
#[expect(clippy::too_many_arguments, reason = "they are those of upstream's function")]
pub(crate) fn csi_volume(
    name: &str,
    capacity: &str,
    claim_uid: &str,
    claim: &str,
    phase: &str,
    policy: &str,
    class: &str,
    driver: &str,
    annotations: &[&str],
) -> Objects {
    let volumes = volume(name, capacity, claim_uid, claim, phase, policy, class, &[]);
    let csi = json!({ "driver": driver, "volumeHandle": "527b55dc" });
    with(volumes, |volume| {
        let volume = volume.set(&["spec", "gcePersistentDisk"], Value::Null).set(&["spec", "csi"], csi.clone());
        annotated_with(volume, annotations, driver)
    })
}

/// Upstream: `newClaim`.
#[expect(clippy::too_many_arguments, reason = "they are those of upstream's function")]
pub(crate) fn claim(
    name: &str,
    claim_uid: &str,
    capacity: &str,
    volume: &str,
    phase: &str,
    class: Option<&str>,
    annotations: &[&str],
) -> Objects {
    let modes = json!(["ReadWriteOnce", "ReadOnlyMany"]);
    let mut spec = json!({
        "accessModes": modes, "resources": { "requests": { "storage": capacity } }, "volumeMode": "Filesystem",
        "storageClassName": class,
    });
    if !volume.is_empty() {
        spec["volumeName"] = json!(volume);
    }
    let mut status = json!({ "phase": phase });
    if phase == "Bound" {
        status["accessModes"] = modes;
        status["capacity"] = json!({ "storage": capacity });
    }
    let claim = object("v1", "PersistentVolumeClaim", name).uid_of(claim_uid);
    vec![annotated_with(claim.set(&["spec"], spec).set(&["status"], status), annotations, HOST_PATH)]
}

fn with(objects: Objects, change: impl Fn(ObjectBuilder) -> ObjectBuilder) -> Objects {
    objects.into_iter().map(change).collect()
}

pub(crate) fn annotated(name: &str, value: &str, objects: Objects) -> Objects {
    with(objects, |object| object.annotation(name, value))
}

pub(crate) fn labelled(objects: Objects) -> Objects {
    with(objects, |object| object.label("foo", "true").label("bar", "false"))
}

pub(crate) fn selecting(objects: Objects) -> Objects {
    let selector = json!({ "matchLabels": { "foo": "true", "bar": "false" } });
    with(objects, |object| object.set(&["spec", "selector"], selector.clone()))
}

pub(crate) fn providing(capacity: &str, objects: Objects) -> Objects {
    with(objects, |object| object.set(&["status", "capacity"], json!({ "storage": capacity })))
}

pub(crate) fn with_attributes(class: &str, objects: Objects) -> Objects {
    with(objects, |object| object.set(&["spec", "volumeAttributesClassName"], class))
}

pub(crate) fn providing_attributes(class: &str, objects: Objects) -> Objects {
    with(objects, |object| object.set(&["status", "currentVolumeAttributesClassName"], class))
}

pub(crate) fn with_modes(modes: &[&str], objects: Objects) -> Objects {
    with(objects, |object| object.set(&["spec", "accessModes"], json!(modes)))
}

pub(crate) fn with_mode(mode: &str, objects: Objects) -> Objects {
    with(objects, |object| object.set(&["spec", "volumeMode"], mode))
}

pub(crate) fn finalized(finalizers: &[&str], objects: Objects) -> Objects {
    with(objects, |object| object.set(&["metadata", "finalizers"], json!(finalizers)))
}

pub(crate) fn terminating(objects: Objects) -> Objects {
    with(objects, ObjectBuilder::terminating)
}

pub(crate) fn saying(message: &str, objects: Objects) -> Objects {
    with(objects, |object| object.set(&["status", "message"], message))
}

/// A volume that this controller deletes itself.
pub(crate) fn on_host(objects: Objects) -> Objects {
    with(objects, |object| {
        let object = object.set(&["spec", "gcePersistentDisk"], Value::Null);
        object.set(&["spec", "hostPath"], json!({ "path": "/tmp/persistentvolume-binder-operator" }))
    })
}

pub(crate) fn class(name: &str, provisioner: &str, mode: &str) -> ObjectBuilder {
    let class = object("storage.k8s.io/v1", "StorageClass", name).namespace("");
    class.set(&["provisioner"], provisioner).set(&["volumeBindingMode"], mode)
}

/// All that there is. The apiserver has all of it, and the caches have what is not [`NOT_CACHED`].
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) claims: Vec<Value>,
    pub(crate) volumes: Vec<Value>,
    pub(crate) classes: Objects,
    /// Those that have not ended.
    pub(crate) pods: Objects,
    pub(crate) recyclers: Vec<Value>,
    /// The pods among these that the operator remembers, by volume.
    pub(crate) own: Vec<(Key, PodId)>,
    /// The statuses of the recyclers that are made, in turn; then they succeed.
    pub(crate) ends: Vec<Value>,
    /// Events about recyclers.
    pub(crate) pod_events: Objects,
    /// The volumes for which recyclers were made.
    pub(crate) emptied: Vec<String>,
    /// Operations that failed, for the metrics.
    pub(crate) failures: Vec<&'static str>,
    pub(crate) events: Vec<String>,
}

pub(crate) fn recyclers() -> Recyclers {
    const NAME: &str = "persistentvolume-binder-operator";
    Recyclers::from(&shared::process::flags::parse::<Flags>(NAME, [NAME.into()]).unwrap().own)
}

fn read<T: DeserializeOwned>(json: &Value) -> Arc<T> {
    Arc::new(serde_json::from_value(json.clone()).unwrap())
}

fn key(json: &Value) -> Key {
    let text = |field: &str| json["metadata"][field].as_str().unwrap_or_default();
    Key::new(text("namespace"), text("name"))
}

fn live<T: Kind>(all: &[Value], at: &Key) -> Live<T> {
    all.iter().find(|json| key(json) == *at).map_or(Live::Gone, |json| Live::Read(read(json)))
}

impl World {
    pub(crate) fn of(volumes: &[ObjectBuilder], claims: &[ObjectBuilder], classes: &[ObjectBuilder]) -> Self {
        let json = |objects: &[ObjectBuilder]| objects.iter().map(|object| object.json().clone()).collect();
        Self {
            claims: json(claims),
            volumes: json(volumes),
            classes: classes.to_vec(),
            pods: Vec::new(),
            recyclers: Vec::new(),
            own: Vec::new(),
            ends: Vec::new(),
            pod_events: Vec::new(),
            emptied: Vec::new(),
            failures: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn caches(&self) -> Caches {
        let (caches, _) = Caches::new(recyclers());
        let is_cached = |json: &&Value| json["metadata"]["annotations"][NOT_CACHED].is_null();
        self.claims.iter().filter(is_cached).for_each(|claim| store(&caches.persistent_volume_claims, &read(claim)));
        self.volumes.iter().filter(is_cached).for_each(|volume| store(&caches.persistent_volumes, &read(volume)));
        self.classes.iter().for_each(|class| store(&caches.storage_classes, &class.build()));
        let unscheduled =
            self.pods.iter().filter(|pod| pod.json()["spec"]["nodeName"].as_str().is_none_or(str::is_empty));
        unscheduled.for_each(|pod| store(&caches.pods, &pod.build()));
        self.recyclers.iter().for_each(|pod| store(&caches.recycler_pods, &read(pod)));
        self.pod_events.iter().for_each(|event| store(&caches.pod_events, &event.build()));
        self.own.iter().for_each(|(volume, pod)| caches.memory.remember_recycler(volume, pod.clone()));
        caches
    }

    pub(crate) fn plan_claim(&self, at: &Key) -> Plan {
        let mut observed = self.caches().observe_claim(at).unwrap();
        loop {
            match claims::plan(&observed, CONFIG) {
                Next::Execute(plan) => return plan,
                Next::Ask(_) => {
                    observed.live_volume = live(&self.volumes, &Key::new("", &observed.claim.spec.volume_name));
                }
            }
        }
    }

    pub(crate) fn plan_volume(&self, at: &Key) -> Plan {
        let mut observed = self.caches().observe_volume(at).unwrap();
        loop {
            match volumes::plan(&observed, &recyclers()) {
                Next::Execute(plan) => return plan,
                Next::Ask(_) => {
                    let claim = observed.volume.spec.claim_ref.clone().unwrap().key;
                    observed.live_claim = live(&self.claims, &claim);
                    if observed.volume.is_given_back() {
                        observed.live_volume = live(&self.volumes, at);
                        let names = |pod: &&ObjectBuilder| {
                            let volumes = pod.json()["spec"]["volumes"].as_array().unwrap();
                            volumes.iter().any(|volume| {
                                volume["persistentVolumeClaim"]["claimName"].as_str() == Some(claim.name())
                            })
                        };
                        observed.pods = Some(self.pods.iter().filter(names).map(|pod| key(pod.json())).collect());
                    }
                }
            }
        }
    }

    /// Does what the plan says; gives whether something changed.
    pub(crate) fn apply(&mut self, plan: &Plan) -> bool {
        let Plan { steps, claim, volume, again: _, reason: _ } = plan;
        for step in steps {
            match step {
                Step::Tell(event) => {
                    let kind = event.kind.as_str();
                    self.events.push(format!("{kind} {}: {}", event.reason, event.message));
                }
                Step::Claim(edit) => {
                    let at = &claim.as_ref().unwrap().key;
                    merge(self.claims.iter_mut().find(|json| key(json) == *at).unwrap(), &edit.body());
                }
                Step::Volume(edit) => {
                    let at = &volume.as_ref().unwrap().key;
                    merge(self.volumes.iter_mut().find(|json| key(json) == *at).unwrap(), &edit.body());
                }
                Step::DeleteVolume => self.volumes.retain(|json| key(json) != volume.as_ref().unwrap().key),
                Step::CreateRecycler(NewRecycler { key: pod, body, has_failed: _ }) => {
                    let (volume, mut json) = (volume.as_ref().unwrap().key.clone(), body.clone());
                    assert!(self.recyclers.iter().all(|other| key(other) != *pod), "{pod} exists");
                    self.emptied.push(volume.name().to_owned());
                    let uid = uid(&format!("{pod} {}", self.emptied.len()));
                    json["metadata"]["uid"] = json!(uid);
                    let succeeds = || json!({ "phase": "Succeeded" });
                    json["status"] = if self.ends.is_empty() { succeeds() } else { self.ends.remove(0) };
                    self.recyclers.push(json);
                    self.own.push((volume, PodId { key: pod.clone(), uid }));
                }
                Step::EndRecycler(PodId { key: _, uid }) => {
                    self.recyclers.retain(|pod| pod["metadata"]["uid"] != json!(uid));
                    self.own.retain(|(_, pod)| pod.uid != *uid);
                }
                Step::Relay { event, tell } => {
                    self.pod_events.retain(|relayed| relayed.json()["metadata"]["uid"] != json!(event));
                    self.events.push(format!("{} {}: {}", tell.kind.as_str(), tell.reason, tell.message));
                }
                Step::CountFailure(operation) => self.failures.push(operation.as_str()),
                Step::RemoveFolder(_) | Step::SyncClaim(_) => {}
            }
        }
        plan.writes()
    }

    /// Syncs everything again and again until nothing changes.
    pub(crate) fn settle(&mut self) {
        let rests = (0..20).any(|_| !self.sync_all());
        assert!(rests, "it never comes to rest: {self:?}");
    }

    /// Gives whether something changed.
    fn sync_all(&mut self) -> bool {
        let mut changed = false;
        for at in self.claims.iter().map(key).collect::<Vec<_>>() {
            let plan = self.plan_claim(&at);
            changed |= self.apply(&plan);
        }
        for at in self.volumes.iter().map(key).collect::<Vec<_>>() {
            let plan = self.plan_volume(&at);
            changed |= self.apply(&plan);
        }
        changed
    }
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    for (field, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut object[field], value);
        }
    }
}

/// Without versions, and without what is null or empty.
fn bare(json: &Value) -> Value {
    match json {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "resourceVersion");
            let kept = kept.map(|(name, value)| (name.clone(), bare(value)));
            Value::Object(
                kept.filter(|(_, value)| !value.is_null() && *value != json!({}) && *value != json!([])).collect(),
            )
        }
        Value::Array(values) => Value::Array(values.iter().map(bare).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json.clone(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncOf {
    Claim,
    /// A claim whose sync fails.
    FailingClaim,
    Volume,
    /// A volume for which pods are made that end so, until one of them has ended that is the last one.
    Recycled(&'static [Result<(), &'static str>]),
    /// All, until nothing changes.
    All,
}

/// One of upstream's cases: before and after.
pub(crate) struct Row {
    name: &'static str,
    sync: SyncOf,
    volumes: (Objects, Objects),
    claims: (Objects, Objects),
    events: &'static [&'static str],
}

pub(crate) fn row(
    name: &'static str,
    sync: SyncOf,
    volumes: (Objects, Objects),
    claims: (Objects, Objects),
    events: &'static [&'static str],
) -> Row {
    Row { name, sync, volumes, claims, events }
}

impl Row {
    /// Upstream compares events only where it expects some.
    #[track_caller]
    pub(crate) fn check(&self, classes: &[ObjectBuilder], pods: &[ObjectBuilder]) {
        let Self { name, sync, volumes, claims, events } = self;
        let mut world = World { pods: pods.to_vec(), ..World::of(&volumes.0, &claims.0, classes) };
        match sync {
            SyncOf::Claim | SyncOf::FailingClaim => {
                let plan = world.plan_claim(&key(claims.0[0].json()));
                assert_eq!(plan.again == Again::Retry, *sync == SyncOf::FailingClaim, "{name}: {plan}");
                world.apply(&plan);
            }
            SyncOf::Volume => {
                let at = key(volumes.0[0].json());
                for _ in 0..3 {
                    let plan = world.plan_volume(&at);
                    world.apply(&plan);
                    // Upstream goes on in the same sync.
                    let goes_on = |step: &Step| matches!(step, Step::Volume(VolumeEdit::Status(status)) if status.phase == Phase::Released);
                    if plan.reason != Reason::Migration && !plan.steps.iter().any(goes_on) {
                        break;
                    }
                }
            }
            SyncOf::Recycled(ends) => {
                let at = key(volumes.0[0].json());
                world.ends = ends
                    .iter()
                    .map(|end| match end {
                        Ok(()) => json!({ "phase": "Succeeded" }),
                        Err(why) => json!({ "phase": "Failed", "message": why }),
                    })
                    .collect();
                while world.emptied.len() < ends.len() || !world.own.is_empty() {
                    let plan = world.plan_volume(&at);
                    assert!(world.apply(&plan), "{name}: {plan}");
                }
                assert_eq!(world.recyclers.len(), 0, "{name}");
            }
            SyncOf::All => world.settle(),
        }
        let bared = |objects: &[Value]| objects.iter().map(bare).collect::<Vec<_>>();
        let expected = |objects: &Objects| objects.iter().map(|object| bare(object.json())).collect::<Vec<_>>();
        assert_eq!(bared(&world.volumes), expected(&volumes.1), "{name}");
        assert_eq!(bared(&world.claims), expected(&claims.1), "{name}");
        for (at, event) in events.iter().enumerate() {
            assert!(world.events.get(at).is_some_and(|told| told.starts_with(event)), "{name}: {:?}", world.events);
        }
    }
}

/// The claim of this name, read.
pub(crate) fn claim_in(world: &World, name: &str) -> Arc<PersistentVolumeClaim> {
    read(world.claims.iter().find(|json| key(json).name() == name).unwrap())
}

/// The volume of this name, read; none if it is gone.
pub(crate) fn volume_in(world: &World, name: &str) -> Option<Arc<PersistentVolume>> {
    world.volumes.iter().find(|json| key(json).name() == name).map(read)
}
