//! Computing with values: SQL Server's operators, conversions and functions, without a catalogue.
