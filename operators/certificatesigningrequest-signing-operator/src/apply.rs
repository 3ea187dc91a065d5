//! Executes a plan: signs the certificate, or says why there is none. The status is written afterwards, if it changes.
//!
//! Left out: events, of which upstream has none.

pub mod certificate;
mod der;

use anyhow::{Context, anyhow};
use data_encoding::BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use shared::api::object::Key;
use shared::api::resource::CERTIFICATE_SIGNING_REQUESTS;
use shared::runtime::control::{Control, Patch, Preconditions};

use crate::observe::Observed;
use crate::plan::verification::Invalid;
use crate::plan::{Certificate, Plan, Reason};
use crate::status::Status;
use certificate::{SerialNumber, to_be_signed, whole};

/// The length of a line of PEM, as Go writes it.
const PEM_LINE: usize = 64;

/// Writes the status of requests.
pub(crate) struct Writer {
    pub(crate) control: Control,
}

/// The result of executing a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The fact that the status is to tell; none if it stays as it is.
    pub verdict: Option<Verdict>,
    /// The reason to try again.
    pub error: Option<anyhow::Error>,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its certificate, as PEM.
    Issued(String),
    /// Its signer does not sign such a request.
    Failed(Invalid),
}

impl Writer {
    /// Executes the plan.
    #[expect(clippy::unused_self, reason = "a plan goes to the writer")]
    pub(crate) fn apply(&self, observed: &Observed, plan: Plan) -> Outcome {
        let Observed { request, pair: _ } = observed;
        let key = &request.metadata.key;
        match plan {
            Plan::Nothing(reason) => {
                warn(key, &reason);
                Outcome::default()
            }
            Plan::TryAgain { expiry } => {
                Outcome { verdict: None, error: Some(anyhow!("{expiry}").context("error auto signing csr")) }
            }
            Plan::Fail { invalid } => Outcome { verdict: Some(Verdict::Failed(invalid)), error: None },
            Plan::Sign { signer: _, certificate } => match sign(&certificate) {
                Ok(pem) => Outcome { verdict: Some(Verdict::Issued(pem)), error: None },
                Err(error) => Outcome { verdict: None, error: Some(error.context("error auto signing csr")) },
            },
        }
    }

    /// Writes the status of this request, in this state.
    pub(crate) async fn write_status(&self, observed: &Observed, status: &Status) -> anyhow::Result<()> {
        let metadata = &observed.request.metadata;
        let key = &metadata.key;
        let preconditions = Preconditions { uid: metadata.uid, resource_version: Some(metadata.resource_version) };
        let control = self.control.for_key(key, metadata.uid);
        // The conditions of a request have no key by which they would merge.
        let patch = Patch::merge(&json!({ "status": status })).on_status();
        match control.patch(&CERTIFICATE_SIGNING_REQUESTS, key, preconditions, patch).await {
            Ok(_) => {
                match status {
                    Status::Certificate(_) => tracing::info!(request = %key, "signed the request"),
                    Status::Conditions(_) => tracing::info!(request = %key, "the request has failed"),
                }
                Ok(())
            }
            // Nobody wants it any more.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error).context("write the status of the request"),
        }
    }
}

/// Tells of a request that is left to people: it never changes, so that no later try can succeed.
fn warn(key: &Key, reason: &Reason) {
    match reason {
        Reason::Unreadable { fault: _ } | Reason::UnknownUsages { usages: _ } => {
            tracing::warn!(request = %key, %reason, "cannot sign the request, and leaves it to somebody else");
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
    SystemRandom::new().fill(&mut serial_number).map_err(|_| anyhow!("there are no random numbers"))?;
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
