//! Who is measured: how each is started, stopped and weighed.
//! Left out: what it has to do, which is [`super::steps`]'.

use std::fmt;

use anyhow::{Context, Result};

use super::{BenchOptions, Set};
use crate::cluster::{Cluster, ControllerManager, Part};
use crate::operator::{Operator, OperatorSpec, upstream_controller};
use crate::usage::Usage;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contestant {
    /// The operators, as they come.
    Operators,
    /// kube-controller-manager without a limit that this machine reaches.
    Unthrottled,
    /// kube-controller-manager with its default limit, 20 requests a second for each controller.
    Throttled,
}

impl Contestant {
    pub(super) const ALL: [Self; 3] = [Self::Operators, Self::Unthrottled, Self::Throttled];

    /// The users whose requests are its own.
    pub(super) fn users(self, set: Set) -> [String; 2] {
        let account = |name: String| format!("system:serviceaccount:kube-system:{name}");
        match self {
            Self::Operators => set.operators().map(|operator| account(operator.to_owned())),
            Self::Unthrottled | Self::Throttled => {
                set.operators().map(|operator| account(upstream_controller(operator)))
            }
        }
    }

    fn controller_manager(self, set: Set) -> ControllerManager {
        let flags = match self {
            Self::Throttled => vec!["--kube-api-qps=20".to_owned(), "--kube-api-burst=30".to_owned()],
            Self::Unthrottled | Self::Operators => Vec::new(),
        };
        ControllerManager { controllers: set.operators().map(upstream_controller).join(","), flags }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operators => "operators",
            Self::Unthrottled => "kube-controller-manager at 2000 qps",
            Self::Throttled => "kube-controller-manager at its default",
        })
    }
}

/// A contestant at work.
pub(super) struct Running {
    contestant: Contestant,
    set: Set,
    specs: Vec<OperatorSpec>,
    operators: Vec<Operator>,
}

impl Running {
    /// Starts it, and waits until it serves.
    pub(super) async fn start(contestant: Contestant, options: &BenchOptions, cluster: &Cluster) -> Result<Self> {
        let mut specs = Vec::new();
        if contestant == Contestant::Operators {
            for name in options.set.operators() {
                let account = cluster.install(&options.manifests.join(name)).await?;
                let binary = std::path::absolute(options.bin.join(name)).context("find the operators")?;
                specs.push(OperatorSpec { leader_elect: false, ..OperatorSpec::new(name, binary, &account) });
            }
        }
        let mut running = Self { contestant, set: options.set, specs, operators: Vec::new() };
        running.begin(cluster).await?;
        Ok(running)
    }

    /// Starts the processes.
    pub(super) async fn begin(&mut self, cluster: &Cluster) -> Result<()> {
        match self.contestant {
            Contestant::Operators => {
                for spec in &self.specs {
                    self.operators.push(cluster.start_operator(spec).await?);
                }
                Ok(())
            }
            Contestant::Unthrottled | Contestant::Throttled => {
                cluster.start_controller_manager(self.contestant.controller_manager(self.set))
            }
        }
    }

    /// Stops the processes.
    pub(super) async fn stop(&mut self, cluster: &Cluster) -> Result<()> {
        match self.contestant {
            Contestant::Operators => {
                for mut operator in self.operators.drain(..) {
                    operator.terminate().await?;
                }
                Ok(())
            }
            Contestant::Unthrottled | Contestant::Throttled => cluster.stop_controller_manager().await,
        }
    }

    /// What all its processes together have used.
    pub(super) fn usage(&self, cluster: &Cluster) -> Result<Usage> {
        match self.contestant {
            Contestant::Operators => {
                let usages: Vec<Usage> = self.operators.iter().map(Operator::usage).collect::<Result<_>>()?;
                Ok(usages.into_iter().fold(Usage::default(), |sum, one| Usage {
                    pss: sum.pss + one.pss,
                    rss: sum.rss + one.rss,
                    anonymous: sum.anonymous + one.anonymous,
                    peak_rss: sum.peak_rss + one.peak_rss,
                    cpu: sum.cpu + one.cpu,
                }))
            }
            Contestant::Unthrottled | Contestant::Throttled => cluster.usage(Part::ControllerManager),
        }
    }

    pub(super) fn contestant(&self) -> Contestant {
        self.contestant
    }
}
