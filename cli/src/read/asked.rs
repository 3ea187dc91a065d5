//! Finds the operators that act on the objects that were read, and asks each about its own.
//!
//! Left out: operators that act on a whole cluster and have nothing to say of one object.

mod questions;

use futures::future::join_all;
use kube::Client;
use serde_json::Value;
use shared::api::explain::{Explanation, WHY_PATH};

use super::{Reader, get, list};
use crate::evidence::{Asked, Manager, Seen};
use crate::lease::Lease;
use crate::object::Object;
use crate::preflight::flags::{Flags, of_words};
use crate::reach::Reach;

/// Where kube-controller-manager and its Lease are.
const MANAGER_NAMESPACE: &str = "kube-system";
const MANAGER: &str = "kube-controller-manager";

/// The Lease of this name.
pub(crate) async fn lease(client: &Client, namespace: &str, name: &str) -> Seen<Lease> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    match get(client, &path).await {
        Ok(Some(lease)) => Seen::Is(Lease::read(&lease)),
        Ok(None) => Seen::Absent,
        Err(_) => Seen::Hidden,
    }
}

/// kube-controller-manager, as far as it can be seen.
pub(crate) async fn manager(client: &Client) -> Manager {
    let (lease, pod) = manager_pod(client).await;
    Manager { controllers: pod.as_ref().map(|pod| controllers(&of_words(&command(Object(pod))))), lease }
}

/// Its Lease, and the pod that holds it.
pub(crate) async fn manager_pod(client: &Client) -> (Seen<Lease>, Option<Value>) {
    let path = format!("/api/v1/namespaces/{MANAGER_NAMESPACE}/pods");
    let selector = format!("&labelSelector=component%3D{MANAGER}");
    let (lease, pods) = tokio::join!(lease(client, MANAGER_NAMESPACE, MANAGER), list(client, &path, &selector));
    let holder = lease.known().map(|lease| lease.pod().to_owned()).unwrap_or_default();
    let pod = held_by(pods.unwrap_or_default(), &holder);
    (lease, pod)
}

/// The pod of the process with this identity, which begins with its host's name. A static pod's name ends with the node's,
/// which is the host's unless the kubelet was given another: then a pod that is the only one is taken for it.
fn held_by(mut pods: Vec<Value>, holder: &str) -> Option<Value> {
    let named = pods.iter().position(|pod| Object(pod).name().ends_with(holder));
    let only = (pods.len() == 1).then_some(0);
    named.or(only).map(|index| pods.swap_remove(index))
}

/// The commands and arguments of a pod's containers.
pub(crate) fn command(pod: Object<'_>) -> Vec<String> {
    let words = |container: Object<'_>| {
        let args = container.texts("/args");
        container.texts("/command").into_iter().chain(args).map(str::to_owned).collect::<Vec<_>>()
    };
    pod.list("/spec/containers").flat_map(words).collect()
}

/// kube-controller-manager's `--controllers`; all that are on by default where it doesn't say.
pub(crate) fn controllers(flags: &Flags) -> String {
    flags.get("controllers").map_or("*", String::as_str).to_owned()
}

impl Reader<'_> {
    /// Asks all of them.
    pub(super) async fn ask(&mut self) {
        let (client, reach) = (self.client, self.reach);
        let questions = questions::of(&self.evidence, self.kinds);
        let asked = questions.iter().map(|(operator, paths)| ask(client, reach, operator, paths));
        let (manager, asked) = tokio::join!(manager(client), join_all(asked));
        self.evidence.manager = manager;
        self.evidence.operators = asked;
    }
}

/// Asks one operator about the objects at these paths.
pub(crate) async fn ask(client: &Client, reach: &Reach, operator: &str, paths: &[String]) -> Asked {
    let lease = lease(client, reach.namespace(), operator).await;
    let mut asked = Asked { operator: operator.to_owned(), lease, ..Asked::default() };
    let pod = match &asked.lease {
        Seen::Is(lease) => lease.pod().to_owned(),
        Seen::Absent | Seen::Hidden if reach.knows(operator) => String::new(),
        Seen::Absent => {
            asked.silence = Some(format!("it has no Lease in {}: it was never installed there", reach.namespace()));
            return asked;
        }
        Seen::Hidden => {
            asked.silence = Some(format!("you may not read its Lease in {}", reach.namespace()));
            return asked;
        }
    };
    for path in paths {
        match reach.ask::<Explanation>(operator, &pod, &format!("{WHY_PATH}{path}")).await {
            Ok(answer) => asked.answers.push(answer),
            Err(error) => {
                asked.silence = Some(format!("{error:#}"));
                break;
            }
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_is_held_by_the_pod_of_its_node_or_by_the_only_one() {
        let pods = |nodes: &[&str]| {
            let name = |node: &&str| json!({"metadata": {"name": format!("kube-controller-manager-{node}")}});
            nodes.iter().map(name).collect::<Vec<_>>()
        };
        for (nodes, expected) in [
            (&["a", "b"][..], Some("kube-controller-manager-b")),
            (&["a.example"], Some("kube-controller-manager-a.example")),
            (&["a.example", "b.example"], None),
            (&[], None),
        ] {
            let found = held_by(pods(nodes), "b");
            assert_eq!(found.as_ref().map(|pod| Object(pod).name()), expected, "{nodes:?}");
        }
    }

    #[test]
    fn controllers_are_read_in_one_word_and_in_two() {
        for (words, expected) in [
            ("kube-controller-manager --controllers=*,-job-controller --v=2", "*,-job-controller"),
            ("kube-controller-manager --controllers *,-job-controller --v 2", "*,-job-controller"),
            ("kube-controller-manager --v=2", "*"),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(controllers(&of_words(&words)), expected, "{words:?}");
        }
    }
}
