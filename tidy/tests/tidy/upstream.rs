//! Upstream's names of its controllers, in three ways that disagree: all that kube-controller-manager
//! v1.36.3 has, and `cloud-node-controller`, which the cloud-controller-manager alone has.
//!
//! Upstream: `cmd/kube-controller-manager/names/controller_names.go` and, for a cloud's, `k8s.io/cloud-provider/names`;
//! for events `EventSource` in each controller's constructor; for queues the names in the same place, as the metrics show
//! them. Left out: queues without a name, which no metric shows.

/// One controller of kube-controller-manager.
pub(crate) struct Controller {
    /// Its canonical name.
    pub(crate) name: &'static str,
    /// The component its events come from. A controller that tells nobody anything has none upstream; here it is its name,
    /// which the election needs.
    pub(crate) event_source: &'static str,
    /// Its work queues.
    pub(crate) queues: &'static [&'static str],
}

/// A controller whose events come from its canonical name.
const fn row(name: &'static str, queues: &'static [&'static str]) -> Controller {
    Controller { name, event_source: name, queues }
}

/// A controller whose events come from elsewhere.
const fn from(name: &'static str, event_source: &'static str, queues: &'static [&'static str]) -> Controller {
    Controller { name, event_source, queues }
}

/// All of them.
pub(crate) const CONTROLLERS: &[Controller] = &[
    row("bootstrap-signer-controller", &["bootstrap_signer_queue"]),
    row("certificatesigningrequest-approving-controller", &["certificate"]),
    row("certificatesigningrequest-cleaner-controller", &[]),
    row("certificatesigningrequest-signing-controller", &["certificate"]),
    row("cloud-node-lifecycle-controller", &[]),
    row("clusterrole-aggregation-controller", &["ClusterRoleAggregator"]),
    row("cronjob-controller", &["cronjob"]),
    row("daemonset-controller", &["daemonset", "daemonset-node-updates"]),
    row("deployment-controller", &["deployment"]),
    row("device-taint-eviction-controller", &["device-taint-eviction-controller"]),
    from("disruption-controller", "controllermanager", &["disruption", "disruption_recheck", "stale_pod_disruption"]),
    from("endpoints-controller", "endpoint-controller", &["endpoint"]),
    // Its other two, of pods and of nodes, have no names.
    from("endpointslice-controller", "endpoint-slice-controller", &["endpoint_slice"]),
    from("endpointslice-mirroring-controller", "endpoint-slice-mirroring-controller", &["endpoint_slice_mirroring"]),
    from("ephemeral-volume-controller", "ephemeral_volume", &["ephemeral_volume"]),
    row(
        "garbage-collector-controller",
        &[
            "garbage_collector_attempt_to_delete",
            "garbage_collector_attempt_to_orphan",
            "garbage_collector_graph_changes",
        ],
    ),
    from("horizontal-pod-autoscaler-controller", "horizontal-pod-autoscaler", &["horizontalpodautoscaler"]),
    row("job-controller", &["job", "job_orphan_pod"]),
    row("kube-apiserver-serving-clustertrustbundle-publisher-controller", &["ca_cert_publisher_cluster_trust_bundles"]),
    row("legacy-serviceaccount-token-cleaner-controller", &[]),
    row("namespace-controller", &["namespace"]),
    from("node-ipam-controller", "cidrAllocator", &["cidrallocator_node"]),
    from(
        "node-lifecycle-controller",
        "node-controller",
        &["node_lifecycle_controller", "node_lifecycle_controller_pods"],
    ),
    from("node-route-controller", "route_controller", &["Routes"]),
    from("persistentvolume-attach-detach-controller", "attachdetach-controller", &["pvcs"]),
    from("persistentvolume-binder-controller", "persistentvolume-controller", &["claims", "volumes"]),
    from("persistentvolume-expander-controller", "volume_expand", &["volume_expand"]),
    row("persistentvolume-protection-controller", &["pvprotection"]),
    row("persistentvolumeclaim-protection-controller", &["pvcprotection"]),
    row("pod-garbage-collector-controller", &["orphaned_pods_nodes"]),
    row("podcertificaterequest-cleaner-controller", &[]),
    row("podgroup-protection-controller", &["podgroupprotection"]),
    row("replicaset-controller", &["replicaset"]),
    from("replicationcontroller-controller", "replication-controller", &["replicationmanager"]),
    from("resourceclaim-controller", "resource_claim", &["resource_claim"]),
    row("resourcepoolstatusrequest-controller", &[]),
    row(
        "resourcequota-controller",
        &["resourcequota_primary", "resourcequota_priority", "resource_quota_controller_resource_changes"],
    ),
    row("root-ca-certificate-publisher-controller", &["root_ca_cert_publisher"]),
    from("selinux-warning-controller", "selinux_warning", &["selinux_warning"]),
    row("service-cidr-controller", &["ipaddresses"]),
    from("service-lb-controller", "service-controller", &["service", "node"]),
    row("serviceaccount-controller", &["serviceaccount"]),
    // Two queues of one name.
    row("serviceaccount-token-controller", &["serviceaccount_tokens_service"]),
    row("statefulset-controller", &["statefulset"]),
    row("storage-version-migrator-controller", &["storage-version-migrator-controller", "resource-version-controller"]),
    row(
        "storageversion-garbage-collector-controller",
        &["storage_version_garbage_collector_leases", "storage_version_garbage_collector_storageversions"],
    ),
    row("taint-eviction-controller", &["noexec_taint_node", "noexec_taint_pod"]),
    row("token-cleaner-controller", &["token_cleaner"]),
    row("ttl-after-finished-controller", &["ttl_jobs_to_delete"]),
    row("ttl-controller", &["ttlcontroller"]),
    row("validatingadmissionpolicy-status-controller", &["validatingadmissionpolicy-status"]),
    row("volumeattributesclass-protection-controller", &["vacprotection"]),
    // Not of kube-controller-manager. It is the last one, so that the others keep their ports.
    row("cloud-node-controller", &["Nodes"]),
];

/// The plugin and the one process have lists of their own, as they know no test.
#[test]
fn the_plugin_and_the_one_process_know_every_controller() {
    let names: Vec<&str> = CONTROLLERS.iter().map(|controller| controller.name).collect();
    for (path, starts) in [
        ("cli/src/controllers.rs", &["(\""][..]),
        ("all-in-one/src/command_line/controllers.rs", &["row(\"", "newer(\""]),
    ] {
        let list = crate::tree::read(path);
        let rows = list.lines().filter_map(|line| starts.iter().find_map(|start| line.trim().strip_prefix(start)));
        let known: Vec<&str> = rows.filter_map(|row| row.split('"').next()).collect();
        assert_eq!(known, names, "{path}");
    }
}

#[test]
fn all_of_upstreams_controllers_are_here_once() {
    let names: std::collections::BTreeSet<&str> = CONTROLLERS.iter().map(|controller| controller.name).collect();
    assert_eq!((names.len(), CONTROLLERS.len()), (53, 53));
}
