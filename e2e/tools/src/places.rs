//! The places where programs are looked for.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::kubernetes::Kubernetes;
use crate::tool::Tool;

/// This project's folder in the user's cache.
pub fn cache_dir() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        Some(_) | None => std::env::home_dir().context("no home directory: set HOME or XDG_CACHE_HOME")?.join(".cache"),
    };
    Ok(base.join("kubernetes-operators"))
}

/// The folder of the programs that were built here for this version of Kubernetes.
pub(crate) fn built_dir(kubernetes: Kubernetes) -> Result<PathBuf> {
    Ok(cache_dir()?.join(kubernetes.version).join("bin"))
}

/// Where `tool` is, whatever its version; nothing is built.
pub fn find(tool: Tool) -> Option<PathBuf> {
    let built = || Some(built_dir(Kubernetes::FOLLOWED).ok()?.join(tool.name())).filter(|path| path.is_file());
    find_program(tool.name()).or_else(built)
}

/// The first program called `name` in `$KUBEBUILDER_ASSETS` or on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    program_dirs().map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// The user's own `tool`, if its version will do.
pub(crate) fn installed(tool: Tool, kubernetes: Kubernetes) -> Option<PathBuf> {
    program_dirs().map(|dir| dir.join(tool.name())).find(|path| path.is_file() && tool.accepts(path, kubernetes))
}

/// The `tool` that was built here for this version of Kubernetes.
pub(crate) fn built(tool: Tool, kubernetes: Kubernetes) -> Option<PathBuf> {
    let of = if tool.is_chosen() { kubernetes } else { Kubernetes::FOLLOWED };
    let path = built_dir(of).ok()?.join(tool.name());
    Some(path).filter(|path| path.is_file() && tool.accepts(path, of))
}

fn program_dirs() -> impl Iterator<Item = PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    assets.into_iter().chain(std::env::split_paths(&path).collect::<Vec<_>>())
}
