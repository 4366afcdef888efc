//! A relay between source and server, which can hold bytes back and choose the server.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A relay in front of a server. While it is shut, bytes of the server wait.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) open: watch::Sender<bool>,
    connections: Arc<AtomicUsize>,
}

impl Relay {
    pub(crate) async fn before(server: SocketAddr) -> Self {
        Self::between(server, server).await
    }

    /// The first connection goes to one server, the later ones to another.
    pub(crate) async fn between(first: SocketAddr, later: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (open, gate) = watch::channel(true);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let before = count.fetch_add(1, Ordering::SeqCst);
                let server = if before == 0 { first } else { later };
                let server = TcpStream::connect(server).await.unwrap();
                let mut gate = gate.clone();
                let (mut client_reads, mut client_writes) = client.into_split();
                let (mut server_reads, mut server_writes) = server.into_split();
                tokio::spawn(async move {
                    tokio::io::copy(&mut client_reads, &mut server_writes).await.ok();
                });
                tokio::spawn(async move {
                    let mut bytes = vec![0; 4_096];
                    while let Ok(read @ 1..) = server_reads.read(&mut bytes).await {
                        if gate.wait_for(|open| *open).await.is_err()
                            || client_writes.write_all(&bytes[..read]).await.is_err()
                        {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, open, connections }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
