//! Finds the operators' roles by their folders, and writes the table of them that `preflight/roles.rs` includes.
//! Left out: reading them. A test does so with every role.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    // As cargo runs it: a build script that was built elsewhere, such as in a cache, would know another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("cargo gives no folder")?;
    let folder = package.join("../manifests");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("list the manifests")?;
        let (name, role) = (entry.file_name().to_string_lossy().into_owned(), entry.path().join("cluster-role.yaml"));
        if name.ends_with("-operator") && role.is_file() {
            rows.push((name, role));
        }
    }
    rows.sort();
    let mut table = String::new();
    for (name, role) in rows {
        writeln!(table, "    ({name:?}, include_str!({:?})),", role.to_string_lossy())?;
    }
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("cargo gives no OUT_DIR")?;
    fs::write(out.join("roles.rs"), format!("&[\n{table}]\n")).context("write the table of roles")
}
