//! The requests in the apiserver's audit log: their senders, their number, and their delay after their cause.
//! Left out: requests that are still under way; a step is over before its log is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;

use e2e::audit_log;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    pub(crate) verb: String,
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(rename = "requestReceivedTimestamp")]
    received: Timestamp,
    #[serde(rename = "stageTimestamp")]
    finished: Timestamp,
}

#[derive(Debug, Default, Deserialize)]
struct User {
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    name: String,
    namespace: String,
    subresource: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

/// The requests from the byte `position` of the log on.
pub(crate) fn since(log: &Path, position: u64) -> Result<Vec<Request>> {
    let lines = audit_log::lines_since(log, position)?;
    lines.iter().map(|line| serde_json::from_slice(line).context("read the audit log")).collect()
}

/// The account that lists and watches for all controllers of kube-controller-manager. It writes as well, such as tokens
/// of the controllers' own accounts, but of their decisions only Secrets.
const SHARED_READER: &str = "system:kube-controller-manager";

/// Where the accounts of operators and of kube-controller-manager's controllers are.
const ACCOUNTS: &str = "system:serviceaccount:kube-system:";

/// The accounts by which a contestant asks: all there are but those of `helpers`.
pub(crate) fn accounts(requests: &[Request], helpers: &[&str]) -> Vec<String> {
    let users: BTreeSet<&str> = requests.iter().map(|request| request.user.username.as_str()).collect();
    let is_theirs = |user: &&str| user.strip_prefix(ACCOUNTS).is_some_and(|account| !helpers.contains(&account));
    users.into_iter().filter(is_theirs).map(str::to_owned).collect()
}

pub(crate) const READS: [&str; 3] = ["get", "list", "watch"];

/// How often `users` asked, by verb, and what kube-controller-manager read for them; events that they post are counted
/// apart, as `create event`. A watch has been asked for when it ends.
pub(crate) fn by_verb(requests: &[Request], users: &[String]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let is_theirs = |request: &&Request| {
        let Request { verb, user: User { username }, object_ref: ObjectRef { resource, .. }, .. } = request;
        // The controller of tokens has no account of its own, for it would need a token first.
        let is_shared = READS.contains(&verb.as_str()) || resource == "secrets";
        users.contains(username) || (username == SHARED_READER && is_shared)
    };
    for request in requests.iter().filter(is_theirs) {
        let Request { verb, object_ref: ObjectRef { resource, .. }, .. } = request;
        let what = match (resource.as_str(), verb.as_str()) {
            ("events", "create" | "patch") => format!("{verb} event"),
            ("leases", _) => continue,
            _ => verb.clone(),
        };
        *counts.entry(what).or_default() += 1;
    }
    counts
}

/// How long after each Deployment's creation its first ReplicaSet was asked for: from the event to the write, sorted.
/// A Deployment is created by somebody else; its ReplicaSet's name begins with its own.
pub(crate) fn reactions(requests: &[Request], users: &[String]) -> Vec<Duration> {
    let mut created: BTreeMap<(&str, &str), Timestamp> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.creates("deployments")) {
        created.insert(request.key(), request.finished);
    }
    let mut first: BTreeMap<(&str, &str), Duration> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.creates("replicasets")) {
        let (namespace, name) = request.key();
        let Some((deployment, _)) = name.rsplit_once('-') else { continue };
        let Some(at) = created.get(&(namespace, deployment)).filter(|_| users.contains(&request.user.username)) else {
            continue;
        };
        let waited = Duration::try_from(at.duration_until(request.received)).unwrap_or_default();
        first.entry((namespace, deployment)).or_insert(waited);
    }
    let mut reactions: Vec<Duration> = first.into_values().collect();
    reactions.sort_unstable();
    reactions
}

/// How long after the time it was due each Job of a CronJob was asked for, sorted. Its name ends with its minute.
pub(crate) fn delays(requests: &[Request], users: &[String]) -> Vec<Duration> {
    let created = requests.iter().filter(|request| request.creates("jobs") && users.contains(&request.user.username));
    let delay = |request: &Request| {
        let (_, minute) = request.object_ref.name.rsplit_once('-')?;
        let due = Timestamp::from_second(minute.parse::<i64>().ok()?.checked_mul(60)?).ok()?;
        Some(Duration::try_from(due.duration_until(request.received)).unwrap_or_default())
    };
    let mut delays: Vec<Duration> = created.filter_map(delay).collect();
    delays.sort_unstable();
    delays
}

/// How long after the end of the deletion of a namespace's last pod the usage of a quota there was written for the last
/// time, sorted. Where nothing was written after that, nothing was left to write.
pub(crate) fn usages(requests: &[Request], users: &[String]) -> Vec<Duration> {
    let last = |picks: &dyn Fn(&Request) -> bool| {
        let mut last: BTreeMap<&str, Timestamp> = BTreeMap::new();
        for request in requests.iter().filter(|request| picks(request) && request.response_status.code == 200) {
            let known = last.entry(&request.object_ref.namespace).or_insert(request.finished);
            *known = request.finished.max(*known);
        }
        last
    };
    let deletions = last(&|request| request.verb == "delete" && request.object_ref.resource == "pods");
    let writes = last(&|request| {
        let ObjectRef { resource, subresource, .. } = &request.object_ref;
        (&**resource, &**subresource) == ("resourcequotas", "status") && users.contains(&request.user.username)
    });
    let waited = |(namespace, deleted): (&&str, &Timestamp)| {
        Some(Duration::try_from(deleted.duration_until(*writes.get(*namespace)?)).unwrap_or_default())
    };
    let mut waits: Vec<Duration> = deletions.iter().filter_map(waited).collect();
    waits.sort_unstable();
    waits
}

impl Request {
    fn creates(&self, resource: &str) -> bool {
        self.verb == "create"
            && self.object_ref.resource == resource
            && self.object_ref.subresource.is_empty()
            && self.response_status.code == 201
    }

    fn key(&self) -> (&str, &str) {
        (&self.object_ref.namespace, &self.object_ref.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(verb: &str, user: &str, resource: &str, name: &str, second: u32) -> Request {
        serde_json::from_value(serde_json::json!({
            "verb": verb, "user": {"username": user},
            "objectRef": {"resource": resource, "namespace": "ns", "name": name},
            "responseStatus": {"code": 201},
            "requestReceivedTimestamp": format!("2026-01-01T00:00:{second:02}.250000Z"),
            "stageTimestamp": format!("2026-01-01T00:00:{second:02}.500000Z"),
        }))
        .unwrap()
    }

    #[test]
    fn counts_and_reactions() {
        let users = ["us".to_owned()];
        let requests = [
            request("create", "person", "deployments", "web", 1),
            request("create", "us", "replicasets", "web-abc", 2),
            request("create", "us", "replicasets", "web-def", 9),
            request("create", "us", "events", "e", 3),
            request("update", "us", "leases", "l", 3),
            request("create", "others", "pods", "p", 3),
            request("watch", SHARED_READER, "pods", "", 3),
            request("create", SHARED_READER, "serviceaccounts", "s", 3),
        ];
        let counts: Vec<(String, u64)> = by_verb(&requests, &users).into_iter().collect();
        assert_eq!(counts, [("create", 2), ("create event", 1), ("watch", 1)].map(|(verb, n)| (verb.to_owned(), n)));
        assert_eq!(reactions(&requests, &users), [Duration::from_millis(750)]);
    }

    #[test]
    fn usage_is_right_when_it_was_written_last_after_the_last_deletion() {
        let users = ["us".to_owned()];
        let in_namespace = |verb: &str, user: &str, resource: &str, namespace: &str, second: u32| {
            let mut request = request(verb, user, resource, "a", second);
            request.response_status.code = 200;
            namespace.clone_into(&mut request.object_ref.namespace);
            if resource == "resourcequotas" {
                "status".clone_into(&mut request.object_ref.subresource);
            }
            request
        };
        let mut refused = in_namespace("patch", "us", "resourcequotas", "a", 9);
        refused.response_status.code = 409;
        let requests = [
            in_namespace("delete", "person", "pods", "a", 1),
            in_namespace("patch", "us", "resourcequotas", "a", 2),
            in_namespace("delete", "person", "pods", "a", 3),
            in_namespace("patch", "us", "resourcequotas", "a", 5),
            in_namespace("patch", "others", "resourcequotas", "a", 8),
            refused,
            in_namespace("delete", "person", "pods", "b", 3),
        ];
        assert_eq!(usages(&requests, &users), [Duration::from_secs(2)]);
    }

    #[test]
    fn whoever_asks_by_an_account_is_the_contestant_but_for_helpers() {
        let request = |user: &str| request("create", user, "pods", "p", 1);
        let requests =
            ["job-operator", "job-operator", "replicaset-operator"].map(|name| request(&format!("{ACCOUNTS}{name}")));
        let requests: Vec<Request> = requests.into_iter().chain([request("kwok"), request(SHARED_READER)]).collect();
        assert_eq!(accounts(&requests, &["replicaset-operator"]), [format!("{ACCOUNTS}job-operator")]);
    }

    #[test]
    fn a_job_of_a_cron_job_says_when_it_was_due() {
        let users = ["us".to_owned()];
        // 2026-01-01T00:00:00Z is minute 29453760.
        let requests = [
            request("create", "us", "jobs", "nightly-29453760", 2),
            request("create", "person", "jobs", "manual-29453760", 1),
            request("create", "us", "jobs", "often-29453759", 1),
        ];
        assert_eq!(delays(&requests, &users), [Duration::from_millis(2250), Duration::from_millis(61250)]);
    }
}
