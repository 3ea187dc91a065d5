//! Finds the facts of the operators by their folders, and writes the table of them that `lib.rs` includes.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    // As cargo runs it: a build script that was built elsewhere, such as in a cache, would know another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("cargo gives no folder")?;
    let folder = package.join("../operators");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.context("list the operators")?;
        let module = entry.file_name().to_string_lossy().replace('-', "_");
        files.push((module, entry.path().join("src/facts.rs")));
    }
    files.retain(|(_, file)| file.is_file());
    files.sort();
    let (mut modules, mut rows) = (String::new(), String::new());
    for (module, file) in files {
        writeln!(modules, "#[path = {:?}]\npub mod {module};", file.to_string_lossy())?;
        writeln!(rows, "    &{module}::FACTS,")?;
    }
    let table =
        format!("{modules}\n/// The facts of each operator, by name.\npub const ALL: &[&Facts] = &[\n{rows}];\n");
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("cargo gives no OUT_DIR")?;
    fs::write(out.join("facts.rs"), table).context("write the table of facts")
}
