//! Flags without which a controller does nothing on a local cluster, whether kube-controller-manager runs it or an operator.

use std::path::Path;

/// The flags without which no node gets a CIDR, neither from kube-controller-manager nor from the operator. A block has
/// an address for every pod of a node, because kwok goes on counting past its end, and none that kwok gives to pods of
/// nodes without a CIDR (`e2e/kwok/config.yaml`).
pub(crate) const NODE_CIDR_FLAGS: [&str; 4] = [
    "--allocate-node-cidrs=true",
    "--cluster-cidr=10.64.0.0/10",
    "--node-cidr-mask-size=20",
    "--service-cluster-ip-range=10.0.0.0/16",
];

/// The flags without which nothing is signed, neither by kube-controller-manager nor by the operator: the files of the
/// cluster's CA, which are in the folder `pki`.
pub(crate) fn signing_flags(pki: &Path) -> [String; 2] {
    [("cert", "ca.crt"), ("key", "ca.key")]
        .map(|(name, file)| format!("--cluster-signing-{name}-file={}", pki.join(file).display()))
}

/// The flags without which an autoscaler is looked at so seldom, and scales down so late, that no test could wait for
/// it; for kube-controller-manager and for the operator.
pub(crate) const AUTOSCALING_FLAGS: [&str; 2] =
    ["--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=3s"];
