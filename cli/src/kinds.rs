//! Which operators act on which kind, and what kinds are called.
//!
//! Left out: kinds that only the garbage collector acts on.

use facts::{ALL, Acts, Which};

use crate::object::Object;

/// The one that deletes what has lost its owner, and lets go what waits for its dependents.
pub const COLLECTOR: &str = "garbage-collector-operator";

/// Who removes the finalizers that no operator removes; a `*` at the end or the beginning stands for any text.
const REMOVERS: &[(&str, &str)] = &[
    ("external-provisioner.volume.kubernetes.io/finalizer", "the volume's CSI provisioner"),
    ("external-attacher/*", "the volume's CSI attacher"),
    ("volume.kubernetes.io/*", "kube-controller-manager's volume controllers"),
    ("snapshot.storage.kubernetes.io/*", "the CSI snapshot controller"),
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

/// The operators that act on this kind, each with the objects of it: first the one that keeps it, last the collector.
fn acting_on(group: &str, kind: &str) -> Vec<(&'static str, &'static Acts)> {
    let of = |acts: &&Acts| (acts.group, acts.kind) == (group, kind) || acts.kind == "*";
    let rows = ALL.iter().flat_map(|facts| facts.acts_on.iter().map(move |acts| (facts.names.operator, acts)));
    let mut found: Vec<_> = rows.filter(|(_, acts)| of(acts)).collect();
    found.sort_by_key(|(_, acts)| (acts.kind == "*", !acts.keeps));
    found
}

pub fn operators_of(group: &str, kind: &str) -> Vec<&'static str> {
    acting_on(group, kind).into_iter().map(|(operator, _)| operator).collect()
}

pub fn operators_about(object: Object<'_>) -> Vec<&'static str> {
    let acts_on_it = |acts: &Acts| match acts.which {
        Which::All => true,
        Which::WithText(pointer, text) => object.text(pointer) == text,
        Which::WithFinalizer(finalizer) => object.texts("/metadata/finalizers").contains(&finalizer),
        Which::WithCondition(condition) => object.holds(condition),
    };
    let of_kind = acting_on(object.group(), object.kind()).into_iter();
    of_kind.filter(|(_, acts)| acts_on_it(acts)).map(|(operator, _)| operator).collect()
}

/// Whether a write of this kind's status could come from several controllers of kube-controller-manager.
pub fn is_status_shared(group: &str, kind: &str) -> bool {
    let keeper = acting_on(group, kind).into_iter().find(|(_, acts)| acts.keeps);
    keeper.is_some_and(|(_, acts)| !acts.own_status)
}

/// Group and kind of the objects whose status this operator writes, and in kube-controller-manager only its controller.
pub fn status_of(operator: &str) -> Option<(&'static str, &'static str)> {
    let own = facts::of(operator)?.acts_on.iter().find(|acts| acts.own_status);
    own.map(|acts| (acts.group, acts.kind))
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
    let removed = ALL.iter().flat_map(|facts| facts.finalizers.iter().map(move |own| (facts.names.operator, own)));
    let ours = removed.filter(|(_, own)| own.name == finalizer).map(|(operator, own)| match own.once {
        "" => operator.to_owned(),
        once => format!("{operator} ({once})"),
    });
    let others = REMOVERS.iter().filter(|(pattern, _)| fits(pattern)).map(|(_, who)| (*who).to_owned());
    let domain = finalizer.split('/').next().unwrap_or_default();
    ours.chain(others).next().unwrap_or_else(|| format!("whoever put it there ({domain})"))
}

/// The operators that have a key for each Node.
#[cfg(test)]
pub(crate) const OF_NODE: [&str; 9] = [
    "ttl-operator",
    "cloud-node-lifecycle-operator",
    "cloud-node-operator",
    "node-ipam-operator",
    "node-lifecycle-operator",
    "node-route-operator",
    "persistentvolume-attach-detach-operator",
    "pod-garbage-collector-operator",
    "taint-eviction-operator",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use shared::api::pod::DISRUPTION_TARGET;

    use super::*;

    const BOOTSTRAP_TOKEN: &str = "bootstrap.kubernetes.io/token";
    const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
    const TOKEN_CLEANER: &str = "legacy-serviceaccount-token-cleaner-operator";
    const TOKEN_MAKER: &str = "serviceaccount-token-operator";
    const BUNDLE_PUBLISHER: &str = "kube-apiserver-serving-clustertrustbundle-publisher-operator";
    const SERVING_SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
    const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";

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
        let (evicting, creating) = ("taint-eviction-operator", "ephemeral-volume-operator");
        let (claiming, warning) = ("resourceclaim-operator", "selinux-warning-operator");
        let (attaching, tainting) = ("persistentvolume-attach-detach-operator", "device-taint-eviction-operator");
        row("v1", "Node", "n1", "", &OF_NODE);
        row("v1", "Pod", "web", "", &[collector, tainting, creating, attaching, claiming, warning, evicting]);
        row(
            "v1",
            "Pod",
            "web",
            JOB_TRACKING,
            &[collector, tainting, creating, "job-operator", attaching, claiming, warning, evicting],
        );
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
        row("v1", "Namespace", "team", "", &["namespace-operator", publisher, "serviceaccount-operator"]);
        row("apps/v1", "Deployment", "web", "", &["deployment-operator"]);
        let scaler = "horizontal-pod-autoscaler-operator";
        row("autoscaling/v2", "HorizontalPodAutoscaler", "web", "", &[scaler]);
        row("rbac.authorization.k8s.io/v1", "ClusterRole", "view", "", &["clusterrole-aggregation-operator"]);
        let (approver, cleaner) =
            ("certificatesigningrequest-approving-operator", "certificatesigningrequest-cleaner-operator");
        let signer = "certificatesigningrequest-signing-operator";
        row("certificates.k8s.io/v1", "CertificateSigningRequest", "node", "", &[approver, cleaner, signer]);
        let cleaner = "podcertificaterequest-cleaner-operator";
        row("certificates.k8s.io/v1beta1", "PodCertificateRequest", "web", "", &[cleaner]);
        row("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", "", &["service-cidr-operator"]);
        let checker = "validatingadmissionpolicy-status-operator";
        row("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "typed", "", &[checker]);
        row("v1", "ResourceQuota", "team", "", &["resourcequota-operator"]);
        row("v1", "Secret", ACCOUNT_TOKEN, "", &[TOKEN_CLEANER, TOKEN_MAKER]);
        row("batch/v1", "Job", "web", "", &["job-operator", "ttl-after-finished-operator"]);
        row("policy/v1", "PodDisruptionBudget", "web", "", &["disruption-operator"]);
        row("resource.k8s.io/v1", "ResourceClaim", "gpu", "", &[claiming]);
        let bundle = |signer: &str| {
            let object = json!({"apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle",
                "spec": {"signerName": signer}});
            operators_about(Object(&object))
        };
        assert_eq!(bundle(SERVING_SIGNER), [BUNDLE_PUBLISHER, COLLECTOR]);
        assert_eq!(bundle("example.com/signer"), [COLLECTOR]);
        let conditions = json!([{"type": DISRUPTION_TARGET, "status": "True"}]);
        let target = json!({"apiVersion": "v1", "kind": "Pod", "status": {"conditions": conditions}});
        let about =
            [collector, tainting, "disruption-operator", creating, attaching, claiming, warning, evicting, COLLECTOR];
        assert_eq!(operators_about(Object(&target)), about);
    }

    #[test]
    fn no_kind_has_two_keepers() {
        let kept = || ALL.iter().flat_map(|facts| facts.acts_on).filter(|acts| acts.keeps);
        let kinds: BTreeSet<(&str, &str)> = kept().map(|acts| (acts.group, acts.kind)).collect();
        assert_eq!(kinds.len(), kept().count());
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
            "persistentvolumeclaim-protection-operator (once no pod uses the claim)"
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
