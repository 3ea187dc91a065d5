//! A contestant at work: how it is started, stopped and weighed.
//! Left out: its work, which is the steps'.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use e2e::cluster::{CLOUD_ENDPOINT, Cluster, ControllerManager, Manager, Part};
use e2e::operator::{Operator, OperatorSpec, upstream_controller};
use e2e::usage::Usage;
use futures::future::try_join_all;

use crate::about::{About, Flags};
use crate::contestant::Contestant;
use crate::late_cloud::LateCloud;
use crate::options::{BenchOptions, Set};

/// Without the gate it would keep its Lease when it is stopped, and wait for that when it starts again.
pub(crate) const LEADER_ELECT: [&str; 2] =
    ["--leader-elect=true", "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true"];

pub(crate) struct Running {
    contestant: Contestant,
    /// The program of upstream's that it is, or is compared with.
    upstream: &'static str,
    /// Those that do the work, or whose controllers of upstream's do it.
    names: Vec<String>,
    flags: Flags,
    gated: bool,
    leader_elect: bool,
    /// What the operators run from where all are one process, which takes the place of kube-controller-manager.
    one_process: Option<PathBuf>,
    /// The cloud that it works with, where the set is about one.
    cloud: Option<LateCloud>,
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
    pub(crate) async fn start(
        contestant: Contestant,
        about: &About,
        options: &BenchOptions,
        cluster: &Cluster,
    ) -> Result<Self> {
        let leader_elect = options.is_leader_elected();
        let processes = Processes::Stopped(Vec::new());
        let &About { operators: ref names, upstream, flags, gated, .. } = about;
        let is_one_process = contestant == Contestant::Operators && options.one_process;
        let one_process = is_one_process.then(|| options.programs.all_in_one()).transpose()?;
        let latency = Duration::from_millis(options.clouds.cloud_latency);
        let start_cloud = || LateCloud::start(cluster.run_dir()?, latency);
        let cloud = (options.set == Set::Clouds).then(start_cloud).transpose()?;
        let names = names.clone();
        let mut running =
            Self { contestant, upstream, names, flags, gated, leader_elect, one_process, cloud, processes };
        match contestant {
            Contestant::Operators if !is_one_process => {
                let mut operators = Vec::new();
                for name in &about.operators {
                    let mut spec = options.programs.install(name, options.one_program, cluster).await?;
                    let own = flags.iter().filter(|(of, _)| of == name);
                    spec.flags.extend(own.map(|(_, flag)| (*flag).to_owned()));
                    spec.flags.extend(running.endpoint(CLOUD_ENDPOINT));
                    operators.push(cluster.start_operator(&OperatorSpec { leader_elect, ..spec }).await?);
                }
                running.processes = Processes::Operators(operators);
            }
            Contestant::Operators => {
                cluster.install_one_process().await?;
                running.begin(cluster).await?;
            }
            Contestant::Unthrottled | Contestant::Throttled => running.begin(cluster).await?,
        }
        Ok(running)
    }

    pub(crate) async fn begin(&mut self, cluster: &Cluster) -> Result<()> {
        match self.contestant {
            Contestant::Operators if self.one_process.is_none() => {
                if let Processes::Stopped(operators) = &mut self.processes {
                    operators.iter_mut().try_for_each(Operator::restart)?;
                    self.processes = Processes::Operators(std::mem::take(operators));
                }
                Ok(())
            }
            Contestant::Operators | Contestant::Unthrottled | Contestant::Throttled => {
                self.begin_as(self.contestant, cluster).await
            }
        }
    }

    /// Lifts the default limit until the next stop: how what a step finds came about is not what it measures.
    pub(crate) async fn unthrottle(&mut self, cluster: &Cluster) -> Result<()> {
        if self.contestant == Contestant::Throttled {
            self.stop(cluster).await?;
            self.begin_as(Contestant::Unthrottled, cluster).await?;
        }
        Ok(())
    }

    async fn begin_as(&mut self, contestant: Contestant, cluster: &Cluster) -> Result<()> {
        let program = match (&self.one_process, &self.cloud) {
            (Some(program), _) => Manager::OneProcess(program.clone()),
            (None, Some(_)) => Manager::UpstreamsOfClouds,
            (None, None) => Manager::Upstreams,
        };
        let controller_manager = controller_manager(contestant, &self.names, self.flags, self.leader_elect);
        let mut of = if self.gated { controller_manager.with_gated_kinds() } else { controller_manager };
        of.flags.extend(program.cloud_endpoint().and_then(|flag| self.endpoint(flag)));
        cluster.start_controller_manager(ControllerManager { program, ..of }).await?;
        self.processes = Processes::ControllerManager;
        Ok(())
    }

    pub(crate) async fn stop(&mut self, cluster: &Cluster) -> Result<()> {
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

    /// Waits until each of its processes says that it is ready. Upstream's says so once its controllers run, whatever they
    /// have read by then.
    pub(crate) async fn wait_ready(&mut self, cluster: &Cluster) -> Result<()> {
        match &mut self.processes {
            Processes::Stopped(_) => bail!("{} does not run", self.name()),
            Processes::Operators(operators) => {
                try_join_all(operators.iter_mut().map(Operator::wait_ready)).await.map(drop)
            }
            Processes::ControllerManager => cluster.wait_controller_manager().await,
        }
    }

    /// The usage of each of its processes, by name. Those that have not started have used nothing.
    pub(crate) fn usage(&self, cluster: &Cluster) -> Result<BTreeMap<String, Usage>> {
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

    /// The flag with the cloud's address. It wins over the address of the cluster's scriptable cloud, which comes earlier.
    fn endpoint(&self, flag: &str) -> Option<String> {
        self.cloud.as_ref().map(|cloud| format!("{flag}={}", cloud.endpoint()))
    }

    pub(crate) fn cloud(&self) -> Option<&LateCloud> {
        self.cloud.as_ref()
    }

    pub(crate) fn name(&self) -> String {
        self.contestant.name(self.upstream)
    }

    pub(crate) fn contestant(&self) -> Contestant {
        self.contestant
    }
}

fn controller_manager(
    contestant: Contestant,
    operators: &[String],
    flags_of_set: Flags,
    leader_elect: bool,
) -> ControllerManager {
    let mut flags = match contestant {
        Contestant::Throttled => vec!["--kube-api-qps=20".to_owned(), "--kube-api-burst=30".to_owned()],
        Contestant::Unthrottled | Contestant::Operators => Vec::new(),
    };
    flags.extend(flags_of_set.iter().map(|(_, flag)| (*flag).to_owned()));
    if leader_elect {
        flags.extend(LEADER_ELECT.map(str::to_owned));
    }
    let controllers: Vec<String> = operators.iter().map(|operator| upstream_controller(operator)).collect();
    ControllerManager { program: Manager::Upstreams, controllers: controllers.join(","), flags }
}
