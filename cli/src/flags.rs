//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use shared::process::flags::{GoDuration, version};

use crate::reach::{Server, parse_server};

/// Explain why an object is stuck, and show the state of the operators.
///
/// Exits with 0 if everything is at rest or in progress, with 1 if something is stuck or an alarm is raised, and with 2
/// if there is no answer.
#[derive(Parser)]
#[command(name = "kubectl-operators", bin_name = "kubectl operators", version = version())]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

#[derive(Args)]
pub(crate) struct ClusterFlags {
    /// Path to the kubeconfig; defaults to KUBECONFIG, then ~/.kube/config.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// Namespace of the object; defaults to the context's.
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
    /// Namespace of the operators' Leases and pods.
    #[arg(long, global = true, default_value = "kube-system", value_name = "NAMESPACE")]
    pub(crate) operators_namespace: String,
    /// `ServiceAccount` in the operators' namespace whose token is sent to operators: they answer what it may see.
    #[arg(long, global = true, default_value = "operators-viewer", value_name = "NAME")]
    pub(crate) as_service_account: String,
    /// Address of an operator outside the cluster: deployment-operator=https://127.0.0.1:1234. On another machine, with
    /// its certificate: deployment-operator=https://10.0.0.1:10257,tls.crt. One process of all operators goes by its Lease,
    /// kube-controller-manager
    #[arg(long = "server", global = true, value_parser = parse_server, value_name = "OPERATOR=URL[,FILE]")]
    pub(crate) server: Vec<(String, Server)>,
    /// File with one --server value on each line.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) servers: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[derive(Args)]
pub(crate) struct PreflightFlags {
    /// Operators, by operator or controller name: deployment, job-operator, cronjob-controller; defaults to all.
    #[arg(value_name = "OPERATOR")]
    pub(crate) operators: Vec<String>,
    /// Program that contains all operators; defaults to "operators" next to this program, then on the PATH.
    #[arg(long, value_name = "PATH")]
    pub(crate) program: Option<PathBuf>,
    /// Time limit for each shadow to look at everything and see it at rest.
    #[arg(long, default_value = "5m0s", value_name = "DURATION")]
    pub(crate) timeout: GoDuration,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Explain why an object is stuck: the cause in the first line, then the evidence.
    Why {
        /// KIND/NAME or KIND NAME, as for kubectl: deployment/web, deploy/web, job.batch/x.
        #[arg(required = true, num_args = 1..=2, value_name = "KIND/NAME")]
        object: Vec<String>,
        /// Output format.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        /// Print each new answer until Ctrl-C.
        #[arg(short, long)]
        watch: bool,
        /// Show the chains of changes instead: edits, the syncs that followed in any operator, and their writes.
        #[arg(long, conflicts_with = "watch")]
        trace: bool,
    },
    /// Show the state of each operator, and what runs each controller of kube-controller-manager.
    Status {
        /// Output format.
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
        /// Refresh every two seconds until Ctrl-C.
        #[arg(short, long)]
        watch: bool,
    },
    /// Preview a takeover: run a shadow of each operator on this machine, which decides everything and writes nothing.
    ///
    /// Exits with 0 if a takeover would write nothing and no check found a problem, with 1 otherwise, and with 2 if a
    /// shadow gave no answer.
    Preflight(PreflightFlags),
    /// Print a completion script for a shell.
    Completion {
        /// Shell to print it for.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_of_the_operators_version() {
        let asked = Cli::try_parse_from(["kubectl-operators", "--version"]).err().map(|text| text.to_string());
        assert_eq!(asked, Some(format!("kubectl-operators {}\n", version())));
    }
}
