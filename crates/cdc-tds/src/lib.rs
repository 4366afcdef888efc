//! The server side of TDS, the protocol that SQL Server's clients speak: packets, TLS inside and
//! around them, logins, requests, replies, and every type's bytes. What statements mean is the
//! matter of [`cdc_tsql::talk::Service`].
//!
//! [`serve`] is the whole of it. Spoken are TDS 7.4 with TLS for everything, for the login alone or
//! for nothing, and TDS 8, which begins with TLS. No extension of the protocol is offered but
//! UTF-8; clients that ask for others go on without.

mod cache;
mod cell;
mod charset;
mod column;
mod connection;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod input;
mod login;
mod packet;
mod parameter;
mod prelogin;
mod reply;
mod request;
mod row;
mod server;
mod session;
mod settings;
mod tls;
mod token;
mod type_id;

pub use server::serve;
pub use settings::{Certificate, Encryption, Settings};
