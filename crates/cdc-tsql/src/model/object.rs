//! The objects of a database: what `sys.objects` lists, and what names and ids mean.

use cdc_core::{ServerTime, TableName};
use cdc_fake::{FakeDatabase, IndexKind, InstanceInfo, Login, TableInfo};

use crate::model::{
    Names,
    view::{self, View},
};

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Table,
    /// A change table, or one that lists captures.
    CaptureTable,
    View,
    Procedure,
    InlineFunction,
    ScalarFunction,
    PrimaryKey,
    Unique,
    Default,
    Check,
}

impl ObjectKind {
    /// `type` and `type_desc`.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Table | Self::CaptureTable => ("U ", "USER_TABLE"),
            Self::View => ("V ", "VIEW"),
            Self::Procedure => ("P ", "SQL_STORED_PROCEDURE"),
            Self::InlineFunction => ("IF", "SQL_INLINE_TABLE_VALUED_FUNCTION"),
            Self::ScalarFunction => ("FN", "SQL_SCALAR_FUNCTION"),
            Self::PrimaryKey => ("PK", "PRIMARY_KEY_CONSTRAINT"),
            Self::Unique => ("UQ", "UNIQUE_CONSTRAINT"),
            Self::Default => ("D ", "DEFAULT_CONSTRAINT"),
            Self::Check => ("C ", "CHECK_CONSTRAINT"),
        }
    }
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) id: i32,
    pub(super) name: TableName,
    pub(super) parent: i32,
    pub(super) kind: ObjectKind,
    pub(super) created: ServerTime,
    pub(super) modified: ServerTime,
    pub(super) shipped: bool,
}

/// Views of schema `cdc` are tables on a server; so are their ids above the system's.
const CAPTURE_TABLES: i32 = 900_000;
/// System views have negative ids.
const SYSTEM_VIEWS: i32 = -1_000;
const SYSTEM_PROCEDURES: i32 = -100_000;
const SYSTEM_FUNCTIONS: i32 = -200_000;

fn place(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

/// The object id of a view by its place in the list of views.
fn view_id(at: usize, view: &View) -> i32 {
    if view.schema == "cdc" || view.schema == "dbo" {
        CAPTURE_TABLES + place(at)
    } else {
        SYSTEM_VIEWS - place(at)
    }
}

impl Names<'_> {
    /// The objects that statements made, and those of capture; with `system`, the server's too.
    /// Objects that the login may not know of are left out.
    pub(super) fn objects(&self, system: bool) -> Vec<Object> {
        let created = self.database.created();
        let mut all = Vec::new();
        for table in self.database.tables() {
            if self.sees(&table.name) {
                push_table(&mut all, &table);
            }
        }
        for instance in self.database.instances() {
            self.push_instance(&mut all, &instance);
        }
        for (at, view) in view::all().enumerate() {
            let own = view.schema == "cdc" || view.schema == "dbo";
            let shown = if own { view.is_in(self.database) } else { system };
            let name = TableName::new(view.schema, view.name);
            if shown && (!own || self.sees(&name) || view.is_public) {
                all.push(Object {
                    id: view_id(at, view),
                    name,
                    parent: 0,
                    kind: if own { ObjectKind::CaptureTable } else { ObjectKind::View },
                    created,
                    modified: created,
                    shipped: true,
                });
            }
        }
        if system {
            push_routines(&mut all, created);
        }
        all.sort_by_key(|object| object.id);
        all
    }

    fn push_instance(&self, all: &mut Vec<Object>, info: &InstanceInfo) {
        let table = TableName::new("cdc", format!("{}_CT", info.name));
        let make = |id, name, kind| Object {
            id,
            name,
            parent: 0,
            kind,
            created: info.created,
            modified: info.created,
            shipped: true,
        };
        if self.sees(&table) {
            all.push(make(info.object_id, table, ObjectKind::CaptureTable));
        }
        if super::change_table::may_read_changes(self, info) {
            let [every, net] = info.functions;
            let name = TableName::new("cdc", format!("fn_cdc_get_all_changes_{}", info.name));
            all.push(make(every, name, ObjectKind::InlineFunction));
            if info.net_changes {
                let name = TableName::new("cdc", format!("fn_cdc_get_net_changes_{}", info.name));
                all.push(make(net, name, ObjectKind::InlineFunction));
            }
        }
    }

    /// True when the login may know that an object exists.
    pub(super) fn sees(&self, name: &TableName) -> bool {
        self.access.rights == Login::Owner || self.database.may_see(&self.access.rights, name)
    }

    /// The object of a name, without regard to case.
    pub(super) fn object(&self, schema: Option<&str>, name: &str) -> Option<Object> {
        let schemas: Vec<String> = match schema {
            Some(schema) => vec![schema.to_owned()],
            None => self.default_schemas(),
        };
        let all = self.objects(true);
        let found = schemas.iter().find_map(|schema| {
            all.iter().find(|object| {
                self.database.same_name(&object.name.name, name)
                    && object.name.schema.eq_ignore_ascii_case(schema)
            })
        });
        found.cloned()
    }

    /// Where names without a schema are looked for.
    pub(super) fn default_schemas(&self) -> Vec<String> {
        let own = self.database.default_schema(&self.access.rights);
        let mut all = vec![own];
        if all.iter().all(|schema| schema != "dbo") {
            all.push("dbo".into());
        }
        all.push("sys".into());
        all
    }
}

/// The id of a schema.
pub(super) fn schema_id(database: &FakeDatabase, name: &str) -> Option<i32> {
    let found = database.schemas().into_iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, id)| id)
}

fn push_table(all: &mut Vec<Object>, table: &TableInfo) {
    let schema = &table.name.schema;
    let mut push = |id, name: &str, parent, kind| {
        all.push(Object {
            id,
            name: TableName::new(schema.clone(), name),
            parent,
            kind,
            created: table.created,
            modified: table.modified,
            shipped: false,
        });
    };
    push(table.object_id, &table.name.name, 0, ObjectKind::Table);
    for index in &table.indexes {
        let kind = match index.kind {
            IndexKind::PrimaryKey => ObjectKind::PrimaryKey,
            IndexKind::UniqueConstraint => ObjectKind::Unique,
            IndexKind::Plain | IndexKind::Unique => continue,
        };
        push(index.object_id, &index.name, table.object_id, kind);
    }
    for default in table.columns.iter().filter_map(|column| column.default.as_ref()) {
        push(default.object_id, &default.name, table.object_id, ObjectKind::Default);
    }
    for check in &table.checks {
        push(check.object_id, &check.name, table.object_id, ObjectKind::Check);
    }
}

fn push_routines(all: &mut Vec<Object>, created: ServerTime) {
    let mut push = |id, schema: &str, name: &str, kind| {
        all.push(Object {
            id,
            name: TableName::new(schema, name),
            parent: 0,
            kind,
            created,
            modified: created,
            shipped: true,
        });
    };
    for (at, procedure) in super::procedure::all().enumerate() {
        let id = SYSTEM_PROCEDURES - place(at);
        push(id, procedure.schema, procedure.name, ObjectKind::Procedure);
    }
    for (at, name) in super::function::CAPTURE_FUNCTIONS.iter().enumerate() {
        push(SYSTEM_FUNCTIONS - place(at), "sys", name, ObjectKind::ScalarFunction);
    }
}
