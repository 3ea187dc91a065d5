//! Reads the objects to check and runs the shadows until their objects are at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use futures::future::join_all;
use futures::{StreamExt, stream};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde_json::Value;
use shared::api::explain::{SHADOW_PATH, ShadowReport};
use shared::process::flags::KUBERNETES_VERSION;
use tokio::time::{Instant, sleep};

use super::checks::{Bound, Facts, server};
use super::documented::of_report;
use super::flags;
use super::report::{Answer, Inspected, Level, Preflight};
use super::roles::{self, Right, Role};
use super::shadows::{Launcher, Shadow};
use crate::command_line::{Flags, parse};
use crate::lease::Lease;
use crate::lookup::Lookup;
use crate::object::Object;
use crate::reach::{Leader, Reach, ReachOptions, Refused, Servers};
use crate::read::asked::{command, controllers, lease, manager_pod};
use crate::read::leases::Leases;
use crate::read::{get, list};
use crate::runner::Manager;

/// Shadows that run at a time.
const AT_A_TIME: usize = 8;
pub(super) const ANSWERED: &str = "done";
const PERIOD: Duration = Duration::from_millis(500);

pub struct PreflightOptions {
    pub operators: Vec<&'static str>,
    /// The program `operators`; by default next to this program or on the PATH.
    pub program: Option<PathBuf>,
    pub kubeconfig: Kubeconfig,
    pub timeout: Duration,
    pub reach: ReachOptions,
}

struct Cluster {
    client: Client,
    reach: ReachOptions,
    manager: Manager,
    manager_flags: Option<Flags>,
    denied: BTreeSet<Right>,
}

/// Runs the shadows and all checks, and calls `progress` on each change.
pub async fn preflight(
    client: Client,
    options: PreflightOptions,
    now: impl Fn() -> Timestamp,
    progress: &impl Fn(&BTreeMap<&'static str, String>),
) -> Result<Preflight> {
    let PreflightOptions { operators, program, kubeconfig, timeout, reach } = options;
    let launcher = Launcher::new(program, &kubeconfig)?;
    let version = get_version(&client).await.context("cannot get the cluster's version")?;
    let (manager_lease, pod) = manager_pod(&client).await;
    let words = pod.as_ref().map(|pod| command(Object(pod)));
    let manager_flags = words.as_deref().map(parse);
    let controllers = manager_flags.as_ref().map(controllers);
    let denied = denied(&client, &operators).await?;
    let leases = Leases::read(&client, &reach.namespace).await;
    let is_replaced = leases.are_of_one_process(&manager_lease, now());
    let manager = Manager { lease: manager_lease, controllers, is_replaced };
    let cluster = Cluster { client, reach, manager, manager_flags, denied };
    let states = std::cell::RefCell::new(BTreeMap::new());
    let report_progress = |operator: &'static str, state: String| {
        if states.borrow_mut().insert(operator, state.clone()) != Some(state) {
            progress(&states.borrow());
        }
    };
    let inspected = stream::iter(operators).map(|operator| {
        let (launcher, cluster, report_progress, now) = (&launcher, &cluster, &report_progress, now());
        async move { cluster.inspect(operator, launcher, timeout, now, report_progress).await }
    });
    let mut operators = Vec::new();
    let mut inspected = inspected.buffer_unordered(AT_A_TIME);
    while let Some(found) = inspected.next().await {
        operators.push(found?);
    }
    operators.sort_by(|a, b| a.operator.cmp(&b.operator));
    Ok(Preflight { time: now(), checks: vec![server(&version, KUBERNETES_VERSION)], operators })
}

impl Cluster {
    async fn inspect(
        &self,
        operator: &'static str,
        launcher: &Launcher,
        timeout: Duration,
        now: Timestamp,
        report_progress: &impl Fn(&'static str, String),
    ) -> Result<Inspected> {
        report_progress(operator, "starting".to_owned());
        let own_flags = flags::of_help(&launcher.help(operator).await?);
        let facts = self.facts(operator, own_flags, now).await?;
        let checks = facts.checks();
        let denied = checks.iter().find(|check| check.about == "rights" && check.level == Level::Problem);
        let (report, failure) = if let Some(check) = denied {
            // The shadow would wait forever for a resource that it may not list.
            (None, Some(check.text.clone()))
        } else {
            let given = flags::for_shadow(&facts.own_flags, self.manager_flags.as_ref());
            match launcher.start(operator, &given) {
                Ok(mut shadow) => {
                    let found = self.wait(operator, &mut shadow, timeout, report_progress).await;
                    shadow.end().await?;
                    found
                }
                Err(error) => (None, Some(format!("{error:#}"))),
            }
        };
        let answer = match (&report, &failure) {
            (Some(report), None) if report.differences.is_empty() => Answer::Nothing,
            (Some(_), None) => Answer::Differences,
            (Some(_), Some(_)) => Answer::Unfinished,
            (None, _) => Answer::Failed,
        };
        report_progress(operator, ANSWERED.to_owned());
        let documented = report.as_ref().map(of_report).unwrap_or_default();
        let (operator, failure) = (operator.to_owned(), failure.unwrap_or_default());
        Ok(Inspected { operator, answer, report, documented, failure, checks })
    }

    /// The report at rest; or the last report, and why it is incomplete.
    async fn wait(
        &self,
        operator: &'static str,
        shadow: &mut Shadow,
        timeout: Duration,
        report_progress: &impl Fn(&'static str, String),
    ) -> (Option<ShadowReport>, Option<String>) {
        let servers = Servers::from([(operator.to_owned(), shadow.server())]);
        let options = ReachOptions { servers, ..self.reach.clone() };
        let reach = Reach::new(self.client.clone(), options);
        if let Err(error) = reach.token().await {
            return (None, Some(format!("{error:#}")));
        }
        let deadline = Instant::now() + timeout;
        let (mut last, mut why) = (None, "no answer".to_owned());
        let leader = Leader::of_operator(operator, "");
        while Instant::now() < deadline {
            if let Some(how) = shadow.ended() {
                return (last, Some(how));
            }
            match reach.ask::<ShadowReport>(&leader, SHADOW_PATH).await {
                Ok(report) => {
                    let seen: u64 = report.looked_at.values().sum();
                    why = match (report.complete, report.moving) {
                        (true, 0) => return (Some(report), None),
                        (true, moving) => format!("{seen} looked at, {moving} still changing"),
                        (false, _) => format!("{seen} looked at so far"),
                    };
                    last = Some(report);
                }
                Err(error) if error.is::<Refused>() => return (last, Some(format!("{error:#}"))),
                Err(error) if last.is_none() => why = format!("{error:#}"),
                Err(_) => {}
            }
            report_progress(operator, why.clone());
            sleep(PERIOD).await;
        }
        (last, Some(format!("timed out after {} s: {why}", timeout.as_secs())))
    }

    async fn facts(&self, operator: &str, own_flags: Flags, now: Timestamp) -> Result<Facts> {
        let (client, namespace) = (&self.client, &self.reach.namespace);
        let wanted = roles::of_manifest(operator)?;
        let needed = needed(&wanted);
        let roles = join_all(wanted.into_iter().map(|role| bound(client, operator, role)));
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{operator}");
        let deployment = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{operator}");
        let of_name = format!("&labelSelector=app.kubernetes.io%2Fname%3D{operator}");
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        let (lease, roles, account, deployment, pods): (Lookup<Lease>, _, _, _, _) = tokio::join!(
            lease(client, namespace, operator),
            roles,
            lookup(client, &account),
            lookup(client, &deployment),
            list(client, &pods, &of_name),
        );
        Ok(Facts {
            operator: operator.to_owned(),
            namespace: namespace.clone(),
            now,
            lease,
            manager: self.manager.clone(),
            manager_flags: self.manager_flags.clone(),
            own_flags,
            denied: self.denied.iter().filter(|right| needed.contains(right)).cloned().collect(),
            roles,
            account,
            deployment,
            pods: pods.unwrap_or_default(),
        })
    }
}

async fn get_version(client: &Client) -> Result<String> {
    let request = Request::get("/version").body(Vec::new()).context("cannot make a request")?;
    let version: Value = client.request(request).await?;
    Ok(Object(&version).text("/gitVersion").to_owned())
}

async fn lookup(client: &Client, path: &str) -> Lookup<Value> {
    match get(client, path).await {
        Ok(Some(object)) => Lookup::Found(object),
        Ok(None) => Lookup::Absent,
        Err(_) => Lookup::Unreadable,
    }
}

async fn bound(client: &Client, operator: &str, wanted: Role) -> Bound {
    let path = |plural: &str| {
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        match wanted.namespace.as_str() {
            "" => format!("{rbac}/cluster{plural}/{operator}"),
            namespace => format!("{rbac}/namespaces/{namespace}/{plural}/{operator}"),
        }
    };
    let (role, binding) = (path("roles"), path("rolebindings"));
    let (role, binding) = tokio::join!(lookup(client, &role), lookup(client, &binding));
    Bound { wanted, role, binding }
}

/// Rights of the caller that a shadow needs: the operator's reads, and reviews of tokens and access.
fn needed(roles: &[Role]) -> BTreeSet<Right> {
    let reviews = roles::REVIEWS.map(|(group, resource)| Right {
        verb: "create".to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: String::new(),
        namespace: String::new(),
    });
    roles::reads(roles).into_iter().chain(reviews).collect()
}

async fn denied(client: &Client, operators: &[&str]) -> Result<BTreeSet<Right>> {
    let mut all = BTreeSet::new();
    for operator in operators {
        all.extend(needed(&roles::of_manifest(operator)?));
    }
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let asked = all.into_iter().map(async |right| {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let of = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            verb: of(&right.verb),
            group: of(&right.group),
            resource: of(resource),
            subresource: of(subresource),
            name: of(&right.name),
            namespace: of(&right.namespace),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..Default::default() };
        let answer = reviews.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| anyhow!(error)).context("cannot review your permissions")?;
        Ok::<_, anyhow::Error>((right, answer.status.is_some_and(|status| status.allowed)))
    });
    let answers: Vec<(Right, bool)> = join_all(asked).await.into_iter().collect::<Result<_>>()?;
    Ok(answers.into_iter().filter(|(_, allowed)| !allowed).map(|(right, _)| right).collect())
}
