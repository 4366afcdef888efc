//! The listener: takes connections, as many as are allowed, until it is told to stop.

use std::{future::Future, io, sync::Arc, time::Duration};

use cdc_tsql::talk::Service;
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    cache::ReplyCache,
    connection::{self, Shared},
    settings::{Certificate, Encryption, Settings},
    tls::Acceptors,
};

/// After an accept that failed, which happens when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the connections of `listener` until `stop` is ready. Each session runs on a thread of
/// its own, which ends within [`Settings::stop_timeout`] when its calls heed their cancel flag.
///
/// # Errors
/// A certificate that cannot be used.
pub async fn serve(
    listener: TcpListener,
    service: Arc<dyn Service>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let acceptors = match (settings.encryption, &settings.certificate) {
        (Encryption::Off, _) => None,
        (_, Some(certificate)) => Some(Acceptors::new(certificate)?),
        (_, None) => Some(Acceptors::new(&Certificate::self_made(&["localhost"])?)?),
    };
    let places = Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS)));
    let cache = Arc::new(ReplyCache::new(settings.reply_cache_bytes_max));
    let stop_timeout = settings.stop_timeout;
    let shared = Arc::new(Shared { service, settings, acceptors, cache });
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            let limit = shared.settings.connections_max;
            tracing::warn!(connections_max = limit, "a connection is closed: there are too many");
            continue;
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            if let Err(error) = Box::pin(connection::run(socket, shared)).await {
                tracing::debug!(%error, "a connection has ended");
            }
            drop(place);
        });
    }
    connections.abort_all();
    let _ = timeout(stop_timeout, async { while connections.join_next().await.is_some() {} }).await;
    Ok(())
}
