//! Errors of requests in client-go's words, which conditions and events repeat.
//!
//! A `Status` is printed as it is. Any other answer, such as a server's page for unknown paths, gets a sentence by its
//! code. The texts for broken connections differ from Go's.

use shared::transport::api_error::ApiError;

/// The error of a GET; `about` is the resource and, where there is one, the name.
///
/// Upstream: `NewGenericServerResponse`, `staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go`.
pub(super) fn in_client_words(error: &ApiError, about: &str) -> String {
    let Some(status) = error.status().filter(|status| status.reason.is_empty()) else { return error.to_string() };
    let message = match status.code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 406 | 415 => status.message.clone(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned()
        }
        code if code >= 500 => {
            format!("an error on the server ({:?}) has prevented the request from succeeding", status.message)
        }
        code => format!("the server responded with the status code {code} but did not return more information"),
    };
    format!("{message} (get {about})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::transport::api_error::Status;

    #[test]
    fn an_answer_without_a_status_gets_a_sentence_by_its_code() {
        let words = |code: u16, body: &str| {
            in_client_words(
                &ApiError::Status(Box::new(Status::from_body(code, body.as_bytes()))),
                "pods.metrics.k8s.io",
            )
        };
        for (code, body, expected) in [
            (404, "404 page not found\n", "the server could not find the requested resource (get pods.metrics.k8s.io)"),
            (
                503,
                "service unavailable",
                "the server is currently unable to handle the request (get pods.metrics.k8s.io)",
            ),
            (
                500,
                "oh \"no\"",
                r#"an error on the server ("oh \"no\"") has prevented the request from succeeding (get pods.metrics.k8s.io)"#,
            ),
            (403, "you may not", "you may not (get pods.metrics.k8s.io)"),
            (
                418,
                "",
                "the server responded with the status code 418 but did not return more information (get pods.metrics.k8s.io)",
            ),
            (
                404,
                r#"{"code":404,"reason":"NotFound","message":"pods.metrics.k8s.io \"a\" not found"}"#,
                "pods.metrics.k8s.io \"a\" not found",
            ),
        ] {
            assert_eq!(words(code, body), expected);
        }
    }
}
