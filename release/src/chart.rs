//! The Helm chart: a template for each operator and process, with the objects as kustomize renders them.
//! Left out: what no object of the manifests decides, which the files in `release/chart` have: values, helpers and checks.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::images;
use crate::manifests::{Family, Manifests, Operator, Process};
use crate::yaml::{Hole, Holes, template};

/// Files by their paths in the chart.
pub type Files = BTreeMap<PathBuf, String>;

/// The files of the chart that no object decides.
const FIXED: [(&str, &str); 5] = [
    ("Chart.yaml", include_str!("../chart/Chart.yaml")),
    ("values.yaml", include_str!("../chart/values.yaml")),
    ("templates/_helpers.tpl", include_str!("../chart/templates/_helpers.tpl")),
    ("templates/checks.yaml", include_str!("../chart/templates/checks.yaml")),
    ("templates/NOTES.txt", include_str!("../chart/templates/NOTES.txt")),
];

/// What can be added: a component or a folder of the manifests, and the value that turns it on.
struct Addition {
    file: &'static str,
    value: &'static str,
    from: From,
    holes: fn() -> Holes,
}

enum From {
    Component(&'static str),
    Folder(&'static str),
}

const ADDITIONS: [Addition; 7] = [
    Addition {
        file: "network-policy",
        value: "networkPolicy.enabled",
        from: From::Component("network-policy"),
        holes: || {
            let label = "/spec/ingress/0/from/0/namespaceSelector/matchLabels/kubernetes.io~1metadata.name";
            Holes::from([(label.to_owned(), Hole::Is(".Values.networkPolicy.from | quote".to_owned()))])
        },
    },
    Addition {
        file: "network-policy-egress",
        value: "networkPolicy.egress.enabled",
        from: From::Component("network-policy-egress"),
        holes: || {
            let after = lines(&[
                "{{- with .Values.networkPolicy.egress.to }}",
                "to:",
                "  {{ toYaml . | nindent 8 | trim }}",
                "{{- end }}",
            ]);
            Holes::from([("/spec/egress/0".to_owned(), Hole::Around { before: Vec::new(), after })])
        },
    },
    Addition {
        file: "service-monitor",
        value: "serviceMonitor.enabled",
        from: From::Component("service-monitor"),
        holes: || labels("serviceMonitor"),
    },
    Addition {
        file: "prometheus-rules",
        value: "prometheusRules.enabled",
        from: From::Component("prometheus-rules"),
        holes: || labels("prometheusRules"),
    },
    Addition {
        file: "dashboards",
        value: "dashboards.enabled",
        from: From::Component("dashboards"),
        holes: || labels("dashboards"),
    },
    Addition {
        file: "metrics-reader",
        value: "metricsReader.enabled",
        from: From::Folder("metrics-reader"),
        holes: Holes::new,
    },
    Addition { file: "viewer", value: "viewer.enabled", from: From::Folder("viewer"), holes: Holes::new },
];

/// Labels beside the object's own, by which a program of the cluster chooses what it reads.
fn labels(value: &str) -> Holes {
    let with = format!("{{{{- with .Values.{value}.labels }}}}");
    let after = lines(&[&with, "{{ toYaml . | nindent 4 | trim }}", "{{- end }}"]);
    Holes::from([("/metadata/labels".to_owned(), Hole::Around { before: Vec::new(), after })])
}

/// The chart of this version, with images of this registry unless a value says otherwise. The version is a number, `0.1.0`.
pub fn chart(manifests: &Manifests, registry: &str, version: &str) -> Result<Files> {
    let families = manifests.families()?;
    let operators = manifests.operators(&families)?;
    let mut files = Files::new();
    let mut add = |path: String, text: String| files.insert(PathBuf::from(path), text);
    for (path, text) in FIXED {
        add(path.to_owned(), text.replace("@NUMBER@", version).replace("@REGISTRY@", registry));
    }
    for operator in &operators {
        add(format!("templates/{}.yaml", operator.name), of_operator(operator)?);
    }
    let mut processes = Vec::new();
    for family in &families {
        let Family { name, is_default } = family;
        let process = manifests.process(&format!("groups/{name}"))?;
        let runs = format!("include \"kubernetes-operators.runs-family\" (list . {name:?} {is_default})");
        add(format!("templates/{}.yaml", process.name), of_process(&runs, &process)?);
        processes.push(process.name);
    }
    let process = manifests.process("one-process")?;
    add(format!("templates/{}.yaml", process.name), of_process("eq .Values.form \"one-process\"", &process)?);
    processes.push(process.name);
    for Addition { file, value, from, holes } in ADDITIONS {
        let objects = match from {
            From::Component(name) => manifests.component(name)?,
            From::Folder(name) => manifests.render(name)?,
        };
        let holes = holes();
        let objects: String = objects.iter().map(|object| template(object, &holes)).collect();
        add(format!("templates/{file}.yaml"), format!("{{{{- if .Values.{value} }}}}\n{objects}{{{{- end }}}}\n"));
    }
    let schema = schema(&operators, &families, &processes);
    add("values.schema.json".to_owned(), format!("{schema:#}\n"));
    Ok(files)
}

/// The account of an operator, and its pods.
fn of_operator(operator: &Operator) -> Result<String> {
    let Operator { name, account, pods, is_default, family, is_in_one_process } = operator;
    let family = family
        .as_ref()
        .map_or_else(|| "\"\" false".to_owned(), |Family { name, is_default }| format!("{name:?} {is_default}"));
    let acts =
        format!("include \"kubernetes-operators.acts\" (list . {name:?} {is_default} {family} {is_in_one_process})");
    let runs = format!("include \"kubernetes-operators.runs\" (list . {name:?} {is_default})");
    let account: String = account.iter().map(|object| template(object, &Holes::new())).collect();
    Ok(format!("{{{{- if {acts} }}}}\n{account}{{{{- end }}}}\n") + &running(&runs, name, pods, true)?)
}

fn of_process(runs: &str, process: &Process) -> Result<String> {
    running(runs, &process.name, &process.objects, false)
}

/// Objects of which one is a Deployment, that are there while a condition is true.
fn running(condition: &str, name: &str, objects: &[Value], has_image_of_its_own: bool) -> Result<String> {
    let mut text = format!(
        "{{{{- if {condition} }}}}\n{{{{- $process := include \"kubernetes-operators.process\" (list . {name:?}) | fromYaml }}}}\n"
    );
    for object in objects {
        if object["kind"] == "Deployment" {
            let mut object = object.clone();
            let holes =
                deployment(&mut object, name, has_image_of_its_own).with_context(|| format!("template of {name}"))?;
            text.push_str(&template(&object, &holes));
        } else {
            text.push_str(&template(object, &Holes::new()));
        }
    }
    Ok(text + "{{- end }}\n")
}

/// Where a Deployment has values, and what it has none of is added as null.
fn deployment(object: &mut Value, name: &str, has_image_of_its_own: bool) -> Result<Holes> {
    const POD: &str = "/spec/template/spec";
    let container = format!("{POD}/containers/0");
    let image = object.pointer(&format!("{container}/image")).and_then(Value::as_str).and_then(images::name);
    let image = image.context("no image of ours")?.to_owned();
    let of_image = |image: &str| format!("include \"kubernetes-operators.image\" (list $ {image:?})");
    let (mut reference, mut before) = (of_image(&image), Vec::new());
    if has_image_of_its_own {
        reference = format!("ternary ({}) ({reference}) $.Values.image.one", of_image("operators"));
        before = lines(&["{{- if $.Values.image.one }}", &format!("- {name}"), "{{- end }}"]);
    }
    let after = lines(&["{{- range $process.extraArgs }}", "- {{ . | quote }}", "{{- end }}"]);
    let mut holes = Holes::from([
        ("/spec/replicas".to_owned(), Hole::Is("$process.replicas".to_owned())),
        (format!("{container}/image"), Hole::Is(reference)),
        (format!("{container}/imagePullPolicy"), Hole::Is("$.Values.image.pullPolicy".to_owned())),
        (format!("{container}/args"), Hole::Around { before, after }),
        (format!("{container}/resources"), Hole::Or("$process.resources".to_owned())),
        (format!("{POD}/imagePullSecrets"), Hole::Or("$.Values.image.pullSecrets".to_owned())),
    ]);
    for field in ["nodeSelector", "affinity", "tolerations", "volumes"] {
        holes.insert(format!("{POD}/{field}"), Hole::Or(format!("$process.{field}")));
    }
    holes.insert(format!("{container}/volumeMounts"), Hole::Or("$process.volumeMounts".to_owned()));
    let pod = &mut object["spec"]["template"]["spec"];
    for field in ["imagePullSecrets", "volumes"] {
        pod[field] = Value::Null;
    }
    pod["containers"][0]["volumeMounts"] = Value::Null;
    let absent = holes.keys().find(|pointer| object.pointer(pointer).is_none());
    absent.map_or(Ok(()), |pointer| anyhow::bail!("no {pointer}"))?;
    Ok(holes)
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// What values may be: a misspelled name is an error, not a silent nothing.
fn schema(operators: &[Operator], families: &[Family], processes: &[String]) -> Value {
    let strict = |properties: Value| json!({"type": "object", "additionalProperties": false, "properties": properties});
    let array = || json!({"type": "array"});
    let of_pods = |more: Value| {
        let mut properties = json!({
            "replicas": {"type": "integer", "minimum": 0},
            "extraArgs": {"type": "array", "items": {"type": "string"}},
            "resources": {"type": "object"},
            "nodeSelector": {"type": "object"},
            "affinity": {"type": "object"},
            "tolerations": array(),
            "volumes": array(),
            "volumeMounts": array(),
        });
        if let (Some(properties), Value::Object(more)) = (properties.as_object_mut(), more) {
            properties.extend(more);
        }
        strict(properties)
    };
    let names: Vec<&String> = operators.iter().map(|operator| &operator.name).collect();
    let families: Vec<&String> = families.iter().map(|family| &family.name).collect();
    let of_each: BTreeMap<&String, Value> =
        names.iter().copied().chain(processes).map(|name| (name, of_pods(json!({})))).collect();
    let labelled = || strict(json!({"enabled": {"type": "boolean"}, "labels": {"type": "object"}}));
    let switch = || strict(json!({"enabled": {"type": "boolean"}}));
    let mut schema = of_pods(json!({
        "form": {"enum": ["operators", "families", "one-process"]},
        "operators": {"type": "array", "uniqueItems": true, "items": {"enum": names}},
        "families": {"type": "array", "uniqueItems": true, "items": {"enum": families}},
        "image": strict(json!({
            "registry": {"type": "string", "minLength": 1},
            "tag": {"type": "string"},
            "one": {"type": "boolean"},
            "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
            "pullSecrets": array(),
        })),
        "each": strict(json!(of_each)),
        "networkPolicy": strict(json!({
            "enabled": {"type": "boolean"},
            "from": {"type": "string", "minLength": 1},
            "egress": strict(json!({"enabled": {"type": "boolean"}, "to": array()})),
        })),
        "serviceMonitor": labelled(),
        "prometheusRules": labelled(),
        "dashboards": labelled(),
        "metricsReader": switch(),
        "viewer": switch(),
        // Helm gives it to every chart.
        "global": {"type": "object"},
    }));
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema
}
