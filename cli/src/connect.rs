//! The cluster and the operators that the flags select.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::flags::ClusterFlags;
use crate::reach::{ReachOptions, read_servers};

pub(crate) fn reach_options(flags: &ClusterFlags) -> Result<ReachOptions> {
    let mut servers = flags.servers.as_deref().map(read_servers).transpose()?.unwrap_or_default();
    servers.extend(flags.server.iter().cloned());
    let (namespace, account) = (flags.operators_namespace.clone(), flags.as_service_account.clone());
    Ok(ReachOptions { namespace, account, servers })
}

pub(crate) fn kubeconfig(path: Option<&Path>) -> Result<Kubeconfig> {
    match path {
        Some(path) => Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display())),
        None => Kubeconfig::read().context("no kubeconfig found: set --kubeconfig or KUBECONFIG"),
    }
}

pub(crate) async fn config_of(kubeconfig: Kubeconfig, context: Option<String>) -> Result<Config> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.context("cannot use the kubeconfig")?;
    config.default_retry = false;
    config.read_timeout = Some(Duration::from_secs(30));
    Ok(config)
}
