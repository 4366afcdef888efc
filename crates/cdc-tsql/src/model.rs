//! The catalogue over `cdc-fake`: tables, change tables, views, procedures and functions.
