//! The flags: those every operator has, those of every controller of a cloud, upstream's of this controller, and one for
//! a cluster without a cloud.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use cloud::Endpoint;
use cloud::flags::{ClusterFlags, ProviderFlags};
use shared::api::object::Key;
use shared::process::flags::at_least_one;

/// Gives Services load balancers of a cloud, or addresses from pools, as service-lb-controller does.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub cluster: ClusterFlags,
    /// The number of services that are allowed to sync concurrently. Larger number = more responsive service
    /// management, but more CPU (and network) load.
    #[arg(long, default_value_t = 1, value_parser = at_least_one, value_name = "NUMBER")]
    pub concurrent_service_syncs: usize,
}

/// Where the addresses of Services come from: one of these is given, and not both.
#[derive(Clone, Debug)]
pub enum Source {
    /// A provider makes load balancers in its cloud.
    Provider(Endpoint),
    /// The pools in this ConfigMap.
    Pools(Key),
}

/// The flags that say which.
#[derive(Debug, Args)]
pub struct SourceFlags {
    #[command(flatten)]
    pub provider: ProviderFlags,
    /// The ConfigMap with the pools of addresses that Services get in a cluster without a cloud. Without it
    /// --cloud-provider-endpoint is required.
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAMESPACE/NAME")]
    pub address_pools: String,
}

impl SourceFlags {
    fn source(&self) -> Result<Source, String> {
        let pools = Some(&self.address_pools).filter(|pools| !pools.is_empty());
        match (self.provider.endpoint()?, pools) {
            (Some(endpoint), None) => Ok(Source::Provider(endpoint)),
            (None, Some(pools)) => match pools.split_once('/') {
                Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                    Ok(Source::Pools(Key::new(namespace, name)))
                }
                _ => Err(format!("invalid value for --address-pools: {pools:?} is not NAMESPACE/NAME")),
            },
            (Some(_), Some(_)) => Err("--cloud-provider-endpoint and --address-pools exclude each other".to_owned()),
            (None, None) => Err("--cloud-provider-endpoint is required, or --address-pools".to_owned()),
        }
    }
}

impl FromArgMatches for Source {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let source = SourceFlags::from_arg_matches(matches)?.source();
        source.map_err(|wrong| clap::Error::raw(ErrorKind::ValueValidation, wrong))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Source {
    fn augment_args(command: Command) -> Command {
        SourceFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        SourceFlags::augment_args_for_update(command)
    }
}
