//! CREATE, ALTER, DROP and TRUNCATE: databases, schemas, types, tables, indexes.

use cdc_fake::SqlError;
use sqlparser::tokenizer::Token;

use super::{
    Body, ColumnBody, Constraint, Definition, Index, TableBody,
    reader::{Read, Reader},
    unsupported,
};

impl Reader {
    pub(super) fn definition_statement(&mut self, verb: &str) -> Read<Body> {
        self.at += 1;
        if verb == "TRUNCATE" {
            self.must("TABLE")?;
            let name = self.object()?;
            if self.take("WITH") {
                return Err(self.error(unsupported("TRUNCATE TABLE of partitions")));
            }
            return Ok(Body::Truncate(name));
        }
        let what = self.peek_word().unwrap_or_default();
        if matches!(what.as_str(), "LOGIN" | "USER" | "ROLE" | "SERVER" | "APPLICATION") {
            return self.principal_statement(verb);
        }
        let definition = match verb {
            "CREATE" => self.create(&what)?,
            "ALTER" => self.alter(&what)?,
            _ => self.drop_object(&what)?,
        };
        Ok(Body::Definition(Box::new(definition)))
    }

    fn create(&mut self, what: &str) -> Read<Definition> {
        self.at += 1;
        match what {
            "TABLE" => {
                let name = self.object()?;
                let table = self.table_body()?;
                self.storage()?;
                Ok(Definition::CreateTable { name, table })
            }
            "UNIQUE" | "CLUSTERED" | "NONCLUSTERED" | "INDEX" => {
                self.at -= 1;
                self.create_index()
            }
            "SCHEMA" => {
                let mut name = String::new();
                if !self.take("AUTHORIZATION") {
                    name = self.name()?;
                    if !self.take("AUTHORIZATION") {
                        return Ok(Definition::CreateSchema { name, owner: None });
                    }
                }
                let owner = self.name()?;
                if name.is_empty() {
                    name.clone_from(&owner);
                }
                Ok(Definition::CreateSchema { name, owner: Some(owner) })
            }
            "TYPE" => self.create_type(),
            "DATABASE" => self.create_database(),
            _ => Err(self.error(unsupported(&format!("CREATE {what}")))),
        }
    }

    fn create_type(&mut self) -> Read<Definition> {
        let name = self.object()?;
        if !self.take("FROM") {
            return Err(self.error(unsupported("CREATE TYPE that is no alias")));
        }
        let data_type = self.data_type()?;
        let nullable = self.nullability();
        Ok(Definition::CreateType { name, data_type, nullable })
    }

    fn create_database(&mut self) -> Read<Definition> {
        let name = self.name()?;
        let mut collation = None;
        // Files say where a server keeps its pages: there are none here.
        while !self.at_end() {
            if self.take("COLLATE") {
                collation = Some(self.collation_name()?);
            } else if self.take("ON") || self.take_all(&["LOG", "ON"]) {
                self.take("PRIMARY");
                self.list(Self::skip_parentheses)?;
            } else if self.take("CONTAINMENT") {
                self.expect_token(&Token::Eq)?;
                if !self.take("NONE") {
                    return Err(self.error(unsupported("a contained database")));
                }
            } else {
                return Err(self.error(unsupported("this option of CREATE DATABASE")));
            }
        }
        Ok(Definition::CreateDatabase { name, collation })
    }

    fn create_index(&mut self) -> Read<Definition> {
        let unique = self.take("UNIQUE");
        let clustered = self.take("CLUSTERED");
        if !clustered {
            self.take("NONCLUSTERED");
        }
        if self.take("COLUMNSTORE") {
            return Err(self.error(unsupported("a columnstore index")));
        }
        self.must("INDEX")?;
        let name = self.name()?;
        self.must("ON")?;
        let table = self.object()?;
        let columns = self.parenthesised(Self::key_column)?;
        let mut included = Vec::new();
        if self.take("INCLUDE") {
            included = self.parenthesised(Self::name)?;
        }
        if self.take("WHERE") {
            return Err(self.error(unsupported("a filtered index")));
        }
        self.storage()?;
        let index = Index { unique, clustered, columns, included };
        Ok(Definition::CreateIndex { name, table, index })
    }

    /// A column of a key, and true when it descends.
    fn key_column(&mut self) -> Read<(String, bool)> {
        let name = self.name()?;
        let descending = self.take("DESC");
        if !descending {
            self.take("ASC");
        }
        Ok((name, descending))
    }

    /// `WITH (...)` and `ON filegroup`: how a server lays out pages, without a meaning here.
    fn storage(&mut self) -> Read<()> {
        loop {
            if self.take("WITH") {
                self.index_options()?;
            } else if self.take("ON") || self.take("TEXTIMAGE_ON") || self.take("FILESTREAM_ON") {
                self.name()?;
                if self.peek() == Some(&Token::LParen) {
                    return Err(self.error(unsupported("a partitioned table")));
                }
            } else {
                return Ok(());
            }
        }
    }

    fn index_options(&mut self) -> Read<()> {
        if self.take("FILLFACTOR") {
            self.expect_token(&Token::Eq)?;
            return self.integer().map(|_| ());
        }
        self.parenthesised(|reader| {
            let option = reader.name()?;
            let changes_rows = ["IGNORE_DUP_KEY", "SYSTEM_VERSIONING", "LEDGER"];
            reader.expect_token(&Token::Eq)?;
            let off = reader.peek_word().is_some_and(|word| word == "OFF");
            if !off && changes_rows.iter().any(|name| option.eq_ignore_ascii_case(name)) {
                return Err(reader.error(unsupported(&option.to_ascii_uppercase())));
            }
            if reader.integer().is_err() {
                reader.name()?;
            }
            if reader.peek() == Some(&Token::LParen) {
                reader.skip_parentheses()?;
            }
            Ok(())
        })
        .map(|_| ())
    }

    /// `(columns and constraints)`.
    pub(super) fn table_body(&mut self) -> Read<TableBody> {
        if self.peek() != Some(&Token::LParen) {
            return Err(match self.peek_word().as_deref() {
                Some("AS") => self.error(unsupported("CREATE TABLE AS")),
                _ => self.unexpected(),
            });
        }
        self.at += 1;
        let mut table = TableBody::default();
        loop {
            // A comma may stand behind the last one.
            if self.take_token(&Token::RParen) {
                break;
            }
            self.table_item(&mut table)?;
            if !self.take_token(&Token::Comma) {
                self.expect_token(&Token::RParen)?;
                break;
            }
        }
        Ok(table)
    }

    /// A column or a constraint of the table.
    pub(super) fn table_item(&mut self, table: &mut TableBody) -> Read<()> {
        match self.peek_word().unwrap_or_default().as_str() {
            "CONSTRAINT" | "PRIMARY" | "UNIQUE" | "FOREIGN" | "CHECK" => self.constraint(table)?,
            "INDEX" => {
                self.at += 1;
                let name = self.name()?;
                let unique = self.take("UNIQUE");
                let clustered = self.clustered();
                let columns = self.parenthesised(Self::key_column)?;
                self.storage()?;
                let clustered = clustered.unwrap_or(false);
                let index = Index { unique, clustered, columns, included: Vec::new() };
                table.indexes.push((name, index));
            }
            "PERIOD" => return Err(self.error(unsupported("a temporal table"))),
            _ => {
                let column = self.column_body(table)?;
                table.columns.push(column);
            }
        }
        Ok(())
    }

    fn clustered(&mut self) -> Option<bool> {
        if self.take("CLUSTERED") {
            return Some(true);
        }
        self.take("NONCLUSTERED").then_some(false)
    }

    /// A constraint of the table's own.
    fn constraint(&mut self, table: &mut TableBody) -> Read<()> {
        let name = if self.take("CONSTRAINT") { Some(self.name()?) } else { None };
        if self.take("CHECK") {
            let check = self.check()?;
            table.checks.push((name, check));
            return Ok(());
        }
        let primary = self.take_all(&["PRIMARY", "KEY"]);
        if !primary && !self.take("UNIQUE") {
            return Err(match self.peek_word().as_deref() {
                Some("FOREIGN") => self.error(unsupported("FOREIGN KEY")),
                _ => self.unexpected(),
            });
        }
        let clustered = self.clustered();
        let columns = self.parenthesised(Self::key_column)?;
        self.storage()?;
        table.constraints.push(Constraint { name, primary, clustered, columns });
        Ok(())
    }

    /// The condition of a CHECK.
    fn check(&mut self) -> Read<sqlparser::ast::Expr> {
        self.take_all(&["NOT", "FOR", "REPLICATION"]);
        self.expect_token(&Token::LParen)?;
        let condition = self.expression()?;
        self.expect_token(&Token::RParen)?;
        Ok(condition)
    }

    /// A column with what follows it; its keys and checks go to `table`.
    pub(super) fn column_body(&mut self, table: &mut TableBody) -> Read<ColumnBody> {
        let name = self.name()?;
        let mut column = ColumnBody {
            name,
            data_type: None,
            computed: None,
            persisted: false,
            collation: None,
            nullable: None,
            identity: None,
            default: None,
            with_values: false,
        };
        if self.take("AS") {
            column.computed = Some(self.expression()?);
            column.persisted = self.take("PERSISTED");
        } else if matches!(self.peek(), Some(Token::Comma | Token::RParen))
            && column.name.eq_ignore_ascii_case("timestamp")
        {
            // `timestamp` alone is a column of that name and type.
            column.data_type =
                Some(sqlparser::ast::DataType::Timestamp(None, sqlparser::ast::TimezoneInfo::None));
        } else {
            column.data_type = Some(self.data_type()?);
        }
        while self.column_option(&mut column, table)? {}
        Ok(column)
    }

    fn column_option(&mut self, column: &mut ColumnBody, table: &mut TableBody) -> Read<bool> {
        if let Some(nullable) = self.nullability() {
            column.nullable = Some(nullable);
            return Ok(true);
        }
        let name = if self.take("CONSTRAINT") { Some(self.name()?) } else { None };
        match self.peek_word().unwrap_or_default().as_str() {
            "COLLATE" => {
                self.at += 1;
                column.collation = Some(self.collation_name()?);
            }
            "IDENTITY" => {
                self.at += 1;
                column.identity = Some(self.identity()?);
                if self.take_all(&["NOT", "FOR", "REPLICATION"]) {}
            }
            "DEFAULT" => {
                self.at += 1;
                column.default = Some((name, self.constant()?));
                column.with_values = self.take_all(&["WITH", "VALUES"]);
            }
            "PRIMARY" | "UNIQUE" => {
                let primary = self.take_all(&["PRIMARY", "KEY"]);
                if !primary {
                    self.must("UNIQUE")?;
                }
                let clustered = self.clustered();
                let mut columns = vec![(column.name.clone(), false)];
                if self.peek() == Some(&Token::LParen) {
                    columns = self.parenthesised(Self::key_column)?;
                }
                self.storage()?;
                table.constraints.push(Constraint { name, primary, clustered, columns });
            }
            "ROWGUIDCOL" => self.at += 1,
            "CHECK" => {
                self.at += 1;
                let check = self.check()?;
                table.checks.push((name, check));
            }
            "REFERENCES" | "FOREIGN" | "SPARSE" | "FILESTREAM" | "MASKED" | "HIDDEN"
            | "GENERATED" | "ENCRYPTED" => {
                let word = self.peek_word().unwrap_or_default();
                return Err(self.error(unsupported(&word)));
            }
            _ if name.is_some() => return Err(self.unexpected()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn nullability(&mut self) -> Option<bool> {
        if self.take_all(&["NOT", "NULL"]) {
            return Some(false);
        }
        self.take("NULL").then_some(true)
    }

    /// `(seed, increment)`; 1 and 1 when not said.
    fn identity(&mut self) -> Read<(i64, i64)> {
        if self.peek() != Some(&Token::LParen) {
            return Ok((1, 1));
        }
        let numbers = self.parenthesised(Self::integer)?;
        match numbers.as_slice() {
            [seed, increment] if *increment != 0 => Ok((*seed, *increment)),
            _ => Err(self.error(SqlError::new(
                2749,
                "Identity column must have a seed and an increment other than 0.",
            ))),
        }
    }

    fn collation_name(&mut self) -> Read<sqlparser::ast::ObjectName> {
        let name = self.name()?;
        Ok(sqlparser::ast::ObjectName::from(vec![sqlparser::ast::Ident::new(name)]))
    }

    fn drop_object(&mut self, what: &str) -> Read<Definition> {
        self.at += 1;
        let if_exists = self.take_all(&["IF", "EXISTS"]);
        match what {
            "TABLE" => {
                let names = self.list(Self::object)?;
                Ok(Definition::DropTables { names, if_exists })
            }
            "INDEX" => {
                let name = self.name()?;
                if self.take_token(&Token::Period) {
                    return Err(self.error(unsupported("DROP INDEX table.index")));
                }
                self.must("ON")?;
                let table = self.object()?;
                Ok(Definition::DropIndex { name, table, if_exists })
            }
            "SCHEMA" => Ok(Definition::DropSchema { name: self.name()?, if_exists }),
            "TYPE" => Ok(Definition::DropType { name: self.object()?, if_exists }),
            "DATABASE" => {
                let names = self.list(Self::name)?;
                Ok(Definition::DropDatabases { names, if_exists })
            }
            _ => Err(self.error(unsupported(&format!("DROP {what}")))),
        }
    }
}
