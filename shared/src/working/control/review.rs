//! Asks the apiserver whether somebody else may do something, by a SubjectAccessReview.
//!
//! Nothing is stored, so a shadow asks too. Left out: keeping answers, which is up to those who ask often.

use serde::{Deserialize, Serialize};

use super::Control;
use crate::api::json;
use crate::transport::api_error::ApiError;
use crate::transport::client::Accept;

pub(crate) const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

#[derive(Deserialize)]
pub(crate) struct Review<S> {
    pub(crate) status: S,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AccessStatus {
    /// Whether the user may do it.
    pub allowed: bool,
    /// Why, where the authorizer says so.
    pub reason: String,
    /// Why not all authorizers could be asked.
    pub evaluation_error: String,
}

impl Control {
    /// Asks whether a user may do something; `spec` says which, in the form of a SubjectAccessReview.
    pub async fn review_access(&self, spec: &impl Serialize) -> Result<AccessStatus, ApiError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a, S> {
            api_version: &'static str,
            kind: &'static str,
            spec: &'a S,
        }
        let body = json(&Body { api_version: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec });
        let Review { status } = self.client.create(ACCESS_REVIEWS, Accept::Object, body).await?;
        Ok(status)
    }
}
