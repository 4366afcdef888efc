//! A driver for settings that cannot be: it says why.

use std::sync::Arc;

use async_trait::async_trait;
use cdc_core::Error;

use super::{Driver, RecordStream, Statement};
use crate::{config::MssqlConfig, fault::Fault};

/// Refuses every statement.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Arc<MssqlConfig>);

#[async_trait]
impl Driver for Refusal {
    async fn run(&self, _statement: Arc<Statement>) -> Result<RecordStream, Fault> {
        let reason = self.0.reader().err();
        let reason = reason.unwrap_or_else(|| Error::bug("a driver was refused for no reason"));
        Err(Fault::permanent(reason))
    }

    fn forget_idle(&self) {}
}
