//! Missing rights, each with the statement that grants it: found by asking what is allowed, never
//! by reading the server's words.

use cdc_core::{Error, ErrorKind, InstanceName, Result, TableName, diagnosis::Access};

use super::MssqlSource;
use crate::{
    fault::{Fault, number},
    name::{Identifier, ObjectName},
    sql,
};

impl MssqlSource {
    /// What the login may do with each of these objects.
    pub(super) async fn access(&self, objects: &[ObjectName]) -> Result<Vec<Access>> {
        let mut found = vec![Access::Missing; objects.len()];
        for (part, places) in
            objects.chunks(sql::PARAMETERS_MAX).zip(found.chunks_mut(sql::PARAMETERS_MAX))
        {
            for row in self.ask(sql::right::may_select(part)).await?.rows() {
                let place = row.int(0)?.and_then(|place| usize::try_from(place).ok());
                if let Some(place) = place.and_then(|place| places.get_mut(place)) {
                    *place = match (row.int(1)?, row.int(2)?) {
                        (Some(1), _) => Access::Allowed,
                        (Some(_), _) => Access::Denied,
                        // Without a right on it, an object may have no id, but it is there.
                        (None, Some(_)) => Access::Denied,
                        (None, None) => Access::Missing,
                    };
                }
            }
        }
        Ok(found)
    }

    async fn denied(&self, object: &ObjectName) -> Error {
        let grant = self.grant(object).await;
        Error::new(ErrorKind::Unauthorized, "a right is missing")
            .remedy(format!("run in the database {}: {grant}", self.config.database))
            .with("grant", grant)
    }

    /// The statement that lets the login read an object.
    pub(super) async fn grant(&self, object: &ObjectName) -> String {
        let asked = self.ask(sql::right::user()).await;
        let user = asked.ok().and_then(|answer| answer.first_text().ok().flatten());
        let quoted = user.and_then(|user| Identifier::new(&user).ok());
        let user = quoted.map_or_else(|| "[the login's user]".to_owned(), |user| user.to_string());
        format!("GRANT SELECT ON {object} TO {user}")
    }

    /// What a fault about an instance means.
    pub(super) async fn instance_error(&self, instance: &InstanceName, fault: Fault) -> Error {
        let place = |error: Error| error.with("instance", instance);
        let asked = fault.is(&number::PERMISSION_DENIED)
            || fault.is(&[number::NO_INSTANCE, number::INVALID_OBJECT]);
        let object = match ObjectName::of_changes(instance) {
            Ok(object) if asked => object,
            _ => return place(fault.into()),
        };
        match self.access(std::slice::from_ref(&object)).await.as_deref() {
            Ok([Access::Denied]) => place(self.denied(&object).await),
            Ok([Access::Missing]) => unknown_or(instance, fault),
            Ok(_) if fault.is(&[number::NO_INSTANCE]) => place(
                Error::new(
                    ErrorKind::Unauthorized,
                    "the login may read the change table, but not the instance",
                )
                .remedy(
                    "grant SELECT on the source table too, and make the user a member of the \
                     instance's gating role (role_name in sys.sp_cdc_help_change_data_capture)",
                ),
            ),
            Ok(_) | Err(_) => place(fault.into()),
        }
    }

    /// What a fault about a table means.
    pub(super) async fn table_error(&self, table: &TableName, fault: Fault) -> Error {
        let place = |error: Error| error.with("table", table);
        match ObjectName::of_table(table) {
            Ok(object) if fault.is(&number::PERMISSION_DENIED) => place(self.denied(&object).await),
            _ => place(fault.into()),
        }
    }

    /// Why a table has no columns to see.
    pub(super) async fn hidden_table(&self, table: &TableName) -> Error {
        let place = |error: Error| error.with("table", table);
        let object = match ObjectName::of_table(table) {
            Ok(object) => object,
            Err(error) => return place(error),
        };
        match self.access(std::slice::from_ref(&object)).await.as_deref() {
            Ok([Access::Denied]) => place(self.denied(&object).await),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                place(Error::new(ErrorKind::Unavailable, error.message().to_owned()))
            }
            _ => place(
                Error::new(
                    ErrorKind::Config,
                    "the table does not exist, or the login may not see it",
                )
                .remedy(format!("correct the name, or run: {}", self.grant(&object).await)),
            ),
        }
    }
}

fn unknown_or(instance: &InstanceName, fault: Fault) -> Error {
    if fault.is(&number::PERMISSION_DENIED) {
        return Error::from(fault).with("instance", instance);
    }
    super::unknown(instance)
}
