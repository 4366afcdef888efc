//! What stands in the way of copying tables. What cannot be looked at is a finding, never "fine".

use cdc_core::{
    CaptureInstance, ErrorKind, Result, TableRef,
    diagnosis::Access,
    port::{Bound, Catalog, Finding, FindingLevel, PositionLog},
};

use super::MssqlSource;
use crate::name::ObjectName;

impl MssqlSource {
    /// Looks at the database and at each table.
    pub(super) async fn look(&self, tables: &[TableRef]) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        match self.high().await {
            Ok(Bound::Null | Bound::Zero) => findings.push(Finding::new(
                FindingLevel::Warning,
                None,
                "capture has never written to this database",
                "check that the capture job and SQL Server Agent run",
            )),
            Ok(Bound::At(_)) => {}
            Err(error) => findings.push(failed(error)?),
        }
        if let Err(error) = self.zone().await {
            findings.push(failed(error)?);
        }
        for table in tables {
            match self.instances(table).await {
                Ok(instances) => {
                    for instance in &instances {
                        self.look_at(instance, &mut findings).await?;
                    }
                }
                Err(error) => findings.push(failed(error)?),
            }
        }
        Ok(findings)
    }

    async fn look_at(&self, instance: &CaptureInstance, findings: &mut Vec<Finding>) -> Result<()> {
        let table = Some(&instance.table);
        let changes = ObjectName::of_changes(&instance.name)?;
        let source = ObjectName::of_table(&instance.table)?;
        let objects = [changes, source];
        let access = self.access(&objects).await?;
        let words = [
            format!("login may not read the change table of {}", instance.name),
            "login may not read the table".to_owned(),
        ];
        for ((object, access), words) in objects.iter().zip(access).zip(words) {
            if access != Access::Allowed {
                let remedy = format!("run: {}", self.grant(object).await);
                findings.push(Finding::new(FindingLevel::Failure, table, &words, &remedy));
            }
        }
        findings.extend(Finding::of_instance(instance));
        Ok(())
    }
}

/// An error as a finding. A server that cannot be reached is none.
fn failed(error: cdc_core::Error) -> Result<Finding> {
    if error.kind() == ErrorKind::Unavailable {
        return Err(error);
    }
    Ok(Finding::new(FindingLevel::Failure, None, error.to_string(), error.advice()))
}
