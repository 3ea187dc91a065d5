//! Checks that need only the text of files: the same rooms, names and manifests for every operator, and the invariants
//! of ARCHITECTURE.md that no lint holds.
//!
//! Each rule is a function from text to complaints, shown to fire in its own table. Left out: rules that a compiler,
//! clippy or an apiserver checks better.

#![cfg(test)]

mod alerts;
mod answers;
mod code;
mod crates;
mod differences;
mod examples;
mod families;
mod imports;
mod lists;
mod memory;
mod operators;
mod pages;
mod threats;
mod tree;
mod upstream;

/// Fails with all complaints at once.
#[track_caller]
fn none(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
