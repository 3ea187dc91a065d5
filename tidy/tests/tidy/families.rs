//! The families whose controllers share a process in `manifests/groups`.

/// The families, and upstream's controllers in each. What is about objects of all kinds is with the workloads.
pub(crate) const FAMILIES: [(&str, &[&str]); 7] = [
    (
        "workloads",
        &[
            "daemonset-controller",
            "deployment-controller",
            "disruption-controller",
            "garbage-collector-controller",
            "horizontal-pod-autoscaler-controller",
            "namespace-controller",
            "podgroup-protection-controller",
            "replicaset-controller",
            "replicationcontroller-controller",
            "resourcequota-controller",
            "statefulset-controller",
            "storage-version-migrator-controller",
            "storageversion-garbage-collector-controller",
            "validatingadmissionpolicy-status-controller",
        ],
    ),
    ("batch", &["cronjob-controller", "job-controller", "ttl-after-finished-controller"]),
    (
        "network",
        &[
            "endpoints-controller",
            "endpointslice-controller",
            "endpointslice-mirroring-controller",
            "service-cidr-controller",
        ],
    ),
    (
        "nodes",
        &[
            "device-taint-eviction-controller",
            "node-ipam-controller",
            "node-lifecycle-controller",
            "pod-garbage-collector-controller",
            "resourceclaim-controller",
            "resourcepoolstatusrequest-controller",
            "taint-eviction-controller",
            "ttl-controller",
        ],
    ),
    (
        "identity",
        &[
            "bootstrap-signer-controller",
            "certificatesigningrequest-approving-controller",
            "certificatesigningrequest-cleaner-controller",
            "certificatesigningrequest-signing-controller",
            "clusterrole-aggregation-controller",
            "kube-apiserver-serving-clustertrustbundle-publisher-controller",
            "legacy-serviceaccount-token-cleaner-controller",
            "podcertificaterequest-cleaner-controller",
            "root-ca-certificate-publisher-controller",
            "serviceaccount-controller",
            "serviceaccount-token-controller",
            "token-cleaner-controller",
        ],
    ),
    (
        "storage",
        &[
            "ephemeral-volume-controller",
            "persistentvolume-attach-detach-controller",
            "persistentvolume-binder-controller",
            "persistentvolume-expander-controller",
            "persistentvolume-protection-controller",
            "persistentvolumeclaim-protection-controller",
            "selinux-warning-controller",
            "volumeattributesclass-protection-controller",
        ],
    ),
    (
        "cloud",
        &["cloud-node-controller", "cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"],
    ),
];

#[test]
fn every_controller_is_in_one_family() {
    let mut all: Vec<&str> = FAMILIES.iter().flat_map(|(_, controllers)| *controllers).copied().collect();
    all.sort_unstable();
    let mut expected: Vec<&str> = crate::upstream::CONTROLLERS.iter().map(|controller| controller.name).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);
}
