//! The e2e suite: what a person does with kubectl, and what must then be true, on a real apiserver with the operators at
//! work under their own accounts and roles.
//!
//! Most tests share one cluster, each in a namespace of its own; those that stop or replace something start a cluster for
//! themselves. With `E2E_EXTERNAL` set the cluster of `KUBECONFIG` is used, with the operators installed there, and tests
//! that need a cluster of their own pass over it. With `E2E_ONE_PROCESS` set the shared cluster has all
//! controllers in one process, and elsewhere each operator runs as the one process does, as its only controller.
//! Left out: what tables over plans can show, and what needs kubelets.

#![cfg(test)]

mod alerts;
mod autoscaling;
mod bad_input;
mod batch;
mod chart;
mod clouds;
mod cluster;
mod cold;
mod deployment;
mod disruption;
mod endpoints;
mod endpointslice;
mod explain;
mod faults;
mod install;
mod leader;
mod mirroring;
mod nodes;
mod policies;
mod preflight;
mod privilege;
mod quota;
mod ranges;
mod rendered;
mod replicas;
mod shadow;
mod side_by_side;
mod stateful_set;
mod status;
mod support;
mod takeover;
mod templates;
mod traces;
mod upgrade;
mod why;
