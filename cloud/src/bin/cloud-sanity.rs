//! `cloud-sanity`: runs the checks of [`cloud::sanity`] against a provider, and prints a line for each.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use cloud::Client;
use cloud::flags::{ClusterFlags, ProviderFlags};
use cloud::sanity::{Ground, Verdict, check};

/// Checks whether a provider keeps the contract of cloud.v1.
///
/// It creates load balancers and routes in the cloud, and deletes them again.
#[derive(Parser)]
#[command(name = "cloud-sanity")]
struct Flags {
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// A node that has an instance, with its providerID if it is known; may be repeated.
    #[arg(long, value_name = "NAME[=ID]")]
    node: Vec<String>,
    /// An annotation of the Services; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    annotation: Vec<String>,
    /// How many load balancers are changed at the same time, as service-lb-operator's flag says.
    #[arg(long, default_value_t = 5, value_name = "NUMBER")]
    concurrent_service_syncs: usize,
    /// Destinations of which the cloud has no route, outside of the cluster's CIDRs: node-route-operator deletes routes
    /// inside them.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "10.254.0.0/24,10.254.1.0/24,10.254.2.0/24",
        value_name = "CIDRS"
    )]
    route_cidrs: Vec<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Flags { provider, cluster, node, annotation, concurrent_service_syncs, route_cidrs } = Flags::parse();
    let endpoint = match provider.required_endpoint() {
        Ok(endpoint) => endpoint,
        Err(wrong) => {
            let _ = writeln!(io::stderr(), "error: {wrong}");
            return ExitCode::from(2);
        }
    };
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        (key.to_owned(), value.to_owned())
    };
    let ground = Ground {
        cluster: cluster.cluster_name,
        nodes: node.iter().map(pair).collect(),
        annotations: annotation.iter().map(pair).collect(),
        concurrent_services: concurrent_service_syncs,
        route_cidrs,
    };
    // A reader that has gone ends nothing: what was made is still deleted.
    let tell = |name: &str, verdict: &Verdict| {
        let _ = match verdict {
            Verdict::Passed => writeln!(io::stdout(), "ok       {name}"),
            Verdict::Skipped(why) => writeln!(io::stdout(), "skipped  {name}: {why}"),
            Verdict::Failed(why) => writeln!(io::stdout(), "FAILED   {name}: {why}"),
        };
    };
    match check(&Client::new(&endpoint), &ground, tell).await {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
