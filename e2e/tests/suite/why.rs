//! The first lines of `kubectl operators why` about objects that got stuck: a table of states, each made on a real
//! apiserver.
//!
//! A row is a state and its first line; it has a namespace of its own, and the rows of a family are played side by side.
//! docs/why.md shows the same table. Left out: evidence that no cluster gives at will; those rows are in
//! `cli/tests/states`.

mod batch;
mod deletion;
mod minutes;
mod operators;
mod pattern;
mod pods;
mod services;
mod workloads;

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use cli::diagnosis::Diagnosis;
use cli::reach::{ReachOptions, parse_server};
use cli::run::Session;
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::support::clusters::{manifests, shared_ports};
use crate::support::{DEADLINE, Scene, deployment, on_shared_cluster, without_kubelets};

/// The page that shows the rows.
const PAGE: &str = include_str!("../../../docs/why.md");
/// So many rows are made and asked about at a time: two processors have to carry it.
const SIDE_BY_SIDE: usize = 8;

/// Makes a state in a namespace that has nothing in it.
type Make = for<'a> fn(&'a Scene) -> LocalBoxFuture<'a, Result<()>>;

/// One state.
struct Row {
    /// The trouble, in the words of a person who knows it.
    state: &'static str,
    /// The object that one asks about; `*` stands for the namespace.
    object: &'static str,
    /// The first line, see [`pattern`].
    line: &'static str,
    make: Make,
}

fn row(state: &'static str, object: &'static str, line: &'static str, make: Make) -> Row {
    Row { state, object, line, make }
}

impl Row {
    /// Makes the state, and waits until the first line is the expected one.
    async fn play(&self, scene: &Scene, session: &Session) -> Result<Diagnosis> {
        (self.make)(scene).await.with_context(|| format!("make: {}", self.state))?;
        self.says(scene, session).await
    }

    /// Waits until the first line is the expected one.
    async fn says(&self, scene: &Scene, session: &Session) -> Result<Diagnosis> {
        scene.wait_until(&self.expected(scene), DEADLINE, async || self.ask(scene, session).await).await
    }

    /// The answer, if its first line is the expected one.
    async fn ask(&self, scene: &Scene, session: &Session) -> Result<Diagnosis> {
        let found = session.why(&[self.about(scene)], &scene.namespace).await?;
        ensure!(pattern::fits(self.line, &found.summary), "{found}");
        Ok(found)
    }

    fn about(&self, scene: &Scene) -> String {
        self.object.replace('*', &scene.namespace)
    }

    /// The state that a test waits for, in words.
    fn expected(&self, scene: &Scene) -> String {
        format!("{}: {} says {:?}", self.state, self.about(scene), self.line)
    }
}

/// Someone who asks, and reaches the operators at these ports.
async fn session<'a>(scene: &Scene, ports: impl IntoIterator<Item = (&'a str, u16)>) -> Result<Session> {
    let cluster = &scene.cluster;
    cluster.install(&manifests("viewer")).await?;
    // Rows ask about kinds of all sorts; the account's own role names the most common ones.
    let role = json!({"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "e2e-viewer"}});
    let rules = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}]});
    scene.apply(&with(role.clone(), &rules)).await?;
    let bound = json!({
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "e2e-viewer"},
        "subjects": [{"kind": "ServiceAccount", "name": "operators-viewer", "namespace": "kube-system"}],
    });
    scene.apply(&with(role, &bound)).await?;
    let server = |(name, port)| parse_server(&format!("{name}=https://127.0.0.1:{port}")).map_err(anyhow::Error::msg);
    let servers = ports.into_iter().map(server).collect::<Result<_>>()?;
    let config = e2e::kubeconfig::config(cluster.kubeconfig()).await?;
    Session::new(config, ReachOptions { servers, ..ReachOptions::default() }).await
}

async fn shared_session(scene: &Scene) -> Result<Session> {
    session(scene, shared_ports()?.iter().map(|(name, port)| (name.as_str(), *port))).await
}

/// Plays all of them, each in a namespace of its own whose name ends with its number.
async fn play(scene: &Scene, session: &Session, rows: &[Row]) -> Result<()> {
    let plays = futures::stream::iter(rows.iter().enumerate()).map(async |(index, row)| {
        let own = scene.beside(&index.to_string()).await?;
        row.play(&own, session).await?;
        // One that is a row itself is being deleted already.
        let _ = own.delete_namespace().await;
        Ok(())
    });
    let ended: Vec<Result<()>> = plays.buffer_unordered(SIDE_BY_SIDE).collect().await;
    let wrong: Vec<String> = ended.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} rows:\n\n{}", wrong.len(), rows.len(), wrong.join("\n\n"));
    Ok(())
}

/// Plays a family on the shared cluster.
fn play_family(rows: &[Row]) -> Result<()> {
    without_kubelets(async |scene| play(scene, &shared_session(scene).await?, rows).await)
}

/// `value` with all that `changes` has.
fn with(mut value: Value, changes: &Value) -> Value {
    merge(&mut value, changes);
    value
}

fn merge(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(value), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(value.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (value, changes) => *value = changes.clone(),
    }
}

/// The Deployment `web`, its pods' template with these changes.
fn web(replicas: i32, template: &Value) -> Value {
    with(deployment("web", replicas), &json!({"spec": {"template": template}}))
}

/// Template's metadata of pods that kwok makes so.
fn becoming(what: &str) -> Value {
    json!({"annotations": {"pods.e2e/becomes": what}})
}

/// All rows, family by family.
fn all() -> Vec<Row> {
    let families =
        [workloads::rows(), pods::rows(), batch::rows(), services::rows(), deletion::rows(), operators::rows()];
    // Last, as the page says.
    families.into_iter().flatten().chain(minutes::rows()).collect()
}

#[test]
fn the_page_shows_every_state_and_its_first_line() {
    let rows = all();
    let line = |row: &Row| format!("| {} | `{}` | `` {} `` |\n", row.state, row.object, row.line);
    let table: String = rows.iter().map(line).collect();
    assert!(PAGE.contains(&table), "docs/why.md has not this table:\n{table}");
    let distinct = |part: fn(&Row) -> &str| rows.iter().map(part).collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(|row| row.state), rows.len(), "two rows have the same name");
    assert_eq!(distinct(|row| row.line), rows.len(), "two rows have the same line");
    assert!(rows.len() >= 40, "{} rows", rows.len());
}

#[test]
fn the_chain_leads_from_the_owner_to_who_refuses() -> Result<()> {
    on_shared_cluster(async |scene| {
        let session = shared_session(scene).await?;
        scene.limit_pods("team", 1).await?;
        scene.apply(&deployment("web", 3)).await?;
        let asked = async |object: String| {
            scene
                .wait_until(&object, DEADLINE, async || {
                    let found = session.why(std::slice::from_ref(&object), &scene.namespace).await?;
                    ensure!(found.summary.contains("quota `team` exceeded (pods 1/1)"), "{found}");
                    // The operator tells of its failure before its event is written.
                    let has_event = found.chain.iter().any(|link| link.about == "event FailedCreate");
                    ensure!(has_event, "{found}");
                    Ok(found)
                })
                .await
        };
        let found = asked("deploy/web".to_owned()).await?;
        let chain: Vec<&str> = found.chain.iter().map(|link| link.about.as_str()).collect();
        assert!(chain.contains(&"resourcequota/team"), "{found}");
        assert!(chain.contains(&"replicaset-operator") && found.not_seen.is_empty(), "{found}");
        let set = scene.list::<ReplicaSet>("app=web").await?.pop().context("no ReplicaSet")?.name_any();
        let found = asked(format!("rs/{set}")).await?;
        assert_eq!(found.chain.first().map(|link| link.about.as_str()), Some("deployment/web"), "{found}");
        Ok(())
    })
}
