//! The local cluster, the e2e suite, the fault proxy and the benchmark against kube-controller-manager.

pub mod rbac;
