# Change data capture: arguments and refusals of its procedures, roles, wide tables, jobs.
EXEC sys.sp_cdc_enable_table N'dbo', N't', NULL
!> 22901

EXEC sys.sp_cdc_help_change_data_capture
!> 22901

EXEC sys.sp_cdc_enable_db

SELECT name FROM sys.schemas WHERE name = 'cdc'
=> 'cdc'

CREATE TABLE dbo.nokey (x int NULL, y int NULL)

EXEC sys.sp_cdc_enable_table N'dbo', N'nokey', NULL, @supports_net_changes = 1
!> 22939

EXEC sys.sp_cdc_enable_table N'dbo', N'nokey', NULL, @captured_column_list = N'x, nope'
!> 207

EXEC sys.sp_cdc_enable_table N'dbo', N'nokey', NULL, @index_name = N'nope'
!> 22940

EXEC sys.sp_cdc_enable_table N'dbo', N'nokey', NULL, @nonsense = 1
!> 8145

EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'nokey', @role_name = N'newrole', @captured_column_list = N'[x]'

SELECT name FROM sys.database_principals WHERE name = 'newrole'
=> 'newrole'

SELECT supports_net_changes, role_name, index_name FROM cdc.change_tables
=> 0 | 'newrole' | NULL

INSERT dbo.nokey VALUES (1, 1), (1, 1)

UPDATE TOP (1) dbo.nokey SET y = 2

UPDATE dbo.nokey SET x = 2

DELETE dbo.nokey

EXEC fake.run_capture

SELECT [__$operation], x FROM cdc.dbo_nokey_CT ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]
=> 2 | 1
=> 2 | 1
=> 3 | 1
=> 4 | 2
=> 3 | 1
=> 4 | 2
=> 1 | 2
=> 1 | 2

SELECT x FROM cdc.fn_cdc_get_net_changes_dbo_nokey(0x00, 0x01, 'all')
!> 208

# Nine columns: masks of two bytes.
CREATE TABLE dbo.wide (k int PRIMARY KEY, c2 int, c3 int, c4 int, c5 int, c6 int, c7 int, c8 int, c9 int)

EXEC sys.sp_cdc_enable_table N'dbo', N'wide', NULL

INSERT dbo.wide (k) VALUES (1)

UPDATE dbo.wide SET c9 = 1

UPDATE dbo.wide SET c8 = 1, c2 = 1

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal('dbo_wide', 'c9'), [__$update_mask]), sys.fn_cdc_has_column_changed('dbo_wide', 'c8', [__$update_mask]) FROM cdc.dbo_wide_CT WHERE [__$operation] <> 3 ORDER BY [__$start_lsn], [__$seqval]
=> 2 | 0x01FF | 1 | 1
=> 4 | 0x0100 | 1 | 0
=> 4 | 0x0082 | 0 | 1

SELECT [__$operation], [__$update_mask] FROM cdc.fn_cdc_get_net_changes_dbo_wide(sys.fn_cdc_get_min_lsn('dbo_wide'), sys.fn_cdc_get_max_lsn(), 'all with mask')
=> 2 | NULL

DECLARE @f binary(10) = (SELECT MIN([__$start_lsn]) FROM cdc.dbo_wide_CT WHERE [__$operation] = 4); SELECT [__$operation], [__$update_mask], k, c2, c9 FROM cdc.fn_cdc_get_net_changes_dbo_wide(@f, sys.fn_cdc_get_max_lsn(), 'all with mask')
=> 4 | 0x0182 | 1 | 1 | 1

# Back to what it was: the net change is still an update.
UPDATE dbo.wide SET c3 = 5

UPDATE dbo.wide SET c3 = NULL

EXEC fake.run_capture

DECLARE @f binary(10) = (SELECT MIN([__$start_lsn]) FROM cdc.dbo_wide_CT WHERE c3 = 5); SELECT [__$operation], k, c3 FROM cdc.fn_cdc_get_net_changes_dbo_wide(@f, sys.fn_cdc_get_max_lsn(), 'all')
=> 4 | 1 | NULL

# A transaction of several statements is one position, in order of commands; a rollback leaves nothing.
BEGIN TRAN; INSERT dbo.wide (k) VALUES (2); UPDATE dbo.wide SET c2 = 9 WHERE k = 2; SAVE TRAN s; DELETE dbo.wide WHERE k = 2; ROLLBACK TRAN s; UPDATE dbo.wide SET c2 = 10 WHERE k = 2; COMMIT

BEGIN TRAN; INSERT dbo.wide (k) VALUES (3); ROLLBACK

EXEC fake.run_capture

SELECT [__$operation], k, c2 FROM cdc.dbo_wide_CT WHERE k IN (2, 3) ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]
=> 2 | 2 | NULL
=> 3 | 2 | NULL
=> 4 | 2 | 9
=> 3 | 2 | 9
=> 4 | 2 | 10

SELECT COUNT(DISTINCT [__$start_lsn]) FROM cdc.dbo_wide_CT WHERE k = 2
=> 1

# What is not committed is not captured, and an older commit keeps its place.
@b BEGIN TRAN; INSERT dbo.wide (k) VALUES (50)

INSERT dbo.wide (k) VALUES (51)

EXEC fake.run_capture

@b COMMIT

EXEC fake.run_capture

SELECT k FROM cdc.dbo_wide_CT WHERE k >= 50 ORDER BY [__$start_lsn]
=> 51
=> 50

# A failed statement within a transaction leaves no change.
BEGIN TRAN; INSERT dbo.wide (k) VALUES (60), (1); INSERT dbo.wide (k) VALUES (61); COMMIT
!> 2627

EXEC fake.run_capture

SELECT k FROM cdc.dbo_wide_CT WHERE k >= 60
=> 61

# Change tables and the mapping are rows like others to sysadmin, functions are for whom they are.
SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id IS NULL
=> 0

SELECT TYPE_NAME(user_type_id), max_length, is_nullable FROM sys.columns WHERE object_id = OBJECT_ID('cdc.dbo_wide_CT') AND name LIKE '[_][_]$%' ORDER BY column_id
=> 'binary' | 10 | 0
=> 'binary' | 10 | 1
=> 'binary' | 10 | 0
=> 'int' | 4 | 0
=> 'varbinary' | 128 | 1
=> 'int' | 4 | 1

SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 'wide'
=> 1

EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = 0
!> 22994

EXEC sys.sp_cdc_change_job @job_type = N'nope'
!> 22891

EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = -1
!> 22992

SELECT job_type, maxtrans, maxscans, continuous, pollinginterval, retention, threshold FROM msdb.dbo.cdc_jobs ORDER BY job_type
=> 'capture' | 500 | 10 | 1 | 5 | 0 | 0
=> 'cleanup' | 0 | 0 | 0 | 0 | 4320 | 5000

# Types that change tables hold: a row version as eight bytes, computed columns refused.
CREATE TABLE dbo.odd (k int PRIMARY KEY, r rowversion, m varchar(max) NULL, c AS k + 1)

EXEC sys.sp_cdc_enable_table N'dbo', N'odd', NULL, @captured_column_list = N'k, r, m'

INSERT dbo.odd (k, m) VALUES (1, REPLICATE(CAST('x' AS varchar(max)), 9000))

UPDATE dbo.odd SET k = k WHERE k = 1

EXEC fake.run_capture

SELECT [__$operation], k, DATALENGTH(r), LEN(m) FROM cdc.dbo_odd_CT WHERE [__$operation] = 2
=> 2 | 1 | 8 | 9000

UPDATE dbo.odd SET m = 'short' WHERE k = 1

EXEC fake.run_capture

SELECT [__$operation], LEN(m) FROM cdc.dbo_odd_CT WHERE [__$start_lsn] = sys.fn_cdc_get_max_lsn() ORDER BY [__$operation]
=> 3 | 9000
=> 4 | 5

# The capture table's own copy follows ALTER COLUMN of a captured column.
CREATE TABLE dbo.grow (k int PRIMARY KEY, v varchar(5) NULL)

EXEC sys.sp_cdc_enable_table N'dbo', N'grow', NULL

INSERT dbo.grow VALUES (1, 'abc')

ALTER TABLE dbo.grow ALTER COLUMN v varchar(20) NULL

INSERT dbo.grow VALUES (2, 'longer than five')

EXEC fake.run_capture

SELECT k, v FROM cdc.dbo_grow_CT ORDER BY k
:> int null, varchar(20) null
=> 1 | 'abc'
=> 2 | 'longer than five'

ALTER TABLE dbo.grow DROP COLUMN v

UPDATE dbo.grow SET k = 3 WHERE k = 1

EXEC fake.run_capture

SELECT [__$operation], k, v FROM cdc.dbo_grow_CT WHERE [__$start_lsn] = sys.fn_cdc_get_max_lsn() ORDER BY [__$operation]
=> 1 | 1 | NULL
=> 2 | 3 | NULL

ALTER TABLE dbo.grow ADD v int NULL

UPDATE dbo.grow SET v = 5 WHERE k = 3

EXEC fake.run_capture

SELECT COUNT(*) FROM cdc.dbo_grow_CT WHERE k = 3 AND [__$operation] > 2
=> 0

DROP INDEX PK_nope ON dbo.grow
!> 3701

EXEC sys.sp_cdc_drop_job N'cleanup'

EXEC sys.sp_cdc_add_job N'cleanup'

EXEC sys.sp_cdc_add_job N'cleanup'
!> 22835
