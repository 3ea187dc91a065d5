//! The operator as it is, against an apiserver in the test's process: its informer, its reads, its sync, its writes.

use serde_json::{Value, json};
use shared::testing::apiserver::Server;
use shared::testing::running::Step::Do;
use shared::testing::running::{Running, survives_kills, test};
use shared::testing::{ObjectBuilder, object};
use validatingadmissionpolicy_status_operator::controller::ValidatingAdmissionPolicyStatusOperator;

const POLICIES: &str = "validatingadmissionpolicies";
const STATUS: &str = "patch validatingadmissionpolicies/status";
const DOCUMENT: &str = "/openapi/v3/apis/apps/v1";

/// A server with schemas of Deployments and of ConfigMaps.
fn server() -> Server {
    let server = Server::new();
    serve(&server);
    server
}

fn serve(server: &Server) {
    server.serve_document(DOCUMENT, document("replicas"));
    let config = json!({"type": "object", "properties": {"data": {"type": "object", "additionalProperties": {"type": "string"}}}});
    server.serve_document("/openapi/v3/api/v1", of_kinds(&[("", "ConfigMap", config)]));
}

fn document(field: &str) -> Value {
    let spec = json!({"type": "object", "properties": {field: {"type": "integer"}}});
    of_kinds(&[("apps", "Deployment", json!({"type": "object", "properties": {"spec": spec}}))])
}

fn of_kinds(schemas: &[(&str, &str, Value)]) -> Value {
    let mut all = json!({});
    for (group, kind, schema) in schemas {
        let mut schema = schema.clone();
        schema["x-kubernetes-group-version-kind"] = json!([{"group": group, "version": "v1", "kind": kind}]);
        all[*kind] = schema;
    }
    json!({"components": {"schemas": all}})
}

/// A policy about Deployments.
fn policy(name: &str, expression: &str) -> ObjectBuilder {
    let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]});
    object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name)
        .namespace("")
        .set(&["spec", "matchConstraints", "resourceRules"], vec![rule])
        .set(&["spec", "validations"], json!([{"expression": expression}]))
}

/// Edits a policy's expression.
fn edit(server: &Server, name: &str, expression: &str) {
    server.change(POLICIES, name, |policy| policy["spec"]["validations"] = json!([{"expression": expression}]));
}

fn start(server: &Server) -> Running {
    Running::start::<ValidatingAdmissionPolicyStatusOperator>(server, &[])
}

/// The checked generation, and the first line of each warning.
fn status(server: &Server, name: &str) -> (i64, Vec<String>) {
    let status = server.get(POLICIES, name).unwrap_or_default()["status"].clone();
    let warnings = status["typeChecking"]["expressionWarnings"].as_array().cloned().unwrap_or_default();
    let first = |warning: &Value| warning["warning"].as_str().and_then(|text| text.lines().next()).map(str::to_owned);
    (status["observedGeneration"].as_i64().unwrap_or_default(), warnings.iter().filter_map(first).collect())
}

fn undefined(column: usize, field: &str) -> Vec<String> {
    vec![format!("apps/v1, Kind=Deployment: ERROR: <input>:1:{column}: undefined field '{field}'")]
}

#[test]
fn survives_a_kill_before_any_write() {
    test(async {
        let life = [
            Do(serve),
            Do(|server| server.add(&policy("a", "object.spec.replicas > 1"))),
            Do(|server| server.add(&policy("b", "object.spec.replica > 1"))),
            Do(|server| edit(server, "a", "object.spec.size > 1")),
            Do(|server| edit(server, "b", "object.spec.replicas > 1")),
            Do(|server| server.delete(POLICIES, "b")),
        ];
        let server = survives_kills::<ValidatingAdmissionPolicyStatusOperator>(&[], &life).await;
        assert_eq!(status(&server, "a"), (2, undefined(12, "size")));
        let writes = server.writes();
        assert!(writes.iter().all(|write| write.starts_with(STATUS)), "{writes:?}");
    });
}

#[test]
fn a_policy_is_checked_once_for_each_generation() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replicas > 1"));
        let running = start(&server);
        running.at_rest().await;
        assert_eq!(status(&server, "a"), (1, vec![]));
        assert_eq!(server.get(POLICIES, "a").unwrap()["status"]["typeChecking"], json!({}));
        server.change(POLICIES, "a", |policy| policy["metadata"]["labels"] = json!({"a": "b"}));
        running.at_rest().await;
        assert_eq!(server.count(STATUS), 1);
        edit(&server, "a", "object.spec.replica > 1");
        running.at_rest().await;
        assert_eq!((status(&server, "a"), server.count(STATUS)), ((2, undefined(12, "replica")), 2));
    });
}

#[test]
fn a_start_among_checked_policies_reads_and_writes_nothing() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replica > 1").set(&["status", "observedGeneration"], 1));
        start(&server).at_rest().await;
        assert_eq!((server.writes(), server.count("get validatingadmissionpolicies")), (vec![], 0));
    });
}

#[test]
fn parameters_have_the_type_of_their_kind() {
    test(async {
        let server = server();
        let param_kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        server.add(&policy("a", "params.data.a == params.dat").set(&["spec", "paramKind"], param_kind));
        start(&server).at_rest().await;
        assert_eq!(status(&server, "a"), (1, undefined(24, "dat")));
    });
}

#[test]
fn the_document_of_several_kinds_is_read_once() {
    test(async {
        let server = server();
        let mut both = document("replicas");
        let config = of_kinds(&[("apps", "ControllerRevision", json!({"type": "object"}))]);
        both["components"]["schemas"]["ControllerRevision"] =
            config["components"]["schemas"]["ControllerRevision"].clone();
        server.serve_document(DOCUMENT, both);
        let resources = ["deployments", "controllerrevisions"];
        let rule = json!({"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": resources});
        let param_kind = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision"});
        server.add(
            &policy("a", "object.spec.replica > params.spec")
                .set(&["spec", "matchConstraints", "resourceRules"], vec![rule])
                .set(&["spec", "paramKind"], param_kind),
        );
        start(&server).at_rest().await;
        let (generation, warnings) = status(&server, "a");
        assert_eq!((generation, warnings.len()), (1, 1), "{warnings:?}");
        assert_eq!(server.count(&format!("get {DOCUMENT}")), 1, "{:?}", server.requests());
    });
}

#[test]
fn the_schema_of_parameters_is_not_read_for_a_policy_without_kinds() {
    test(async {
        let server = server();
        let param_kind = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let every = json!([{"apiGroups": ["*"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]);
        let policy = policy("a", "params.dat").set(&["spec", "matchConstraints", "resourceRules"], every);
        server.add(&policy.set(&["spec", "paramKind"], param_kind));
        start(&server).at_rest().await;
        assert_eq!((status(&server, "a"), server.count("get /openapi")), ((1, vec![]), 0));
    });
}

#[test]
fn kinds_that_are_not_served_and_kinds_without_a_schema_are_skipped() {
    test(async {
        let server = server();
        server.serve_document(DOCUMENT, of_kinds(&[]));
        server.add(&policy("unknown", "object.spec.replica > 1"));
        let rule = json!({"apiGroups": ["g"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]});
        server.add(&policy("unserved", "object.a").set(&["spec", "matchConstraints", "resourceRules"], vec![rule]));
        server.add(&policy("without", "object.a").set(&["spec", "matchConstraints"], json!(null)));
        start(&server).at_rest().await;
        for name in ["unknown", "unserved", "without"] {
            assert_eq!(status(&server, name), (1, vec![]), "{name}");
        }
    });
}

#[test]
fn a_document_that_is_refused_leaves_its_kind_out() {
    test(async {
        let server = server();
        server.serve_document(DOCUMENT, json!(null));
        server.add(&policy("a", "object.spec.replica > 1"));
        start(&server).at_rest().await;
        assert_eq!(status(&server, "a"), (1, vec![]));
    });
}

#[test]
fn an_apply_that_fails_is_tried_again() {
    test(async {
        let server = server();
        server.on("patch", "validatingadmissionpolicies/status").times(3).answer(500, "InternalError", "etcd is down");
        server.add(&policy("a", "object.spec.replica > 1"));
        start(&server).at_rest().await;
        assert_eq!((status(&server, "a"), server.count(STATUS)), ((1, undefined(12, "replica")), 4));
    });
}

#[test]
fn a_policy_that_is_edited_while_it_is_checked_is_checked_again() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replica > 1"));
        let held = server.on("patch", "validatingadmissionpolicies/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        edit(&server, "a", "object.spec.size > 1");
        held.release();
        running.at_rest().await;
        assert_eq!(status(&server, "a"), (2, undefined(12, "size")));
    });
}

#[test]
fn a_policy_of_the_same_name_is_another_policy() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replica > 1"));
        let held = server.on("patch", "validatingadmissionpolicies/status").once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete(POLICIES, "a");
        server.add(&policy("a", "object.spec.size > 1").uid_of("another"));
        held.release();
        running.at_rest().await;
        assert_eq!(status(&server, "a"), (1, undefined(12, "size")));
    });
}

#[test]
fn a_policy_that_goes_before_it_is_read_is_left_alone() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replica > 1"));
        let held = server.on("get", POLICIES).once().hold();
        let running = start(&server);
        held.arrived().await;
        server.delete(POLICIES, "a");
        held.release();
        running.at_rest().await;
        assert_eq!((server.keys(POLICIES).len(), server.writes()), (0, vec![]));
    });
}

#[test]
fn why_says_what_was_found() {
    test(async {
        let server = server();
        server.add(&policy("a", "object.spec.replica > 1"));
        let running = start(&server);
        running.at_rest().await;
        let path = |name: &str| format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{name}");
        assert_eq!(running.now(&path("a")), ["nothing (generation 1 is checked)"]);
        let read = "read the policy and the schemas of its kinds (generation 1 is not checked, 0 is)";
        let apply = "apply the status of generation 1 (1 warnings for 1 kinds)";
        assert_eq!(running.last(&path("a")), [read, apply]);
        assert!(running.now(&path("gone")).is_empty());
    });
}
