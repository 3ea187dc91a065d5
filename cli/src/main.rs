//! `kubectl` finds this program by its name.

use std::process::ExitCode;

use clap::Parser;
use cli::flags::Cli;
use cli::output::{Verdict, report};
use cli::run::run;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Cli::parse()).await {
        Ok(Verdict::Well) => ExitCode::SUCCESS,
        Ok(Verdict::Stuck) => ExitCode::from(1),
        Err(error) => {
            report(&error);
            ExitCode::from(2)
        }
    }
}
