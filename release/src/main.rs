//! The command line: each command makes one part of a release.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use release::krew::{self, Archive};
use release::manifests::Manifests;
use release::{VERSION, changelog, chart, forms, notices, write};

const USAGE: &str = "usage: release manifests FOLDER REGISTRY      the YAML file of each form, and the chart in chart/
       release changelog FILE                  the section of this version
       release notices TARGET [FILE...]        the licences of all crates, and these files
       release krew URL ARCHITECTURE SHA256...  the manifest of the plugin's archives below the URL";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("release: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["manifests", folder, registry] => manifests(Path::new(folder), registry),
        ["changelog", file] => {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            print(&changelog::section(&text, &format!("v{VERSION}"))?)
        }
        ["notices", target, further @ ..] => {
            let further: Vec<PathBuf> = further.iter().map(PathBuf::from).collect();
            print(&notices::notices(target, &further)?)
        }
        ["krew", url, archives @ ..] if !archives.is_empty() => {
            let archive = |pair: &[&str]| match pair {
                [architecture, sha256] => {
                    Ok(Archive { architecture: (*architecture).into(), sha256: (*sha256).into() })
                }
                _ => bail!(USAGE),
            };
            let archives: Vec<Archive> = archives.chunks(2).map(archive).collect::<Result<_>>()?;
            print(&krew::manifest(VERSION, url, &archives))
        }
        _ => bail!(USAGE),
    }
}

fn manifests(folder: &Path, registry: &str) -> Result<()> {
    let manifests = Manifests::here()?;
    write(&forms(&manifests, registry)?, folder)?;
    write(&chart::chart(&manifests, registry, VERSION)?, &folder.join("chart/kubernetes-operators"))
}

fn print(text: &str) -> Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")
}
