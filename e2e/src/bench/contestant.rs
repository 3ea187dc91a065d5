//! The contestants: how each is started, stopped and weighed.
//! Left out: their work, which is [`super::steps`]'.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;

use super::BenchOptions;
use super::steps::{About, Flags};
use crate::cluster::{Cluster, ControllerManager, Part};
use crate::operator::{ALL_IN_ONE, Operator, OperatorSpec, upstream_controller};
use crate::usage::Usage;

/// One of the sides that are compared.
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

    fn controller_manager(self, operators: &[String], flags_of_set: Flags, leader_elect: bool) -> ControllerManager {
        let mut flags = match self {
            Self::Throttled => vec!["--kube-api-qps=20".to_owned(), "--kube-api-burst=30".to_owned()],
            Self::Unthrottled | Self::Operators => Vec::new(),
        };
        flags.extend(flags_of_set.iter().map(|(_, flag)| (*flag).to_owned()));
        if leader_elect {
            // Without the gate it would keep its Lease when it is stopped, and wait for that when it starts again.
            let gate = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true";
            flags.extend(["--leader-elect=true", gate].map(str::to_owned));
        }
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

/// Where what is measured comes from.
#[derive(Clone, Debug, clap::Args)]
pub struct Programs {
    /// The folder with the release binaries: the operators', and that of all.
    #[arg(long, default_value = "dist/bin")]
    pub bin: PathBuf,
    /// The folder with the operators' manifests.
    #[arg(long, default_value = "manifests")]
    pub manifests: PathBuf,
}

impl Programs {
    /// Installs an operator, and says how it is run: by its own program or by that of all.
    pub(super) async fn install(&self, name: &str, one_program: bool, cluster: &Cluster) -> Result<OperatorSpec> {
        let account = cluster.install(&self.manifests.join(name)).await?;
        let program = self.bin.join(if one_program { ALL_IN_ONE } else { name });
        let program = std::path::absolute(program).context("find the operators")?;
        Ok(OperatorSpec::new(name, program, &account))
    }
}

/// A contestant, at work or stopped.
pub(super) struct Running {
    contestant: Contestant,
    /// Those that do the work, or whose controllers of kube-controller-manager do it.
    names: Vec<String>,
    /// The flags of this set of steps.
    flags: Flags,
    leader_elect: bool,
    processes: Processes,
}

enum Processes {
    /// With the operators there are, which can start again as they were.
    Stopped(Vec<Operator>),
    Operators(Vec<Operator>),
    ControllerManager,
}

impl Running {
    /// Starts it. That it serves is for the steps to see.
    pub(super) async fn start(
        contestant: Contestant,
        about: &About,
        options: &BenchOptions,
        cluster: &Cluster,
    ) -> Result<Self> {
        let leader_elect = options.is_leader_elected();
        let processes = Processes::Stopped(Vec::new());
        let (names, flags) = (&about.operators, about.flags);
        let mut running = Self { contestant, names: names.clone(), flags, leader_elect, processes };
        match contestant {
            Contestant::Operators => {
                let mut operators = Vec::new();
                for name in names {
                    let mut spec = options.programs.install(name, options.one_program, cluster).await?;
                    let own = flags.iter().filter(|(of, _)| of == name);
                    spec.flags.extend(own.map(|(_, flag)| (*flag).to_owned()));
                    operators.push(cluster.start_operator(&OperatorSpec { leader_elect, ..spec }).await?);
                }
                running.processes = Processes::Operators(operators);
            }
            Contestant::Unthrottled | Contestant::Throttled => running.begin(cluster).await?,
        }
        Ok(running)
    }

    /// Starts the processes that were stopped.
    pub(super) async fn begin(&mut self, cluster: &Cluster) -> Result<()> {
        match self.contestant {
            Contestant::Operators => {
                if let Processes::Stopped(operators) = &mut self.processes {
                    operators.iter_mut().try_for_each(Operator::restart)?;
                    self.processes = Processes::Operators(std::mem::take(operators));
                }
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
        cluster
            .start_controller_manager(contestant.controller_manager(&self.names, self.flags, self.leader_elect))
            .await?;
        self.processes = Processes::ControllerManager;
        Ok(())
    }

    /// Stops the processes.
    pub(super) async fn stop(&mut self, cluster: &Cluster) -> Result<()> {
        match &mut self.processes {
            Processes::Stopped(_) => {}
            Processes::Operators(operators) => {
                for operator in &mut *operators {
                    operator.terminate().await?;
                }
                self.processes = Processes::Stopped(std::mem::take(operators));
            }
            Processes::ControllerManager => {
                cluster.stop_controller_manager().await?;
                self.processes = Processes::Stopped(Vec::new());
            }
        }
        Ok(())
    }

    /// Waits until each of its processes says that it is ready. kube-controller-manager says so once its controllers run,
    /// whatever they have read by then.
    pub(super) async fn wait_ready(&mut self, cluster: &Cluster) -> Result<()> {
        match &mut self.processes {
            Processes::Stopped(_) => bail!("{} does not run", self.contestant),
            Processes::Operators(operators) => {
                try_join_all(operators.iter_mut().map(Operator::wait_ready)).await.map(drop)
            }
            Processes::ControllerManager => cluster.wait_controller_manager().await,
        }
    }

    /// The usage of each of its processes, by name. Those that have not started have used nothing.
    pub(super) fn usage(&self, cluster: &Cluster) -> Result<BTreeMap<String, Usage>> {
        match &self.processes {
            Processes::Stopped(_) => Ok(BTreeMap::new()),
            Processes::Operators(operators) => {
                operators.iter().map(|operator| Ok((operator.name().to_owned(), operator.usage()?))).collect()
            }
            Processes::ControllerManager => {
                let part = Part::ControllerManager;
                Ok(BTreeMap::from([(part.name().to_owned(), cluster.usage(part)?)]))
            }
        }
    }

    pub(super) fn contestant(&self) -> Contestant {
        self.contestant
    }
}
