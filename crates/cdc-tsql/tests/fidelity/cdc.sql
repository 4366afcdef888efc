# Change data capture: functions, their edges, masks and shapes of changes.
EXEC sys.sp_cdc_enable_db

CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a varchar(10) NULL, b int NULL)

EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, @supports_net_changes = 1

# Before capture ran there is no high mark and no low one.
SELECT sys.fn_cdc_get_max_lsn(), sys.fn_cdc_get_min_lsn('dbo_t')
:> binary(10) null, binary(10) null
=> NULL | 0x00000000000000000000

SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all')
!> 313

INSERT dbo.t VALUES (1, 'x', 10), (2, 'y', 20)

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], id, a, b FROM cdc.dbo_t_CT ORDER BY [__$start_lsn], [__$seqval], [__$operation]
:> int, varbinary(128) null, int null, varchar(10) null, int null
=> 2 | 0x07 | 1 | 'x' | 10
=> 2 | 0x07 | 2 | 'y' | 20

SELECT COUNT(DISTINCT [__$start_lsn]), COUNT(DISTINCT [__$seqval]) FROM cdc.dbo_t_CT
=> 1 | 2

# A value that stays as it is leaves no change.
UPDATE dbo.t SET a = a

UPDATE dbo.t SET a = a, b = b + 1 WHERE id = 1

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], id, a, b FROM cdc.dbo_t_CT WHERE [__$operation] > 2 ORDER BY [__$start_lsn], [__$seqval], [__$operation]
=> 3 | 0x04 | 1 | 'x' | 10
=> 4 | 0x04 | 1 | 'x' | 11

# The old image only on demand; options are trimmed and ignore case.
DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT [__$operation], id, b FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, N'all') ORDER BY [__$start_lsn], [__$seqval], [__$operation]
=> 2 | 1 | 10
=> 2 | 2 | 20
=> 4 | 1 | 11

DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT [__$operation], id, b FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, N' ALL Update Old ') ORDER BY [__$start_lsn], [__$seqval], [__$operation]
=> 2 | 1 | 10
=> 2 | 2 | 20
=> 3 | 1 | 10
=> 4 | 1 | 11

DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, N'everything')
!> 313

DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, NULL)
!> 313

DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(@b, @a, N'all') WHERE 1 = 1
!> 313

DECLARE @a binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @b binary(10) = sys.fn_cdc_increment_lsn(sys.fn_cdc_get_max_lsn()); SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, N'all')
!> 313

DECLARE @a binary(10) = sys.fn_cdc_decrement_lsn(sys.fn_cdc_get_min_lsn('dbo_t')), @b binary(10) = sys.fn_cdc_get_max_lsn(); SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(@a, @b, N'all')
!> 313

SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn())
!> 313

SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all', 1)
!> 8144

SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_u(sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all')
!> 208

SELECT sys.fn_cdc_get_min_lsn('nothing'), sys.fn_cdc_get_min_lsn(NULL), sys.fn_cdc_increment_lsn(NULL), sys.fn_cdc_map_lsn_to_time(NULL), sys.fn_cdc_map_lsn_to_time(0x01)
=> 0x00000000000000000000 | 0x00000000000000000000 | NULL | NULL | NULL

SELECT sys.fn_cdc_increment_lsn(0x000000FF0000000AFFFF), sys.fn_cdc_decrement_lsn(0x000000FF0000000B0000)
=> 0x000000FF0000000B0000 | 0x000000FF0000000AFFFF

SELECT sys.fn_cdc_get_column_ordinal('dbo_t', 'A'), sys.fn_cdc_get_column_ordinal('dbo_t', 'none'), sys.fn_cdc_has_column_changed('dbo_t', 'b', 0x04), sys.fn_cdc_has_column_changed('dbo_t', 'a', 0x04), sys.fn_cdc_is_bit_set(3, 0x04), sys.fn_cdc_is_bit_set(9, 0x0100), sys.fn_cdc_is_bit_set(1, 0x0100)
=> 2 | NULL | 1 | 0 | 1 | 1 | 0

# A key update is a delete and an insert.
UPDATE dbo.t SET id = 5 WHERE id = 2

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], id, a, b FROM cdc.dbo_t_CT WHERE [__$start_lsn] = sys.fn_cdc_get_max_lsn() ORDER BY [__$seqval], [__$operation]
=> 1 | 0x07 | 2 | 'y' | 20
=> 2 | 0x07 | 5 | 'y' | 20

# A shift of keys by one update of many rows.
INSERT dbo.t VALUES (10, 'ten', 1), (11, 'eleven', 2), (12, 'twelve', 3)

UPDATE dbo.t SET id = id + 1 WHERE id >= 10

EXEC fake.run_capture

SELECT [__$operation], id, a, b FROM cdc.dbo_t_CT WHERE [__$start_lsn] = sys.fn_cdc_get_max_lsn() ORDER BY [__$command_id], [__$seqval], [__$operation]
=> 1 | 10 | 'ten' | 1
=> 1 | 11 | 'eleven' | 2
=> 1 | 12 | 'twelve' | 3
=> 2 | 11 | 'ten' | 1
=> 2 | 12 | 'eleven' | 2
=> 2 | 13 | 'twelve' | 3

# Net changes.
INSERT dbo.t VALUES (20, 'n', 1)

UPDATE dbo.t SET a = 'm' WHERE id = 20

INSERT dbo.t VALUES (21, 'gone', 1)

DELETE dbo.t WHERE id = 21

DELETE dbo.t WHERE id = 5

INSERT dbo.t VALUES (5, 'again', 20)

UPDATE dbo.t SET b = 99 WHERE id = 1

DELETE dbo.t WHERE id = 1

EXEC fake.run_capture

DECLARE @a binary(10) = (SELECT MIN([__$start_lsn]) FROM cdc.dbo_t_CT WHERE id = 20); SELECT [__$operation], [__$update_mask], id, a, b FROM cdc.fn_cdc_get_net_changes_dbo_t(@a, sys.fn_cdc_get_max_lsn(), 'all') ORDER BY id
=> 1 | NULL | 1 | 'x' | 99
=> 4 | NULL | 5 | 'again' | 20
=> 2 | NULL | 20 | 'm' | 1

DECLARE @a binary(10) = (SELECT MIN([__$start_lsn]) FROM cdc.dbo_t_CT WHERE id = 20); SELECT [__$operation], id, a, b FROM cdc.fn_cdc_get_net_changes_dbo_t(@a, sys.fn_cdc_get_max_lsn(), 'all with merge') ORDER BY id
=> 1 | 1 | 'x' | 99
=> 5 | 5 | 'again' | 20
=> 5 | 20 | 'm' | 1

DECLARE @a binary(10) = (SELECT MIN([__$start_lsn]) FROM cdc.dbo_t_CT WHERE id = 20); SELECT [__$operation], id FROM cdc.fn_cdc_get_net_changes_dbo_t(@a, sys.fn_cdc_get_max_lsn(), 'all update old')
!> 313

# Positions and times.
SELECT CASE WHEN sys.fn_cdc_map_time_to_lsn('largest less than or equal', GETDATE()) = sys.fn_cdc_get_max_lsn() THEN 1 ELSE 0 END
=> 1

SELECT sys.fn_cdc_map_time_to_lsn('smallest greater than', '2030-01-01'), sys.fn_cdc_map_time_to_lsn('largest less than', '1990-01-01')
=> NULL | NULL

SELECT sys.fn_cdc_map_time_to_lsn('nearest', GETDATE())
!> 22870

DECLARE @t datetime = (SELECT MAX(tran_end_time) FROM cdc.lsn_time_mapping); SELECT CASE WHEN sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', @t) <= sys.fn_cdc_get_max_lsn() THEN 1 ELSE 0 END, sys.fn_cdc_map_time_to_lsn('smallest greater than', @t)
=> 1 | NULL

# MERGE writes each shape.
MERGE dbo.t AS t USING (VALUES (20, 'q', 7), (30, 'new', 8)) AS s (id, a, b) ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.a, s.b) WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE;

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], id, a, b FROM cdc.dbo_t_CT WHERE [__$start_lsn] = sys.fn_cdc_get_max_lsn() ORDER BY id, [__$operation]
=> 1 | 0x07 | 5 | 'again' | 20
=> 3 | 0x02 | 20 | 'm' | 1
=> 4 | 0x02 | 20 | 'q' | 1
=> 2 | 0x07 | 30 | 'new' | 8

# TRUNCATE is refused, the table cannot be dropped by the key, ALTER keeps the instance's shape.
TRUNCATE TABLE dbo.t
!> 4711

ALTER TABLE dbo.t ADD c int NULL

UPDATE dbo.t SET c = 1 WHERE id = 30

EXEC fake.run_capture

SELECT COUNT(*) FROM cdc.dbo_t_CT WHERE id = 30
=> 1

SELECT [__$operation], a FROM cdc.dbo_t_CT WHERE c = 1
!> 207

EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL
!> 22926

EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, @capture_instance = N't2'

EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, @capture_instance = N't3'
!> 22962

UPDATE dbo.t SET c = 2 WHERE id = 30

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], id, c FROM cdc.t2_CT ORDER BY [__$operation]
=> 3 | 0x08 | 30 | 1
=> 4 | 0x08 | 30 | 2

SELECT COUNT(*) FROM cdc.dbo_t_CT WHERE id = 30
=> 1

SELECT * FROM cdc.fn_cdc_get_net_changes_t2(0x00, 0x00, 'all')
!> 313

SELECT capture_instance, supports_net_changes FROM cdc.change_tables ORDER BY capture_instance
=> 'dbo_t' | 1
=> 't2' | 1

SELECT c.capture_instance, d.required_column_update, d.ddl_command FROM cdc.ddl_history d JOIN cdc.change_tables c ON c.object_id = d.object_id
=> 'dbo_t' | 0 | 'ALTER TABLE dbo.t ADD c int NULL'

EXEC fake.advance_clock 60

INSERT dbo.t VALUES (40, 'late', 8, 9)

EXEC fake.run_capture

# Cleanup moves the low mark, and reads below it are refused.
DECLARE @m binary(10) = sys.fn_cdc_get_max_lsn(); EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_t', @low_water_mark = @m; SELECT CASE WHEN sys.fn_cdc_get_min_lsn('dbo_t') = @m THEN 1 ELSE 0 END, (SELECT COUNT(*) FROM cdc.dbo_t_CT WHERE [__$start_lsn] < @m)
=> 1 | 0

DECLARE @m binary(10) = sys.fn_cdc_get_min_lsn('dbo_t'), @e binary(10) = sys.fn_cdc_get_max_lsn(); SET @m = sys.fn_cdc_decrement_lsn(@m); SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_dbo_t(@m, @e, 'all')
!> 313

EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'dbo_t', @low_water_mark = 0x00000001000000010001
!> 22964

EXEC sys.sp_cdc_cleanup_change_table @capture_instance = N'unknown', @low_water_mark = NULL
!> 22960

EXEC sys.sp_cdc_disable_table N'dbo', N't', N'unknown'
!> 22960

EXEC sys.sp_cdc_disable_table N'dbo', N'nothing', N'all'
!> 22931

EXEC sys.sp_cdc_enable_table N'dbo', N'nothing', NULL
!> 22931

EXEC sys.sp_cdc_enable_table N'dbo', N't'
!> 201

EXEC sys.sp_cdc_disable_table N'dbo', N't', N't2'

SELECT * FROM cdc.t2_CT
!> 208

DROP TABLE dbo.t

SELECT * FROM cdc.change_tables

EXEC sys.sp_cdc_enable_db

EXEC sys.sp_cdc_disable_db

SELECT * FROM cdc.change_tables
!> 208

SELECT is_cdc_enabled FROM sys.databases WHERE name = 'shop'
=> 0

EXEC sys.sp_cdc_enable_table N'dbo', N't', NULL
!> 22901

USE master

EXEC sys.sp_cdc_enable_db
!> 22844
