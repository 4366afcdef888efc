//! ALTER TABLE and ALTER DATABASE.

use sqlparser::tokenizer::Token;

use super::{
    AlterTable, DatabaseOption, Definition, TableBody,
    reader::{Read, Reader},
    unsupported,
};

impl Reader {
    pub(super) fn alter(&mut self, what: &str) -> Read<Definition> {
        self.at += 1;
        match what {
            "TABLE" => {
                // ALTER and TABLE stand before.
                let begin = self.at.saturating_sub(2);
                let name = self.object()?;
                let action = self.alter_table()?;
                let text = self.text_from(begin);
                Ok(Definition::AlterTable { name, action, text })
            }
            "DATABASE" => self.alter_database(),
            _ => Err(self.error(unsupported(&format!("ALTER {what}")))),
        }
    }

    fn alter_table(&mut self) -> Read<AlterTable> {
        if self.take("WITH") {
            // `WITH CHECK ADD CONSTRAINT`: keys are checked in any case.
            if !self.take("CHECK") {
                return Err(self.error(unsupported("ALTER TABLE WITH NOCHECK")));
            }
        }
        if self.take("ADD") {
            return self.alter_add();
        }
        if self.take_all(&["ALTER", "COLUMN"]) {
            let mut rest = TableBody::default();
            let column = self.column_body(&mut rest)?;
            let plain = column.default.is_none()
                && column.computed.is_none()
                && column.identity.is_none()
                && rest == TableBody::default();
            return match plain {
                true => Ok(AlterTable::AlterColumn(column)),
                false => Err(self.unexpected()),
            };
        }
        if self.take("DROP") {
            let constraint = self.take("CONSTRAINT");
            if !constraint && !self.take("COLUMN") {
                return Err(self.unexpected());
            }
            let if_exists = self.take_all(&["IF", "EXISTS"]);
            let names = self.list(Self::name)?;
            return Ok(match constraint {
                true => AlterTable::DropConstraints { names, if_exists },
                false => AlterTable::DropColumns { names, if_exists },
            });
        }
        Err(self.error(unsupported("this ALTER TABLE")))
    }

    fn alter_add(&mut self) -> Read<AlterTable> {
        let begin = self.at;
        let name = if self.take("CONSTRAINT") { Some(self.name()?) } else { None };
        if self.take("DEFAULT") {
            let value = self.constant()?;
            self.must("FOR")?;
            let column = self.name()?;
            self.take_all(&["WITH", "VALUES"]);
            return Ok(AlterTable::AddDefault { name, column, value });
        }
        self.at = begin;
        let mut table = TableBody::default();
        self.list(|reader| reader.table_item(&mut table))?;
        Ok(AlterTable::Add(table))
    }

    fn alter_database(&mut self) -> Read<Definition> {
        let current = self.take("CURRENT");
        let name = if current { None } else { Some(self.name()?) };
        if self.take("COLLATE") {
            let collation = self.name()?;
            let option = DatabaseOption::Collation(collation);
            return Ok(Definition::AlterDatabase { name, option });
        }
        self.must("SET")?;
        let word = self.peek_word().unwrap_or_default();
        self.at += 1;
        let equals = self.take_token(&Token::Eq);
        let option = match word.as_str() {
            "ALLOW_SNAPSHOT_ISOLATION" => DatabaseOption::AllowSnapshotIsolation(self.on_off()?),
            "READ_COMMITTED_SNAPSHOT" => DatabaseOption::ReadCommittedSnapshot(self.on_off()?),
            "RECOVERY" => DatabaseOption::Recovery(self.name()?.to_ascii_uppercase()),
            "COMPATIBILITY_LEVEL" if equals => {
                let level = u32::try_from(self.integer()?).unwrap_or(0);
                DatabaseOption::Compatibility(level)
            }
            "AUTO_CLOSE"
            | "AUTO_SHRINK"
            | "AUTO_CREATE_STATISTICS"
            | "AUTO_UPDATE_STATISTICS"
            | "PAGE_VERIFY"
            | "TRUSTWORTHY"
            | "DB_CHAINING"
            | "DELAYED_DURABILITY"
            | "MULTI_USER"
            | "READ_WRITE"
            | "ONLINE" => {
                if !self.at_end() && self.peek_word().as_deref() != Some("WITH") {
                    self.name()?;
                }
                DatabaseOption::Harmless
            }
            _ => return Err(self.error(unsupported("this option of ALTER DATABASE"))),
        };
        if self.take("WITH") {
            // Whom the change throws out: nobody has to leave here.
            if self.take("ROLLBACK") {
                if self.take("AFTER") {
                    self.integer()?;
                    self.take("SECONDS");
                } else {
                    self.must("IMMEDIATE")?;
                }
            } else {
                self.must("NO_WAIT")?;
            }
        }
        Ok(Definition::AlterDatabase { name, option })
    }
}
