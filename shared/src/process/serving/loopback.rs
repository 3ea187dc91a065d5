//! A server on loopback that tests script with a closure: it stands for the other end of one exchange, not for an
//! apiserver with state.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves until the test's runtime ends.
pub(crate) async fn serve(answer: impl Fn(Request<Bytes>) -> Response<Body> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let answer = Arc::clone(&answer);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await?.to_bytes();
                    Ok::<_, hyper::Error>(answer(Request::from_parts(head, body)))
                }
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

pub(crate) fn answer(code: u16, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// An answer whose body comes as the stream does.
pub(crate) fn stream(body: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    Response::new(StreamBody::new(body.map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync())
}
