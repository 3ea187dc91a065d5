//! Writes the table of the operators' roles that `preflight/roles.rs` includes.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// An operator has one of these files.
const RIGHTS: [&str; 2] = ["cluster-role.yaml", "roles.yaml"];

fn main() -> Result<()> {
    // Read at run time: a build script from a cache was compiled in another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("CARGO_MANIFEST_DIR is not set")?;
    let folder = package.join("../manifests");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry.context("cannot list the manifests")?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let roles = RIGHTS.map(|file| entry.path().join(file)).into_iter().find(|path| path.is_file());
        if let Some(roles) = roles.filter(|_| name.ends_with("-operator")) {
            rows.push((name, roles));
        }
    }
    rows.sort();
    let mut table = String::new();
    for (name, roles) in rows {
        writeln!(table, "    ({name:?}, include_str!({:?})),", roles.to_string_lossy())?;
    }
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("OUT_DIR is not set")?;
    fs::write(out.join("roles.rs"), format!("&[\n{table}]\n")).context("cannot write the table of roles")
}
