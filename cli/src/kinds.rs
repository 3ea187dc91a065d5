//! Which operators act on which kind, and what kinds are called.
//!
//! Left out: kinds that are nobody's but the garbage collector's.

use shared::api::pod::DISRUPTION_TARGET;

use crate::object::Object;

/// Group, kind, and the operators that act on it: the first one keeps it, others do something to it.
const OF_KINDS: &[(&str, &str, &[&str])] = &[
    ("apps", "Deployment", &["deployment-operator"]),
    ("apps", "ReplicaSet", &["replicaset-operator", "deployment-operator"]),
    ("apps", "StatefulSet", &["statefulset-operator"]),
    ("apps", "DaemonSet", &["daemonset-operator"]),
    ("", "ReplicationController", &["replicationcontroller-operator"]),
    ("batch", "Job", &["job-operator", "ttl-after-finished-operator"]),
    ("batch", "CronJob", &["cronjob-operator"]),
    ("", "Pod", &["pod-garbage-collector-operator", "job-operator", "taint-eviction-operator", "disruption-operator"]),
    (
        "",
        "Node",
        &[
            "ttl-operator",
            "pod-garbage-collector-operator",
            "taint-eviction-operator",
            "node-ipam-operator",
            "node-lifecycle-operator",
        ],
    ),
    ("", "Service", &["endpointslice-operator", "endpoints-operator", "endpointslice-mirroring-operator"]),
    ("", "Endpoints", &["endpoints-operator", "endpointslice-mirroring-operator"]),
    ("discovery.k8s.io", "EndpointSlice", &["endpointslice-operator", "endpointslice-mirroring-operator"]),
    ("", "Namespace", &["namespace-operator", "serviceaccount-operator", "root-ca-certificate-publisher-operator"]),
    ("", "ServiceAccount", &["serviceaccount-operator"]),
    ("", "ConfigMap", &["root-ca-certificate-publisher-operator", "bootstrap-signer-operator"]),
    (
        "",
        "Secret",
        &[
            "token-cleaner-operator",
            "bootstrap-signer-operator",
            "legacy-serviceaccount-token-cleaner-operator",
            "serviceaccount-token-operator",
        ],
    ),
    ("autoscaling", "HorizontalPodAutoscaler", &["horizontal-pod-autoscaler-operator"]),
    ("policy", "PodDisruptionBudget", &["disruption-operator"]),
    ("rbac.authorization.k8s.io", "ClusterRole", &["clusterrole-aggregation-operator"]),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &[
            "certificatesigningrequest-approving-operator",
            "certificatesigningrequest-signing-operator",
            "certificatesigningrequest-cleaner-operator",
        ],
    ),
    ("certificates.k8s.io", "PodCertificateRequest", &["podcertificaterequest-cleaner-operator"]),
    ("certificates.k8s.io", "ClusterTrustBundle", &["kube-apiserver-serving-clustertrustbundle-publisher-operator"]),
    ("networking.k8s.io", "ServiceCIDR", &["service-cidr-operator"]),
    ("", "ResourceQuota", &["resourcequota-operator"]),
];

/// Those that keep objects of one name only, and that name.
const ONE_NAME: &[(&str, &str)] = &[
    ("serviceaccount-operator", "default"),
    ("root-ca-certificate-publisher-operator", "kube-root-ca.crt"),
    ("bootstrap-signer-operator", "cluster-info"),
];
/// Kinds of which these look at all, or at those of a type.
const OF_ANY_NAME: [&str; 2] = ["Namespace", "Secret"];
/// Those that look at Secrets of one type only, and that type.
const SECRETS_OF_TYPE: &[(&str, &str)] = &[
    ("token-cleaner-operator", BOOTSTRAP_TOKEN),
    ("bootstrap-signer-operator", BOOTSTRAP_TOKEN),
    (TOKEN_CLEANER, ACCOUNT_TOKEN),
    (TOKEN_MAKER, ACCOUNT_TOKEN),
];
const BOOTSTRAP_TOKEN: &str = "bootstrap.kubernetes.io/token";
const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
const TOKEN_CLEANER: &str = "legacy-serviceaccount-token-cleaner-operator";
const TOKEN_MAKER: &str = "serviceaccount-token-operator";
const BUNDLE_PUBLISHER: &str = "kube-apiserver-serving-clustertrustbundle-publisher-operator";
/// The only signer whose ClusterTrustBundles an operator keeps.
const SERVING_SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// The finalizer by which a pod, whose Job may be gone, is job-operator's.
const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// Kinds that have no status, or one that none or several of kube-controller-manager's controllers write.
const STATUS_SHARED: &[(&str, &str)] = &[
    ("", "Pod"),
    ("", "Node"),
    ("", "Service"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("", "ServiceAccount"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
];

/// The one that deletes what has lost its owner, and lets go what waits for its dependents.
pub const COLLECTOR: &str = "garbage-collector-operator";

/// Those who take finalizers away; what ends with `*` or begins with it stands for all that go on so.
const REMOVERS: &[(&str, &str)] = &[
    ("foregroundDeletion", COLLECTOR),
    ("orphan", COLLECTOR),
    ("kubernetes", "namespace-operator"),
    (JOB_TRACKING, "job-operator"),
    ("kubernetes.io/pvc-protection", "persistentvolumeclaim-protection-controller (once no pod uses the claim)"),
    ("kubernetes.io/pv-protection", "persistentvolume-protection-controller (once no claim is bound to the volume)"),
    ("kubernetes.io/vac-protection", "volumeattributesclass-protection-controller"),
    ("external-provisioner.volume.kubernetes.io/finalizer", "the volume's CSI provisioner"),
    ("external-attacher/*", "the volume's CSI attacher"),
    ("volume.kubernetes.io/*", "kube-controller-manager's volume controllers"),
    ("snapshot.storage.kubernetes.io/*", "the CSI snapshot controller"),
    ("resource.kubernetes.io/delete-protection", "resourceclaim-controller (once no pod uses the claim)"),
    (
        "networking.k8s.io/service-cidr-finalizer",
        "service-cidr-operator (once each address in it is in another ServiceCIDR too)",
    ),
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

/// The operators that have something to say of this object: some of those that act on its kind look at few of that kind.
pub fn operators_about(object: Object<'_>) -> Vec<&'static str> {
    let mut operators = operators_of(object.group(), object.kind());
    operators.retain(|operator| {
        let name = ONE_NAME.iter().find(|(keeper, _)| keeper == operator).map(|(_, name)| *name);
        let is_other = name.is_some_and(|name| !OF_ANY_NAME.contains(&object.kind()) && object.name() != name);
        let is_acted_on = match (object.kind(), *operator) {
            ("Pod", "job-operator") => object.texts("/metadata/finalizers").contains(&JOB_TRACKING),
            ("Pod", "disruption-operator") => object.holds(DISRUPTION_TARGET),
            ("ClusterTrustBundle", BUNDLE_PUBLISHER) => object.text("/spec/signerName") == SERVING_SIGNER,
            ("Secret", operator) => {
                let of_type = SECRETS_OF_TYPE.iter().find(|(of, _)| *of == operator);
                of_type.is_none_or(|(_, secret_type)| object.text("/type") == *secret_type)
            }
            _ => true,
        };
        !is_other && is_acted_on
    });
    operators
}

/// Whether the status of this kind tells nothing of one controller.
pub fn is_status_shared(group: &str, kind: &str) -> bool {
    STATUS_SHARED.contains(&(group, kind))
}

/// Group and kind of the objects whose status this operator writes, and in kube-controller-manager only its controller.
pub fn status_of(operator: &str) -> Option<(&'static str, &'static str)> {
    let kept = OF_KINDS.iter().find(|(_, _, operators)| operators.first() == Some(&operator));
    kept.map(|(group, kind, _)| (*group, *kind)).filter(|(group, kind)| !is_status_shared(group, kind))
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

/// The controller or the people that take this finalizer away.
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
    use serde_json::json;

    use super::*;

    #[test]
    fn who_has_a_key_for_an_object_is_asked_about_it() {
        let row = |api_version: &str, kind: &str, name: &str, finalizer: &str, expected: &[&str]| {
            let metadata = json!({"name": name, "finalizers": [finalizer]});
            // Only of Secrets the type is read; here it is the name.
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "type": name});
            let mut found = operators_about(Object(&object));
            assert_eq!(found.pop(), Some(COLLECTOR));
            assert_eq!(found, expected, "{kind} {name}");
        };
        let (collector, publisher) = ("pod-garbage-collector-operator", "root-ca-certificate-publisher-operator");
        let evicting = "taint-eviction-operator";
        let of_node = ["ttl-operator", collector, evicting, "node-ipam-operator", "node-lifecycle-operator"];
        row("v1", "Node", "n1", "", &of_node);
        row("v1", "Pod", "web", "", &[collector, evicting]);
        row("v1", "Pod", "web", JOB_TRACKING, &[collector, "job-operator", evicting]);
        row("v1", "ConfigMap", "kube-root-ca.crt", "", &[publisher]);
        row("v1", "ConfigMap", "settings", "", &[]);
        row("v1", "ConfigMap", "cluster-info", "", &["bootstrap-signer-operator"]);
        row("v1", "Secret", BOOTSTRAP_TOKEN, "", &["token-cleaner-operator", "bootstrap-signer-operator"]);
        row("v1", "Secret", "Opaque", "", &[]);
        row(
            "v1",
            "Service",
            "web",
            "",
            &["endpointslice-operator", "endpoints-operator", "endpointslice-mirroring-operator"],
        );
        row("v1", "ServiceAccount", "default", "", &["serviceaccount-operator"]);
        row("v1", "ServiceAccount", "robot", "", &[]);
        row("v1", "Namespace", "team", "", &["namespace-operator", "serviceaccount-operator", publisher]);
        row("apps/v1", "Deployment", "web", "", &["deployment-operator"]);
        let scaler = "horizontal-pod-autoscaler-operator";
        row("autoscaling/v2", "HorizontalPodAutoscaler", "web", "", &[scaler]);
        row("rbac.authorization.k8s.io/v1", "ClusterRole", "view", "", &["clusterrole-aggregation-operator"]);
        let (approver, cleaner) =
            ("certificatesigningrequest-approving-operator", "certificatesigningrequest-cleaner-operator");
        let signer = "certificatesigningrequest-signing-operator";
        row("certificates.k8s.io/v1", "CertificateSigningRequest", "node", "", &[approver, signer, cleaner]);
        let cleaner = "podcertificaterequest-cleaner-operator";
        row("certificates.k8s.io/v1beta1", "PodCertificateRequest", "web", "", &[cleaner]);
        row("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", "", &["service-cidr-operator"]);
        row("v1", "ResourceQuota", "team", "", &["resourcequota-operator"]);
        row("v1", "Secret", ACCOUNT_TOKEN, "", &[TOKEN_CLEANER, TOKEN_MAKER]);
        row("batch/v1", "Job", "web", "", &["job-operator", "ttl-after-finished-operator"]);
        row("policy/v1", "PodDisruptionBudget", "web", "", &["disruption-operator"]);
        let bundle = |signer: &str| {
            let object = json!({"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle",
                "spec": {"signerName": signer}});
            operators_about(Object(&object))
        };
        assert_eq!(bundle(SERVING_SIGNER), [BUNDLE_PUBLISHER, COLLECTOR]);
        assert_eq!(bundle("example.com/signer"), [COLLECTOR]);
        let conditions = json!([{"type": DISRUPTION_TARGET, "status": "True"}]);
        let target = json!({"apiVersion": "v1", "kind": "Pod", "status": {"conditions": conditions}});
        let about = [collector, "taint-eviction-operator", "disruption-operator", COLLECTOR];
        assert_eq!(operators_about(Object(&target)), about);
    }

    #[test]
    fn a_status_leads_to_one_controller_or_to_none() {
        assert_eq!(status_of("deployment-operator"), Some(("apps", "Deployment")));
        assert_eq!(status_of("namespace-operator"), Some(("", "Namespace")));
        assert_eq!(status_of("job-operator"), Some(("batch", "Job")));
        assert_eq!(status_of("service-cidr-operator"), Some(("networking.k8s.io", "ServiceCIDR")));
        let autoscalers = Some(("autoscaling", "HorizontalPodAutoscaler"));
        assert_eq!(status_of("horizontal-pod-autoscaler-operator"), autoscalers);
        for others in [
            "pod-garbage-collector-operator",
            "ttl-operator",
            "node-lifecycle-operator",
            "endpointslice-operator",
            "endpoints-operator",
            "endpointslice-mirroring-operator",
            "clusterrole-aggregation-operator",
            "token-cleaner-operator",
            "bootstrap-signer-operator",
            "certificatesigningrequest-approving-operator",
            "certificatesigningrequest-signing-operator",
            "certificatesigningrequest-cleaner-operator",
            "podcertificaterequest-cleaner-operator",
            BUNDLE_PUBLISHER,
            TOKEN_CLEANER,
            TOKEN_MAKER,
            COLLECTOR,
        ] {
            assert_eq!(status_of(others), None, "{others}");
        }
    }

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
