//! Executes a plan: signs the certificate and writes it, or writes that the request failed.

pub mod certificate;
mod der;

use anyhow::{Context, anyhow};
use data_encoding::BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use shared::api::object::{Key, Meta};
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::transport::api_error::ResultExt;
use shared::working::context::ControllerContext;
use shared::working::control::{Patch, Preconditions};

use crate::observe::Observed;
use crate::plan::{Certificate, Plan, Reason};
use crate::status::{self, Status};
use certificate::{SerialNumber, to_be_signed, whole};

/// The length of a line of PEM, as Go writes it.
const PEM_LINE: usize = 64;

pub(crate) struct Writer {
    pub(crate) ctx: ControllerContext,
}

impl Writer {
    pub(crate) async fn apply(&self, observed: &Observed, plan: Plan) -> anyhow::Result<()> {
        let metadata = &observed.request.metadata;
        match plan {
            Plan::Nothing(reason) => {
                warn(&metadata.key, &reason);
                Ok(())
            }
            Plan::TryAgain { expiry } => Err(anyhow!("{expiry}").context("error auto signing csr")),
            Plan::Fail { conditions, invalid } => {
                let status = status::failed(&conditions, &invalid, self.ctx.now());
                self.write_status(metadata, &status).await
            }
            Plan::Sign { signer: _, certificate } => {
                let pem = sign(&certificate).context("error auto signing csr")?;
                self.write_status(metadata, &status::issued(&pem)).await
            }
        }
    }

    async fn write_status(&self, metadata: &Meta, status: &Status) -> anyhow::Result<()> {
        let (key, uid) = (&metadata.key, metadata.uid);
        let preconditions = Preconditions::of(metadata);
        // The conditions of a request have no merge key.
        let patch = Patch::merge(&json!({ "status": status })).on_status();
        let control = self.ctx.for_key(key, uid);
        let patched = control.patch(&CERTIFICATE_SIGNING_REQUESTS, key, preconditions, patch).await;
        if patched.unless_gone().context("cannot write the status of the request")?.is_none() {
            return Ok(());
        }
        match status {
            Status::Certificate(_) => tracing::info!(request = %key, "signed request"),
            Status::Conditions(_) => tracing::info!(request = %key, "request failed"),
        }
        Ok(())
    }
}

/// Warns of a request that can never be signed; its spec is immutable.
fn warn(key: &Key, reason: &Reason) {
    match reason {
        Reason::Unreadable { fault: _ } | Reason::UnknownUsages { usages: _ } => {
            tracing::warn!(request = %key, %reason, "cannot sign request; skipping");
        }
        Reason::Off
        | Reason::Issued
        | Reason::NotApproved
        | Reason::Denied
        | Reason::Failed
        | Reason::OtherSigner
        | Reason::NoFiles { signer: _ }
        | Reason::Expired { expiry: _ }
        | Reason::Invalid { invalid: _ }
        | Reason::Valid { signer: _, not_after: _ } => {}
    }
}

/// The certificate as PEM, with a random serial number.
fn sign(certificate: &Certificate) -> anyhow::Result<String> {
    let mut serial_number: SerialNumber = [0; 16];
    SystemRandom::new().fill(&mut serial_number).map_err(|_| anyhow!("cannot read random numbers"))?;
    let to_be_signed = to_be_signed(certificate, serial_number);
    let signature = certificate.pair.sign(&to_be_signed)?;
    Ok(pem(&whole(certificate, &to_be_signed, &signature)))
}

/// Upstream: `EncodeToMemory`, Go's encoding/pem.
fn pem(der: &[u8]) -> String {
    let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let base64 = BASE64.encode(der);
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(PEM_LINE).unwrap_or((rest, ""));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}
