//! Indexes, partitions and how many rows and pages they have.

use cdc_fake::{IndexInfo, IndexKind, SqlResult, TableInfo};

use crate::{
    model::{Names, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::public(
        "sys",
        "indexes",
        "object_id int; name sysname?; index_id int; type tinyint; type_desc nvarchar(60)?; \
         is_unique bit?; data_space_id int?; ignore_dup_key bit?; is_primary_key bit?; \
         is_unique_constraint bit?; fill_factor tinyint; is_padded bit?; is_disabled bit?; \
         is_hypothetical bit?; is_ignored_in_optimization bit?; allow_row_locks bit?; \
         allow_page_locks bit?; has_filter bit?; filter_definition nvarchar(max)?; \
         compression_delay int?; suppress_dup_key_messages bit?; auto_created bit?; \
         optimize_for_sequential_key bit?",
        indexes,
    ),
    View::public(
        "sys",
        "index_columns",
        "object_id int; index_id int; index_column_id int; column_id int; key_ordinal tinyint; \
         partition_ordinal tinyint; is_descending_key bit?; is_included_column bit?; \
         column_store_order_ordinal tinyint?; data_clustering_ordinal tinyint?",
        index_columns,
    ),
    View::public(
        "sys",
        "partitions",
        "partition_id bigint; object_id int; index_id int; partition_number int; hobt_id bigint; \
         rows bigint?; filestream_filegroup_id smallint; data_compression tinyint; \
         data_compression_desc nvarchar(60)?; xml_compression bit?; \
         xml_compression_desc varchar(3)?",
        partitions,
    ),
    View::public(
        "sys",
        "allocation_units",
        "allocation_unit_id bigint; type tinyint; type_desc nvarchar(60)?; container_id bigint; \
         data_space_id int?; total_pages bigint; used_pages bigint; data_pages bigint",
        allocation_units,
    ),
    View::public(
        "sys",
        "dm_db_partition_stats",
        "partition_id bigint?; object_id int; index_id int; partition_number int; \
         in_row_data_page_count bigint?; in_row_used_page_count bigint?; \
         in_row_reserved_page_count bigint?; lob_used_page_count bigint?; \
         lob_reserved_page_count bigint?; row_overflow_used_page_count bigint?; \
         row_overflow_reserved_page_count bigint?; used_page_count bigint?; \
         reserved_page_count bigint?; row_count bigint?",
        partition_stats,
    ),
    View::public(
        "sys",
        "stats",
        "object_id int; name sysname?; stats_id int; auto_created bit?; user_created bit?; \
         no_recompute bit?; has_filter bit?; filter_definition nvarchar(max)?",
        stats,
    ),
];

/// Rows of 8,096 bytes that a page takes, as a round number for row counts to be turned into
/// pages with.
const ROWS_A_PAGE: i64 = 60;

/// `type` and `type_desc` of an index.
fn index_type(index: &IndexInfo) -> (i32, &'static str) {
    if index.clustered { (1, "CLUSTERED") } else { (2, "NONCLUSTERED") }
}

/// A heap, or an index, of a table: its id and itself.
fn parts(table: &TableInfo) -> Vec<(i32, Option<&IndexInfo>)> {
    let mut parts: Vec<_> = table.indexes.iter().map(|index| (index.id, Some(index))).collect();
    if !table.indexes.iter().any(|index| index.clustered) {
        parts.insert(0, (0, None));
    }
    parts
}

fn each_part(names: &Names<'_>, mut look: impl FnMut(i32, i32, i64)) {
    for table in super::table::seen_tables(names) {
        for (index, _) in parts(&table) {
            look(table.object_id, index, i64::try_from(table.rows).unwrap_or(i64::MAX));
        }
    }
    for info in names.database.instances() {
        if names.sees(&cdc_core::TableName::new("cdc", format!("{}_CT", info.name))) {
            look(info.object_id, 1, i64::try_from(info.rows).unwrap_or(i64::MAX));
        }
    }
}

fn partition_id(object: i32, index: i32) -> i64 {
    (i64::from(object) << 16) | (i64::from(index) << 48) | 1
}

fn pages(rows: i64) -> i64 {
    if rows == 0 { 0 } else { rows / ROWS_A_PAGE + 1 }
}

fn indexes(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in super::table::seen_tables(names) {
        for (id, index) in parts(&table) {
            let (kind, described) = index.map_or((0, "HEAP"), index_type);
            let is = |wanted| index.is_some_and(|index| index.kind == wanted);
            rows.push(row![
                table.object_id,
                index.map(|index| &index.name),
                id,
                kind,
                described,
                index.is_some_and(|index| index.kind.is_unique()),
                1,
                false,
                is(IndexKind::PrimaryKey),
                is(IndexKind::UniqueConstraint),
                0,
                false,
                false,
                false,
                false,
                true,
                true,
                false,
                (),
                (),
                false,
                false,
                false
            ]);
        }
    }
    for info in names.database.instances() {
        if names.sees(&cdc_core::TableName::new("cdc", format!("{}_CT", info.name))) {
            let name = format!("{}_CT_clustered_idx", info.name);
            rows.push(row![
                info.object_id,
                name,
                1,
                1,
                "CLUSTERED",
                true,
                1,
                false,
                false,
                false,
                0,
                false,
                false,
                false,
                false,
                true,
                true,
                false,
                (),
                (),
                false,
                false,
                false
            ]);
        }
    }
    Ok(rows)
}

fn index_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in super::table::seen_tables(names) {
        for index in &table.indexes {
            let keys = index.columns.iter().map(|(id, descending)| (*id, *descending, false));
            let included = index.included.iter().map(|id| (*id, false, true));
            for (at, (id, descending, included)) in (1..).zip(keys.chain(included)) {
                let ordinal = if included { 0 } else { at };
                rows.push(row![
                    table.object_id,
                    index.id,
                    at,
                    id,
                    ordinal,
                    0,
                    descending,
                    included,
                    0,
                    0
                ]);
            }
        }
    }
    for info in names.database.instances() {
        if names.sees(&cdc_core::TableName::new("cdc", format!("{}_CT", info.name))) {
            // Commit, command, seqval, operation: by their places in the change table.
            let command = i32::try_from(info.columns.len() + 6).unwrap_or(i32::MAX);
            for (at, column) in (1..).zip([1, command, 3, 4]) {
                rows.push(row![info.object_id, 1, at, column, at, 0, false, false, 0, 0]);
            }
        }
    }
    Ok(rows)
}

fn partitions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    each_part(names, |object, index, count| {
        let id = partition_id(object, index);
        rows.push(row![id, object, index, 1, id, count, 0, 0, "NONE", false, "OFF"]);
    });
    Ok(rows)
}

fn allocation_units(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    each_part(names, |object, index, count| {
        let id = partition_id(object, index);
        let pages = pages(count);
        rows.push(row![id + 1, 1, "IN_ROW_DATA", id, 1, pages + 1, pages + 1, pages]);
    });
    Ok(rows)
}

fn partition_stats(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    each_part(names, |object, index, count| {
        let id = partition_id(object, index);
        let (pages, zero) = (pages(count), 0_i64);
        let used = pages + i64::from(pages > 0);
        rows.push(row![
            id, object, index, 1, pages, used, used, zero, zero, zero, zero, used, used, count
        ]);
    });
    Ok(rows)
}

fn stats(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for table in super::table::seen_tables(names) {
        for index in &table.indexes {
            rows.push(row![table.object_id, &index.name, index.id, false, false, false, false, ()]);
        }
    }
    Ok(rows)
}

/// The pages of so many rows, for `sp_spaceused`.
pub(in crate::model) fn pages_of(rows: i64) -> i64 {
    pages(rows)
}
