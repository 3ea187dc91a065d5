//! Which pods are evicted, when, and what DeviceTaintRules report: upstream's tables, and rules for all pods, claims and slices.

#![expect(clippy::panic, reason = "a plan of another kind is a failed test")]

mod explained;
mod fixtures;
mod pods;
mod properties;
mod rules;
mod views;
