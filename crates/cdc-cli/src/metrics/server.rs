//! Serves the metrics over HTTP: `GET /metrics` and `GET /healthz`, nothing else.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use cdc_core::{Error, ErrorKind, Result};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};

use super::Metrics;

/// Most connections at a time: a few scrapers. Further ones wait in the listener's queue.
const CONNECTIONS_MAX: usize = 16;
/// Most bytes of a request's head. Bodies are not read.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Longest time for a request to arrive and be answered.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Pause after the listener failed, for instance for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running server. It ends, with its connections, when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Listens on `address`; port 0 takes any free one.
///
/// # Errors
/// `Config` when the address cannot be listened on.
pub(crate) async fn serve(address: SocketAddr, metrics: Arc<Metrics>) -> Result<Server> {
    let failed = |error: io::Error| {
        Error::new(ErrorKind::Config, "metrics cannot be served here")
            .with("setting", "metrics.port")
            .with("address", address)
            .remedy("give another port, or leave the section metrics out")
            .caused_by(error)
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let task = tokio::spawn(accept(listener, metrics));
    tracing::info!(%address, "metrics are served");
    Ok(Server { address, task })
}

async fn accept(listener: TcpListener, metrics: Arc<Metrics>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let metrics = Arc::clone(&metrics);
                connections.spawn(async move {
                    let _permit = permit;
                    // A scraper that hangs or breaks off is its own concern.
                    drop(tokio::time::timeout(CONNECTION_TIME_MAX, answer(stream, metrics)).await);
                });
            }
            Err(error) => {
                tracing::debug!(%error, "metrics connection not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, metrics: Arc<Metrics>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&request, &metrics);
        async move { Ok::<_, Infallible>(response) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn respond<B>(request: &Request<B>, metrics: &Metrics) -> Response<Full<Bytes>> {
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        response
    };
    if request.method() != Method::GET {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/metrics" => match metrics.text() {
            Ok(text) => {
                let mut response = Response::new(Full::new(Bytes::from(text)));
                let kind = hyper::header::HeaderValue::from_static(TEXT);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be formatted\n"),
        },
        _ => plain(StatusCode::NOT_FOUND, "only /metrics and /healthz\n"),
    }
}
