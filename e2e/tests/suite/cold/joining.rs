//! A node that joins: by a bootstrap token it finds the cluster, as `kubeadm join` does, and gets its certificates, as a
//! kubelet does.

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use e2e::apply::{apply, documents};
use e2e::kubeconfig::Credentials;
use e2e::pki::{Identity, Requested};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use ring::hmac;
use serde_json::json;

use super::{client, who};
use crate::support::requests::{KUBELET_CLIENT, approve};
use crate::support::{DEADLINE, Scene};

const ID: &str = "c01dc0";
const SECRET: &str = "0123456789abcdef";
const USER: &str = "system:node:cold";
const GROUP: &str = "system:nodes";
const SERVING: &str = "kubernetes.io/kubelet-serving";

/// What `kubeadm init` lays down for those who join.
async fn invite(scene: &Scene) -> Result<()> {
    let cluster = json!({
        "certificate-authority-data": ByteString(scene.cluster.pki()?.ca_pem().as_bytes().to_vec()),
        "server": scene.cluster.server()?,
    });
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "cluster-info"});
    let anonymous = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"});
    let rule =
        json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]});
    let metadata = json!({"name": "cluster-info", "namespace": "kube-public"});
    for object in [
        json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": format!("bootstrap-token-{ID}"), "namespace": "kube-system"},
            "stringData": {"token-id": ID, "token-secret": SECRET,
                "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"kubeconfig": kubeconfig.to_string()}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": role, "subjects": [anonymous]}),
    ] {
        apply(&scene.client, "", &object).await?;
    }
    Ok(())
}

/// The text that the signature of this token in the ConfigMap is of.
///
/// Upstream: `DetachedTokenIsValid`, staging/src/k8s.io/cluster-bootstrap/token/jws/jws.go.
fn verified<'a>(cluster_info: &'a ConfigMap, id: &str, secret: &str) -> Result<&'a str> {
    let data = cluster_info.data.as_ref().context("no data")?;
    let signature = data.get(&format!("jws-kubeconfig-{id}")).context("no signature of this token")?;
    let text = data.get("kubeconfig").context("no kubeconfig")?;
    let (header, mac) = signature.split_once("..").context("it is not detached")?;
    let read: serde_json::Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).context("its header")?)?;
    ensure!(read == json!({"alg": "HS256", "kid": id}), "{read}");
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    if hmac::verify(&key, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(mac).context("its MAC")?).is_err() {
        bail!("it is signed by another secret, or is another text");
    }
    Ok(text)
}

async fn cluster_info(client: &Client) -> Result<ConfigMap> {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-public");
    config_maps.get("cluster-info").await.context("get cluster-info")
}

/// The CA, as who knows nothing but an address and a token finds it: the text is read from a server that is not trusted,
/// believed for its signature, and read again from the server that it names.
///
/// Upstream: `retrieveValidatedConfigInfo`, cmd/kubeadm/app/discovery/token/token.go.
async fn discover(scene: &Scene) -> Result<String> {
    let mut config = kube::Config::new(scene.cluster.server()?.parse().context("the server's address")?);
    config.accept_invalid_certs = true;
    let untrusted = Client::try_from(config.clone()).context("a client that trusts anybody")?;
    let text = scene
        .wait_until("the cluster's information is signed", DEADLINE, async || {
            verified(&cluster_info(&untrusted).await?, ID, SECRET).map(str::to_owned)
        })
        .await?;
    ensure!(verified(&cluster_info(&untrusted).await?, ID, "another-secret-0").is_err(), "any secret will do");
    let kubeconfig = documents(&text)?.pop().context("an empty kubeconfig")?;
    let ca = kubeconfig.pointer("/clusters/0/cluster/certificate-authority-data").context("no CA")?;
    let ca: ByteString = serde_json::from_value(ca.clone()).context("a CA in base64")?;
    let ca = String::from_utf8(ca.0).context("a CA in PEM")?;
    let path = scene.cluster.run_dir()?.join("discovered.kubeconfig");
    e2e::kubeconfig::write(&path, &scene.cluster.server()?, &ca, &Credentials::Token(""))?;
    let trusting = e2e::kubeconfig::client(&path).await?;
    ensure!(verified(&cluster_info(&trusting).await?, ID, SECRET)? == text, "the server that it names says otherwise");
    Ok(ca)
}

/// Asks as this client for a certificate, and waits for it; somebody approves where nobody does by himself.
async fn certificate(scene: &Scene, asking: &Client, name: &str, signer: &str) -> Result<Identity> {
    let is_serving = signer == SERVING;
    let names: &[&str] = if is_serving { &["cold"] } else { &[] };
    let requested = Requested::new(USER, GROUP, names)?;
    let requests: Api<CertificateSigningRequest> = Api::all(asking.clone());
    let mut request = CertificateSigningRequest {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..CertificateSigningRequest::default()
    };
    request.spec.request = ByteString(requested.request.clone().into_bytes());
    signer.clone_into(&mut request.spec.signer_name);
    let usage = if is_serving { "server auth" } else { "client auth" };
    request.spec.usages = Some(vec!["digital signature".to_owned(), usage.to_owned()]);
    requests.create(&PostParams::default(), &request).await.with_context(|| format!("ask for {name}"))?;
    if is_serving {
        approve(scene, name).await?;
    }
    let admins: Api<CertificateSigningRequest> = Api::all(scene.client.clone());
    let signed = scene
        .wait_until(&format!("{name} is signed"), DEADLINE, async || {
            let status = admins.get(name).await?.status.unwrap_or_default();
            status.certificate.clone().with_context(|| format!("{status:?}"))
        })
        .await?;
    Ok(requested.signed(String::from_utf8(signed.0).context("a certificate in PEM")?))
}

/// From the token to a client certificate, its successor, and a serving certificate.
pub(super) async fn a_node_joins(scene: &Scene) -> Result<()> {
    invite(scene).await?;
    ensure!(discover(scene).await? == scene.cluster.pki()?.ca_pem(), "it is another CA");
    let token = format!("{ID}.{SECRET}");
    let bootstrapping = client(scene, "bootstrap", &Credentials::Token(&token)).await?;
    ensure!(who(&bootstrapping).await? == format!("system:bootstrap:{ID}"));
    let first = certificate(scene, &bootstrapping, "cold-first", KUBELET_CLIENT).await?;
    let node = client(scene, "node", &Credentials::Certificate(&first)).await?;
    ensure!(who(&node).await? == USER);
    let second = certificate(scene, &node, "cold-second", KUBELET_CLIENT).await?;
    let renewed = client(scene, "renewed", &Credentials::Certificate(&second)).await?;
    ensure!(who(&renewed).await? == USER && second.certificate != first.certificate);
    certificate(scene, &renewed, "cold-serving", SERVING).await.map(drop)
}
