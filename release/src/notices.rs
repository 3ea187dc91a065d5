//! The licences of all that is in the programs: each crate's own texts, as its package has them.
//! Left out: crates that only build scripts and macros need, of which nothing is shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The packages of what is shipped: the program with all operators, and the plugin.
const SHIPPED: [&str; 2] = ["operators", "cli"];
/// How the names of files with licences begin, in capitals.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];
const HEAD: &str =
    "The programs have these parts beside their own code, which is under Apache-2.0, and the standard library of
Rust, which is under MIT OR Apache-2.0 (https://github.com/rust-lang/rust).

glibc, which is under LGPL-2.1-or-later, is linked into each program. Its source is that of Debian's package glibc.
From the source of the operators, `make build` links a program with the glibc of the machine that it runs on.

";
const RULE: &str = "================================================================================";

/// One crate that is in a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Package {
    name: String,
    version: String,
    /// An SPDX expression.
    license: String,
    authors: Vec<String>,
    folder: PathBuf,
}

/// The notices of what is built for this target, with further files at the end, such as that of a libc.
pub fn notices(target: &str, further: &[PathBuf]) -> Result<String> {
    let mut packages = packages(&metadata(target)?)?;
    packages.sort();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in &packages {
        let who = format!("{} {} ({})", package.name, package.version, package.license);
        for text in of_package(package)? {
            texts.entry(text).or_default().push(who.clone());
        }
    }
    let mut parts: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, who)| (who, text)).collect();
    parts.sort();
    for path in further {
        parts.push((vec![path.display().to_string()], read(path)?));
    }
    let parts =
        parts.into_iter().map(|(who, text)| format!("{RULE}\n{}\n{RULE}\n\n{}\n\n", who.join("\n"), text.trim()));
    Ok(HEAD.to_owned() + &parts.collect::<String>())
}

fn metadata(target: &str) -> Result<Value> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let mut command = Command::new("cargo");
    command.args(["metadata", "--format-version=1", "--locked", "--filter-platform", target, "--manifest-path"]);
    let output = command.arg(manifest).stdin(Stdio::null()).output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("cannot read cargo's metadata")
}

/// The crates from elsewhere that the shipped packages link.
fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let all = || metadata["packages"].as_array().into_iter().flatten();
    let by_id: BTreeMap<&str, &Value> = all().map(|package| (text(&package["id"]), package)).collect();
    let nodes = metadata["resolve"]["nodes"].as_array().into_iter().flatten();
    let links: BTreeMap<&str, Vec<&str>> = nodes.map(|node| (text(&node["id"]), linked(node))).collect();
    let shipped = all().filter(|package| package["source"].is_null() && SHIPPED.contains(&text(&package["name"])));
    let mut queue: Vec<&str> = shipped.map(|package| text(&package["id"])).collect();
    ensure!(queue.len() == SHIPPED.len(), "not all of {SHIPPED:?} are in the workspace");
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(id) = queue.pop() {
        let package = by_id.get(id).with_context(|| format!("cargo names {id} and does not describe it"))?;
        if is_macro(package) || !seen.insert(id) {
            continue;
        }
        queue.extend(links.get(id).into_iter().flatten());
        if !package["source"].is_null() {
            found.push(described(package)?);
        }
    }
    Ok(found)
}

/// What a node of cargo's graph links: neither what its build script needs nor its tests.
fn linked(node: &Value) -> Vec<&str> {
    let is_linked = |dependency: &&Value| {
        dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_linked).map(|dependency| text(&dependency["pkg"])).collect()
}

fn is_macro(package: &Value) -> bool {
    let kinds = package["targets"].as_array().into_iter().flatten().filter_map(|target| target["kind"].as_array());
    kinds.flatten().any(|kind| kind == "proc-macro")
}

fn described(package: &Value) -> Result<Package> {
    let authors = package["authors"].as_array().into_iter().flatten();
    let manifest = Path::new(text(&package["manifest_path"]));
    let name = text(&package["name"]).to_owned();
    let license = package["license"].as_str().with_context(|| format!("{name} names no licence"))?.to_owned();
    Ok(Package {
        version: text(&package["version"]).to_owned(),
        license,
        authors: authors.filter_map(|author| author.as_str().map(str::to_owned)).collect(),
        folder: manifest.parent().with_context(|| format!("{name} has no folder"))?.to_owned(),
        name,
    })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The texts in a package, or the text of a licence that it names.
fn of_package(package: &Package) -> Result<Vec<String>> {
    let Package { name, license, authors, folder, .. } = package;
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|beginning| file.starts_with(beginning)) {
            paths.push(path);
        }
    }
    paths.sort();
    if !paths.is_empty() {
        return paths.iter().map(|path| read(path)).collect();
    }
    let names = |wanted: &str| license.split(|c: char| c == '/' || c.is_whitespace()).any(|word| word == wanted);
    if names("Apache-2.0") {
        return Ok(vec![include_str!("../../LICENSE").to_owned()]);
    }
    if names("MIT") {
        let authors = if authors.is_empty() { format!("the authors of {name}") } else { authors.join(", ") };
        return Ok(vec![include_str!("mit.txt").replace("@AUTHORS@", &authors)]);
    }
    bail!("{name} has no text of its licence, {license}")
}

/// Line ends alone don't make another text.
fn read(path: &Path) -> Result<String> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = String::from_utf8_lossy(&text).replace('\r', "");
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_linked_is_found_and_nothing_else() {
        let package = |name: &str, source: Value, kind: &str| {
            json!({
                "id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source, "authors": [],
                "manifest_path": format!("/{name}/Cargo.toml"), "targets": [{"kind": [kind]}],
            })
        };
        let registry = || json!("registry");
        let linked = |name: &str| json!({"pkg": name, "dep_kinds": [{"kind": null}]});
        let built = json!({"pkg": "build", "dep_kinds": [{"kind": "build"}]});
        let metadata = json!({
            "packages": [
                package("operators", Value::Null, "bin"), package("cli", Value::Null, "bin"), package("own", Value::Null, "lib"),
                package("a", registry(), "lib"), package("b", registry(), "lib"), package("build", registry(), "lib"),
                package("macro", registry(), "proc-macro"), package("of-macro", registry(), "lib"),
            ],
            "resolve": {"nodes": [
                {"id": "operators", "deps": [linked("own"), built]},
                {"id": "own", "deps": [linked("a"), linked("macro")]},
                {"id": "macro", "deps": [linked("of-macro")]},
                {"id": "cli", "deps": [linked("a"), linked("b")]},
            ]},
        });
        let mut found: Vec<String> = packages(&metadata).unwrap().into_iter().map(|package| package.name).collect();
        found.sort();
        assert_eq!(found, ["a", "b"]);
    }

    #[test]
    fn the_label_of_images_names_the_licences_of_all_that_is_in_a_program() {
        let dockerfile = include_str!("../../Dockerfile");
        let label = dockerfile.split("image.licenses=\"").nth(1).unwrap().split('"').next().unwrap();
        let named: BTreeSet<&str> = label.split(" AND ").collect();
        let is_named = |choice: &str| choice.trim_matches(['(', ')']).split(" OR ").any(|one| named.contains(one));
        for Package { name, license, .. } in packages(&metadata("x86_64-unknown-linux-gnu").unwrap()).unwrap() {
            let license = license.replace(" / ", " OR ").replace('/', " OR ");
            assert!(license.split(" AND ").all(is_named), "{name}: {license}");
        }
        assert!(named.contains("LGPL-2.1-or-later"), "glibc");
    }

    #[test]
    fn a_package_has_its_own_texts_or_that_of_its_licence() {
        let folder = tempfile::tempdir().unwrap();
        let package = |license: &str| Package {
            name: "a".to_owned(),
            version: "1.0.0".to_owned(),
            license: license.to_owned(),
            authors: vec!["Somebody".to_owned()],
            folder: folder.path().to_owned(),
        };
        assert!(of_package(&package("BSD-3-Clause")).is_err());
        assert!(of_package(&package("MIT/Apache-2.0")).unwrap()[0].contains("Apache License"));
        let mit = of_package(&package("MIT")).unwrap();
        assert!(mit[0].contains("Copyright (c) Somebody") && mit[0].contains("THE SOFTWARE IS PROVIDED"), "{mit:?}");
        std::fs::write(folder.path().join("license-mit"), "own \r\ntext\n").unwrap();
        std::fs::write(folder.path().join("README"), "no").unwrap();
        assert_eq!(of_package(&package("MIT")).unwrap(), ["own\ntext"]);
    }
}
