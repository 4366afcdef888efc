//! `sys.objects` and the views about tables and what hangs on them.

use cdc_fake::{SqlResult, TableInfo};

use crate::{
    model::{
        Names,
        object::{Object, ObjectKind, schema_id},
        shape::row,
        view::{View, principal::id_of},
    },
    relation::Row,
};

const OBJECT: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit";

const TABLE: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    lob_data_space_id int; filestream_data_space_id int?; max_column_id_used int; \
    lock_on_bulk_load bit; uses_ansi_nulls bit?; is_replicated bit?; has_replication_filter bit?; \
    is_merge_published bit?; is_sync_tran_subscribed bit?; has_unchecked_assembly_data bit; \
    text_in_row_limit int?; large_value_types_out_of_row bit?; is_tracked_by_cdc bit?; \
    lock_escalation tinyint?; lock_escalation_desc nvarchar(60)?; is_filetable bit?; \
    is_memory_optimized bit?; durability tinyint?; durability_desc nvarchar(60)?; \
    temporal_type tinyint?; temporal_type_desc nvarchar(60)?; history_table_id int?; \
    is_remote_data_archive_enabled bit?; is_external bit; history_retention_period int?; \
    history_retention_period_unit int?; history_retention_period_unit_desc nvarchar(10)?; \
    is_node bit?; is_edge bit?; data_retention_period int?; data_retention_period_unit int?; \
    data_retention_period_unit_desc nvarchar(10)?; ledger_type tinyint?; \
    ledger_type_desc nvarchar(60)?; ledger_view_id int?; is_dropped_ledger_table bit?";

const KEY: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    unique_index_id int?; is_system_named bit; is_enforced bit?";

const DEFAULT: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    parent_column_id int; definition nvarchar(max)?; is_system_named bit";

const CHECK: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    is_disabled bit; is_not_for_replication bit; is_not_trusted bit; parent_column_id int; \
    definition nvarchar(max)?; uses_database_collation bit?; is_system_named bit";

const FOREIGN: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    referenced_object_id int?; key_index_id int?; is_disabled bit; is_not_for_replication bit; \
    is_not_trusted bit; delete_referential_action tinyint?; \
    delete_referential_action_desc nvarchar(60)?; update_referential_action tinyint?; \
    update_referential_action_desc nvarchar(60)?; is_system_named bit";

const VIEW: &str = "name sysname; object_id int; principal_id int?; schema_id int; \
    parent_object_id int; type char(2)?; type_desc nvarchar(60)?; create_date datetime; \
    modify_date datetime; is_ms_shipped bit; is_published bit; is_schema_published bit; \
    is_replicated bit?; has_replication_filter bit?; has_opaque_metadata bit; \
    has_unchecked_assembly_data bit; with_check_option bit; is_date_correlation_view bit; \
    is_tracked_by_cdc bit?";

pub(super) const VIEWS: &[View] = &[
    View::public("sys", "objects", OBJECT, objects),
    View::public("sys", "all_objects", OBJECT, all_objects),
    View::public("sys", "tables", TABLE, tables),
    View::public("sys", "views", VIEW, nothing),
    View::public("sys", "all_views", VIEW, all_views),
    View::public("sys", "schemas", "name sysname; schema_id int; principal_id int?", schemas),
    View::public("sys", "key_constraints", KEY, key_constraints),
    View::public("sys", "default_constraints", DEFAULT, default_constraints),
    View::public("sys", "check_constraints", CHECK, check_constraints),
    View::public("sys", "foreign_keys", FOREIGN, nothing),
    View::public(
        "sys",
        "foreign_key_columns",
        "constraint_object_id int; constraint_column_id int; parent_object_id int; \
         parent_column_id int; referenced_object_id int; referenced_column_id int",
        nothing,
    ),
    View::public(
        "sys",
        "extended_properties",
        "class tinyint; class_desc nvarchar(60)?; major_id int; minor_id int; name sysname; \
         value nvarchar(4000)?",
        nothing,
    ),
    View::public(
        "sys",
        "triggers",
        "name sysname; object_id int; parent_class tinyint; parent_class_desc nvarchar(60)?; \
         parent_id int; type char(2); type_desc nvarchar(60)?; create_date datetime; \
         modify_date datetime; is_ms_shipped bit; is_disabled bit; \
         is_not_for_replication bit; is_instead_of_trigger bit",
        nothing,
    ),
    View::public("sys", "synonyms", OBJECT, nothing),
    View::public("sys", "sequences", OBJECT, nothing),
    View::public("sys", "procedures", OBJECT, nothing),
    View::public("sys", "change_tracking_tables", "object_id int", nothing),
    View::public(
        "sys",
        "change_tracking_databases",
        "database_id int; is_auto_cleanup_on tinyint?; retention_period int?; \
         retention_period_units tinyint?; retention_period_units_desc nvarchar(60)?; \
         max_cleanup_version bigint?",
        nothing,
    ),
    View::public(
        "sys",
        "sysobjects",
        "name sysname; id int; xtype char(2); uid smallint?; info smallint?; status int?; \
         base_schema_ver int?; replinfo int?; parent_obj int; crdate datetime; ftcatid smallint?; \
         schema_ver int?; stats_schema_ver int?; type char(2)?; userstat smallint?; \
         sysstat smallint?; indexdel smallint?; refdate datetime; version int?; deltrig int?; \
         instrig int?; updtrig int?; seltrig int?; category int?; cache smallint?",
        sysobjects,
    ),
];

fn nothing(_: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(Vec::new())
}

fn object_row(names: &Names<'_>, object: &Object) -> Vec<cdc_fake::Value> {
    let (kind, described) = object.kind.names();
    row![
        &object.name.name,
        object.id,
        (),
        schema_id(names.database, &object.name.schema).unwrap_or(1),
        object.parent,
        kind,
        described,
        object.created,
        object.modified,
        object.shipped,
        false,
        false
    ]
    .to_vec()
}

fn with(names: &Names<'_>, object: &Object, more: &[cdc_fake::Value]) -> Row {
    let mut cells = object_row(names, object);
    cells.extend_from_slice(more);
    cells.into()
}

fn objects(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(names.objects(false).iter().map(|object| with(names, object, &[])).collect())
}

fn all_objects(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(names.objects(true).iter().map(|object| with(names, object, &[])).collect())
}

fn all_views(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let more = row![false, false, false, false, false, false, false];
    let views = names.objects(true);
    let views = views.iter().filter(|object| object.kind == ObjectKind::View);
    Ok(views.map(|object| with(names, object, &more)).collect())
}

/// The tables that a login may know of.
pub(super) fn seen_tables(names: &Names<'_>) -> Vec<TableInfo> {
    names.database.tables().into_iter().filter(|table| names.sees(&table.name)).collect()
}

fn tables(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let known = names.database.tables();
    let mut rows = Vec::new();
    for object in names.objects(false) {
        if !matches!(object.kind, ObjectKind::Table | ObjectKind::CaptureTable) {
            continue;
        }
        let table = known.iter().find(|table| table.object_id == object.id);
        let last = table.and_then(|table| table.columns.last()).map_or(0, |last| last.column.id);
        let captured = table.is_some_and(|table| table.captured);
        let more = row![
            0,
            (),
            last,
            false,
            true,
            captured,
            false,
            false,
            false,
            false,
            0,
            false,
            captured,
            0,
            "TABLE",
            false,
            false,
            0,
            "SCHEMA_AND_DATA",
            0,
            "NON_TEMPORAL_TABLE",
            (),
            false,
            false,
            (),
            (),
            (),
            false,
            false,
            (),
            (),
            (),
            0,
            "NON_LEDGER_TABLE",
            (),
            false
        ];
        rows.push(with(names, &object, &more));
    }
    Ok(rows)
}

fn schemas(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let schemas = names.database.schemas();
    Ok(schemas
        .iter()
        .map(|(name, id)| {
            let fixed = if *id >= 16_384 || *id < 5 { *id } else { 1 };
            let owner = names.database.schema_owner(name);
            let owner = owner.map_or(fixed, |owner| id_of(names.database, &owner));
            row![name, *id, owner]
        })
        .collect())
}

fn of_kind(names: &Names<'_>, kinds: &[ObjectKind]) -> Vec<Object> {
    let all = names.objects(false).into_iter();
    all.filter(|object| kinds.contains(&object.kind)).collect()
}

fn key_constraints(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let tables = names.database.tables();
    let mut rows = Vec::new();
    for object in of_kind(names, &[ObjectKind::PrimaryKey, ObjectKind::Unique]) {
        let index = tables
            .iter()
            .flat_map(|table| &table.indexes)
            .find(|index| index.object_id == object.id);
        let id = index.map(|index| index.id);
        let made_up = index.is_some_and(|index| index.named_by_server);
        rows.push(with(names, &object, &row![id, made_up, true]));
    }
    Ok(rows)
}

fn default_constraints(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let tables = names.database.tables();
    let mut rows = Vec::new();
    for object in of_kind(names, &[ObjectKind::Default]) {
        let columns = tables.iter().flat_map(|table| &table.columns);
        let found = columns.into_iter().find_map(|column| {
            let default = column.default.as_ref()?;
            (default.object_id == object.id).then_some((column.column.id, &default.text))
        });
        if let Some((column, text)) = found {
            let made_up = object.name.name.starts_with("DF__");
            rows.push(with(names, &object, &row![column, text, made_up]));
        }
    }
    Ok(rows)
}

fn check_constraints(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let tables = names.database.tables();
    let mut rows = Vec::new();
    for object in of_kind(names, &[ObjectKind::Check]) {
        let checks = tables.iter().flat_map(|table| &table.checks);
        let text = checks.into_iter().find(|check| check.object_id == object.id);
        let text = text.map(|check| &check.text);
        let made_up = object.name.name.starts_with("CK__");
        let more = row![false, false, false, 0, text, true, made_up];
        rows.push(with(names, &object, &more));
    }
    Ok(rows)
}

fn sysobjects(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let rows = names.objects(false);
    Ok(rows
        .iter()
        .map(|object| {
            let (kind, _) = object.kind.names();
            let schema = schema_id(names.database, &object.name.schema).unwrap_or(1);
            row![
                &object.name.name,
                object.id,
                kind,
                schema,
                0,
                0,
                0,
                0,
                object.parent,
                object.created,
                0,
                0,
                0,
                kind,
                1,
                3,
                0,
                object.created,
                0,
                0,
                0,
                0,
                0,
                0,
                0
            ]
        })
        .collect())
}
