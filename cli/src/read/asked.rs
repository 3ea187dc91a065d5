//! Asks the operators that act on the objects that were read.

mod questions;

use anyhow::anyhow;
use futures::future::join_all;
use kube::Client;
use serde_json::Value;
use shared::api::explain::{Explanation, WHY_PATH};

use super::{Reader, get, list, why_not};
use crate::command_line::{Flags, parse};
use crate::evidence::Asked;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::reach::Reach;
use crate::runner::Manager;

const MANAGER_NAMESPACE: &str = "kube-system";
const MANAGER: &str = "kube-controller-manager";

pub(crate) async fn lease(client: &Client, namespace: &str, name: &str) -> Lookup<Lease> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    match get(client, &path).await {
        Ok(Some(lease)) => Lookup::Found(Lease::read(&lease)),
        Ok(None) => Lookup::Absent,
        Err(_) => Lookup::Unreadable,
    }
}

pub(crate) async fn manager(client: &Client) -> Manager {
    let (lease, pod) = manager_pod(client).await;
    Manager { controllers: pod.as_ref().map(|pod| controllers(&parse(&command(Object(pod))))), lease }
}

pub(crate) async fn manager_pod(client: &Client) -> (Lookup<Lease>, Option<Value>) {
    let path = format!("/api/v1/namespaces/{MANAGER_NAMESPACE}/pods");
    let selector = format!("&labelSelector=component%3D{MANAGER}");
    let (lease, pods) = tokio::join!(lease(client, MANAGER_NAMESPACE, MANAGER), list(client, &path, &selector));
    let holder = lease.known().map(|lease| lease.pod().to_owned()).unwrap_or_default();
    let pod = held_by(pods.unwrap_or_default(), &holder);
    (lease, pod)
}

/// The identity begins with the host name. A static pod's name ends with the node's, normally the same; otherwise a
/// single pod is taken.
fn held_by(mut pods: Vec<Value>, holder: &str) -> Option<Value> {
    let named = pods.iter().position(|pod| Object(pod).name().ends_with(holder));
    let only = (pods.len() == 1).then_some(0);
    named.or(only).map(|index| pods.swap_remove(index))
}

pub(crate) fn command(pod: Object<'_>) -> Vec<String> {
    let words = |container: Object<'_>| {
        let args = container.texts("/args");
        container.texts("/command").into_iter().chain(args).map(str::to_owned).collect::<Vec<_>>()
    };
    pod.list("/spec/containers").flat_map(words).collect()
}

/// `*` is the default.
pub(crate) fn controllers(flags: &Flags) -> String {
    flags.get("controllers").map_or("*", String::as_str).to_owned()
}

impl Reader<'_> {
    pub(super) async fn ask(&mut self) {
        let (client, reach) = (self.client, self.reach);
        let questions = questions::of(&self.evidence, self.kinds);
        let asked = questions.iter().map(|(operator, paths)| ask(client, reach, operator, paths));
        let (manager, asked) = tokio::join!(manager(client), join_all(asked));
        self.evidence.manager = manager;
        self.evidence.operators = asked;
    }
}

pub(crate) async fn ask(client: &Client, reach: &Reach, operator: &str, paths: &[String]) -> Asked {
    let lease = lease(client, reach.namespace(), operator).await;
    let mut asked = Asked { operator: operator.to_owned(), lease, ..Asked::default() };
    let pod = match &asked.lease {
        Lookup::Found(lease) => lease.pod().to_owned(),
        Lookup::Absent | Lookup::Unreadable if reach.knows(operator) => String::new(),
        Lookup::Absent => {
            asked.silence = Some(format!("no Lease in {}: never installed there", reach.namespace()));
            return asked;
        }
        Lookup::Unreadable => {
            asked.silence = Some(format!("you lack permission to read its Lease in {}", reach.namespace()));
            return asked;
        }
    };
    for path in paths {
        // The operator answers what the account of the token may see. The caller gets no more than their own rights give.
        let answer = match get(client, path).await {
            Ok(_) => reach.ask::<Explanation>(operator, &pod, &format!("{WHY_PATH}{path}")).await,
            Err(error) => Err(anyhow!("cannot get {path}: {}", why_not(&error))),
        };
        match answer {
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
    use shared::api::explain::{Role, Subject};

    use super::*;
    use crate::reach::fakes::{OPERATOR, Operator, apiserver, refusal};

    #[tokio::test]
    async fn an_operator_is_asked_only_about_what_the_caller_may_get() {
        let (operator, version) = (OPERATOR.to_owned(), String::new());
        let object = Subject::of_path("/api/v1/namespaces/a/pods/mine").unwrap();
        let (role, time) = (Role::Leader, jiff::Timestamp::UNIX_EPOCH);
        let answer = Explanation { operator, version, role, time, object, keys: Vec::new(), caches: Vec::new() };
        let operator = Operator::start(serde_json::to_value(&answer).unwrap()).await.unwrap();
        let (client, _) = apiserver(|asked| refusal(if asked.ends_with("/theirs") { 403 } else { 404 }));
        let reach = operator.reach(client.clone(), operator.certificate.clone()).unwrap();
        let paths = ["mine", "theirs"].map(|name| format!("/api/v1/namespaces/a/pods/{name}"));
        let asked = ask(&client, &reach, OPERATOR, &paths).await;
        assert_eq!(asked.answers, [answer], "what is gone, the caller may get");
        assert_eq!(asked.silence.as_deref(), Some("cannot get /api/v1/namespaces/a/pods/theirs: permission denied"));
        let seen = "/why/api/v1/namespaces/a/pods/mine Bearer for kubernetes-operators";
        assert_eq!(operator.log.all(), [seen]);
    }

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
            assert_eq!(controllers(&parse(&words)), expected, "{words:?}");
        }
    }
}
