//! The server side of TDS, the protocol that SQL Server's clients speak: packets, TLS inside and
//! around them, logins, requests, replies, and every type's bytes. What statements mean is the
//! matter of [`cdc_tsql::talk::Service`].
