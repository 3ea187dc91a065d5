//! Writes the table of the operators' roles that `preflight/roles.rs` includes.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// An operator has one or both of these files.
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
        let roles = RIGHTS.map(|file| entry.path().join(file)).into_iter().filter(|path| path.is_file());
        let roles: Vec<PathBuf> = roles.filter(|_| name.ends_with("-operator")).collect();
        if !roles.is_empty() {
            rows.push((name, roles));
        }
    }
    rows.sort();
    let mut table = String::new();
    for (name, roles) in rows {
        let texts: Vec<String> =
            roles.iter().map(|path| format!("include_str!({:?})", path.to_string_lossy())).collect();
        writeln!(table, "    ({name:?}, &[{}]),", texts.join(", "))?;
    }
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("OUT_DIR is not set")?;
    fs::write(out.join("roles.rs"), format!("&[\n{table}]\n")).context("cannot write the table of roles")
}
