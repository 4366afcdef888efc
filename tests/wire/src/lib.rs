//! Nothing but tests: the SQL Server source and the in-memory server meet here, over TDS on loopback,
//! since neither adapter may see the other.
