//! SELECT: bound to the catalogue, then evaluated row by row.
