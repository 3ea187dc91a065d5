//! Certificates, tokens and signatures: the same requests under kube-controller-manager and under the operators, and back.
//!
//! Each certificate is read and verified by OpenSSL, and by the apiserver, which is Go's.
//! Left out: odd requests, which the operators' own tests compare byte for byte.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use e2e::apply::{api, apply};
use e2e::cluster::{ClusterOptions, ControllerManager};
use e2e::pki::Requested;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::process::Command;

use super::mask;
use crate::support::requests::{CLIENT, KUBELET_CLIENT, approve};
use crate::support::{DEADLINE, Scene, start_operators, with_cluster};

const SERVING: &str = "kubernetes.io/kubelet-serving";
const OPERATORS: [&str; 8] = [
    "serviceaccount-token-operator",
    "legacy-serviceaccount-token-cleaner-operator",
    "bootstrap-signer-operator",
    "token-cleaner-operator",
    "certificatesigningrequest-approving-operator",
    "certificatesigningrequest-signing-operator",
    "certificatesigningrequest-cleaner-operator",
    "podcertificaterequest-cleaner-operator",
];
const SIGNATURE: &str = "jws-kubeconfig-abcdef";

/// What is asked for, by a name: the request and its signer.
struct Asked {
    name: &'static str,
    signer: &'static str,
    request: Requested,
}

impl Asked {
    fn all() -> Result<[Self; 3]> {
        let node = |names: &[&str]| Requested::new("system:node:a", "system:nodes", names);
        Ok([
            Self { name: "client", signer: CLIENT, request: Requested::new("jane", "developers", &[])? },
            Self { name: "kubelet", signer: KUBELET_CLIENT, request: node(&[])? },
            Self { name: "serving", signer: SERVING, request: node(&["a", "a.example"])? },
        ])
    }

    /// Asks under the name of who is to sign. Who asks for a kubelet's certificate may, and so it is approved.
    async fn ask(&self, scene: &Scene, who: &str) -> Result<()> {
        let name = format!("{who}-{}", self.name);
        let usage = if self.signer == SERVING { "server auth" } else { "client auth" };
        let request = ByteString(self.request.request.clone().into_bytes());
        let object = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": request, "signerName": self.signer, "usages": ["digital signature", usage],
                "expirationSeconds": 3600},
        });
        apply(&scene.client, "", &object).await?;
        if self.signer == KUBELET_CLIENT { Ok(()) } else { approve(scene, &name).await }
    }
}

/// The status of a request once it is signed.
async fn signed(scene: &Scene, name: &str) -> Result<Value> {
    let requests: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    scene
        .wait_until(&format!("{name} is signed"), DEADLINE, async || {
            let status = requests.get(name).await?.status.unwrap_or_default();
            ensure!(status.certificate.is_some(), "{status:?}");
            serde_json::to_value(status).context("write a status as JSON")
        })
        .await
}

/// A certificate in the words of OpenSSL, without what no two have in common; it is the CA's and holds.
async fn in_words(scene: &Scene, status: &mut Value) -> Result<String> {
    let certificate: ByteString = serde_json::from_value(status["certificate"].take()).context("a certificate")?;
    let path = scene.cluster.run_dir()?.join("compared.crt");
    std::fs::write(&path, &certificate.0).context("write a certificate")?;
    let ca = scene.cluster.pki()?.file("ca.crt");
    openssl(&[Path::new("verify"), Path::new("-CAfile"), &ca, &path]).await?;
    let options = ["x509", "-noout", "-text", "-certopt", "no_serial,no_validity,no_sigdump", "-in"].map(Path::new);
    openssl(&[&options[..], &[&path]].concat()).await
}

async fn openssl(args: &[&Path]) -> Result<String> {
    let output = Command::new("openssl").args(args).kill_on_drop(true).output().await.context("run openssl")?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("openssl prints UTF-8")
}

/// The header and the claims of the token of a Secret, and what is beside it.
async fn token(scene: &Scene, name: &str) -> Result<(Value, Value, Value)> {
    let annotations = json!({"kubernetes.io/service-account.name": "robot"});
    let object = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": annotations}});
    scene.apply(&object).await?;
    scene
        .wait_until(&format!("{name} is filled in"), DEADLINE, async || {
            let secret: Secret = scene.fetch(name).await?;
            let uid = secret.annotations().get("kubernetes.io/service-account.uid").cloned();
            let mut data = secret.data.clone().unwrap_or_default();
            let token = String::from_utf8(data.remove("token").context("no token yet")?.0)?;
            let mut parts = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part));
            let mut part = || -> Result<Value> { Ok(serde_json::from_slice(&parts.next().context("a part")??)?) };
            let (header, mut claims) = (part()?, part()?);
            ensure!(claims["kubernetes.io/serviceaccount/secret.name"].take() == name, "it is of another Secret");
            Ok((header, claims, json!({"data": data, "uid": uid})))
        })
        .await
}

/// A bootstrap token, and a text to sign.
async fn invite(scene: &Scene) -> Result<()> {
    let metadata = json!({"name": "bootstrap-token-abcdef", "namespace": "kube-system"});
    let values = json!({"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"});
    for object in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "bootstrap.kubernetes.io/token",
            "stringData": values}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cluster-info", "namespace": "kube-public"},
            "data": {"kubeconfig": "clusters: []"}}),
    ] {
        apply(&scene.client, "", &object).await?;
    }
    signature(scene).await.map(drop)
}

async fn signature(scene: &Scene) -> Result<String> {
    let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-public");
    scene
        .wait_until("the cluster's information is signed", DEADLINE, async || {
            let data = config_maps.get("cluster-info").await?.data.unwrap_or_default();
            data.get(SIGNATURE).cloned().context("not yet")
        })
        .await
}

/// The versions of all that these controllers write.
async fn versions(scene: &Scene, who: &str) -> Result<Vec<String>> {
    let mut versions = Vec::new();
    for (api_version, kind, namespace, names) in [
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "", &["client", "kubelet", "serving"][..]),
        ("v1", "Secret", &scene.namespace, &["token"]),
    ] {
        let api = api(&scene.client, api_version, kind, namespace).await?;
        for name in names {
            let object = api.get(&format!("{who}-{name}")).await.with_context(|| format!("get {kind} {name}"))?;
            versions.push(format!("{kind} {name} {:?}", object.resource_version()));
        }
    }
    let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-public");
    versions.push(format!("cluster-info {:?}", config_maps.get("cluster-info").await?.resource_version()));
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), "kube-system");
    versions.push(format!("bootstrap token {:?}", secrets.get("bootstrap-token-abcdef").await?.resource_version()));
    Ok(versions)
}

/// All requests under the name of who is at work: what each got, in words.
async fn answered(scene: &Scene, asked: &[Asked], who: &str) -> Result<Vec<(String, Value)>> {
    let mut answers = Vec::new();
    for one in asked {
        one.ask(scene, who).await?;
        let mut status = signed(scene, &format!("{who}-{}", one.name)).await?;
        let words = in_words(scene, &mut status).await?;
        mask(&mut status);
        answers.push((words, status));
    }
    Ok(answers)
}

#[test]
fn certificates_and_tokens_are_upstreams_and_change_hands_without_a_write() -> Result<()> {
    with_cluster(ClusterOptions::with_controller_manager(), async |scene| {
        for key in ["ca.key", "sa.key"] {
            std::fs::set_permissions(scene.cluster.pki()?.file(key), std::fs::Permissions::from_mode(0o644))?;
        }
        scene.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})).await?;
        let asked = Asked::all()?;
        invite(scene).await?;
        let signature_of_upstream = signature(scene).await?;
        let (theirs, their_token) = (answered(scene, &asked, "theirs").await?, token(scene, "theirs-token").await?);
        let their_versions = versions(scene, "theirs").await?;

        scene.cluster.stop_controller_manager().await?;
        let mut operators = start_operators(&scene.cluster, OPERATORS).await?;
        let (ours, our_token) = (answered(scene, &asked, "ours").await?, token(scene, "ours-token").await?);
        assert_eq!(ours, theirs);
        assert_eq!(our_token, their_token);
        assert_eq!(versions(scene, "theirs").await?, their_versions, "something was written at rest");
        let config_maps: Api<ConfigMap> = Api::namespaced(scene.client.clone(), "kube-public");
        let unsigned = kube::api::Patch::Merge(json!({"data": {SIGNATURE: null}}));
        config_maps.patch("cluster-info", &kube::api::PatchParams::default(), &unsigned).await?;
        assert_eq!(signature(scene).await?, signature_of_upstream);
        for operator in &mut operators {
            let is_told = operator.log()?.contains("readable by others than its owner");
            let has_key = ["certificatesigningrequest-signing-operator", "serviceaccount-token-operator"];
            assert_eq!(is_told, has_key.contains(&operator.name()), "{}", operator.name());
        }

        let our_versions = versions(scene, "ours").await?;
        for operator in &mut operators {
            operator.terminate().await?;
        }
        scene.cluster.start_controller_manager(ControllerManager::all()).await?;
        // Once these are answered, it has looked at all.
        assert_eq!(answered(scene, &asked, "again").await?, theirs);
        assert_eq!(token(scene, "again-token").await?, their_token);
        assert_eq!(versions(scene, "ours").await?, our_versions, "upstream has written something at rest");
        Ok(())
    })
}
