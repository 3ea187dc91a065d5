//! Finds the operators' roles by their folders, and writes the table of them that `preflight/roles.rs` includes.
//! Left out: reading them. A test does so with every role.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The files with an operator's rights, of which it has one.
const RIGHTS: [&str; 2] = ["cluster-role.yaml", "roles.yaml"];

fn main() -> Result<()> {
    // As cargo runs it: a build script that was built elsewhere, such as in a cache, would know another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("cargo gives no folder")?;
    let folder = package.join("../manifests");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut rows = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("list the manifests")?;
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
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("cargo gives no OUT_DIR")?;
    fs::write(out.join("roles.rs"), format!("&[\n{table}]\n")).context("write the table of roles")
}
