//! What a table fills and refuses by itself: identity values, defaults, keys and checks.

use cdc_core::{Column, SqlType, TableName, Timestamp};

use crate::{
    index::{Index, IndexDefinition, IndexKind},
    sql_error::{SqlError, SqlResult, number},
    table::{
        Check, CheckDefinition, DefaultDefinition, RowView, Table, TableColumn, column_count, put,
    },
    transaction::InsertRequest,
    value::{Row, Value},
};

/// The state of an identity column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) seed: i64,
    pub(crate) increment: i64,
    /// The last value that was handed out.
    pub(crate) last: Option<i64>,
}

impl Identity {
    pub(crate) const fn new(seed: i64, increment: i64) -> Self {
        Self { seed, increment, last: None }
    }

    fn next(&mut self) -> i64 {
        let next = match self.last {
            Some(last) => last.saturating_add(self.increment),
            None => self.seed,
        };
        self.last = Some(next);
        next
    }

    /// A value that a statement gave moves the next one on, never back.
    fn given(&mut self, value: i64) {
        let ahead = match self.last {
            None => true,
            Some(last) if self.increment >= 0 => value > last,
            Some(last) => value < last,
        };
        if ahead {
            self.last = Some(value);
        }
    }
}

/// The name that the server makes up for a constraint without one: a prefix, the beginnings of
/// table and column, and eight hexadecimal digits of the object.
pub(crate) fn name_for(
    prefix: &str,
    table: &TableName,
    column: Option<&str>,
    object: u32,
) -> String {
    let digits = crate::object::object_id(object);
    let cut = |text: &str, length: usize| text.chars().take(length).collect::<String>();
    match column {
        Some(column) => {
            format!("{prefix}__{}__{}__{digits:08X}", cut(&table.name, 9), cut(column, 5))
        }
        None => format!("{prefix}__{}__3213E83F{digits:08X}", cut(&table.name, 9)),
    }
}

impl TableColumn {
    /// The value of the column where a statement gives none.
    pub(crate) fn default_value(&self, now: Timestamp) -> SqlResult<Value> {
        match &self.default {
            Some(default) => (default.definition.rule)(now),
            None => Ok(Value::Null),
        }
    }

    pub(super) fn cannot_write(&self) -> SqlError {
        let name = &self.column.name;
        if self.identity.is_some() {
            return SqlError::new(
                number::IDENTITY_UPDATE,
                format!("Cannot update identity column '{name}'."),
            );
        }
        if self.column.sql_type == SqlType::RowVersion {
            return SqlError::new(number::TIMESTAMP_WRITE, "Cannot update a timestamp column.");
        }
        SqlError::new(
            number::COMPUTED_COLUMN,
            format!(
                "The column \"{name}\" cannot be modified because it is either a computed column \
                 or is the result of a UNION operator."
            ),
        )
    }
}

impl Table {
    /// The next identity value of a slot, when it is an identity column.
    pub(super) fn next_identity(&mut self, slot: usize) -> SqlResult<Option<Value>> {
        let Some(definition) = self.columns.get_mut(slot).filter(|column| !column.dropped) else {
            return Ok(None);
        };
        let Some(identity) = &mut definition.identity else { return Ok(None) };
        let value = identity.next();
        let value = match &definition.column.sql_type {
            SqlType::Decimal { scale, .. } => {
                let unit = 10_i128.checked_pow(u32::from(*scale)).unwrap_or(1);
                Value::decimal(i128::from(value).saturating_mul(unit))
            }
            _ => Value::Int(value),
        };
        value.stored(&definition.column.sql_type).map(Some).map_err(|_| {
            SqlError::new(
                number::OVERFLOW,
                format!(
                    "Arithmetic overflow error converting IDENTITY to data type {}.",
                    definition.column.sql_type
                ),
            )
        })
    }

    pub(crate) fn restart_identity(&mut self) {
        for column in &mut self.columns {
            if let Some(identity) = &mut column.identity {
                identity.last = None;
            }
        }
    }

    /// The slots that an insert gives values for.
    pub(crate) fn insert_slots(&self, request: &InsertRequest) -> SqlResult<Vec<usize>> {
        let Some(names) = &request.columns else {
            let all = self.columns.iter().enumerate();
            return Ok(all
                .filter(|(_, column)| {
                    !column.dropped
                        && (!column.generated
                            || (column.identity.is_some() && request.identity_insert))
                })
                .map(|(slot, _)| slot)
                .collect());
        };
        let slots = self.slots(names)?;
        let mut given = false;
        for (at, slot) in slots.iter().enumerate() {
            let definition = self.definition(*slot)?;
            if slots.iter().skip(at + 1).any(|other| other == slot) {
                return Err(SqlError::new(
                    number::COLUMN_TWICE,
                    format!(
                        "The column name '{}' is specified more than once in the SET clause or \
                         column list of an INSERT.",
                        definition.column.name
                    ),
                ));
            }
            if definition.identity.is_some() {
                given = true;
            } else if definition.column.sql_type == SqlType::RowVersion {
                return Err(SqlError::new(
                    number::TIMESTAMP_INSERT,
                    "Cannot insert an explicit value into a timestamp column. Use INSERT with a \
                     column list to exclude the timestamp column, or insert a DEFAULT into the \
                     timestamp column.",
                ));
            } else if definition.generated {
                return Err(definition.cannot_write());
            }
        }
        self.check_identity_insert(given, request.identity_insert)?;
        Ok(slots)
    }

    fn check_identity_insert(&self, given: bool, allowed: bool) -> SqlResult<()> {
        let identity =
            self.columns.iter().any(|column| !column.dropped && column.identity.is_some());
        let name = &self.name.name;
        if given && !allowed {
            return Err(SqlError::new(
                number::IDENTITY_INSERT_OFF,
                format!(
                    "Cannot insert explicit value for identity column in table '{name}' when \
                     IDENTITY_INSERT is set to OFF."
                ),
            ));
        }
        if identity && !given && allowed {
            return Err(SqlError::new(
                number::IDENTITY_INSERT_MISSING,
                format!(
                    "Explicit value must be specified for identity column in table '{name}' \
                     either when IDENTITY_INSERT is set to ON or when a replication user is \
                     inserting into a NOT FOR REPLICATION identity column."
                ),
            ));
        }
        Ok(())
    }

    /// A new row from the values of some slots, and the identity value it got.
    pub(crate) fn requested_row(
        &mut self,
        slots: &[usize],
        values: &[Option<Value>],
        version: &mut u64,
        now: Timestamp,
    ) -> SqlResult<(Row, Option<i64>)> {
        if slots.len() != values.len() {
            return Err(column_count());
        }
        let mut row = vec![Value::Null; self.columns.len()];
        let mut identity = None;
        for slot in 0..self.columns.len() {
            let given = slots.iter().position(|other| *other == slot);
            let given = given.and_then(|at| values.get(at)).and_then(Option::as_ref);
            let definition = self.definition(slot)?;
            if definition.dropped {
                continue;
            }
            let value = match given {
                Some(value) => value.clone(),
                None if definition.identity.is_some() => {
                    self.next_identity(slot)?.unwrap_or(Value::Null)
                }
                None if definition.generated => continue,
                None => definition.default_value(now)?,
            };
            let definition = self.definition(slot)?;
            let value = definition.stored(value)?;
            if value.is_null() && !definition.column.nullable {
                return Err(self.not_null(&definition.column, "INSERT"));
            }
            if definition.identity.is_some() {
                identity = whole(&value, &definition.column.sql_type);
                self.note_identity(slot, identity);
            }
            put(&mut row, slot, value);
        }
        Ok((self.finished(row, version), identity))
    }

    fn note_identity(&mut self, slot: usize, value: Option<i64>) {
        let identity = self.columns.get_mut(slot).and_then(|column| column.identity.as_mut());
        if let (Some(identity), Some(value)) = (identity, value) {
            identity.given(value);
        }
    }

    /// Refuses a row that a check is false for.
    pub(crate) fn check(&self, row: &[Value]) -> SqlResult<()> {
        for check in &self.checks {
            if (check.definition.rule)(&RowView { table: self, row })? == Some(false) {
                return Err(SqlError::new(
                    number::CONSTRAINT_CONFLICT,
                    format!(
                        "The statement conflicted with the CHECK constraint \"{}\". The conflict \
                         occurred in table \"{}\".",
                        check.name, self.name
                    ),
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn not_null(&self, column: &Column, statement: &str) -> SqlError {
        SqlError::new(
            number::NOT_NULL,
            format!(
                "Cannot insert the value NULL into column '{}', table '{}'; column does not \
                 allow nulls. {statement} fails.",
                column.name, self.name
            ),
        )
    }

    /// The error of a key that is there already: of the primary key, or of another index.
    pub(crate) fn duplicate(&self, index: Option<&Index>) -> SqlError {
        let index = index.or_else(|| self.primary_key());
        let table = &self.name;
        let name = index.map_or("", |index| &index.name);
        let kind = match index.map(|index| index.kind) {
            Some(IndexKind::Unique | IndexKind::Plain) => {
                return SqlError::new(
                    number::DUPLICATE_INDEX_KEY,
                    format!(
                        "Cannot insert duplicate key row in object '{table}' with unique index \
                         '{name}'."
                    ),
                );
            }
            Some(IndexKind::UniqueConstraint) => "UNIQUE KEY",
            Some(IndexKind::PrimaryKey) | None => "PRIMARY KEY",
        };
        SqlError::new(
            number::DUPLICATE_KEY,
            format!(
                "Violation of {kind} constraint '{name}'. Cannot insert duplicate key in object \
                 '{table}'."
            ),
        )
    }

    pub(crate) fn primary_key(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.kind == IndexKind::PrimaryKey)
    }

    /// The unique indexes whose keys are kept beside the rows.
    pub(crate) fn unique_indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(|index| index.keeps_keys())
    }

    pub(crate) fn index_mut(&mut self, id: i32) -> Option<&mut Index> {
        self.indexes.iter_mut().find(|index| index.id == id)
    }

    /// Adds an index over rows that are there.
    pub(crate) fn add_index(
        &mut self,
        definition: IndexDefinition,
        new_id: &mut impl FnMut() -> u32,
    ) -> SqlResult<()> {
        let object = new_id();
        let named_by_server = definition.name.is_none();
        let prefix = if definition.kind == IndexKind::PrimaryKey { "PK" } else { "UQ" };
        let made_up = || name_for(prefix, &self.name, None, object);
        let name = definition.name.clone().unwrap_or_else(made_up);
        if self.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(&name)) {
            return Err(SqlError::new(
                number::INDEX_EXISTS,
                format!(
                    "The operation failed because an index or statistics with name '{name}' \
                     already exists on table '{}'.",
                    self.name
                ),
            ));
        }
        let mut slots = Vec::with_capacity(definition.columns.len());
        for (column, descending) in &definition.columns {
            slots.push((self.slot(column)?, *descending));
        }
        let included = self.slots(&definition.included)?;
        let taken = self.indexes.iter().any(|index| index.clustered);
        let clustered = definition.clustered && !taken;
        let id = if clustered {
            1
        } else {
            self.indexes.iter().map(|index| index.id + 1).max().unwrap_or(2).max(2)
        };
        if definition.kind == IndexKind::PrimaryKey {
            self.set_key(slots.iter().map(|(slot, _)| *slot).collect())?;
        }
        let kind = definition.kind;
        let mut index = Index {
            id,
            object,
            name,
            named_by_server,
            slots,
            included,
            kind,
            clustered,
            keys: std::collections::BTreeMap::new(),
        };
        if !index.fill(self) {
            return Err(self.duplicate(Some(&index)));
        }
        self.indexes.push(index);
        self.indexes.sort_by_key(|index| index.id);
        Ok(())
    }

    /// Makes columns the key that rows stand in order of; none for the order of insertion.
    pub(crate) fn set_key(&mut self, slots: Vec<usize>) -> SqlResult<()> {
        for slot in &slots {
            let column = &self.definition(*slot)?.column;
            if column.nullable {
                return Err(SqlError::new(
                    number::NULLABLE_KEY,
                    format!(
                        "Cannot define PRIMARY KEY constraint on nullable column in table '{}'.",
                        self.name
                    ),
                ));
            }
        }
        let former = std::mem::replace(&mut self.key, slots);
        let mut placed = std::collections::BTreeMap::new();
        for row in self.rows.values() {
            let key = if self.key.is_empty() {
                self.next_row += 1;
                crate::key::heap_key(self.next_row)
            } else {
                self.key_of(row)
            };
            if placed.insert(key, row.clone()).is_some() {
                self.key = former;
                return Err(SqlError::new(
                    number::KEY_NOT_UNIQUE,
                    format!(
                        "The CREATE UNIQUE INDEX statement terminated because a duplicate key was \
                         found for the object name '{}'.",
                        self.name
                    ),
                ));
            }
        }
        self.rows = placed;
        self.fill_indexes();
        Ok(())
    }

    /// Fills the keys of unique indexes from the rows again.
    pub(crate) fn fill_indexes(&mut self) {
        let mut indexes = std::mem::take(&mut self.indexes);
        for index in &mut indexes {
            index.fill(self);
        }
        self.indexes = indexes;
    }

    /// Gives every row the next identity value of a new column.
    pub(crate) fn number_rows(&mut self, slot: usize) -> SqlResult<()> {
        let keys: Vec<_> = self.rows.keys().cloned().collect();
        for key in keys {
            let Some(value) = self.next_identity(slot)? else { continue };
            if let Some(row) = self.rows.get_mut(&key) {
                *row = super::with_slot(row, slot, |_| Ok(value.clone()))?;
            }
        }
        Ok(())
    }

    pub(crate) fn add_default(
        &mut self,
        column: &str,
        definition: DefaultDefinition,
        new_id: &mut impl FnMut() -> u32,
    ) -> SqlResult<()> {
        let slot = self.slot(column)?;
        if self.definition(slot)?.default.is_some() {
            return Err(SqlError::new(1781, "Column already has a DEFAULT bound to it."));
        }
        let object = new_id();
        let made_up = || name_for("DF", &self.name, Some(column), object);
        let name = definition.name.clone().unwrap_or_else(made_up);
        if let Some(column) = self.columns.get_mut(slot) {
            column.default = Some(super::DefaultConstraint { object, name, definition });
        }
        Ok(())
    }

    pub(crate) fn add_check(
        &mut self,
        definition: CheckDefinition,
        new_id: &mut impl FnMut() -> u32,
    ) -> SqlResult<()> {
        let object = new_id();
        let made_up = || name_for("CK", &self.name, None, object);
        let name = definition.name.clone().unwrap_or_else(made_up);
        self.checks.push(Check { object, name, definition });
        for row in self.rows.values() {
            if let Err(error) = self.check(row) {
                self.checks.pop();
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The whole number of an identity value.
fn whole(value: &Value, sql_type: &SqlType) -> Option<i64> {
    match (value, sql_type) {
        (Value::Int(number), _) => Some(*number),
        (Value::Decimal(digits), SqlType::Decimal { scale, .. }) => {
            let unit = 10_i128.checked_pow(u32::from(*scale))?;
            i64::try_from(i128::from(*digits) / unit).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
