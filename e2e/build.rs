//! Finds the lives of the operators by their files, for the test of their roles to include.
//! Left out: which operators have none. Tidy says that.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    // As cargo runs it: a build script that was built elsewhere, such as in a cache, would know another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("cargo gives no folder")?;
    let folder = package.join("tests/suite/privilege");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        files.push(entry.context("list the lives of the operators")?.path());
    }
    files.sort();
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("cargo gives no OUT_DIR")?;
    fs::write(out.join("lives.rs"), table(&files)?).context("write the table of lives")
}

/// A module for each file, and a row.
fn table(files: &[PathBuf]) -> Result<String> {
    let (mut modules, mut rows) = (String::new(), String::new());
    for file in files {
        let module = file.file_stem().context("a file without a name")?.to_string_lossy();
        let operator = module.replace('_', "-");
        writeln!(modules, "#[path = {:?}]\nmod {module};", file.to_string_lossy())?;
        let tamper = if fs::read_to_string(file).with_context(|| format!("read {module}"))?.contains("fn tamper(") {
            format!("Some(|scene| Box::pin({module}::tamper(scene)))")
        } else {
            "None".to_owned()
        };
        writeln!(
            rows,
            "    Life {{ operator: {operator:?}, needs: {module}::NEEDS, live: |scene| Box::pin({module}::live(scene)), \
             tamper: {tamper} }},"
        )?;
    }
    Ok(format!("{modules}\nconst LIVES: &[Life] = &[\n{rows}];\n"))
}
