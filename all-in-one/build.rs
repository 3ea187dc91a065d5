//! Finds the operators by their folders, and writes the table of them that `main.rs` includes.
//!
//! Each operator's own `main.rs` becomes a module, so that this program runs exactly what the small one does.
//! Left out: Cargo.toml, which cargo reads before it runs this; tidy holds its lines against the folders.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

fn main() -> Result<()> {
    // As cargo runs it: a build script that was built elsewhere, such as in a cache, would know another folder.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).context("cargo gives no folder")?;
    let folder = package.join("../operators");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut operators = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry.context("list the operators")?.path();
        if path.join("src/main.rs").is_file() {
            operators.push(path);
        }
    }
    operators.sort();
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).context("cargo gives no OUT_DIR")?;
    fs::write(out.join("operators.rs"), table(&operators)?).context("write the table of operators")
}

/// A module for each operator, and a row.
fn table(operators: &[PathBuf]) -> Result<String> {
    let (mut modules, mut rows) = (String::new(), String::new());
    for path in operators {
        let name = path.file_name().context("an operator without a name")?.to_string_lossy();
        let module = name.replace('-', "_");
        let about = description(&path.join("Cargo.toml"))?;
        writeln!(modules, "#[path = {:?}]\nmod {module};", path.join("src/main.rs").to_string_lossy())?;
        let flags = format!("<::{module}::flags::Flags as clap::Args>::augment_args");
        let entry = format!("Entry::of::<::{}>()", controller(&path.join("src/main.rs"))?);
        let fields = format!("name: {name:?}, about: {about:?}, main: {module}::main, flags: {flags}, entry: {entry}");
        writeln!(rows, "    Operator {{ {fields} }},")?;
    }
    Ok(format!("{modules}\nconst OPERATORS: &[Operator] = &[\n{rows}];\n"))
}

/// The operator's description in its Cargo.toml.
fn description(manifest: &Path) -> Result<String> {
    let text = fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("description = \"")?.strip_suffix('"'));
    line.map(str::to_owned).with_context(|| format!("{} has no description", manifest.display()))
}

/// The path of the type that the operator's main runs, which it uses by one line.
fn controller(main: &Path) -> Result<String> {
    let text = fs::read_to_string(main).with_context(|| format!("read {}", main.display()))?;
    let name = text.split_once("run::main::<").and_then(|(_, rest)| Some(rest.split_once('>')?.0));
    let used = name.and_then(|name| {
        let mut uses = text.lines().filter_map(|line| line.strip_prefix("use ")?.strip_suffix(';'));
        uses.find(|path| path.rsplit("::").next() == Some(name))
    });
    used.map(str::to_owned).with_context(|| format!("{} runs no operator that it uses", main.display()))
}
