use serde_json::{Value, json};

use super::fakes::{OPERATOR, Operator, apiserver, refusal};
use super::*;

#[tokio::test]
async fn an_operator_gets_a_token_for_operators_alone() {
    let operator = Operator::start(json!("well")).await.unwrap();
    let (client, _) = apiserver(|_| refusal(404));
    let reach = operator.reach(client, operator.certificate.clone()).unwrap();
    assert_eq!(reach.ask::<Value>(&Leader::of_operator(OPERATOR, ""), "/debug/status").await.unwrap(), json!("well"));
    assert_eq!(operator.log.all(), ["/debug/status Bearer for kubernetes-operators"]);
}

#[tokio::test]
async fn a_server_with_another_certificate_gets_no_request() {
    let [operator, other] = [Operator::start(json!("")).await.unwrap(), Operator::start(json!("")).await.unwrap()];
    let (client, _) = apiserver(|_| refusal(404));
    let reach = operator.reach(client, other.certificate).unwrap();
    let error = reach.ask::<Value>(&Leader::of_operator(OPERATOR, ""), "/debug/status").await.unwrap_err();
    assert!(format!("{error:#}").contains("another certificate"), "{error:#}");
    assert_eq!(operator.log.all(), [""; 0]);
}

#[tokio::test]
async fn only_a_pod_of_the_operator_is_asked() {
    const PODS: &str = "/api/v1/namespaces/kube-system/pods";
    let pod = |account: &str| {
        let container = json!({"name": "operator", "ports": [{"name": "https", "containerPort": 10315}]});
        json!({"metadata": {"name": "x"}, "spec": {"serviceAccountName": account, "containers": [container]}})
    };
    for (leader, account, expected, is_asked) in [
        ("x", OPERATOR, "cannot forward a port to pod x", true),
        ("x", "robot", "its leader x runs as ServiceAccount \"robot\"", false),
        ("x", "", "its leader x runs as ServiceAccount \"\"", false),
        ("y", OPERATOR, "its leader y is not a pod of this cluster", false),
        ("x/exec?command=ls&_", OPERATOR, "is not a name of a pod", false),
    ] {
        let pod = pod(account);
        let (client, log) = apiserver(move |asked| match asked.strip_prefix(&format!("GET {PODS}")) {
            Some("/x") => (200, pod.clone()),
            Some(list) if list.starts_with('?') => (200, json!({"items": [pod]})),
            Some(_) | None => refusal(404),
        });
        let reach = Reach::new(client, ReachOptions::default());
        let error = reach.ask::<Value>(&Leader::of_operator(OPERATOR, leader), "/why").await.unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{leader}: {error:#}");
        let forward =
            |asked: &String| asked.starts_with(&format!("GET {PODS}/x/portforward?")) && asked.ends_with("ports=10315");
        let forwarded = log.all().iter().any(forward);
        assert_eq!(forwarded, is_asked, "{leader} {account}: {:?}", log.all());
        assert!(log.all().iter().all(|asked| !asked.contains("exec")), "{:?}", log.all());
    }
}

#[tokio::test]
async fn one_process_is_its_pod_and_of_a_static_pod_it_is_said_how_to_ask() {
    const PODS: &str = "/api/v1/namespaces/kube-system/pods";
    let container = json!({"name": "operator", "ports": [{"name": "https", "containerPort": 10257}]});
    let pod = json!({
        "metadata": {"name": "one-process-operator-x"},
        "spec": {"serviceAccountName": "one-process-operator", "containers": [container]},
    });
    let own = json!({
        "metadata": {"name": "a-operator-x"}, "spec": {"serviceAccountName": OPERATOR, "containers": [container]},
    });
    let static_pod = json!({
        "metadata": {"name": "kube-controller-manager-node-1.example", "namespace": "kube-system"},
        "spec": {"hostNetwork": true, "nodeName": "node-1.example", "containers": [{"name": "operator"}]},
    });
    let (client, log) = apiserver(move |asked| match asked.strip_prefix(&format!("GET {PODS}")) {
        Some("/one-process-operator-x") => (200, pod.clone()),
        Some("/a-operator-x") => (200, own.clone()),
        Some(list) if list.contains("component%3Dkube-controller-manager") => (200, json!({"items": [static_pod]})),
        Some(list) if list.starts_with('?') => (200, json!({"items": []})),
        Some(_) | None => refusal(404),
    });
    let reach = Reach::new(client, ReachOptions::default());
    for (leader, expected) in [
        ("one-process-operator-x", "cannot forward a port to pod one-process-operator-x"),
        ("a-operator-x", "its leader a-operator-x runs as ServiceAccount \"a-operator\": not asked"),
        (
            "node-1",
            "its process is static pod kube-controller-manager-node-1.example, which has no ServiceAccount to \
             recognize it by: run `kubectl --namespace kube-system port-forward \
             pod/kube-controller-manager-node-1.example 10257`, and add --server \
             kube-controller-manager=https://127.0.0.1:10257",
        ),
        (
            "node-2",
            "its leader node-2 is not a pod of this cluster; set its address with --server kube-controller-manager=…",
        ),
        ("", "no replica holds its Lease"),
    ] {
        let leader = Leader::of_process("kube-controller-manager", leader);
        let error = reach.ask::<Value>(&leader, "/debug/status").await.unwrap_err();
        assert!(format!("{error:#}").starts_with(expected), "{leader:?}: {error:#}");
    }
    let forwarded: Vec<String> = log.all().into_iter().filter(|asked| asked.contains("/portforward?")).collect();
    assert!(matches!(&forwarded[..], [one] if one.contains("/one-process-operator-x/")), "{forwarded:?}");
}

#[tokio::test]
async fn a_token_that_cannot_be_had_is_explained() {
    let operator = Operator::start(json!("")).await.unwrap();
    for (code, expected) in [
        (403, "cannot create a token of ServiceAccount kube-system/operators-viewer: permission denied"),
        (500, "cannot create a token of ServiceAccount kube-system/operators-viewer: no"),
    ] {
        let (client, _) = apiserver(move |_| refusal(code));
        let reach = operator.reach(client, operator.certificate.clone()).unwrap();
        let error = reach.ask::<Value>(&Leader::of_operator(OPERATOR, ""), "/why").await.unwrap_err();
        assert_eq!(format!("{error:#}"), expected);
    }
    assert_eq!(operator.log.all(), [""; 0]);
}
