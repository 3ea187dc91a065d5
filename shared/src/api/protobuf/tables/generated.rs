//! Tables of the fields in e2e/tools/kubernetes/protobuf/fields.go. Written by `make protobuf`; do not edit.

use super::{Kind, Table, absent, field, omitted, table};

/// The table of each kind, by its apiVersion and name.
pub(crate) static KINDS: &[(&str, &str, &Table)] = &[
    ("v1", "Pod", &POD),
    ("v1", "Status", &STATUS),
    ("meta.k8s.io/v1", "PartialObjectMetadata", &PARTIAL_OBJECT_METADATA),
];

pub(crate) static TYPE_META: Table = table("TypeMeta", &[
    omitted(1, "apiVersion", Kind::Text),
    omitted(2, "kind", Kind::Text),
]);

pub(crate) static LIST_META: Table = table("ListMeta", &[
    omitted(2, "resourceVersion", Kind::Text),
    omitted(3, "continue", Kind::Text),
    field(4, "remainingItemCount", Kind::Int),
]);

pub(crate) static STATUS: Table = table("Status", &[
    field(1, "metadata", Kind::Message(&LIST_META)),
    omitted(3, "message", Kind::Text),
    omitted(4, "reason", Kind::Text),
    field(5, "details", Kind::Message(&STATUS_DETAILS)),
    omitted(6, "code", Kind::Int),
]);

pub(crate) static STATUS_DETAILS: Table = table("StatusDetails", &[
    omitted(1, "name", Kind::Text),
    field(4, "causes", Kind::List(&Kind::Message(&STATUS_CAUSE))),
    omitted(5, "retryAfterSeconds", Kind::Int),
]);

pub(crate) static STATUS_CAUSE: Table = table("StatusCause", &[
    omitted(1, "reason", Kind::Text),
    omitted(2, "message", Kind::Text),
    omitted(3, "field", Kind::Text),
]);

pub(crate) static PARTIAL_OBJECT_METADATA: Table = table("PartialObjectMetadata", &[
    field(1, "metadata", Kind::Message(&OBJECT_META)),
    absent("spec"),
    absent("status"),
]);

pub(crate) static OBJECT_META: Table = table("ObjectMeta", &[
    omitted(1, "name", Kind::Text),
    omitted(2, "generateName", Kind::Text),
    omitted(3, "namespace", Kind::Text),
    omitted(5, "uid", Kind::Text),
    omitted(6, "resourceVersion", Kind::Text),
    omitted(7, "generation", Kind::Int),
    omitted(8, "creationTimestamp", Kind::Time),
    field(9, "deletionTimestamp", Kind::Time),
    field(10, "deletionGracePeriodSeconds", Kind::Int),
    field(11, "labels", Kind::Map),
    field(12, "annotations", Kind::Map),
    field(13, "ownerReferences", Kind::List(&Kind::Message(&OWNER_REFERENCE))),
    field(14, "finalizers", Kind::List(&Kind::Text)),
    field(17, "managedFields", Kind::List(&Kind::Message(&MANAGED_FIELDS_ENTRY))),
]);

pub(crate) static MANAGED_FIELDS_ENTRY: Table = table("ManagedFieldsEntry", &[
    omitted(1, "manager", Kind::Text),
    field(4, "time", Kind::Time),
    omitted(8, "subresource", Kind::Text),
]);

pub(crate) static OWNER_REFERENCE: Table = table("OwnerReference", &[
    field(1, "kind", Kind::Text),
    field(3, "name", Kind::Text),
    field(4, "uid", Kind::Text),
    field(5, "apiVersion", Kind::Text),
    field(6, "controller", Kind::Bool),
    field(7, "blockOwnerDeletion", Kind::Bool),
]);

pub(crate) static POD: Table = table("Pod", &[
    field(1, "metadata", Kind::Message(&OBJECT_META)),
    field(2, "spec", Kind::Message(&POD_SPEC)),
    field(3, "status", Kind::Message(&POD_STATUS)),
]);

pub(crate) static POD_SPEC: Table = table("PodSpec", &[
    field(1, "volumes", Kind::List(&Kind::Message(&VOLUME))),
    field(2, "containers", Kind::List(&Kind::Message(&CONTAINER))),
    field(4, "terminationGracePeriodSeconds", Kind::Int),
    omitted(10, "nodeName", Kind::Text),
    field(14, "securityContext", Kind::Message(&POD_SECURITY_CONTEXT)),
    omitted(16, "hostname", Kind::Text),
    omitted(17, "subdomain", Kind::Text),
    field(18, "affinity", Kind::Message(&AFFINITY)),
    field(20, "initContainers", Kind::List(&Kind::Message(&CONTAINER))),
    field(22, "tolerations", Kind::List(&Kind::Message(&TOLERATION))),
    field(34, "ephemeralContainers", Kind::List(&Kind::Message(&EPHEMERAL_CONTAINER))),
    field(39, "resourceClaims", Kind::List(&Kind::Message(&POD_RESOURCE_CLAIM))),
    field(43, "schedulingGroup", Kind::Message(&POD_SCHEDULING_GROUP)),
]);

pub(crate) static POD_SECURITY_CONTEXT: Table = table("PodSecurityContext", &[
    field(1, "seLinuxOptions", Kind::Message(&SELINUX_OPTIONS)),
    field(13, "seLinuxChangePolicy", Kind::Text),
]);

pub(crate) static SECURITY_CONTEXT: Table = table("SecurityContext", &[
    field(3, "seLinuxOptions", Kind::Message(&SELINUX_OPTIONS)),
]);

pub(crate) static SELINUX_OPTIONS: Table = table("SELinuxOptions", &[
    omitted(1, "user", Kind::Text),
    omitted(2, "role", Kind::Text),
    omitted(3, "type", Kind::Text),
    omitted(4, "level", Kind::Text),
]);

pub(crate) static AFFINITY: Table = table("Affinity", &[
    field(1, "nodeAffinity", Kind::Message(&NODE_AFFINITY)),
]);

pub(crate) static NODE_AFFINITY: Table = table("NodeAffinity", &[
    field(1, "requiredDuringSchedulingIgnoredDuringExecution", Kind::Message(&NODE_SELECTOR)),
]);

pub(crate) static NODE_SELECTOR: Table = table("NodeSelector", &[
    field(1, "nodeSelectorTerms", Kind::List(&Kind::Message(&NODE_SELECTOR_TERM))),
]);

pub(crate) static NODE_SELECTOR_TERM: Table = table("NodeSelectorTerm", &[
    field(2, "matchFields", Kind::List(&Kind::Message(&NODE_SELECTOR_REQUIREMENT))),
]);

pub(crate) static NODE_SELECTOR_REQUIREMENT: Table = table("NodeSelectorRequirement", &[
    field(1, "key", Kind::Text),
    field(2, "operator", Kind::Text),
    field(3, "values", Kind::List(&Kind::Text)),
]);

pub(crate) static TOLERATION: Table = table("Toleration", &[
    omitted(1, "key", Kind::Text),
    omitted(2, "operator", Kind::Text),
    omitted(3, "value", Kind::Text),
    omitted(4, "effect", Kind::Text),
    field(5, "tolerationSeconds", Kind::Int),
]);

pub(crate) static POD_RESOURCE_CLAIM: Table = table("PodResourceClaim", &[
    field(1, "name", Kind::Text),
    field(3, "resourceClaimName", Kind::Text),
    field(4, "resourceClaimTemplateName", Kind::Text),
]);

pub(crate) static POD_SCHEDULING_GROUP: Table = table("PodSchedulingGroup", &[
    field(1, "podGroupName", Kind::Text),
]);

pub(crate) static VOLUME: Table = table("Volume", &[
    field(1, "name", Kind::Text),
    field(2, "volumeSource", Kind::Inline(&VOLUME_SOURCE)),
]);

pub(crate) static VOLUME_SOURCE: Table = table("VolumeSource", &[
    field(3, "gcePersistentDisk", Kind::Message(&GCEPERSISTENT_DISK_VOLUME_SOURCE)),
    field(4, "awsElasticBlockStore", Kind::Message(&AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    field(8, "iscsi", Kind::Message(&ISCSIVOLUME_SOURCE)),
    field(10, "persistentVolumeClaim", Kind::Message(&PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
    field(13, "cinder", Kind::Message(&CINDER_VOLUME_SOURCE)),
    field(17, "fc", Kind::Message(&FCVOLUME_SOURCE)),
    field(18, "azureFile", Kind::Message(&AZURE_FILE_VOLUME_SOURCE)),
    field(20, "vsphereVolume", Kind::Message(&VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
    field(22, "azureDisk", Kind::Message(&AZURE_DISK_VOLUME_SOURCE)),
    field(24, "portworxVolume", Kind::Message(&PORTWORX_VOLUME_SOURCE)),
    field(29, "ephemeral", Kind::Message(&EPHEMERAL_VOLUME_SOURCE)),
]);

pub(crate) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Table = table("PersistentVolumeClaimVolumeSource", &[
    field(1, "claimName", Kind::Text),
]);

pub(crate) static EPHEMERAL_VOLUME_SOURCE: Table = table("EphemeralVolumeSource", &[
]);

pub(crate) static ISCSIVOLUME_SOURCE: Table = table("ISCSIVolumeSource", &[
    field(1, "targetPortal", Kind::Text),
    field(2, "iqn", Kind::Text),
    field(3, "lun", Kind::Int),
]);

pub(crate) static FCVOLUME_SOURCE: Table = table("FCVolumeSource", &[
    field(1, "targetWWNs", Kind::List(&Kind::Text)),
    field(2, "lun", Kind::Int),
    field(5, "wwids", Kind::List(&Kind::Text)),
]);

pub(crate) static AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE: Table = table("AWSElasticBlockStoreVolumeSource", &[
    field(1, "volumeID", Kind::Text),
    omitted(2, "fsType", Kind::Text),
    omitted(3, "partition", Kind::Int),
    omitted(4, "readOnly", Kind::Bool),
]);

pub(crate) static AZURE_DISK_VOLUME_SOURCE: Table = table("AzureDiskVolumeSource", &[
    field(2, "diskURI", Kind::Text),
    field(3, "cachingMode", Kind::Text),
    field(4, "fsType", Kind::Text),
    field(5, "readOnly", Kind::Bool),
    field(6, "kind", Kind::Text),
]);

pub(crate) static AZURE_FILE_VOLUME_SOURCE: Table = table("AzureFileVolumeSource", &[
    field(1, "secretName", Kind::Text),
    field(2, "shareName", Kind::Text),
    omitted(3, "readOnly", Kind::Bool),
    absent("secretNamespace"),
]);

pub(crate) static CINDER_VOLUME_SOURCE: Table = table("CinderVolumeSource", &[
    field(1, "volumeID", Kind::Text),
    omitted(2, "fsType", Kind::Text),
    omitted(3, "readOnly", Kind::Bool),
]);

pub(crate) static GCEPERSISTENT_DISK_VOLUME_SOURCE: Table = table("GCEPersistentDiskVolumeSource", &[
    field(1, "pdName", Kind::Text),
    omitted(2, "fsType", Kind::Text),
    omitted(3, "partition", Kind::Int),
    omitted(4, "readOnly", Kind::Bool),
]);

pub(crate) static PORTWORX_VOLUME_SOURCE: Table = table("PortworxVolumeSource", &[
    field(1, "volumeID", Kind::Text),
    omitted(2, "fsType", Kind::Text),
    omitted(3, "readOnly", Kind::Bool),
]);

pub(crate) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Table = table("VsphereVirtualDiskVolumeSource", &[
    field(1, "volumePath", Kind::Text),
    omitted(2, "fsType", Kind::Text),
    omitted(3, "storagePolicyName", Kind::Text),
]);

pub(crate) static CONTAINER: Table = table("Container", &[
    field(1, "name", Kind::Text),
    field(6, "ports", Kind::List(&Kind::Message(&CONTAINER_PORT))),
    field(9, "volumeMounts", Kind::List(&Kind::Message(&VOLUME_MOUNT))),
    field(15, "securityContext", Kind::Message(&SECURITY_CONTEXT)),
    field(24, "restartPolicy", Kind::Text),
]);

pub(crate) static EPHEMERAL_CONTAINER: Table = table("EphemeralContainer", &[
    field(1, "EphemeralContainerCommon", Kind::Inline(&EPHEMERAL_CONTAINER_COMMON)),
]);

pub(crate) static EPHEMERAL_CONTAINER_COMMON: Table = table("EphemeralContainerCommon", &[
    field(9, "volumeMounts", Kind::List(&Kind::Message(&VOLUME_MOUNT))),
    field(15, "securityContext", Kind::Message(&SECURITY_CONTEXT)),
]);

pub(crate) static VOLUME_MOUNT: Table = table("VolumeMount", &[
    field(1, "name", Kind::Text),
]);

pub(crate) static CONTAINER_PORT: Table = table("ContainerPort", &[
    omitted(1, "name", Kind::Text),
    field(3, "containerPort", Kind::Int),
    omitted(4, "protocol", Kind::Text),
]);

pub(crate) static POD_STATUS: Table = table("PodStatus", &[
    omitted(1, "phase", Kind::Text),
    field(2, "conditions", Kind::List(&Kind::Message(&POD_CONDITION))),
    omitted(3, "message", Kind::Text),
    omitted(4, "reason", Kind::Text),
    omitted(6, "podIP", Kind::Text),
    field(7, "startTime", Kind::Time),
    field(8, "containerStatuses", Kind::List(&Kind::Message(&CONTAINER_STATUS))),
    field(10, "initContainerStatuses", Kind::List(&Kind::Message(&CONTAINER_STATUS))),
    field(12, "podIPs", Kind::List(&Kind::Message(&POD_IP))),
    field(13, "ephemeralContainerStatuses", Kind::List(&Kind::Message(&CONTAINER_STATUS))),
    field(15, "resourceClaimStatuses", Kind::List(&Kind::Message(&POD_RESOURCE_CLAIM_STATUS))),
    field(18, "extendedResourceClaimStatus", Kind::Message(&POD_EXTENDED_RESOURCE_CLAIM_STATUS)),
]);

pub(crate) static POD_RESOURCE_CLAIM_STATUS: Table = table("PodResourceClaimStatus", &[
    field(1, "name", Kind::Text),
    field(2, "resourceClaimName", Kind::Text),
]);

pub(crate) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Table = table("PodExtendedResourceClaimStatus", &[
    field(2, "resourceClaimName", Kind::Text),
]);

pub(crate) static POD_CONDITION: Table = table("PodCondition", &[
    field(1, "type", Kind::Text),
    field(2, "status", Kind::Text),
    field(4, "lastTransitionTime", Kind::Time),
    omitted(5, "reason", Kind::Text),
    omitted(6, "message", Kind::Text),
    absent("lastUpdateTime"),
]);

pub(crate) static CONTAINER_STATUS: Table = table("ContainerStatus", &[
    field(1, "name", Kind::Text),
    field(2, "state", Kind::Message(&CONTAINER_STATE)),
    field(5, "restartCount", Kind::Int),
]);

pub(crate) static CONTAINER_STATE: Table = table("ContainerState", &[
    field(1, "waiting", Kind::Message(&CONTAINER_STATE_WAITING)),
    field(3, "terminated", Kind::Message(&CONTAINER_STATE_TERMINATED)),
]);

pub(crate) static CONTAINER_STATE_WAITING: Table = table("ContainerStateWaiting", &[
]);

pub(crate) static CONTAINER_STATE_TERMINATED: Table = table("ContainerStateTerminated", &[
    field(1, "exitCode", Kind::Int),
    field(6, "finishedAt", Kind::Time),
]);

pub(crate) static POD_IP: Table = table("PodIP", &[
    field(1, "ip", Kind::Text),
]);
