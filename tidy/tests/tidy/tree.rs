//! The project's files: their places and their texts.

use std::fs;
use std::path::{Path, PathBuf};

/// One file: its path from the project's root, with `/`, and its text.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The text of a file that has to be there; the path is from the project's root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Replaces the text of a file.
pub(crate) fn write(path: &str, text: &str) {
    fs::write(root().join(path), text).unwrap_or_else(|error| panic!("{path}: {error}"));
}

pub(crate) fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// Whether a file's name ends with a dot and this.
pub(crate) fn is_a(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// The names in a folder, sorted; folders end with `/`. A folder that isn't there is empty.
pub(crate) fn list(folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() { name + "/" } else { name }
        })
        .collect();
    names.sort();
    names
}

/// All operators, by the names of their folders.
pub(crate) fn operators() -> Vec<String> {
    list("operators").iter().filter_map(|name| name.strip_suffix('/')).map(str::to_owned).collect()
}

/// All files below the folder whose names end so, sorted.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<File> {
    let mut found = Vec::new();
    for name in list(folder) {
        let path = format!("{folder}/{name}");
        if let Some(folder) = path.strip_suffix('/') {
            found.extend(files(folder, ending));
        } else if path.ends_with(ending) {
            found.push(File { text: read(&path), path });
        }
    }
    found
}

/// Every Rust file of the workspace.
pub(crate) fn sources() -> Vec<File> {
    let folders =
        ["shared", "cel-check", "cloud", "facts", "operators", "all-in-one", "cli", "e2e", "bench", "release", "tidy"];
    folders.iter().flat_map(|folder| files(folder, ".rs")).collect()
}
