//! What upstream calls its controllers, in three ways that disagree.
//!
//! Sources: cmd/kube-controller-manager/names/controller_names.go; for events `EventSource` in each controller's
//! constructor; for queues the names in the same place, as the metrics show them.

/// One controller of kube-controller-manager.
pub(crate) struct Controller {
    /// Its canonical name.
    pub(crate) name: &'static str,
    /// The component its events come from.
    pub(crate) event_source: &'static str,
    /// Its work queues.
    pub(crate) queues: &'static [&'static str],
}

const fn row(name: &'static str, event_source: &'static str, queues: &'static [&'static str]) -> Controller {
    Controller { name, event_source, queues }
}

/// The controllers that have been looked up; one more with each operator.
pub(crate) const CONTROLLERS: &[Controller] = &[
    row("cronjob-controller", "cronjob-controller", &["cronjob"]),
    row("daemonset-controller", "daemonset-controller", &["daemonset", "daemonset-node-updates"]),
    row("deployment-controller", "deployment-controller", &["deployment"]),
    // Upstream's other two, of pods and of nodes, have no names.
    row("endpointslice-controller", "endpoint-slice-controller", &["endpoint_slice"]),
    row(
        "garbage-collector-controller",
        "garbage-collector-controller",
        // Upstream's third one, of graph changes, is a lock here.
        &["garbage_collector_attempt_to_delete", "garbage_collector_attempt_to_orphan"],
    ),
    row("job-controller", "job-controller", &["job", "job_orphan_pod"]),
    row("namespace-controller", "namespace-controller", &["namespace"]),
    // Three that tell nobody anything have no event source upstream; it is needed for the election.
    row("pod-garbage-collector-controller", "pod-garbage-collector-controller", &["orphaned_pods_nodes"]),
    row("replicaset-controller", "replicaset-controller", &["replicaset"]),
    row("replicationcontroller-controller", "replication-controller", &["replicationmanager"]),
    row(
        "root-ca-certificate-publisher-controller",
        "root-ca-certificate-publisher-controller",
        &["root_ca_cert_publisher"],
    ),
    row("serviceaccount-controller", "serviceaccount-controller", &["serviceaccount"]),
    row("statefulset-controller", "statefulset-controller", &["statefulset"]),
    row("ttl-after-finished-controller", "ttl-after-finished-controller", &["ttl_jobs_to_delete"]),
];
