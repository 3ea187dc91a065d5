//! The forms in which the same controllers run.

use std::path::Path;

use anyhow::{Context, Result};
use e2e::apply::text;
use e2e::cluster::{Cluster, ControllerManager, Manager, Part};
use e2e::kubectl::kustomize;
use e2e::operator::{Installed, Operator, OperatorSpec};
use e2e::usage::Usage;
use facts::Facts;
use serde_json::Value;

use super::MemoryOptions;
use crate::running::LEADER_ELECT;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Upstreams,
    OneProcess,
    Families,
    Each,
}

impl Form {
    pub(super) const ALL: [Self; 4] = [Self::Upstreams, Self::OneProcess, Self::Families, Self::Each];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Upstreams => "kube-controller-manager",
            Self::OneProcess => "one process",
            Self::Families => "a process for each family",
            Self::Each => "a process for each controller",
        }
    }
}

/// How each form is started. All have the controllers that need no cloud.
pub(super) struct Forms {
    /// Upstream's names.
    controllers: String,
    one_process: Manager,
    families: Vec<OperatorSpec>,
    each: Vec<OperatorSpec>,
}

impl Forms {
    pub(super) async fn install(
        MemoryOptions { programs, one_program, .. }: &MemoryOptions,
        cluster: &Cluster,
    ) -> Result<Self> {
        let program = programs.all_in_one()?;
        let folder = programs.manifests.join("groups");
        cluster.install_one_process().await?;
        cluster.install_accounts(&folder).await?;
        let objects = kustomize(&folder).await?;
        let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
        let families = deployments.map(|deployment| family(deployment, &program)).collect::<Result<_>>()?;
        let (mut each, mut controllers) = (Vec::new(), Vec::new());
        let facts: Vec<&Facts> = facts::ALL.iter().copied().filter(|facts| !facts.needs_cloud()).collect();
        for facts in facts {
            controllers.push(facts.names.controller);
            each.push(programs.install(facts.names.operator, *one_program, cluster).await?);
        }
        Ok(Self { controllers: controllers.join(","), one_process: Manager::OneProcess(program), families, each })
    }

    pub(super) async fn start(&self, form: Form, cluster: &Cluster) -> Result<Started> {
        let specs = match form {
            Form::Upstreams => return self.start_manager(Manager::Upstreams, cluster).await,
            Form::OneProcess => return self.start_manager(self.one_process.clone(), cluster).await,
            Form::Families => &self.families,
            Form::Each => &self.each,
        };
        let mut operators = Vec::new();
        for spec in specs {
            operators.push(cluster.start_operator(spec).await?);
        }
        Ok(Started::Operators(operators))
    }

    async fn start_manager(&self, program: Manager, cluster: &Cluster) -> Result<Started> {
        let flags = LEADER_ELECT.map(str::to_owned).to_vec();
        let of = ControllerManager { program, controllers: self.controllers.clone(), flags };
        cluster.start_controller_manager(of).await?;
        Ok(Started::ControllerManager)
    }
}

/// The process of a family, by its Deployment.
fn family(deployment: &Value, program: &Path) -> Result<OperatorSpec> {
    let account = Installed {
        namespace: text(deployment, "/metadata/namespace")?.to_owned(),
        service_account: text(deployment, "/spec/template/spec/serviceAccountName")?.to_owned(),
    };
    let flags = deployment.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let flags = flags.context("a family without flags")?.iter().filter_map(Value::as_str);
    // Each process here has a port of its own.
    let flags = flags.filter(|flag| !flag.starts_with("--secure-port")).map(str::to_owned).collect();
    let name = text(deployment, "/metadata/name")?;
    Ok(OperatorSpec { operator: None, flags, ..OperatorSpec::new(name, program, &account) })
}

/// A form at work.
pub(super) enum Started {
    ControllerManager,
    Operators(Vec<Operator>),
}

impl Started {
    pub(super) fn processes(&self) -> usize {
        match self {
            Self::ControllerManager => 1,
            Self::Operators(operators) => operators.len(),
        }
    }

    pub(super) fn usage(&self, cluster: &Cluster) -> Result<Usage> {
        match self {
            Self::ControllerManager => cluster.usage(Part::ControllerManager),
            Self::Operators(operators) => operators.iter().map(Operator::usage).sum(),
        }
    }

    pub(super) async fn stop(self, cluster: &Cluster) -> Result<()> {
        match self {
            Self::ControllerManager => cluster.stop_controller_manager().await,
            Self::Operators(operators) => {
                for mut operator in operators {
                    operator.terminate().await?;
                }
                Ok(())
            }
        }
    }
}
