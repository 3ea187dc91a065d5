//! The process's flag, and upstream's metrics.

#![expect(clippy::unwrap_used, clippy::unwrap_in_result, reason = "a fixture that does not hold is a broken test")]

use std::time::Duration;

use root_ca_certificate_publisher_operator::flags::Flags;
use root_ca_certificate_publisher_operator::metrics::{code, register};
use shared::process::flags::parse;
use shared::process::metrics::Metrics;
use shared::transport::api_error::{ApiError, Status};

fn certificate() -> String {
    rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap().cert.pem()
}

fn root_ca_file(contents: &str) -> Result<Option<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    std::fs::write(&path, contents).unwrap();
    parsed(&format!("--root-ca-file={}", path.display()))
}

fn parsed(flag: &str) -> Result<Option<String>, String> {
    let flags = parse::<Flags>("root-ca-certificate-publisher-operator", ["operator", flag].map(Into::into));
    let ca = flags.map_err(|exit| exit.text)?.own.root_ca_file.0;
    Ok(ca.map(|file| file.ca.as_str().to_owned()))
}

#[test]
fn the_file_is_published_word_for_word() {
    let bundle = format!("# ours\n{}\n{}", certificate(), certificate());
    assert_eq!(root_ca_file(&bundle), Ok(Some(bundle)));
    // Go's flags may be empty.
    assert_eq!(parsed("--root-ca-file="), Ok(None));
}

#[test]
fn a_file_that_is_no_bundle_ends_the_process_at_its_start() {
    let check = |contents: &str, expected: &str| {
        let error = root_ca_file(contents).unwrap_err();
        assert!(error.contains(expected) && error.contains("--root-ca-file"), "{error}");
    };
    check("", "it contains no certificate");
    check("hello", "it contains no certificate");
    check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "invalid peer certificate");
    let error = parsed("--root-ca-file=/not/there").unwrap_err();
    assert!(error.contains("No such file"), "{error}");
}

fn answer(code: u16) -> anyhow::Result<()> {
    let status = Status { code, ..Status::default() };
    Err(anyhow::Error::from(ApiError::Status(Box::new(status))).context("create the ConfigMap"))
}

/// Upstream: `TestSyncCounter`.
#[test]
fn a_sync_is_counted_by_how_it_ended() {
    assert_eq!(code(&Ok(())), 200);
    assert_eq!(code(&answer(404)), 404);
    assert_eq!(code(&answer(0)), 500);
    assert_eq!(code(&Err(anyhow::anyhow!("test"))), 500);

    let metrics = Metrics::new("root-ca-certificate-publisher-operator");
    let syncs = register(&metrics);
    syncs.observe(&Ok(()), Duration::from_millis(3));
    syncs.observe(&answer(409), Duration::from_millis(3));
    let text = metrics.to_text();
    for line in [
        "root_ca_cert_publisher_sync_total{code=\"200\"} 1\n",
        "root_ca_cert_publisher_sync_total{code=\"409\"} 1\n",
        "root_ca_cert_publisher_sync_duration_seconds_bucket{le=\"0.002\",code=\"200\"} 0\n",
        "root_ca_cert_publisher_sync_duration_seconds_bucket{le=\"0.004\",code=\"200\"} 1\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
