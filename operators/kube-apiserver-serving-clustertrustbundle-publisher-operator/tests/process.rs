//! The process's flag, and upstream's metrics.

use std::time::Duration;

use kube_apiserver_serving_clustertrustbundle_publisher_operator::flags::Flags;
use kube_apiserver_serving_clustertrustbundle_publisher_operator::metrics::{code, register};
use shared::process::flags::parse;
use shared::process::metrics::Metrics;
use shared::transport::api_error::{ApiError, Status};

const OPERATOR: &str = "kube-apiserver-serving-clustertrustbundle-publisher-operator";

#[test]
fn the_ca_is_read_with_the_flags() {
    let parsed = |flag: &str| {
        let flags = parse::<Flags>(OPERATOR, ["operator", flag].map(Into::into));
        flags.map(|flags| flags.own.root_ca_file.0.map(|file| file.ca.as_str().to_owned())).map_err(|exit| exit.text)
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    let flag = format!("--root-ca-file={}", file.path().display());
    let error = parsed(&flag).unwrap_err();
    assert!(error.contains("it contains no certificate") && error.contains("--root-ca-file"), "{error}");
    let ca = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem();
    std::fs::write(file.path(), &ca).unwrap();
    assert_eq!(parsed(&flag), Ok(Some(ca)));
    // Go's flags may be empty.
    assert_eq!(parsed("--root-ca-file="), Ok(None));
}

fn answer(code: u16) -> anyhow::Result<()> {
    let status = Status { code, ..Status::default() };
    Err(anyhow::Error::from(ApiError::Status(Box::new(status))).context("create the ClusterTrustBundle"))
}

/// Upstream: `TestSyncCounter`.
#[test]
fn a_sync_is_counted_by_how_it_ended() {
    // "nil error", "kube api error", "nested kube api error", "kube api error without code", "general error"
    let outcomes = [Ok(()), answer(404), answer(400), answer(0), Err(anyhow::anyhow!("test"))];
    assert_eq!(outcomes.each_ref().map(code), [200, 404, 400, 500, 500]);

    let metrics = Metrics::new(OPERATOR);
    let syncs = register(&metrics);
    for outcome in &outcomes {
        syncs.observe(outcome, Duration::from_millis(3));
    }
    let text = metrics.to_text();
    for line in [
        "clustertrustbundle_publisher_sync_total{code=\"200\"} 1\n",
        "clustertrustbundle_publisher_sync_total{code=\"500\"} 2\n",
        "clustertrustbundle_publisher_sync_duration_seconds_bucket{le=\"0.002\",code=\"404\"} 0\n",
        "clustertrustbundle_publisher_sync_duration_seconds_bucket{le=\"0.004\",code=\"404\"} 1\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
