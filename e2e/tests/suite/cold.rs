//! A cluster in which nothing of kube-controller-manager ever ran: the operators that it takes, as
//! `scripts/static-pods.sh` lays them down, with the identities that it gives them.
//!
//! Left out: kubelets and images, with which `scripts/cold-cluster.sh` shows the same on a real node.

mod joining;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::apply::{apply, documents, text};
use e2e::cluster::{ClusterOptions, Part};
use e2e::kubeconfig::{self, Credentials};
use e2e::kubectl::run_script;
use e2e::operator::ALL_IN_ONE;
use e2e::static_pods::{SCRIPT, StaticPods};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;

use crate::support::clusters::program;
use crate::support::{DEADLINE, Scene, with_cluster};

/// The pods' ranges, as in other tests of this suite.
const RANGES: [&str; 2] = ["--cluster-cidr=10.64.0.0/10", "--service-cluster-ip-range=10.0.0.0/16"];

/// Who this client is to the apiserver.
async fn who(client: &Client) -> Result<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.context("ask who I am")?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    user.username.context("nobody")
}

/// Applies what an administrator does: the operators' roles, and what lets nodes ask for certificates.
async fn prepare(scene: &Scene, laid_down: &StaticPods) -> Result<()> {
    let accounts = laid_down.accounts();
    scene.cluster.kubectl([OsStr::new("apply"), OsStr::new("--filename"), accounts.as_os_str()]).await?;
    for (role, group) in [
        ("system:node-bootstrapper", "system:bootstrappers"),
        ("system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:bootstrappers"),
        ("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"),
        ("system:node-bootstrapper", "system:nodes"),
    ] {
        let name = format!("{role}-of-{group}").replace(':', "-");
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}],
        });
        apply(&scene.client, "", &binding).await?;
    }
    Ok(())
}

/// A node gets its range and loses its taint, and then workloads their accounts, their CA, their pods and endpoints.
async fn workloads_run(scene: &Scene) -> Result<()> {
    let labels = json!({"node.e2e/kubelet": "running", "kubernetes.io/hostname": "cold", "kubernetes.io/os": "linux"});
    apply(
        &scene.client,
        "",
        &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "cold", "labels": labels}}),
    )
    .await?;
    let nodes: Api<Node> = Api::all(scene.client.clone());
    scene
        .wait_until("the node has a range and no taint", DEADLINE, async || {
            let spec = nodes.get("cold").await?.spec.unwrap_or_default();
            ensure!(spec.pod_cidr.is_some() && spec.taints.clone().unwrap_or_default().is_empty(), "{spec:?}");
            Ok(())
        })
        .await?;
    let namespace = format!("{}-ns", scene.namespace);
    scene.cluster.kubectl(["create", "namespace", &namespace]).await?;
    let beside = Scene { cluster: scene.cluster.clone(), client: scene.client.clone(), namespace };
    scene
        .wait_until("a namespace has its account and the CA", DEADLINE, async || {
            beside.fetch::<ServiceAccount>("default").await?;
            let ca = beside.fetch::<ConfigMap>("kube-root-ca.crt").await?.data.unwrap_or_default();
            ensure!(ca.get("ca.crt").map(String::as_str) == Some(scene.cluster.pki()?.ca_pem()), "{ca:?}");
            Ok(())
        })
        .await?;
    beside.kubectl("create deployment web --image=web --replicas=2").await?;
    beside.rolled_out("web").await?;
    beside.kubectl("expose deployment web --port=80").await?;
    scene
        .wait_until("its Service has both", DEADLINE, async || {
            let slices: Vec<EndpointSlice> = beside.list("kubernetes.io/service-name=web").await?;
            let endpoints: usize = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten()).count();
            ensure!(endpoints == 2, "{slices:?}");
            Ok(())
        })
        .await?;
    token_is_good(&beside).await
}

/// The token of a Secret lets its account in.
async fn token_is_good(scene: &Scene) -> Result<()> {
    let annotations = json!({"kubernetes.io/service-account.name": "default"});
    scene
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "token", "annotations": annotations},
        }))
        .await?;
    let token = scene
        .wait_until("the Secret has its token", DEADLINE, async || {
            let data = scene.fetch::<Secret>("token").await?.data.unwrap_or_default();
            let token = data.get("token").context("not yet")?;
            String::from_utf8(token.0.clone()).context("a token is text")
        })
        .await?;
    let client = client(scene, "secret", &Credentials::Token(&token)).await?;
    ensure!(who(&client).await? == format!("system:serviceaccount:{}:default", scene.namespace));
    Ok(())
}

async fn client(scene: &Scene, name: &str, credentials: &Credentials<'_>) -> Result<Client> {
    let path = scene.cluster.run_dir()?.join(format!("{name}.kubeconfig"));
    kubeconfig::write(&path, &scene.cluster.server()?, scene.cluster.pki()?.ca_pem(), credentials)?;
    kubeconfig::client(&path).await
}

#[test]
fn a_cluster_comes_up_without_kube_controller_manager() -> Result<()> {
    let apiserver_flags = vec!["--enable-bootstrap-token-auth".to_owned()];
    with_cluster(ClusterOptions { nodes: 0, apiserver_flags, ..ClusterOptions::default() }, async |scene| {
        let image = format!("--image=operators.local/{ALL_IN_ONE}:v0.1.0");
        let laid_down = scene.cluster.lay_down_static_pods(&[&image, RANGES[0], RANGES[1]]).await?;
        prepare(scene, &laid_down).await?;
        let operators = scene.cluster.start_static_pods(&program(), &laid_down).await?;
        joining::a_node_joins(scene).await?;
        workloads_run(scene).await?;
        ensure!(scene.cluster.usage(Part::ControllerManager).is_err(), "kube-controller-manager runs");
        for operator in &operators {
            ensure!(
                !operator.log()?.contains("readable by others than its owner"),
                "{} has an open key",
                operator.name()
            );
        }
        Ok(())
    })
}

#[test]
fn each_static_pod_has_its_own_key_its_own_port_and_no_others_files() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 0, ..ClusterOptions::default() }, async |scene| {
        let laid_down = scene.cluster.lay_down_static_pods(&RANGES).await?;
        let pods = laid_down.pods()?;
        let mut ports = Vec::new();
        for pod in &pods {
            let (name, spec) = (text(pod, "/metadata/name")?, &pod["spec"]);
            let folder = Path::new(text(pod, "/spec/volumes/0/hostPath/path")?);
            ensure!(spec["volumes"].as_array().is_some_and(|volumes| volumes.len() == 1), "{spec}");
            ensure!(
                spec["hostNetwork"] == json!(true) && spec["priorityClassName"] == "system-node-critical",
                "{spec}"
            );
            ensure!(text(pod, "/spec/containers/0/image")? == format!("operators.local/{name}:v0.1.0"), "{spec}");
            ports.push(spec["containers"][0]["ports"][0]["containerPort"].clone());
            ensure!(std::fs::metadata(folder)?.permissions().mode() & 0o777 == 0o700, "{}", folder.display());
            let mut files = Vec::new();
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                ensure!(entry.metadata()?.permissions().mode() & 0o777 == 0o600, "{}", entry.path().display());
                files.push(entry.file_name().to_string_lossy().into_owned());
            }
            files.retain(|file| !["kubeconfig", "client.pem", "trust.crt"].contains(&file.as_str()));
            files.sort();
            let keys: &[&str] = match name {
                "certificatesigningrequest-signing-operator" => &["ca.crt", "ca.key"],
                "serviceaccount-token-operator" => &["sa.key"],
                _ => &[],
            };
            ensure!(files == keys, "{name} has {files:?}");
            let credentials = folder.join("kubeconfig");
            let user = who(&kubeconfig::client(&credentials).await?).await?;
            ensure!(user == format!("system:serviceaccount:kube-system:{name}"), "{name} is {user}");
        }
        ports.sort_by_key(serde_json::Value::as_u64);
        ports.dedup();
        ensure!(ports.len() == pods.len() && pods.len() == 12, "{ports:?}");
        let accounts = std::fs::read_to_string(laid_down.accounts())?;
        for object in documents(&accounts)? {
            let kind = text(&object, "/kind")?;
            ensure!(
                ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].contains(&kind),
                "{kind}"
            );
        }
        Ok(())
    })
}

#[test]
fn certificates_are_renewed_by_the_same_command_and_removed_with_all_keys() -> Result<()> {
    with_cluster(ClusterOptions { nodes: 0, ..ClusterOptions::default() }, async |scene| {
        const SIGNER: &str = "certificatesigningrequest-signing-operator";
        let laid_down = scene.cluster.lay_down_static_pods(&RANGES).await?;
        let out = laid_down.accounts().parent().context("a folder")?.to_owned();
        let certificate = out.join(SIGNER).join("client.pem");
        let before = std::fs::read(&certificate)?;
        let (succeeded, printed) = run_script(&out.join("renew").display().to_string(), [""; 0], None).await?;
        ensure!(succeeded, "{printed}");
        ensure!(std::fs::read(&certificate)? != before, "it has a new certificate");
        let folder = format!("--out={}", out.display());
        let (succeeded, printed) = run_script(SCRIPT, ["--remove", &folder, SIGNER], None).await?;
        ensure!(succeeded && printed.contains("kubectl delete"), "{printed}");
        let pods = laid_down.pods()?;
        let names = pods.iter().map(|pod| text(pod, "/metadata/name")).collect::<Result<Vec<_>>>()?;
        ensure!(names.len() == 11 && !names.contains(&SIGNER), "{names:?}");
        ensure!(!out.join(SIGNER).exists() && !std::fs::read_to_string(out.join("servers"))?.contains(SIGNER));
        Ok(())
    })
}

#[test]
fn what_is_wrong_with_the_command_is_said() -> Result<()> {
    crate::support::scene::runtime()?.block_on(async {
        for (args, expected) in [
            (vec![], "--server says where this node's apiserver is"),
            (vec!["--server=http://a"], "an apiserver's URL begins with https://"),
            (vec!["--server=https://a", "--pki=/nowhere"], "cannot read /nowhere/ca.crt (--pki says where"),
            (vec!["--sever=https://a"], "there is no --sever (--help lists what there is)"),
            (vec!["--remove"], "--remove says which operators"),
            (vec!["--remove", "--out=/nowhere", "job-operator"], "/nowhere has no job-operator"),
        ] {
            let (succeeded, printed) = run_script(SCRIPT, &args, None).await?;
            ensure!(!succeeded && printed.contains(expected), "{args:?}: {printed}");
        }
        Ok(())
    })
}
