//! Questions to what serves on this machine: operators, and kube-controller-manager.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Request, StatusCode};
use kube::Client;
use tokio::time::{Instant, sleep};

/// How long it may take to be ready.
const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until the process that serves at `port`, and that `check_running` looks after, answers `path` with a 200.
pub(crate) async fn wait_ok(port: u16, path: &str, mut check_running: impl FnMut() -> Result<()>) -> Result<()> {
    let client = http_client(port, None)?;
    let end = Instant::now() + DEADLINE;
    loop {
        check_running()?;
        let answer = get(&client, path).await;
        if matches!(&answer, Ok((StatusCode::OK, _))) {
            return Ok(());
        }
        if Instant::now() >= end {
            bail!("{path} still answers {answer:?}");
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// A client of what serves on this machine with a certificate of its own, signed by nobody.
pub(crate) fn http_client(port: u16, token: Option<&str>) -> Result<Client> {
    let url = format!("https://127.0.0.1:{port}").parse().context("an operator's address")?;
    let mut config = kube::Config::new(url);
    config.accept_invalid_certs = true;
    // Otherwise all those of this machine are read, which takes longer than the answer.
    config.root_cert = Some(Vec::new());
    config.default_retry = false;
    config.auth_info.token = token.map(|token| token.to_owned().into());
    Client::try_from(config).context("make a client for an operator")
}

pub(crate) async fn get(client: &Client, path: &str) -> Result<(StatusCode, String)> {
    let request = Request::get(path).body(kube::client::Body::empty()).context("ask an operator")?;
    let answer = client.send(request).await.with_context(|| format!("ask for {path}"))?;
    let status = answer.status();
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.context("read an operator's answer")?;
    Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
}
