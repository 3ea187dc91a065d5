//! A cluster to test against: a local one made of real parts (etcd, kube-apiserver, kube-scheduler and, for nodes and pods,
//! kwok) as processes of this machine, or one that is already there. kube-controller-manager is one of the parts only where
//! somebody asks for it: to hand over to or from it, or to be measured beside.
//! Left out: containers, kubelets, networking between pods. What needs them belongs to a kind cluster.

mod backup;
pub(crate) mod flags;
mod local;
mod nodes;
pub(crate) mod options;
mod parts;
mod run_dir;
mod start;

pub use flags::CLOUD_ENDPOINT;
pub use local::{Cluster, ClusterKind};
pub use nodes::kubelet;
pub use options::{ClusterOptions, ControllerManager, Manager, pod_group_version};
pub use parts::Part;
