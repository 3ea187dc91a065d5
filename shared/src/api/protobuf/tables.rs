//! Numbers of the fields that views read.
//!
//! Left out: fields that no view reads; they are skipped.
//! Upstream: generated.proto for the numbers, types.go for the rest, both in staging/src/k8s.io/apimachinery/pkg/apis/meta/v1
//! and staging/src/k8s.io/api/core/v1.

use self::Kind::{Bool, Inline, Int, List, Map, Message, Text, Time};
use crate::api::resource::{PODS, Resource};

/// One message.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row],
}

/// One field.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) number: u64,
    /// As JSON calls it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether JSON leaves it out where it is zero: a Go field that is no pointer is written to the wire all the same.
    pub(crate) omits_zero: bool,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Bool,
    Int,
    Text,
    /// `metav1.Time`; nothing where it is zero.
    Time,
    /// Texts by text.
    Map,
    Message(&'static Table),
    /// A message whose fields JSON has among those of the message around it.
    Inline(&'static Table),
    List(&'static Self),
}

impl Table {
    /// Whether JSON may have a field of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.rows.iter().any(|row| if let Inline(inner) = &row.kind { inner.has(name) } else { row.name == name })
    }
}

/// A field that JSON has whenever the wire has it: a pointer or a list, or without `omitempty`.
const fn field(number: u64, name: &'static str, kind: Kind) -> Row {
    Row { number, name, kind, omits_zero: false }
}

/// A field that is no pointer, with `omitempty`.
const fn omitted(number: u64, name: &'static str, kind: Kind) -> Row {
    Row { number, name, kind, omits_zero: true }
}

/// A field that a view reads for another message's sake, and this one has not: it has a number that no wire can have.
const fn absent(name: &'static str) -> Row {
    field(ABSENT, name, Text)
}

pub(crate) const ABSENT: u64 = u64::MAX;

const fn table(name: &'static str, rows: &'static [Row]) -> Table {
    Table { name, rows }
}

/// Whether whole objects of this resource can be read. Their metadata can, whatever the resource.
pub(crate) fn has_table_of(resource: &Resource) -> bool {
    *resource == PODS
}

/// The table of an object of this kind.
pub(crate) fn object_of(api_version: &str, kind: &str) -> Option<&'static Table> {
    match (api_version, kind) {
        ("v1", "Pod") => Some(&POD),
        ("v1", "Status") => Some(&STATUS),
        ("meta.k8s.io/v1", "PartialObjectMetadata") => Some(&PARTIAL_OBJECT_METADATA),
        _ => None,
    }
}

/// The table of the objects in a list of this kind.
pub(crate) fn items_of(api_version: &str, kind: &str) -> Option<&'static Table> {
    object_of(api_version, kind.strip_suffix("List")?)
}

pub(crate) static TYPE_META: Table = table("TypeMeta", &[field(1, "apiVersion", Text), field(2, "kind", Text)]);

pub(crate) static LIST_META: Table =
    table("ListMeta", &[omitted(2, "resourceVersion", Text), omitted(3, "continue", Text)]);

pub(crate) static STATUS: Table = table(
    "Status",
    &[
        field(1, "metadata", Message(&LIST_META)),
        omitted(3, "message", Text),
        omitted(4, "reason", Text),
        field(5, "details", Message(&STATUS_DETAILS)),
        omitted(6, "code", Int),
    ],
);

static STATUS_DETAILS: Table =
    table("StatusDetails", &[field(4, "causes", List(&Message(&STATUS_CAUSE))), omitted(5, "retryAfterSeconds", Int)]);

static STATUS_CAUSE: Table =
    table("StatusCause", &[omitted(1, "reason", Text), omitted(2, "message", Text), omitted(3, "field", Text)]);

pub(crate) static PARTIAL_OBJECT_METADATA: Table = table(
    "PartialObjectMetadata",
    // A view of whole objects may read these, too, and find nothing but metadata.
    &[field(1, "metadata", Message(&OBJECT_META)), absent("spec"), absent("status")],
);

static OBJECT_META: Table = table(
    "ObjectMeta",
    &[
        omitted(1, "name", Text),
        omitted(2, "generateName", Text),
        omitted(3, "namespace", Text),
        omitted(5, "uid", Text),
        omitted(6, "resourceVersion", Text),
        omitted(7, "generation", Int),
        field(8, "creationTimestamp", Time),
        field(9, "deletionTimestamp", Time),
        field(10, "deletionGracePeriodSeconds", Int),
        field(11, "labels", Map),
        field(12, "annotations", Map),
        field(13, "ownerReferences", List(&Message(&OWNER_REFERENCE))),
        field(14, "finalizers", List(&Text)),
        field(17, "managedFields", List(&Message(&MANAGED_FIELDS_ENTRY))),
    ],
);

static MANAGED_FIELDS_ENTRY: Table = table(
    "ManagedFieldsEntry",
    &[omitted(1, "manager", Text), field(4, "time", Time), omitted(8, "subresource", Text)],
);

static OWNER_REFERENCE: Table = table(
    "OwnerReference",
    &[
        field(1, "kind", Text),
        field(3, "name", Text),
        field(4, "uid", Text),
        field(5, "apiVersion", Text),
        field(6, "controller", Bool),
        field(7, "blockOwnerDeletion", Bool),
    ],
);

pub(crate) static POD: Table = table(
    "Pod",
    &[
        field(1, "metadata", Message(&OBJECT_META)),
        field(2, "spec", Message(&POD_SPEC)),
        field(3, "status", Message(&POD_STATUS)),
    ],
);

static POD_SPEC: Table = table(
    "PodSpec",
    &[
        field(1, "volumes", List(&Message(&VOLUME))),
        field(2, "containers", List(&Message(&CONTAINER))),
        field(4, "terminationGracePeriodSeconds", Int),
        omitted(10, "nodeName", Text),
        omitted(16, "hostname", Text),
        omitted(17, "subdomain", Text),
        field(18, "affinity", Message(&AFFINITY)),
        field(20, "initContainers", List(&Message(&CONTAINER))),
        field(22, "tolerations", List(&Message(&TOLERATION))),
    ],
);

static AFFINITY: Table = table("Affinity", &[field(1, "nodeAffinity", Message(&NODE_AFFINITY))]);

static NODE_AFFINITY: Table =
    table("NodeAffinity", &[field(1, "requiredDuringSchedulingIgnoredDuringExecution", Message(&NODE_SELECTOR))]);

static NODE_SELECTOR: Table =
    table("NodeSelector", &[field(1, "nodeSelectorTerms", List(&Message(&NODE_SELECTOR_TERM)))]);

static NODE_SELECTOR_TERM: Table =
    table("NodeSelectorTerm", &[field(2, "matchFields", List(&Message(&NODE_SELECTOR_REQUIREMENT)))]);

static NODE_SELECTOR_REQUIREMENT: Table = table(
    "NodeSelectorRequirement",
    &[field(1, "key", Text), field(2, "operator", Text), field(3, "values", List(&Text))],
);

static TOLERATION: Table = table(
    "Toleration",
    &[
        omitted(1, "key", Text),
        omitted(2, "operator", Text),
        omitted(3, "value", Text),
        omitted(4, "effect", Text),
        field(5, "tolerationSeconds", Int),
    ],
);

static VOLUME: Table = table("Volume", &[field(1, "name", Text), field(2, "volumeSource", Inline(&VOLUME_SOURCE))]);

static VOLUME_SOURCE: Table =
    table("VolumeSource", &[field(10, "persistentVolumeClaim", Message(&PERSISTENT_VOLUME_CLAIM))]);

static PERSISTENT_VOLUME_CLAIM: Table = table("PersistentVolumeClaimVolumeSource", &[field(1, "claimName", Text)]);

static CONTAINER: Table = table(
    "Container",
    &[field(1, "name", Text), field(6, "ports", List(&Message(&CONTAINER_PORT))), field(24, "restartPolicy", Text)],
);

static CONTAINER_PORT: Table =
    table("ContainerPort", &[omitted(1, "name", Text), field(3, "containerPort", Int), omitted(4, "protocol", Text)]);

static POD_STATUS: Table = table(
    "PodStatus",
    &[
        omitted(1, "phase", Text),
        field(2, "conditions", List(&Message(&POD_CONDITION))),
        omitted(4, "reason", Text),
        omitted(6, "podIP", Text),
        field(7, "startTime", Time),
        field(8, "containerStatuses", List(&Message(&CONTAINER_STATUS))),
        field(10, "initContainerStatuses", List(&Message(&CONTAINER_STATUS))),
        field(12, "podIPs", List(&Message(&POD_IP))),
    ],
);

static POD_CONDITION: Table = table(
    "PodCondition",
    &[
        field(1, "type", Text),
        field(2, "status", Text),
        field(4, "lastTransitionTime", Time),
        omitted(5, "reason", Text),
        omitted(6, "message", Text),
        absent("lastUpdateTime"),
    ],
);

static CONTAINER_STATUS: Table = table(
    "ContainerStatus",
    &[field(1, "name", Text), field(2, "state", Message(&CONTAINER_STATE)), field(5, "restartCount", Int)],
);

static CONTAINER_STATE: Table = table("ContainerState", &[field(3, "terminated", Message(&TERMINATED))]);

static TERMINATED: Table =
    table("ContainerStateTerminated", &[field(1, "exitCode", Int), field(6, "finishedAt", Time)]);

static POD_IP: Table = table("PodIP", &[field(1, "ip", Text)]);
