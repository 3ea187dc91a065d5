//! The command line.
//!
//! Left out: the work of the commands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use http::Uri;

use crate::preflight::command::PreflightFlags;
use crate::reach::parse_server;

/// Why an object is not as it should be, and how the operators are.
///
/// Ends with 0 where all is at rest or on its way, with 1 where something is stuck or an alarm is raised, with 2 where
/// the question could not be answered.
#[derive(Parser)]
#[command(name = "kubectl-operators", bin_name = "kubectl operators", version)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Args)]
pub(crate) struct ClusterFlags {
    /// The kubeconfig; without it the one that KUBECONFIG names, or ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Another of its contexts.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// The object's namespace; without it the context's.
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
    /// Where the operators' Leases and pods are.
    #[arg(long, global = true, default_value = "kube-system", value_name = "NAMESPACE")]
    pub(crate) operators_namespace: String,
    /// Whose token operators are shown, where the kubeconfig has none of its own: a `ServiceAccount` in the operators'
    /// namespace.
    #[arg(long, global = true, default_value = "operators-viewer", value_name = "NAME")]
    pub(crate) as_service_account: String,
    /// Where an operator is that runs in no pod: deployment-operator=https://127.0.0.1:1234. It is sent your token.
    #[arg(long = "server", global = true, value_parser = parse_server, value_name = "OPERATOR=URL")]
    pub(crate) server: Vec<(String, Uri)>,
    /// A file with such lines.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) servers: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Why an object is not as it should be: the cause in the first line, then the evidence that leads to it.
    Why {
        /// KIND/NAME or KIND NAME, with the names that kubectl takes: deployment/web, deploy/web, job.batch/x.
        #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME")]
        object: Vec<String>,
        /// Form of the answer.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        /// Answers anew whenever the answer changes, until Ctrl-C.
        #[arg(short, long)]
        watch: bool,
        /// Shows chains of changes instead: edits, the syncs that followed, in any operator, and the writes of these.
        #[arg(long, conflicts_with = "watch")]
        trace: bool,
    },
    /// How each operator is, and which program runs each of upstream's controllers.
    Status {
        /// Form of the answer.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        /// Answers anew every two seconds, until Ctrl-C.
        #[arg(short, long)]
        watch: bool,
    },
    /// Previews a takeover: runs a shadow of each operator on this machine, which decides all and writes nothing.
    ///
    /// Ends with 0 where a takeover would write nothing and nothing stands in its way, with 1 where it would or something
    /// does, with 2 where a shadow has not come to an answer.
    Preflight(PreflightFlags),
    /// Prints a script by which a shell completes the words of this program.
    Completion {
        /// For which shell.
        shell: Shell,
    },
}
