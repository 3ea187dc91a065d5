//! Which operators act on which kind, and what kinds are called.
//!
//! Left out: kinds that are nobody's but the garbage collector's.

/// Group, kind, and the operators that act on it: the first one keeps it, others do something to it.
const OF_KINDS: [(&str, &str, &[&str]); 14] = [
    ("apps", "Deployment", &["deployment-operator"]),
    ("apps", "ReplicaSet", &["replicaset-operator", "deployment-operator"]),
    ("apps", "StatefulSet", &["statefulset-operator"]),
    ("apps", "DaemonSet", &["daemonset-operator"]),
    ("", "ReplicationController", &["replicationcontroller-operator"]),
    ("batch", "Job", &["job-operator", "ttl-after-finished-operator"]),
    ("batch", "CronJob", &["cronjob-operator"]),
    ("", "Pod", &["pod-garbage-collector-operator"]),
    ("", "Service", &["endpointslice-operator"]),
    ("discovery.k8s.io", "EndpointSlice", &["endpointslice-operator"]),
    ("", "Namespace", &["namespace-operator", "serviceaccount-operator", "root-ca-certificate-publisher-operator"]),
    ("", "ServiceAccount", &["serviceaccount-operator"]),
    ("autoscaling", "HorizontalPodAutoscaler", &["horizontal-pod-autoscaler-operator"]),
    ("policy", "PodDisruptionBudget", &["disruption-operator"]),
];

/// The one that deletes what has lost its owner, and lets go what waits for its dependents.
pub const COLLECTOR: &str = "garbage-collector-operator";

/// Those who take finalizers away; what ends with `*` or begins with it stands for all that go on so.
const REMOVERS: [(&str, &str); 30] = [
    ("foregroundDeletion", COLLECTOR),
    ("orphan", COLLECTOR),
    ("kubernetes", "namespace-operator"),
    ("batch.kubernetes.io/job-tracking", "job-operator"),
    ("kubernetes.io/pvc-protection", "persistentvolumeclaim-protection-controller (once no pod uses the claim)"),
    ("kubernetes.io/pv-protection", "persistentvolume-protection-controller (once no claim is bound to the volume)"),
    ("kubernetes.io/vac-protection", "volumeattributesclass-protection-controller"),
    ("external-provisioner.volume.kubernetes.io/finalizer", "the volume's CSI provisioner"),
    ("external-attacher/*", "the volume's CSI attacher"),
    ("volume.kubernetes.io/*", "kube-controller-manager's volume controllers"),
    ("snapshot.storage.kubernetes.io/*", "the CSI snapshot controller"),
    ("resource.kubernetes.io/delete-protection", "resourceclaim-controller (once no pod uses the claim)"),
    ("service.kubernetes.io/load-balancer-cleanup", "the cloud's service-lb-controller"),
    ("customresourcecleanup.apiextensions.k8s.io", "kube-apiserver (once no object of that kind is left)"),
    ("networking.gke.io/*", "GKE's ingress controller"),
    ("ingress.k8s.aws/*", "the AWS load balancer controller"),
    ("elbv2.k8s.aws/*", "the AWS load balancer controller"),
    ("service.k8s.aws/*", "the AWS load balancer controller"),
    ("karpenter.sh/*", "Karpenter"),
    ("resources-finalizer.argocd.argoproj.io*", "Argo CD"),
    ("*.argocd.argoproj.io", "Argo CD"),
    ("finalizers.fluxcd.io", "Flux"),
    ("*cert-manager.io/*", "cert-manager"),
    ("finalizer.acme.cert-manager.io", "cert-manager"),
    ("*.crossplane.io", "Crossplane"),
    ("*.ceph.rook.io*", "Rook"),
    ("*.cattle.io*", "Rancher"),
    ("*.cluster.x-k8s.io*", "Cluster API"),
    ("*.istio.io", "Istio"),
    ("tekton.dev/*", "Tekton"),
];

/// The operators that act on this kind.
pub fn operators_of(group: &str, kind: &str) -> Vec<&'static str> {
    let own = OF_KINDS.iter().find(|(of, name, _)| (*of, *name) == (group, kind));
    let own = own.map_or(&[][..], |(_, _, operators)| operators);
    own.iter().copied().chain([COLLECTOR]).collect()
}

/// The kind that this operator keeps.
pub fn kept_by(operator: &str) -> Option<&'static str> {
    OF_KINDS.iter().find(|(_, _, operators)| operators.first() == Some(&operator)).map(|(_, kind, _)| *kind)
}

/// Whether a plural, with or without its group, is this kind's.
pub fn is_of(kind: &str, resource: &str) -> bool {
    let plural = resource.split('.').next().unwrap_or_default();
    let kind = kind.to_lowercase();
    let of_y = kind.strip_suffix('y').is_some_and(|stem| plural == format!("{stem}ies"));
    plural == kind || plural == format!("{kind}s") || plural == format!("{kind}es") || of_y
}

/// Who takes this finalizer away.
pub fn remover(finalizer: &str) -> String {
    let fits = |pattern: &str| {
        let stem = pattern.trim_matches('*');
        match (pattern.starts_with('*'), pattern.ends_with('*')) {
            (true, true) => finalizer.contains(stem),
            (true, false) => finalizer.ends_with(stem),
            (false, true) => finalizer.starts_with(stem),
            (false, false) => finalizer == stem,
        }
    };
    let known = REMOVERS.iter().find(|(pattern, _)| fits(pattern)).map(|(_, who)| (*who).to_owned());
    let domain = finalizer.split('/').next().unwrap_or_default();
    known.unwrap_or_else(|| format!("whoever put it there ({domain})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizers_lead_to_who_takes_them_away() {
        assert_eq!(
            remover("kubernetes.io/pvc-protection"),
            "persistentvolumeclaim-protection-controller (once no pod uses the claim)"
        );
        assert_eq!(remover("snapshot.storage.kubernetes.io/pvc-as-source-protection"), "the CSI snapshot controller");
        assert_eq!(remover("managed.crossplane.io"), "Crossplane");
        assert_eq!(remover("example.com/hold"), "whoever put it there (example.com)");
    }

    #[test]
    fn plurals_lead_to_kinds() {
        assert!(is_of("NetworkPolicy", "networkpolicies.networking.k8s.io"));
        assert!(is_of("Ingress", "ingresses") && is_of("ReplicaSet", "replicasets.apps") && is_of("Pod", "pods"));
        assert!(!is_of("Pod", "podtemplates"));
    }
}
