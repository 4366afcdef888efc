//! A session: batches, variables, control flow, transactions, statements that change things.
