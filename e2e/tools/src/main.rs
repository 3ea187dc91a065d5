//! The command line: `tools [NAME...]` builds the named programs that are missing, and prints where each is.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use tools::progress::Progress;
use tools::{Tool, Tools};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tools: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<Tool> = if names.is_empty() {
        Tool::OF_A_CLUSTER.to_vec()
    } else {
        names.iter().map(|name| Tool::named(name)).collect::<Result<_>>()?
    };
    let tools = Tools::find(&wanted, &mut Progress::default())?;
    let mut stdout = std::io::stdout().lock();
    for tool in wanted {
        writeln!(stdout, "{}", tools.path(tool).display()).context("print")?;
    }
    Ok(())
}
