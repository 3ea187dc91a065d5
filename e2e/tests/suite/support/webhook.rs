//! An admission webhook that refuses everything, at a port of this machine.
//!
//! Left out: webhooks that change what they are shown, or take their time.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::cluster::Cluster;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Starts one that says this, for as long as the test runs. Gives its `clientConfig`.
pub(crate) async fn refusing(cluster: &Cluster, message: &'static str) -> Result<Value> {
    let pki = cluster.pki()?;
    let tls = TlsAcceptor::from(Arc::new(pki.tls("webhook")?));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("open the webhook's port")?;
    let port = listener.local_addr().context("open the webhook's port")?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, tls.clone(), message));
        }
    });
    let ca = ByteString(pki.ca_pem().as_bytes().to_vec());
    Ok(json!({"url": format!("https://127.0.0.1:{port}/"), "caBundle": ca}))
}

/// A connection that breaks is the apiserver's to report.
async fn serve(stream: TcpStream, tls: TlsAcceptor, message: &'static str) {
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(async |request: Request<Incoming>| {
        let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let review: Value = serde_json::from_slice(&body).unwrap_or_default();
        let status = json!({"code": 403, "message": message});
        let answer = json!({"uid": review["request"]["uid"], "allowed": false, "status": status});
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer});
        let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
        response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        Ok::<_, Infallible>(response)
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
