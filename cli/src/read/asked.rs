//! Asks the operators that act on the objects that were read.

mod questions;

use std::collections::BTreeMap;

use anyhow::bail;
use futures::future::join_all;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use shared::api::explain::{Explanation, WHY_PATH};

use super::leases::{Leases, MANAGER, MANAGER_NAMESPACE};
use super::{Reader, get, list, why_not};
use crate::command_line::{Flags, parse};
use crate::evidence::Asked;
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::reach::{Leader, Reach, Refused};
use crate::runner::Manager;

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
    let controllers = pod.as_ref().map(|pod| controllers(&parse(&command(Object(pod)))));
    Manager { lease, controllers, is_replaced: false }
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
    pub(super) async fn ask(&mut self, now: Timestamp) {
        let (client, reach) = (self.client, self.reach);
        let (leases, mut manager) = tokio::join!(Leases::read(client, reach.namespace()), manager(client));
        manager.is_replaced = leases.are_of_one_process(&manager.lease, now);
        self.evidence.manager = manager;
        let questions = questions::of(&self.evidence, self.kinds);
        self.evidence.operators = ask(client, reach, &leases, questions).await;
    }
}

/// What operators say about objects, by the objects' paths.
type Answers = BTreeMap<String, Result<Vec<Explanation>, String>>;

/// Asks each leader once about an object: the process with several controllers answers for all of them.
pub(crate) async fn ask(
    client: &Client,
    reach: &Reach,
    leases: &Leases,
    questions: impl IntoIterator<Item = (&str, Vec<String>)>,
) -> Vec<Asked> {
    let questions: Vec<_> =
        questions.into_iter().map(|(operator, paths)| (operator, paths, leader_of(leases, reach, operator))).collect();
    let mut leaders = BTreeMap::<&Leader, Vec<&String>>::new();
    for (_, paths, leader) in &questions {
        let Ok(leader) = leader else { continue };
        let known = leaders.entry(leader).or_default();
        for path in paths {
            if !known.contains(&path) {
                known.push(path);
            }
        }
    }
    let asked = leaders.into_iter().map(async |(leader, paths)| (leader, answers(client, reach, leader, paths).await));
    let answers: BTreeMap<&Leader, Answers> = join_all(asked).await.into_iter().collect();
    let asked = questions.iter().map(|(operator, paths, leader)| {
        let mut asked = Asked { operator: (*operator).to_owned(), lease: leases.of(operator), ..Asked::default() };
        match leader {
            Ok(leader) => asked.take(paths, answers.get(leader)),
            Err(why) => asked.silence = Some(why.clone()),
        }
        asked
    });
    asked.collect()
}

fn leader_of(leases: &Leases, reach: &Reach, operator: &str) -> Result<Leader, String> {
    match leases.of(operator) {
        Lookup::Found(_) => Ok(leases.leader(operator, reach)),
        Lookup::Absent | Lookup::Unreadable if reach.knows(operator) => Ok(leases.leader(operator, reach)),
        Lookup::Absent => Err(format!("no Lease in {}: never installed there", reach.namespace())),
        Lookup::Unreadable => Err(format!("you lack permission to read its Lease in {}", reach.namespace())),
    }
}

/// A leader that gives no answer is not asked further; one that refuses an object may explain the others.
async fn answers(client: &Client, reach: &Reach, leader: &Leader, paths: Vec<&String>) -> Answers {
    let (mut answers, mut failed) = (Answers::new(), None);
    for path in paths {
        let answer = match &failed {
            Some(error) => Err(String::clone(error)),
            None => about(client, reach, leader, path).await.map_err(|error| {
                let text = format!("{error:#}");
                failed = Some(text.clone()).filter(|_| !error.is::<Refused>());
                text
            }),
        };
        answers.insert(path.clone(), answer);
    }
    answers
}

/// The operator answers what the account of the token may see. The caller gets no more than their own rights give.
async fn about(client: &Client, reach: &Reach, leader: &Leader, path: &str) -> anyhow::Result<Vec<Explanation>> {
    if let Err(error) = get(client, path).await {
        bail!(Refused(format!("cannot get {path}: {}", why_not(&error))));
    }
    reach.ask(leader, &format!("{WHY_PATH}{path}")).await
}

impl Asked {
    /// Takes this operator's explanations of the objects, up to the first that there is no answer about.
    fn take(&mut self, paths: &[String], answers: Option<&Answers>) {
        for answer in paths.iter().filter_map(|path| answers?.get(path)) {
            match answer {
                Ok(all) => self.answers.extend(all.iter().filter(|one| one.operator == self.operator).cloned()),
                Err(error) => {
                    self.silence = Some(error.clone());
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::api::explain::{Role, Subject};

    use super::*;
    use crate::reach::fakes::{OPERATOR, Operator, apiserver, refusal};

    fn explanation(operator: &str) -> Explanation {
        let (operator, version) = (operator.to_owned(), String::new());
        let [version_of_api, resource, namespace, name] = ["v1", "pods", "a", "mine"].map(str::to_owned);
        let object = Subject { group: String::new(), version: version_of_api, resource, namespace, name };
        let (role, time) = (Role::Leader, Timestamp::UNIX_EPOCH);
        Explanation { operator, version, role, time, object, keys: Vec::new(), caches: Vec::new() }
    }

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("/api/v1/namespaces/a/pods/{name}")).collect()
    }

    #[tokio::test]
    async fn an_operator_is_asked_only_about_what_the_caller_may_get() {
        let answer = explanation(OPERATOR);
        let operator = Operator::start(json!([answer])).await.unwrap();
        let (client, _) = apiserver(|asked| refusal(if asked.ends_with("/theirs") { 403 } else { 404 }));
        let reach = operator.reach(client.clone(), operator.certificate.clone()).unwrap();
        let leases = Leases::read(&client, "kube-system").await;
        let asked = ask(&client, &reach, &leases, [(OPERATOR, paths(&["mine", "theirs"]))]).await;
        assert_eq!(asked[0].answers, [answer], "what is gone, the caller may get");
        assert_eq!(asked[0].silence.as_deref(), Some("cannot get /api/v1/namespaces/a/pods/theirs: permission denied"));
        let seen = "/why/api/v1/namespaces/a/pods/mine Bearer for kubernetes-operators";
        assert_eq!(operator.log.all(), [seen]);
    }

    #[tokio::test]
    async fn one_process_is_asked_once_for_all_its_operators() {
        let all = json!([explanation("b-operator"), explanation("c-operator")]);
        let process = Operator::answering(move |path| {
            let is_refused = path.ends_with("/refused");
            (if is_refused { 403 } else { 200 }, all.clone())
        });
        let process = process.await.unwrap();
        let (client, log) = apiserver(|asked| {
            let lease =
                |name: &str, holder: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": holder}});
            let common = "kube-system/kube-controller-manager";
            let leases =
                [("b-operator", common), ("c-operator", common), ("d-operator", common), (MANAGER, "node-1_x")]
                    .map(|(name, holder)| lease(name, holder));
            if asked.contains("/leases?") { (200, json!({"items": leases})) } else { refusal(404) }
        });
        let reach = process.reach_as(MANAGER, client.clone()).unwrap();
        let leases = Leases::read(&client, "kube-system").await;
        let questions = [
            ("a-operator", &["mine"][..]),
            ("b-operator", &["refused"]),
            ("c-operator", &["mine", "other"]),
            ("d-operator", &["mine"]),
        ];
        let questions = questions.map(|(operator, names)| (operator, paths(names)));
        let asked = ask(&client, &reach, &leases, questions).await;
        let told = |asked: &Asked| asked.answers.iter().map(|answer| answer.operator.clone()).collect::<Vec<_>>();
        let told: Vec<Vec<String>> = asked.iter().map(told).collect();
        assert_eq!(told, [vec![], vec![], vec!["c-operator", "c-operator"], vec![]]);
        let silent = asked.iter().map(|asked| asked.silence.as_deref().unwrap_or_default().split(':').next());
        let silent: Vec<Option<&str>> = silent.collect();
        let absent = "no Lease in kube-system";
        assert_eq!(silent, [Some(absent), Some("permission denied (403)"), Some(""), Some("")]);
        let seen = ["refused", "mine", "other"]
            .map(|name| format!("/why{} Bearer for kubernetes-operators", paths(&[name])[0]));
        assert_eq!(process.log.all(), seen);
        assert!(log.all().iter().all(|asked| !asked.contains("portforward")), "{:?}", log.all());
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
