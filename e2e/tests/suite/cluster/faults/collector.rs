//! The garbage collector: what it knows is never enough to delete anything.

use anyhow::{Result, ensure};
use e2e::apply::apply;
use e2e::operator::is_one_process;
use e2e::proxy::{Action, Rule, Verdict};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::super::namespaces::says;
use super::super::tree::{Kind, Tree, config_maps, reference, secrets};
use super::{COLLECTOR, delete_owner, owners, pair, seen, with_behind};
use crate::support::behind::Behind;
use crate::support::clusters::monitoring_token;
use crate::support::{DEADLINE, Scene, start_operators};

const CONFIG_MAPS: &str = "/api/v1/configmaps";
const SECRETS: &str = "/api/v1/secrets";

/// Waits until the collector has asked for an object and was answered so.
async fn asked(scene: &Scene, behind: &Behind, plural: &str, name: &str, status: StatusCode) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/{plural}/{name}", scene.namespace);
    scene
        .wait_until(&format!("{path} is asked for"), DEADLINE, async || {
            let requests = behind.proxy.requests();
            let answers = requests.iter().filter(|it| it.path == path && it.method == Method::GET);
            let answers: Vec<_> = answers.map(|it| it.status).collect();
            ensure!(answers.contains(&Some(status)), "{answers:?}");
            Ok(())
        })
        .await
}

fn deletes(behind: &Behind, name: &str) -> usize {
    behind.count(&Method::DELETE, &format!("/api/v1/namespaces/*/configmaps/{name}"))
}

#[test]
fn a_collector_that_knows_only_the_past_asks_before_it_deletes() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        // It has another owner now, which the collector has not heard of.
        pair(scene, "moved").await?;
        let new = reference(&scene.apply(&secrets().object("new", &[])).await?);
        seen(scene, "first").await?;
        behind.proxy.freeze_watches(CONFIG_MAPS);
        config_maps().merge(scene, "moved", &json!({"metadata": {"ownerReferences": [new]}})).await?;
        behind.proxy.forget_requests();
        delete_owner(scene, "moved").await?;
        asked(scene, &behind, "secrets", "new", StatusCode::OK).await?;
        behind.proxy.thaw_watches();
        seen(scene, "second").await?;
        assert_eq!((owners(scene, "moved").await?, deletes(&behind, "moved")), (vec!["new".to_owned()], 0));

        // It has an owner that the collector has not heard of.
        behind.proxy.freeze_watches(SECRETS);
        pair(scene, "late").await?;
        asked(scene, &behind, "secrets", "late", StatusCode::OK).await?;
        behind.proxy.thaw_watches();
        seen(scene, "third").await?;
        assert_eq!((owners(scene, "late").await?, deletes(&behind, "late")), (vec!["late".to_owned()], 0));
        Ok(())
    })
}

#[test]
fn deletions_that_a_broken_watch_has_missed_are_made_up_for() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        for name in ["goes", "stays"] {
            pair(scene, name).await?;
        }
        seen(scene, "first").await?;
        // The version that it knew is refused when it comes back, so it lists everything anew.
        let expired = Rule::new(Action::reply(StatusCode::GONE)).method(Method::GET).path(SECRETS);
        behind.proxy.add(expired.when(|seen| seen.query.contains("resourceVersion=")));
        behind.proxy.freeze_watches(SECRETS);
        delete_owner(scene, "goes").await?;
        let lists = behind.lists(SECRETS);
        ensure!(behind.proxy.cut_watches(SECRETS) > 0, "no watch of Secrets");
        behind.proxy.thaw_watches();
        scene.gone::<ConfigMap>("goes").await?;
        assert_eq!(behind.lists(SECRETS), lists + 1);

        // Broken off again and again in the middle of a cascade, it goes on where it was.
        let tree = Tree::grow(scene, "tree", [secrets(), config_maps(), secrets()]).await?;
        tree.delete(scene, "foreground").await?;
        for _ in 0..3 {
            behind.proxy.cut_watches("**");
            seen(scene, "again").await?;
        }
        tree.wait_left(scene, &["-tree", "-tree-1", "-tree-1-1"]).await?;
        behind.proxy.cut_watches("**");
        tree.let_go(scene).await?;
        tree.wait_left(scene, &[]).await?;
        assert_eq!(owners(scene, "stays").await?, ["stays"]);
        Ok(())
    })
}

#[test]
fn answers_that_get_lost_cost_nothing_but_another_try() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        pair(scene, "stays").await?;
        for cascade in ["background", "foreground", "orphan"] {
            let name = format!("tree{}", cascade.len());
            let tree = Tree::grow(scene, &name, [secrets(), config_maps(), secrets()]).await?;
            tree.let_go(scene).await?;
            seen(scene, "before").await?;
            for method in [Method::DELETE, Method::PATCH, Method::GET] {
                let lost = Rule::new(Action::LoseResponse).method(method).path("/api/v1/namespaces/**");
                behind.proxy.add(lost.times(2));
            }
            tree.delete(scene, cascade).await?;
            if cascade == "orphan" {
                let rest = ["-0", "-0-0", "-0-1", "-1", "-1-0", "-1-1"].map(|suffix| format!("{name}{suffix}"));
                tree.wait_left(scene, &rest.each_ref().map(String::as_str)).await?;
            } else {
                tree.wait_left(scene, &[]).await?;
            }
            behind.proxy.clear();
        }
        ensure!(behind.lost("/api/v1/namespaces/**") >= 3, "no answer got lost");
        assert_eq!(owners(scene, "stays").await?, ["stays"]);
        Ok(())
    })
}

#[test]
fn what_may_not_be_read_is_not_absent() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        let owner = pair(scene, "waits").await?;
        seen(scene, "first").await?;
        for path in ["/api/v1/secrets", "/api/v1/namespaces/*/secrets/*"] {
            behind.proxy.add(Rule::new(Action::reply(StatusCode::FORBIDDEN)).path(path).always());
        }
        ensure!(behind.proxy.cut_watches(SECRETS) > 0, "no watch of Secrets");
        // A reason to look: an owner that never was.
        let never = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never",
            "uid": "00000000-0000-4000-8000-000000000000"});
        config_maps().merge(scene, "waits", &json!({"metadata": {"ownerReferences": [owner, never]}})).await?;
        asked(scene, &behind, "secrets", "waits", StatusCode::FORBIDDEN).await?;
        // Other kinds go as ever, and whoever asks is told of this one.
        let other = Tree::grow(scene, "tree", [config_maps(), config_maps(), config_maps()]).await?;
        other.let_go(scene).await?;
        other.delete(scene, "foreground").await?;
        other.wait_left(scene, &[]).await?;
        let (status, _) = behind.operator.get("/readyz", None).await?;
        let token = monitoring_token(scene).await?;
        let (part, degraded) = if is_one_process() {
            ("/readyz/garbage-collector-controller", "degraded: feeds: secrets: ")
        } else {
            ("/readyz/feeds", "degraded: secrets: ")
        };
        let feeds = async || Ok::<_, anyhow::Error>(behind.operator.get(part, Some(&token)).await?.1);
        let said = feeds().await?;
        assert!(status == StatusCode::OK && said.starts_with(degraded), "{status} {said}");
        assert_eq!(
            (owners(scene, "waits").await?, deletes(&behind, "waits")),
            (vec!["waits".into(), "never".into()], 0)
        );

        delete_owner(scene, "waits").await?;
        behind.proxy.clear();
        scene.gone::<ConfigMap>("waits").await?;
        scene
            .wait_until("all is well", DEADLINE, async || {
                let said = feeds().await?;
                ensure!(said == "ok", "{said}");
                Ok(())
            })
            .await
    })
}

#[test]
fn a_deletion_that_meets_another_state_looks_at_it_first() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        // While it is being deleted somebody else becomes its owner.
        pair(scene, "rescued").await?;
        let rescuer = reference(&scene.apply(&secrets().object("rescuer", &[])).await?);
        seen(scene, "first").await?;
        change_before_delete(scene, &behind, "rescued", json!({"ownerReferences": [rescuer]}));
        delete_owner(scene, "rescued").await?;
        asked(scene, &behind, "secrets", "rescuer", StatusCode::OK).await?;
        seen(scene, "second").await?;
        assert_eq!((owners(scene, "rescued").await?, deletes(&behind, "rescued")), (vec!["rescuer".to_owned()], 1));

        // Something else about it has changed: the reason holds.
        pair(scene, "relabelled").await?;
        seen(scene, "third").await?;
        change_before_delete(scene, &behind, "relabelled", json!({"labels": {"a": "b"}}));
        delete_owner(scene, "relabelled").await?;
        scene.gone::<ConfigMap>("relabelled").await?;
        assert_eq!(deletes(&behind, "relabelled"), 2);

        // The apiserver says so without a reason.
        pair(scene, "refused").await?;
        seen(scene, "fourth").await?;
        let path = "/api/v1/namespaces/*/configmaps/refused";
        behind.proxy.add(Rule::new(Action::reply(StatusCode::CONFLICT)).method(Method::DELETE).path(path).times(2));
        delete_owner(scene, "refused").await?;
        scene.gone::<ConfigMap>("refused").await
    })
}

/// Changes a ConfigMap's metadata at the moment in which the collector deletes it for the first time.
fn change_before_delete(scene: &Scene, behind: &Behind, name: &str, metadata: Value) {
    let (api, name) = (scene.api::<ConfigMap>(), name.to_owned());
    let path = format!("/api/v1/namespaces/*/configmaps/{name}");
    let change = Action::before(move |_| {
        let (api, name, patch) = (api.clone(), name.clone(), Patch::Merge(json!({"metadata": metadata})));
        async move {
            api.patch(&name, &PatchParams::default(), &patch).await.unwrap();
            Verdict::Continue
        }
    });
    behind.proxy.add(Rule::new(change).method(Method::DELETE).path(&path));
}

#[test]
fn an_api_service_that_is_down_keeps_its_own_and_nobody_elses() -> Result<()> {
    with_behind(COLLECTOR, async |scene, behind| {
        let _namespaces = start_operators(&scene.cluster, ["namespace-operator"]).await?;
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.down.example"},
            "spec": {
                "group": "down.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"name": "nobody", "namespace": "default"}, "insecureSkipTLSVerify": true,
            },
        });
        apply(&scene.client, "", &service).await?;
        // Its owner may be there, for all that anybody can tell.
        let owner = Kind { api_version: "down.example/v1".to_owned(), kind: "Thing".to_owned() };
        let owner = json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": "owner",
            "uid": "00000000-0000-4000-8000-000000000000"});
        scene.apply(&config_maps().object("waits", &[owner])).await?;
        let doomed = scene.beside("doomed").await?;
        doomed.delete_namespace().await?;
        let failed = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
                      down.example/v1: stale GroupVersion discovery: down.example/v1";
        says(&doomed, "NamespaceDeletionDiscoveryFailure", ["True", "DiscoveryFailed", failed]).await?;
        seen(scene, "elsewhere").await?;
        assert_eq!((owners(scene, "waits").await?, deletes(&behind, "waits")), (vec!["owner".to_owned()], 0));
        scene.kubectl("delete apiservice/v1.down.example").await?;
        doomed.namespace_gone().await?;
        assert_eq!((owners(scene, "waits").await?, deletes(&behind, "waits")), (vec!["owner".to_owned()], 0));
        Ok(())
    })
}
