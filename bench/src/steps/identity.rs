//! Certificates of kubelets, and tokens in Secrets.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::pki::certificate_request;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use crate::about::{About, Target, Targets};
use crate::measure::{Bench, NAMESPACE, create, in_parallel};
use crate::options::BenchOptions;
use crate::sizes::IdentitySizes;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// So many tokens each account has.
const TOKENS_EACH: u32 = 10;
const REST: Duration = Duration::from_secs(60);

const TARGETS: Targets =
    Targets { ratios: &[Target::TIME, Target::CPU, Target::anonymous("at most 0.2"), Target::WRITES], each: None };

pub(crate) fn about(options: &BenchOptions) -> About {
    let IdentitySizes { certificates, tokens } = options.identity;
    About {
        operators: ["certificatesigningrequest-approving", "certificatesigningrequest-signing", "serviceaccount-token"]
            .map(|name| format!("{name}-operator"))
            .to_vec(),
        helpers: &[],
        upstream: "kube-controller-manager",
        controllers: "the approving and signing controllers of certificates, and the serviceaccount-token controller",
        reaction: None,
        steps: format!(
            "{certificates} requests of kubelets for client certificates, until all are approved and signed; {tokens} \
             Secrets,\nuntil all have their token; {} s at rest; the end of the accounts, until all their Secrets are gone.\n\
             The keys of the CA and of tokens are on P-256",
            REST.as_secs()
        ),
        nodes: 1,
        zones: 3,
        gated: false,
        flags: &[],
        page: "docs/benchmarks/identity.md",
        targets: Some(TARGETS),
    }
}

pub(crate) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let IdentitySizes { certificates, tokens } = bench.options.identity;
    bench.create_namespace(NAMESPACE).await?;
    bench.wait_ready().await?;

    // They are at work before they are measured.
    bench.ask(1).await?;
    bench.wait_signed(1).await?;
    bench.delete_requests().await?;

    let sign = async |bench: &mut Bench<'_>| {
        bench.ask(certificates).await?;
        bench.wait_signed(certificates).await
    };
    bench.measure("sign certificates of kubelets", sign).await?;
    bench.delete_requests().await?;

    let accounts = tokens.div_ceil(TOKENS_EACH);
    in_parallel(accounts, async |at| {
        create::<ServiceAccount>(&bench.api(), json!({"metadata": {"name": account(at)}})).await.map(drop)
    })
    .await?;
    let fill = async |bench: &mut Bench<'_>| {
        in_parallel(tokens, async |at| bench.ask_for_token(at).await).await?;
        bench.wait_tokens(tokens).await
    };
    bench.measure("fill in Secrets with tokens", fill).await?;
    bench.measure_rest("at rest", REST).await?;
    let end = async |bench: &mut Bench<'_>| {
        bench.delete_all::<ServiceAccount>().await?;
        bench.wait_none::<Secret>().await
    };
    bench.measure("delete the accounts with their tokens", end).await
}

fn account(at: u32) -> String {
    format!("account{at:04}")
}

impl Bench<'_> {
    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.client.clone())
    }

    async fn ask(&self, count: u32) -> Result<()> {
        in_parallel(count, async |at| {
            let request = certificate_request(&format!("system:node:bench{at:04}"), "system:nodes")?;
            let spec = json!({
                "request": ByteString(request.into_bytes()), "signerName": SIGNER,
                "usages": ["digital signature", "client auth"],
            });
            let object = json!({"metadata": {"name": format!("bench{at:04}")}, "spec": spec});
            create(&self.requests(), object).await.map(drop)
        })
        .await
    }

    async fn wait_signed(&self, count: u32) -> Result<()> {
        self.wait_until("signed", async || {
            let all = self.requests().list(&ListParams::default()).await.context("list requests")?;
            let is_signed = |request: &&CertificateSigningRequest| {
                request.status.as_ref().is_some_and(|status| status.certificate.is_some())
            };
            Ok(all.items.iter().filter(is_signed).count() >= usize::try_from(count)?)
        })
        .await
    }

    async fn delete_requests(&self) -> Result<()> {
        self.requests().delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        Ok(())
    }

    async fn ask_for_token(&self, at: u32) -> Result<()> {
        let annotations = json!({"kubernetes.io/service-account.name": account(at / TOKENS_EACH)});
        let metadata = json!({"name": format!("token{at:04}"), "annotations": annotations});
        create::<Secret>(&self.api(), json!({"metadata": metadata, "type": TOKEN_TYPE})).await.map(drop)
    }

    async fn wait_tokens(&self, count: u32) -> Result<()> {
        self.wait_until("filled in", async || {
            let all = self.api::<Secret>().list(&ListParams::default()).await.context("list Secrets")?;
            let has_token = |secret: &&Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("token"));
            Ok(all.items.iter().filter(has_token).count() >= usize::try_from(count)?)
        })
        .await
    }
}
