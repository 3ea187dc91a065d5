//! The command lines of installers, with nothing changed but the program.

use super::*;

/// What kubeadm v1.36.3 writes for `networking.podSubnet: 10.244.0.0/16`, by its own Go code.
const KUBEADM: &str = include_str!("kubeadm.yaml");

/// The flags in the command of a static pod.
fn of_pod(manifest: &str) -> String {
    let lines = manifest.lines().filter_map(|line| line.trim_start().strip_prefix("- --"));
    lines.map(|flag| format!("--{flag}")).collect::<Vec<_>>().join(" ")
}

/// kubeadm's flags without those that begin so, and with others.
///
/// Upstream: `getControllerManagerCommand`, `cmd/kubeadm/app/phases/controlplane/manifests.go`.
fn kubeadm(without: &[&str], with: &str) -> Several {
    let flags = of_pod(KUBEADM);
    let kept = flags.split_whitespace().filter(|flag| !without.iter().any(|start| flag.starts_with(start)));
    read(&format!("{} {with}", kept.collect::<Vec<_>>().join(" "))).unwrap()
}

fn line_of<'a>(lines: &'a [String], operator: &str) -> Option<&'a str> {
    lines.iter().map(String::as_str).find(|line| line.starts_with(&format!("{operator} ")))
}

fn running_of(configuration: &Several) -> Vec<&'static str> {
    configuration.controllers.iter().map(|start| start.entry.names.operator).collect()
}

/// All that kubeadm turns on: all that need no gate, and of those that run only by name all but one.
fn kubeadms() -> Vec<&'static str> {
    all_but(&[&GATED[..], &["selinux-warning-operator"]].concat())
}

/// As the operator's own parser has it.
fn node_cidrs(configuration: &Several) -> usize {
    use ::node_ipam_operator::flags::Flags;
    let start =
        configuration.controllers.iter().find(|start| start.entry.names.operator == "node-ipam-operator").unwrap();
    let args = std::iter::once(OsString::from("operators")).chain(start.args.iter().cloned());
    flags::parse::<Flags>("node-ipam-operator", args).unwrap().own.0.map_or(0, |sets| sets.len())
}

#[test]
fn kubeadms_manifest_works_unchanged() {
    let configuration = kubeadm(&[], "");
    assert_eq!(running_of(&configuration), kubeadms());
    assert!(configuration.own_credentials);
    let SharedFlags { leader, serving, .. } = &configuration.shared;
    assert_eq!(configuration.shared.kubeconfig(), Some(Path::new("/etc/kubernetes/controller-manager.conf")));
    assert_eq!((serving.bind_address.to_string(), serving.secure_port), ("127.0.0.1".to_owned(), 10257));
    assert_eq!((leader.leader_elect, leader.leader_elect_resource_name.as_str()), (true, "kube-controller-manager"));
    assert_eq!(
        passed(&configuration),
        [
            "certificatesigningrequest-signing-operator --cluster-signing-cert-file=/etc/kubernetes/pki/ca.crt \
             --cluster-signing-key-file=/etc/kubernetes/pki/ca.key",
            "node-ipam-operator --allocate-node-cidrs=true --cluster-cidr=10.244.0.0/16 \
             --service-cluster-ip-range=10.96.0.0/12",
            "root-ca-certificate-publisher-operator --root-ca-file=/etc/kubernetes/pki/ca.crt",
            "serviceaccount-token-operator --service-account-private-key-file=/etc/kubernetes/pki/sa.key \
             --root-ca-file=/etc/kubernetes/pki/ca.crt",
        ]
    );
    let notes: Vec<&str> = configuration.notes.iter().map(String::as_str).collect();
    assert_eq!(
        notes,
        [
            "--authentication-kubeconfig, --authorization-kubeconfig have no effect: token and access reviews use the \
             credentials of --kubeconfig",
            "--client-ca-file, --requestheader-client-ca-file have no effect: requests authenticate with bearer \
             tokens, not with client certificates or proxy headers",
        ]
    );
    assert_eq!(node_cidrs(&configuration), 1);
}

#[test]
fn kubeadms_other_manifests_work_unchanged() {
    let no_pod_subnet = kubeadm(&["--allocate-node-cidrs", "--cluster-cidr", "--service-cluster-ip-range"], "");
    assert_eq!(line_of(&passed(&no_pod_subnet), "node-ipam-operator"), None);
    assert_eq!(node_cidrs(&no_pod_subnet), 0);

    let external_ca = kubeadm(&["--cluster-signing-"], "--cluster-signing-cert-file= --cluster-signing-key-file=");
    assert_eq!(
        line_of(&passed(&external_ca), "certificatesigningrequest-signing-operator"),
        Some("certificatesigningrequest-signing-operator --cluster-signing-cert-file= --cluster-signing-key-file=")
    );

    let dual_stack = kubeadm(
        &["--cluster-cidr", "--service-cluster-ip-range"],
        "--cluster-cidr=10.244.0.0/16,2001:db8:42:0::/56 --service-cluster-ip-range=10.96.0.0/16,2001:db8:42:1::/112 \
         --node-cidr-mask-size-ipv4=24 --node-cidr-mask-size-ipv6=64",
    );
    assert_eq!(node_cidrs(&dual_stack), 2);
}

/// Upstream: `pkg/cluster/internal/kubeadm/config.go`, sigs.k8s.io/kind v0.33.0.
#[test]
fn kinds_manifest_works_unchanged() {
    let ipv4 = kubeadm(&["--cluster-name"], "--cluster-name=kind --enable-hostpath-provisioner=true");
    assert_eq!(passed(&ipv4), passed(&kubeadm(&[], "")));
    assert_eq!(
        ipv4.notes.last().map(String::as_str),
        Some("--enable-hostpath-provisioner has no effect: no folder is provisioned as a volume")
    );
    let ipv6 = kubeadm(
        &["--bind-address", "--cluster-cidr", "--service-cluster-ip-range"],
        "--bind-address=:: --cluster-cidr=fd00:10:244::/56 --service-cluster-ip-range=fd00:10:96::/112 \
         --enable-hostpath-provisioner=true --feature-gates=ClusterTrustBundle=true,HPAScaleToZero=true",
    );
    assert_eq!(ipv6.shared.serving.bind_address.to_string(), "::");
    assert_eq!(node_cidrs(&ipv6), 1);
    assert_eq!(ipv6.controllers.len(), ipv4.controllers.len() + 1);
}

/// `controllerManager.extraArgs` of the templates of infrastructure providers: AWS, Azure, and Giant Swarm's.
#[test]
fn cluster_apis_manifests_work_unchanged() {
    for extra in [
        "--cloud-provider=external",
        "--cloud-provider=external --allocate-node-cidrs=false --cluster-name=a --v=4",
        "--cloud-provider=external --cloud-config=/etc/kubernetes/azure.json --external-cloud-volume-plugin=azure \
         --configure-cloud-routes=false --profiling=false --tls-min-version=VersionTLS12",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics --bind-address=0.0.0.0 \
         --terminated-pod-gc-threshold=125 --feature-gates=CPUManagerPolicyAlphaOptions=true",
    ] {
        let given: Vec<&str> =
            extra.split_whitespace().filter_map(|flag| flag.split_once('=')).map(|(name, _)| name).collect();
        let configuration = kubeadm(&given, extra);
        assert_eq!(running_of(&configuration), kubeadms(), "{extra}");
        let threshold = line_of(&passed(&configuration), "pod-garbage-collector-operator").map(str::to_owned);
        let expected = "pod-garbage-collector-operator --terminated-pod-gc-threshold=125";
        assert_eq!(threshold, extra.contains("125").then(|| expected.to_owned()), "{extra}");
    }
}

/// Upstream: `controllerManager`, `pkg/daemons/control/server.go`, github.com/k3s-io/k3s.
#[test]
fn k3ss_command_line_works_unchanged() {
    let (tls, config) = ("/var/lib/rancher/k3s/server/tls", "/var/lib/rancher/k3s/server/cred/controller.kubeconfig");
    let configuration = read(&format!(
        "--allocate-node-cidrs=true --authentication-kubeconfig={config} --authorization-kubeconfig={config} \
         --bind-address=127.0.0.1 --cluster-cidr=10.42.0.0/16 \
         --cluster-signing-kube-apiserver-client-cert-file={tls}/client-ca.nochain.crt \
         --cluster-signing-kube-apiserver-client-key-file={tls}/client-ca.key \
         --cluster-signing-kubelet-client-cert-file={tls}/client-ca.nochain.crt \
         --cluster-signing-kubelet-client-key-file={tls}/client-ca.key \
         --cluster-signing-kubelet-serving-cert-file={tls}/server-ca.nochain.crt \
         --cluster-signing-kubelet-serving-key-file={tls}/server-ca.key \
         --cluster-signing-legacy-unknown-cert-file={tls}/server-ca.nochain.crt \
         --cluster-signing-legacy-unknown-key-file={tls}/server-ca.key --configure-cloud-routes=false \
         --controllers=*,tokencleaner,-service,-route,-cloud-node-lifecycle --kubeconfig={config} \
         --leader-elect=false --profiling=false --root-ca-file={tls}/server-ca.crt --secure-port=10257 \
         --service-account-private-key-file={tls}/service.current.key --service-cluster-ip-range=10.43.0.0/16 \
         --tls-cert-file={tls}/kube-controller-manager/kube-controller-manager.crt \
         --tls-private-key-file={tls}/kube-controller-manager/kube-controller-manager.key \
         --use-service-account-credentials=true --v=2 --vmodule=controller=4"
    ))
    .unwrap();
    let left_out = [&GATED[..], &["bootstrap-signer-operator", "selinux-warning-operator"]].concat();
    assert_eq!(running_of(&configuration), all_but(&left_out));
    assert!(!configuration.shared.leader.leader_elect && configuration.own_credentials);
    assert!(configuration.shared.serving.certificate().is_some());
    let passed = passed(&configuration);
    let signing = line_of(&passed, "certificatesigningrequest-signing-operator").unwrap();
    assert_eq!(signing.matches("--cluster-signing-").count(), 8, "{signing}");
    assert_eq!(node_cidrs(&configuration), 1);
}
