package main

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds are the kinds of which whole objects are read as protobuf.
var kinds = []struct {
	version schema.GroupVersion
	object  reflect.Type
}{
	{corev1.SchemeGroupVersion, reflect.TypeFor[corev1.Pod]()},
	{corev1.SchemeGroupVersion, reflect.TypeFor[metav1.Status]()},
	{metav1.SchemeGroupVersion, reflect.TypeFor[metav1.PartialObjectMetadata]()},
}

// message names the fields of a Go type that views read, as JSON calls them. An inline field has protobuf's name, or Go's.
type message struct {
	object reflect.Type
	fields string
	// absent are fields that a shared view reads for the sake of another type, and that this one does not have.
	absent string
}

func of[T any](fields string) message {
	return message{object: reflect.TypeFor[T](), fields: fields}
}

func (m message) without(absent string) message {
	m.absent = absent
	return m
}

var messages = []message{
	of[runtime.TypeMeta]("apiVersion kind"),
	of[metav1.ListMeta]("resourceVersion continue remainingItemCount"),
	of[metav1.Status]("metadata message reason details code"),
	of[metav1.StatusDetails]("name causes retryAfterSeconds"),
	of[metav1.StatusCause]("reason message field"),
	// A view of whole objects may read metadata alone, and finds no more.
	of[metav1.PartialObjectMetadata]("metadata").without("spec status"),
	of[metav1.ObjectMeta]("name generateName namespace uid resourceVersion generation creationTimestamp " +
		"deletionTimestamp deletionGracePeriodSeconds labels annotations ownerReferences finalizers managedFields"),
	of[metav1.ManagedFieldsEntry]("manager time subresource"),
	of[metav1.OwnerReference]("kind name uid apiVersion controller blockOwnerDeletion"),

	of[corev1.Pod]("metadata spec status"),
	of[corev1.PodSpec]("volumes containers terminationGracePeriodSeconds nodeName hostname subdomain affinity " +
		"initContainers ephemeralContainers securityContext tolerations resourceClaims schedulingGroup"),
	of[corev1.PodSecurityContext]("seLinuxOptions seLinuxChangePolicy"),
	of[corev1.SecurityContext]("seLinuxOptions"),
	of[corev1.SELinuxOptions]("user role type level"),
	of[corev1.Affinity]("nodeAffinity"),
	of[corev1.NodeAffinity]("requiredDuringSchedulingIgnoredDuringExecution"),
	of[corev1.NodeSelector]("nodeSelectorTerms"),
	of[corev1.NodeSelectorTerm]("matchFields"),
	of[corev1.NodeSelectorRequirement]("key operator values"),
	of[corev1.Toleration]("key operator value effect tolerationSeconds"),
	of[corev1.PodResourceClaim]("name resourceClaimName resourceClaimTemplateName"),
	of[corev1.PodSchedulingGroup]("podGroupName"),
	of[corev1.Volume]("name volumeSource"),
	of[corev1.VolumeSource]("persistentVolumeClaim ephemeral iscsi fc awsElasticBlockStore azureDisk azureFile cinder " +
		"gcePersistentDisk portworxVolume vsphereVolume"),
	of[corev1.PersistentVolumeClaimVolumeSource]("claimName"),
	of[corev1.EphemeralVolumeSource](""),
	of[corev1.ISCSIVolumeSource]("targetPortal iqn lun"),
	of[corev1.FCVolumeSource]("targetWWNs lun wwids"),
	of[corev1.AWSElasticBlockStoreVolumeSource]("volumeID fsType partition readOnly"),
	of[corev1.AzureDiskVolumeSource]("diskURI cachingMode fsType readOnly kind"),
	of[corev1.AzureFileVolumeSource]("secretName shareName readOnly").without("secretNamespace"),
	of[corev1.CinderVolumeSource]("volumeID fsType readOnly"),
	of[corev1.GCEPersistentDiskVolumeSource]("pdName fsType partition readOnly"),
	of[corev1.PortworxVolumeSource]("volumeID fsType readOnly"),
	of[corev1.VsphereVirtualDiskVolumeSource]("volumePath fsType storagePolicyName"),
	of[corev1.Container]("name ports restartPolicy volumeMounts securityContext"),
	of[corev1.EphemeralContainer]("EphemeralContainerCommon"),
	of[corev1.EphemeralContainerCommon]("volumeMounts securityContext"),
	of[corev1.VolumeMount]("name"),
	of[corev1.ContainerPort]("name containerPort protocol"),
	of[corev1.PodStatus]("phase conditions message reason podIP startTime containerStatuses initContainerStatuses podIPs " +
		"ephemeralContainerStatuses resourceClaimStatuses extendedResourceClaimStatus"),
	of[corev1.PodResourceClaimStatus]("name resourceClaimName"),
	of[corev1.PodExtendedResourceClaimStatus]("resourceClaimName"),
	of[corev1.PodCondition]("type status lastTransitionTime reason message").without("lastUpdateTime"),
	of[corev1.ContainerStatus]("name state restartCount"),
	of[corev1.ContainerState]("waiting terminated"),
	of[corev1.ContainerStateWaiting](""),
	of[corev1.ContainerStateTerminated]("exitCode finishedAt"),
	of[corev1.PodIP]("ip"),
}
