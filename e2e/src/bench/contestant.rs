//! Who is measured: how each is started, stopped and weighed.
//! Left out: what it has to do, which is [`super::steps`]'.

use std::fmt;

use anyhow::{Context, Result};

use super::BenchOptions;
use crate::cluster::{Cluster, ControllerManager, Part};
use crate::operator::{Operator, OperatorSpec, upstream_account, upstream_controller};
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

    fn controller_manager(self, operators: &[&str]) -> ControllerManager {
        let flags = match self {
            Self::Throttled => vec!["--kube-api-qps=20".to_owned(), "--kube-api-burst=30".to_owned()],
            Self::Unthrottled | Self::Operators => Vec::new(),
        };
        let controllers: Vec<String> = operators.iter().map(|operator| upstream_controller(operator)).collect();
        ControllerManager { controllers: controllers.join(","), flags }
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

/// Starts operators, which run until they are dropped.
pub(super) async fn start_operators(
    names: &[&str],
    options: &BenchOptions,
    cluster: &Cluster,
) -> Result<Vec<Operator>> {
    let mut operators = Vec::new();
    for name in names {
        operators.push(cluster.start_operator(&spec(name, options, cluster).await?).await?);
    }
    Ok(operators)
}

async fn spec(name: &str, options: &BenchOptions, cluster: &Cluster) -> Result<OperatorSpec> {
    let account = cluster.install(&options.manifests.join(name)).await?;
    let binary = std::path::absolute(options.bin.join(name)).context("find the operators")?;
    Ok(OperatorSpec { leader_elect: false, ..OperatorSpec::new(name, binary, &account) })
}

/// A contestant, at work or stopped.
pub(super) struct Running {
    contestant: Contestant,
    /// Those that do the work, or whose controllers of kube-controller-manager do it.
    names: &'static [&'static str],
    specs: Vec<OperatorSpec>,
    processes: Processes,
}

enum Processes {
    Stopped,
    Operators(Vec<Operator>),
    ControllerManager,
}

impl Running {
    /// Starts it. That it serves is for the steps to see.
    pub(super) async fn start(
        contestant: Contestant,
        names: &'static [&'static str],
        options: &BenchOptions,
        cluster: &Cluster,
    ) -> Result<Self> {
        let mut specs = Vec::new();
        if contestant == Contestant::Operators {
            for name in names {
                specs.push(spec(name, options, cluster).await?);
            }
        }
        let mut running = Self { contestant, names, specs, processes: Processes::Stopped };
        running.begin(cluster).await?;
        Ok(running)
    }

    /// Starts the processes.
    pub(super) async fn begin(&mut self, cluster: &Cluster) -> Result<()> {
        match self.contestant {
            Contestant::Operators => {
                let mut operators = Vec::new();
                for spec in &self.specs {
                    operators.push(cluster.start_operator(spec).await?);
                }
                self.processes = Processes::Operators(operators);
                Ok(())
            }
            Contestant::Unthrottled | Contestant::Throttled => self.begin_as(self.contestant, cluster).await,
        }
    }

    /// Lifts the default limit until the next stop: how what a step finds came about is not what it measures.
    pub(super) async fn unthrottle(&mut self, cluster: &Cluster) -> Result<()> {
        if self.contestant == Contestant::Throttled {
            self.stop(cluster).await?;
            self.begin_as(Contestant::Unthrottled, cluster).await?;
        }
        Ok(())
    }

    async fn begin_as(&mut self, contestant: Contestant, cluster: &Cluster) -> Result<()> {
        cluster.start_controller_manager(contestant.controller_manager(self.names)).await?;
        self.processes = Processes::ControllerManager;
        Ok(())
    }

    /// Stops the processes.
    pub(super) async fn stop(&mut self, cluster: &Cluster) -> Result<()> {
        match std::mem::replace(&mut self.processes, Processes::Stopped) {
            Processes::Stopped => Ok(()),
            Processes::Operators(operators) => {
                for mut operator in operators {
                    operator.terminate().await?;
                }
                Ok(())
            }
            Processes::ControllerManager => cluster.stop_controller_manager().await,
        }
    }

    /// What all its processes together have used. Those that have not started have used nothing.
    pub(super) fn usage(&self, cluster: &Cluster) -> Result<Usage> {
        match &self.processes {
            Processes::Stopped => Ok(Usage::default()),
            Processes::Operators(operators) => operators.iter().map(Operator::usage).sum(),
            Processes::ControllerManager => cluster.usage(Part::ControllerManager),
        }
    }

    /// The users that write for it.
    pub(super) fn users(&self) -> Vec<String> {
        let name = |operator: &&str| match self.contestant {
            Contestant::Operators => (*operator).to_owned(),
            Contestant::Unthrottled | Contestant::Throttled => upstream_account(operator),
        };
        self.names.iter().map(name).map(|name| format!("system:serviceaccount:kube-system:{name}")).collect()
    }

    pub(super) fn contestant(&self) -> Contestant {
        self.contestant
    }
}
