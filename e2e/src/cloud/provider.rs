//! The scriptable cloud as a provider: each call reads the file, does as it says, and notes what it did.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use cloud::objects::PROTOCOL_VERSION;
use cloud::server::Provider;
use cloud::{CloudError, Info, InstanceMetadata, LoadBalancer};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::net::UnixListener;
use tokio::time::sleep;

use super::calls::{Call, Noted};
use super::faults::{Action, strike};
use super::file::CloudFile;
use super::state::{Balancer, Change, CloudState, Instance, Route, balancer_name, status, text};

/// Ends the process.
type Die = fn();

/// Serves the cloud that is in this file on a Unix socket, for as long as the process lives.
pub async fn serve(file: PathBuf, socket: &Path) -> Result<()> {
    // What the last process left there serves nobody.
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).with_context(|| format!("listen at {}", socket.display()))?;
    let error = cloud::server::serve(listener, Arc::new(Scripted { file, die: kill_self })).await;
    Err(error).context("accept a connection")
}

/// Leaves everything as it stands, as a crash does.
fn kill_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

struct Scripted {
    file: PathBuf,
    die: Die,
}

impl Scripted {
    async fn read<T>(
        &self,
        call: Call,
        object: &str,
        look: impl FnOnce(&CloudState) -> Result<T, CloudError> + Send,
    ) -> Result<T, CloudError> {
        self.perform(call, object, |file, is_stale| {
            let state = if is_stale { &file.yesterday } else { &file.state };
            look(state).map(|found| (found, Change::Nothing))
        })
        .await
    }

    async fn write<T>(
        &self,
        call: Call,
        object: &str,
        act: impl FnOnce(&mut CloudState) -> Result<(T, Change), CloudError> + Send,
    ) -> Result<T, CloudError> {
        self.perform(call, object, |file, _| act(&mut file.state)).await
    }

    async fn perform<T>(
        &self,
        call: Call,
        object: &str,
        act: impl FnOnce(&mut CloudFile, bool) -> Result<(T, Change), CloudError> + Send,
    ) -> Result<T, CloudError> {
        let struck = self.edit(|file| strike(&mut file.faults, call, object))?;
        match &struck {
            Some(Action::Delay { milliseconds }) => sleep(Duration::from_millis(*milliseconds)).await,
            Some(Action::Refuse(refusal)) => {
                self.note(call, object, "refused")?;
                return Err(refusal.clone().into());
            }
            Some(Action::DieBefore) => {
                self.note(call, object, "died before it")?;
                (self.die)();
                return Err(lost());
            }
            Some(Action::DelayAnswer { .. } | Action::LoseAnswer | Action::DieAfter | Action::Yesterday) | None => {}
        }
        let done = self.edit(|file| act(file, struck == Some(Action::Yesterday)))?;
        match &done {
            Ok((_, change)) => self.note(call, object, change.as_str())?,
            Err(error) => self.note(call, object, &error.to_string())?,
        }
        match struck {
            Some(Action::DelayAnswer { milliseconds }) => sleep(Duration::from_millis(milliseconds)).await,
            Some(Action::LoseAnswer) => return Err(lost()),
            Some(Action::DieAfter) => {
                (self.die)();
                return Err(lost());
            }
            Some(Action::Delay { .. } | Action::Refuse(_) | Action::DieBefore | Action::Yesterday) | None => {}
        }
        done.map(|(answer, _)| answer)
    }

    fn edit<T>(&self, change: impl FnOnce(&mut CloudFile) -> T) -> Result<T, CloudError> {
        CloudFile::edit(&self.file, change).map_err(|error| failed(&error))
    }

    fn note(&self, call: Call, object: &str, outcome: &str) -> Result<(), CloudError> {
        let noted = Noted { call, object: object.to_owned(), outcome: outcome.to_owned() };
        noted.write(&self.file).map_err(|error| failed(&error))
    }

    /// What the cloud has for the instance of a Node, or that there is none.
    async fn instance<T>(
        &self,
        call: Call,
        node: &RawValue,
        read: impl FnOnce(Option<Instance>) -> Result<T, CloudError> + Send,
    ) -> Result<T, CloudError> {
        let node = parse(node)?;
        self.read(call, text(&node, "/metadata/name"), |state| read(state.instance(&node))).await
    }
}

impl Provider for Scripted {
    async fn info(&self) -> Result<Info, CloudError> {
        Ok(Info {
            name: "scripted".to_owned(),
            protocol_version: PROTOCOL_VERSION,
            load_balancers: true,
            instances: true,
            routes: true,
            has_cluster_id: true,
        })
    }

    async fn get_load_balancer(&self, _cluster: &str, service: &RawValue) -> Result<LoadBalancer, CloudError> {
        let service = parse(service)?;
        self.read(Call::GetLoadBalancer, text(&service, "/metadata/name"), |state| {
            let balancer = state.balancer(&service);
            let status = balancer.map(|Balancer { address, .. }| raw(&status(address))).transpose()?;
            Ok(LoadBalancer { name: balancer_name(&service), status })
        })
        .await
    }

    async fn ensure_load_balancer(
        &self,
        _cluster: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<Box<RawValue>, CloudError> {
        let (service, nodes) = (parse(service)?, names(nodes)?);
        self.write(Call::EnsureLoadBalancer, text(&service, "/metadata/name"), |state| {
            let (status, change) = state.ensure_balancer(&service, nodes);
            Ok((raw(&status)?, change))
        })
        .await
    }

    async fn update_load_balancer(
        &self,
        _cluster: &str,
        service: &RawValue,
        nodes: &[Box<RawValue>],
    ) -> Result<(), CloudError> {
        let (service, nodes) = (parse(service)?, names(nodes)?);
        self.write(Call::UpdateLoadBalancer, text(&service, "/metadata/name"), |state| {
            let missing = || CloudError::Failed(format!("there is no balancer {}", balancer_name(&service)));
            state.update_balancer(&service, nodes).map(|change| ((), change)).ok_or_else(missing)
        })
        .await
    }

    async fn delete_load_balancer(&self, _cluster: &str, service: &RawValue) -> Result<(), CloudError> {
        let service = parse(service)?;
        self.write(Call::DeleteLoadBalancer, text(&service, "/metadata/name"), |state| {
            Ok(((), state.delete_balancer(&service)))
        })
        .await
    }

    async fn instance_exists(&self, node: &RawValue) -> Result<bool, CloudError> {
        self.instance(Call::InstanceExists, node, |instance| Ok(instance.is_some())).await
    }

    async fn instance_is_shutdown(&self, node: &RawValue) -> Result<bool, CloudError> {
        self.instance(Call::InstanceIsShutdown, node, |instance| {
            instance.map(|instance| instance.is_shutdown).ok_or(CloudError::InstanceNotFound)
        })
        .await
    }

    async fn instance_metadata(&self, node: &RawValue) -> Result<Option<InstanceMetadata>, CloudError> {
        self.instance(Call::InstanceMetadata, node, |instance| {
            let instance = instance.ok_or(CloudError::InstanceNotFound)?;
            let Instance { provider_id, instance_type, zone, region, addresses, labels, .. } = instance;
            Ok(Some(InstanceMetadata {
                provider_id,
                instance_type,
                node_addresses: serde_json::from_value(Value::Array(addresses))
                    .map_err(|error| failed(&error.into()))?,
                zone,
                region,
                additional_labels: labels,
            }))
        })
        .await
    }

    async fn list_routes(&self, _cluster: &str) -> Result<Vec<cloud::Route>, CloudError> {
        self.read(Call::ListRoutes, "", |state| {
            Ok(state.routes.iter().map(|(name, route)| served(name.clone(), route.clone())).collect())
        })
        .await
    }

    async fn create_route(&self, _cluster: &str, name_hint: &str, route: &cloud::Route) -> Result<(), CloudError> {
        let kept = Route {
            target_node: route.target_node.clone(),
            destination_cidr: route.destination_cidr.clone(),
            blackhole: route.blackhole,
        };
        self.write(Call::CreateRoute, &route.target_node, |state| Ok(((), state.create_route(name_hint, kept)))).await
    }

    async fn delete_route(&self, _cluster: &str, route: &cloud::Route) -> Result<(), CloudError> {
        self.write(Call::DeleteRoute, &route.target_node, |state| Ok(((), state.delete_route(&route.name)))).await
    }
}

fn served(name: String, Route { target_node, destination_cidr, blackhole }: Route) -> cloud::Route {
    cloud::Route { name, target_node, destination_cidr, blackhole, ..cloud::Route::default() }
}

fn parse(object: &RawValue) -> Result<Value, CloudError> {
    serde_json::from_str(object.get()).map_err(|error| failed(&error.into()))
}

/// The names of nodes, sorted: their order means nothing.
fn names(nodes: &[Box<RawValue>]) -> Result<Vec<String>, CloudError> {
    let mut names: Vec<String> = nodes
        .iter()
        .map(|node| Ok(text(&parse(node)?, "/metadata/name").to_owned()))
        .collect::<Result<_, CloudError>>()?;
    names.sort();
    Ok(names)
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, CloudError> {
    to_raw_value(value).map_err(|error| failed(&error.into()))
}

fn failed(error: &anyhow::Error) -> CloudError {
    CloudError::Failed(format!("{error:#}"))
}

fn lost() -> CloudError {
    CloudError::Failed("the answer was lost".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::faults::{Fault, Refusal};
    use super::*;

    fn scripted(folder: &tempfile::TempDir, faults: Vec<Fault>) -> Scripted {
        let file = folder.path().join("cloud.json");
        CloudFile::edit(&file, |cloud| cloud.faults = faults).unwrap();
        Scripted { file, die: || () }
    }

    fn service() -> Box<RawValue> {
        to_raw_value(&json!({"metadata": {"namespace": "shop", "name": "web", "uid": "u"}})).unwrap()
    }

    async fn ensure(cloud: &Scripted) -> Result<Box<RawValue>, CloudError> {
        cloud.ensure_load_balancer("kubernetes", &service(), &[]).await
    }

    fn outcomes(cloud: &Scripted) -> Vec<String> {
        Noted::read(&cloud.file).unwrap().into_iter().map(|noted| noted.outcome).collect()
    }

    #[tokio::test]
    async fn a_lost_answer_leaves_its_balancer_and_the_next_call_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let cloud = scripted(&folder, vec![Fault::new(Call::EnsureLoadBalancer, Action::LoseAnswer)]);
        assert_eq!(ensure(&cloud).await.unwrap_err(), lost());
        assert!(ensure(&cloud).await.unwrap().get().contains("198.18.0.1"));
        assert_eq!(outcomes(&cloud), ["made", ""]);
    }

    #[tokio::test]
    async fn a_refused_call_does_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = Refusal::RetryAfter { milliseconds: 5, message: "busy".to_owned() };
        let cloud = scripted(&folder, vec![Fault::new(Call::EnsureLoadBalancer, Action::Refuse(refusal))]);
        let busy = CloudError::RetryAfter { after: Duration::from_millis(5), message: "busy".to_owned() };
        assert_eq!(ensure(&cloud).await.unwrap_err(), busy);
        assert!(cloud.get_load_balancer("kubernetes", &service()).await.unwrap().status.is_none());
        assert_eq!(outcomes(&cloud), ["refused", ""]);
    }

    #[tokio::test]
    async fn a_cloud_dies_before_or_after_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let die = |action| Fault::new(Call::EnsureLoadBalancer, action);
        let cloud = scripted(&folder, vec![die(Action::DieBefore), die(Action::DieAfter)]);
        ensure(&cloud).await.unwrap_err();
        assert_eq!(CloudFile::read(&cloud.file).unwrap().state, CloudState::default());
        ensure(&cloud).await.unwrap_err();
        assert_eq!(CloudFile::read(&cloud.file).unwrap().state.balancers.len(), 1);
    }

    #[tokio::test]
    async fn yesterdays_state_answers_reads_and_takes_no_writes() {
        let folder = tempfile::tempdir().unwrap();
        let stale = |call| Fault::new(call, Action::Yesterday).always();
        let cloud = scripted(&folder, vec![stale(Call::GetLoadBalancer), stale(Call::EnsureLoadBalancer)]);
        ensure(&cloud).await.unwrap();
        assert!(cloud.get_load_balancer("kubernetes", &service()).await.unwrap().status.is_none());
        let file = CloudFile::read(&cloud.file).unwrap();
        assert_eq!((file.state.balancers.len(), file.yesterday), (1, CloudState::default()));
    }

    #[tokio::test]
    async fn an_instance_that_does_not_exist_is_told_apart_from_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let cloud = scripted(&folder, Vec::new());
        CloudFile::edit(&cloud.file, |file| file.state.only_listed_exist = true).unwrap();
        let node = to_raw_value(&json!({"metadata": {"name": "n"}})).unwrap();
        assert!(!cloud.instance_exists(&node).await.unwrap());
        assert_eq!(cloud.instance_metadata(&node).await, Err(CloudError::InstanceNotFound));
        std::fs::write(&cloud.file, "{").unwrap();
        assert!(matches!(cloud.instance_exists(&node).await, Err(CloudError::Failed(_))));
    }
}
