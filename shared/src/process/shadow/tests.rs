use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::pending::QUIET_PERIOD;
use super::*;
use crate::api::json as body_of;
use crate::api::object::Meta;
use crate::api::resource::{CONFIG_MAPS, SECRETS};
use crate::following::cache::Cache;
use crate::following::informer::InformerBuilder;
use crate::process::run::{Names, Operator, Setup};
use crate::testing::apiserver::Server;
use crate::testing::object;
use crate::testing::running::{Running, test};
use crate::working::control::{Control, DeleteOptions, Patch, Preconditions};
use crate::working::decisions::{Decisions, Reason, Reasoned, Trigger};
use crate::working::events::{EventType, Recorder};
use crate::working::queue::{Backoff, Cause};
use crate::working::worker::Controller;

const KEY: &str = "default/web";

#[derive(Debug, PartialEq, Deserialize)]
struct ConfigMap {
    metadata: Meta,
    #[serde(default)]
    data: Data,
}

/// The decision of the keeper.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Data {
    #[serde(default)]
    wants: String,
}

crate::view!(ConfigMap, CONFIG_MAPS);

/// An operator that does what each ConfigMap says.
struct Keeper {
    config_maps: Arc<Cache<ConfigMap>>,
    control: Control,
    decisions: Decisions,
    recorder: Recorder,
    clock: Clock,
}

/// It has none.
#[derive(Clone, Debug, clap::Args)]
struct NoFlags {}

impl Operator for Keeper {
    const NAMES: Names = Names { operator: "keeper-operator", controller: "keeper", event_source: "keeper" };
    type Flags = NoFlags;

    fn set_up(_: &NoFlags, setup: &mut Setup) {
        let queue = setup.queue("keeper", Backoff::default());
        let mut informer = InformerBuilder::<ConfigMap>::new().build();
        let added = queue.clone();
        informer.on_change(move |change| {
            let object = change.latest();
            added.add_for(&object.metadata.key, Cause::Event, Trigger::of(&**object));
        });
        let keeper = Self {
            config_maps: informer.cache(),
            control: setup.control(&queue),
            decisions: setup.decisions(&queue),
            recorder: setup.recorder(),
            clock: setup.clock(),
        };
        setup.watch(informer);
        setup.work(Arc::new(keeper), &queue, 1);
    }
}

/// A stage that is its own reason.
#[derive(Serialize)]
struct Decided(&'static str);

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Reason for Decided {}

impl Reasoned for Decided {
    fn reason(&self) -> impl Reason {
        self
    }
}

impl Controller for Keeper {
    fn key_of(&self, object: &Subject) -> Option<Key> {
        object.key_of(&CONFIG_MAPS)
    }

    fn preview(&self, _: &Key) -> Vec<Stage> {
        Vec::new()
    }

    async fn sync(&self, key: &Key) -> anyhow::Result<Requeue> {
        let Some(object) = self.config_maps.get(key) else { return Ok(Requeue::Done) };
        let control = self.control.for_key(key, object.metadata.uid);
        let decide = |stage| self.decisions.record(self.clock.now(), key, &Decided(stage));
        let on_uid = || Preconditions::from(object.metadata.uid);
        let label = || Patch::merge(&json!({ "metadata": { "labels": { "kept": "yes" } } }));
        match &*object.data.wants {
            "children" => {
                decide("create 2");
                let create = async |name: &str| {
                    let child = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name } });
                    control.create(&SECRETS, "default", body_of(&child)).await
                };
                let made = [create("a").await, create("b").await];
                for failed in made.iter().filter_map(|made| made.as_ref().err()) {
                    let about = crate::api::object::ObjectReference {
                        resource: CONFIG_MAPS,
                        key: key.clone(),
                        uid: object.metadata.uid,
                        resource_version: object.metadata.resource_version,
                    };
                    self.recorder.event(&about, EventType::Warning, "FailedCreate", failed.to_string());
                }
                let status = json!({ "failed": made.iter().filter(|made| made.is_err()).count() });
                control.patch_status(&CONFIG_MAPS, key, on_uid(), &status).await?;
            }
            "label" if object.metadata.labels.get("kept").is_none() => {
                decide("label it");
                control.patch(&CONFIG_MAPS, key, on_uid(), label()).await?;
            }
            "stages" => {
                decide("label it");
                let labelled = control.patch(&CONFIG_MAPS, key, on_uid(), label()).await;
                decide("delete another");
                control
                    .delete(&SECRETS, &Key::new("default", "other"), &DeleteOptions::of(object.metadata.uid))
                    .await?;
                labelled?;
            }
            "status" if object.metadata.labels.get("kept").is_none() => {
                decide("tell it");
                control.patch_status(&CONFIG_MAPS, key, on_uid(), &json!({ "told": true })).await?;
            }
            "again" => {
                decide("label it");
                drop(control.patch(&CONFIG_MAPS, key, on_uid(), label()).await);
                return Ok(Requeue::RateLimited);
            }
            _ => decide("nothing"),
        }
        Ok(Requeue::Done)
    }
}

fn add(server: &Server, wants: &str) {
    server.add(&object("v1", "ConfigMap", "web").set(&["data", "wants"], wants));
}

async fn start(server: &Server) -> Running {
    let running = Running::start::<Keeper>(server, &["--mode=shadow"]);
    running.at_rest().await;
    running
}

fn report(running: &Running) -> ShadowReport {
    running.shadow_report().unwrap()
}

fn lines(report: &ShadowReport) -> Vec<String> {
    let line = |difference: &Difference| {
        let Difference { queue, key, verb, resource, object, stages, fields, since: _ } = difference;
        let stages: Vec<&str> = stages.iter().map(|stage| &*stage.text).collect();
        let fields = fields.iter().map(|field| format!(" {}: {} -> {}", field.path, field.has, field.wants));
        format!("{queue} {key} {stages:?}: {verb} {resource} {object}{}", fields.collect::<String>())
    };
    report.differences.iter().map(line).collect()
}

/// The differences at rest if a ConfigMap wants this.
#[track_caller]
fn check(wants: &'static str, expected: &[&str]) {
    test(async move {
        let server = Server::new();
        add(&server, wants);
        let running = start(&server).await;
        let (moving, reads) = (report(&running), server.count("list configmaps"));
        assert_eq!((moving.moving, lines(&moving)), (u64::from(!expected.is_empty()), Vec::new()), "nothing rests yet");
        running.pass(QUIET_PERIOD + Duration::from_secs(1)).await;
        let rested = report(&running);
        assert_eq!(lines(&rested), expected);
        assert!(rested.complete && rested.moving == 0, "{rested:?}");
        assert_eq!(rested.looked_at, BTreeMap::from([("keeper".to_owned(), 1)]));
        assert_eq!(server.writes(), Vec::<String>::new());
        assert_eq!(server.count("create events") + server.count("create leases"), 0, "{:?}", server.requests());
        let is_compared = wants != "children" && !expected.is_empty();
        assert_eq!(server.count("list configmaps") - reads, usize::from(is_compared), "{:?}", server.requests());
    });
}

#[test]
fn what_is_as_it_should_be_is_no_difference() {
    check("", &[]);
}

#[test]
fn each_field_that_would_be_written_is_named() {
    let label = r#"keeper default/web ["label it"]: patch configmaps default/web metadata.labels.kept: null -> "yes""#;
    check("label", &[label]);
}

#[test]
fn a_refusal_that_the_sync_passes_over_is_looked_at_again_only_at_rest() {
    let label = r#"keeper default/web ["label it"]: patch configmaps default/web metadata.labels.kept: null -> "yes""#;
    check("again", &[label]);
}

#[test]
fn a_status_that_reports_the_refusal_is_not_pending() {
    let create = |name| format!(r#"keeper default/web ["create 2"]: create secrets default/{name}"#);
    check("children", &[&create("a"), &create("b")]);
}

#[test]
fn what_a_later_stage_decides_after_a_refusal_is_not_pending() {
    let label = r#"keeper default/web ["label it"]: patch configmaps default/web metadata.labels.kept: null -> "yes""#;
    check("stages", &[label]);
}

#[test]
fn what_somebody_else_does_is_fulfilled_and_what_stays_undone_is_a_difference_until_it_is_done() {
    test(async {
        let server = Server::new();
        let running = start(&server).await;
        add(&server, "label");
        running.at_rest().await;
        assert_eq!(report(&running).moving, 1);
        let keep = |object: &mut Value| object["metadata"]["labels"] = json!({ "kept": "yes" });
        server.change("configmaps", KEY, keep);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!((report(&running).moving, lines(&report(&running)).len()), (0, 0));

        server.change("configmaps", KEY, |object| object["metadata"]["labels"] = json!({}));
        running.pass(2 * QUIET_PERIOD).await;
        let first = report(&running);
        assert_eq!(lines(&first).len(), 1);
        // An event of the object changes nothing about it.
        server.change("configmaps", KEY, |object| object["metadata"]["annotations"] = json!({ "a": "b" }));
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(report(&running).differences, first.differences);
        server.change("configmaps", KEY, keep);
        running.pass(Duration::from_secs(1)).await;
        assert_eq!(lines(&report(&running)), Vec::<String>::new());
        server.delete("configmaps", KEY);
        running.pass(2 * QUIET_PERIOD).await;
        assert_eq!((report(&running).moving, lines(&report(&running)).len()), (0, 0));
        assert_eq!(server.writes(), Vec::<String>::new());
    });
}

#[test]
fn what_changes_all_the_time_is_judged_after_a_minute() {
    test(async {
        let server = Server::new();
        add(&server, "label");
        let running = start(&server).await;
        for second in 0..58 {
            server.change("configmaps", KEY, |object| object["metadata"]["annotations"] = json!({ "a": second }));
            running.pass(Duration::from_secs(1)).await;
            assert_eq!(lines(&report(&running)), Vec::<String>::new(), "{second}");
        }
        for second in 0..10 {
            server.change("configmaps", KEY, |object| object["metadata"]["annotations"] = json!({ "b": second }));
            running.pass(Duration::from_secs(1)).await;
        }
        assert_eq!(lines(&report(&running)).len(), 1);
    });
}

#[test]
fn who_operates_is_no_shadow() {
    test(async {
        let server = Server::new();
        add(&server, "label");
        let running = Running::start::<Keeper>(&server, &[]);
        running.at_rest().await;
        assert_eq!(running.shadow_report(), None);
        assert_eq!(server.writes(), ["patch configmaps default/web"]);
    });
}
