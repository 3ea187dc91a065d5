//! The Helm chart: the same objects as kustomize's, and what its values change.
//! Left out: installing it, which [`crate::install`] does.

use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Result, ensure};
use e2e::apply::documents;
use e2e::helm;
use e2e::kubectl::kustomize;
use futures::future::try_join_all;
use release::manifests::Manifests;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::clusters::{manifests, operators};
use crate::support::scene::runtime;

/// The chart, which stays until the process ends.
pub(crate) fn chart() -> Result<&'static Path> {
    static CHART: LazyLock<Result<TempDir, String>> = LazyLock::new(|| {
        let write = || {
            let folder = tempfile::tempdir()?;
            release::write(
                &release::chart::chart(&Manifests::here()?, "operators.local", release::VERSION)?,
                folder.path(),
            )?;
            Ok(folder)
        };
        write().map_err(|error: anyhow::Error| format!("{error:#}"))
    });
    CHART.as_ref().map(TempDir::path).map_err(anyhow::Error::msg)
}

/// The objects that Helm renders with these values.
async fn template(values: &Value) -> Result<Vec<Value>> {
    let values = format!("--set-json={}", sets(values));
    documents(&helm::run(["template", "x", &chart()?.to_string_lossy(), &values]).await?)
}

fn sets(values: &Value) -> String {
    let sets = values.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={value}"));
    sets.collect::<Vec<_>>().join(",")
}

/// In an order that does not depend on who rendered them.
fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
    objects.sort_by_key(|object| {
        let name = |field: &str| object["metadata"][field].to_string();
        (object["kind"].to_string(), name("namespace"), name("name"))
    });
    objects
}

/// The objects of all these folders.
async fn folders(of: &[String]) -> Result<Vec<Value>> {
    let folders: Vec<_> = of.iter().map(|folder| manifests(folder)).collect();
    Ok(try_join_all(folders.iter().map(|folder| kustomize(folder))).await?.concat())
}

/// The objects that differ, and those that only one side has, by their names.
fn differences(ours: Vec<Value>, theirs: Vec<Value>) -> Vec<String> {
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    let lacks = |all: &[Value], object: &&Value| !all.contains(object);
    let of_ours = ours.iter().filter(|object| lacks(&theirs, object)).map(|object| format!("chart: {}", name(object)));
    let of_theirs =
        theirs.iter().filter(|object| lacks(&ours, object)).map(|object| format!("kustomize: {}", name(object)));
    of_ours.chain(of_theirs).collect()
}

/// Helm renders with these values what kustomize renders of these folders.
async fn same(values: &Value, of: &[String]) -> Result<()> {
    let (ours, theirs) = tokio::try_join!(template(values), folders(of))?;
    ensure!(theirs.len() > 1 && ours.len() == theirs.len(), "{values}: {} objects, not {}", ours.len(), theirs.len());
    let differences = differences(ours, theirs);
    ensure!(differences.is_empty(), "{values}: {differences:?}");
    Ok(())
}

/// What values change: the JSON pointers of the Deployment of job-operator, before and after.
async fn changed(values: &Value) -> Result<Vec<String>> {
    let one = json!({"operators": ["job-operator"]});
    let mut with = one.clone();
    for (name, value) in values.as_object().into_iter().flatten() {
        with[name] = value.clone();
    }
    let (before, after) = tokio::try_join!(template(&one), template(&with))?;
    let mut changes = Vec::new();
    for (before, after) in sorted(before).iter().zip(&sorted(after)) {
        compare(before, after, before["kind"].as_str().unwrap_or_default(), &mut changes);
    }
    Ok(changes)
}

fn compare(before: &Value, after: &Value, at: &str, changes: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                compare(&before[name], &after[name], &format!("{at}/{name}"), changes);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                compare(old, new, &format!("{at}/{index}"), changes);
            }
        }
        _ if before == after => {}
        _ => changes.push(format!("{at} = {after}")),
    }
}

#[test]
fn helm_finds_no_fault_with_the_chart() -> Result<()> {
    runtime()?.block_on(async {
        let chart = chart()?.to_string_lossy();
        for form in ["operators", "families", "one-process"] {
            let printed = helm::run(["lint", "--strict", &chart, "--set", &format!("form={form}")]).await?;
            ensure!(printed.contains("0 chart(s) failed"), "{printed}");
        }
        Ok(())
    })
}

#[test]
fn each_form_of_the_chart_has_what_kustomize_renders() -> Result<()> {
    runtime()?.block_on(async {
        same(&json!({}), &[".".to_owned()]).await?;
        same(&json!({"form": "families"}), &["groups".to_owned()]).await?;
        same(&json!({"form": "one-process"}), &["one-process".to_owned()]).await
    })
}

#[test]
fn a_chart_with_some_operators_or_families_has_those_alone() -> Result<()> {
    runtime()?.block_on(async {
        let halves = [0, 1].map(|half| operators().skip(half).step_by(2).map(str::to_owned).collect::<Vec<String>>());
        for half in halves {
            same(&json!({"operators": half}), &half).await?;
        }
        for family in Manifests::here()?.families()? {
            let name = family.name;
            same(&json!({"form": "families", "families": [name]}), &[format!("groups/{name}")]).await?;
        }
        Ok(())
    })
}

#[test]
fn additions_are_those_of_the_components() -> Result<()> {
    runtime()?.block_on(async {
        let values = json!({
            "operators": ["job-operator"],
            "networkPolicy": {"enabled": true, "egress": {"enabled": true}},
            "serviceMonitor": {"enabled": true},
            "prometheusRules": {"enabled": true},
            "dashboards": {"enabled": true},
            "metricsReader": {"enabled": true},
            "viewer": {"enabled": true},
        });
        let mut expected = folders(&["job-operator", "metrics-reader", "viewer"].map(str::to_owned)).await?;
        for component in
            ["network-policy", "network-policy-egress", "service-monitor", "prometheus-rules", "dashboards"]
        {
            expected.extend(Manifests::here()?.component(component)?);
        }
        let differences = differences(template(&values).await?, expected);
        ensure!(differences.is_empty(), "{differences:?}");
        Ok(())
    })
}

#[test]
fn a_value_changes_what_it_names_and_nothing_else() -> Result<()> {
    let spec = "Deployment/spec/template/spec";
    let rows = [
        (json!({"replicas": 0}), vec!["Deployment/spec/replicas = 0".to_owned()]),
        (
            json!({"replicas": 3, "each": {"job-operator": {"replicas": 1}}}),
            vec!["Deployment/spec/replicas = 1".to_owned()],
        ),
        (json!({"each": {"cronjob-operator": {"replicas": 1}}}), vec![]),
        (
            json!({"extraArgs": ["-v=4"], "each": {"job-operator": {"extraArgs": ["--concurrent-job-syncs=20"]}}}),
            vec![format!(r#"{spec}/containers/0/args = ["--secure-port=10257","-v=4","--concurrent-job-syncs=20"]"#)],
        ),
        (
            json!({"resources": {"limits": {"memory": "1Gi"}}}),
            vec![
                format!(r#"{spec}/containers/0/resources/limits/memory = "1Gi""#),
                format!("{spec}/containers/0/resources/requests = null"),
            ],
        ),
        (
            json!({"tolerations": [{"operator": "Exists"}]}),
            vec![format!(r#"{spec}/tolerations = [{{"operator":"Exists"}}]"#)],
        ),
        (
            json!({"affinity": {"podAffinity": {}}}),
            vec![format!("{spec}/affinity/nodeAffinity = null"), format!("{spec}/affinity/podAffinity = {{}}")],
        ),
        (
            json!({"nodeSelector": {"kubernetes.io/os": "x"}}),
            vec![format!(r#"{spec}/nodeSelector/kubernetes.io/os = "x""#)],
        ),
        (
            json!({"image": {"registry": "r.example/k", "tag": "v9", "pullPolicy": "Always", "pullSecrets": [{"name": "s"}]}}),
            vec![
                format!(r#"{spec}/containers/0/image = "r.example/k/job-operator:v9""#),
                format!(r#"{spec}/containers/0/imagePullPolicy = "Always""#),
                format!(r#"{spec}/imagePullSecrets = [{{"name":"s"}}]"#),
            ],
        ),
        (
            json!({"each": {"job-operator": {
                "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }}}),
            vec![
                format!(r#"{spec}/containers/0/volumeMounts = [{{"mountPath":"/v","name":"v"}}]"#),
                format!(r#"{spec}/volumes = [{{"name":"v","secret":{{"secretName":"s"}}}}]"#),
            ],
        ),
        (
            json!({"image": {"one": true}}),
            vec![
                format!(r#"{spec}/containers/0/args = ["job-operator","--secure-port=10257"]"#),
                format!(r#"{spec}/containers/0/image = "operators.local/operators:v{}""#, release::VERSION),
            ],
        ),
    ];
    runtime()?.block_on(async {
        for (values, expected) in rows {
            let changes = changed(&values).await?;
            ensure!(changes == expected, "{values}: {changes:#?}");
        }
        Ok(())
    })
}

#[test]
fn policies_and_monitors_take_their_values() -> Result<()> {
    runtime()?.block_on(async {
        let policy = json!({
            "operators": ["job-operator"],
            "networkPolicy": {"enabled": true, "from": "x", "egress": {"enabled": true, "to": [{"ipBlock": {"cidr": "10.0.0.1/32"}}]}},
            "serviceMonitor": {"enabled": true, "labels": {"release": "p"}},
        });
        let objects = template(&policy).await?;
        for value in [json!({"kubernetes.io/metadata.name": "x"}), json!("10.0.0.1/32"), json!("p")] {
            ensure!(objects.iter().any(|object| object.to_string().contains(&value.to_string())), "no {value}");
        }
        Ok(())
    })
}

#[test]
fn values_that_mean_nothing_are_refused() -> Result<()> {
    let rows = [
        (json!({"form": "x"}), "'one-process'"),
        (json!({"operators": ["job"]}), "'job-operator'"),
        (json!({"form": "families", "families": ["x"]}), "'batch'"),
        (json!({"replica": 1}), "'replica' not allowed"),
        (json!({"each": {"job": {}}}), "'job' not allowed"),
        (json!({"image": {"one": true}, "form": "families"}), "image.one is for form operators"),
        (json!({"families": ["batch"]}), "families chooses processes of form families, and form is operators"),
        (json!({"form": "one-process", "operators": ["job-operator"]}), "operators chooses pods of form operators"),
    ];
    runtime()?.block_on(async {
        for (values, expected) in rows {
            let Err(error) = template(&values).await else { anyhow::bail!("{values} were taken") };
            ensure!(format!("{error:#}").contains(expected), "{values}: {error:#}");
        }
        Ok(())
    })
}

#[test]
fn the_file_of_each_form_has_what_kustomize_renders_with_images_of_the_registry() -> Result<()> {
    let files = release::forms(&Manifests::here()?, "registry.example/k")?;
    runtime()?.block_on(async {
        for (file, folder) in release::FORMS {
            let ours = documents(files.get(Path::new(file)).map(String::as_str).unwrap_or_default())?;
            let theirs = folders(&[folder.to_owned()]).await?;
            let mut expected: Vec<Value> = Vec::new();
            for object in theirs {
                let text = object.to_string().replace(r#""operators.local/"#, r#""registry.example/k/"#);
                expected.push(serde_json::from_str(&text)?);
            }
            ensure!(ours == expected, "{file}: {:?}", differences(ours, expected));
        }
        Ok(())
    })
}
