# Catalogue views and what a login without rights sees.
CREATE TABLE dbo.m (i int NOT NULL, n nvarchar(10) NULL, nm nvarchar(max) NULL, d decimal(10,2) NOT NULL, f float NULL, r real NULL, d2 datetime2(3) NULL, t time(7) NULL, b varbinary(16) NULL, c char(5) NOT NULL, bi bit NULL, u uniqueidentifier NULL, mo money NULL, x AS i + 1, CONSTRAINT pk_m PRIMARY KEY (i))

SELECT name, TYPE_NAME(user_type_id), max_length, precision, scale, is_nullable, is_computed FROM sys.columns WHERE object_id = OBJECT_ID('dbo.m') ORDER BY column_id
:> nvarchar(128) null, nvarchar(128) null, smallint, tinyint, tinyint, bit null, bit
=> 'i' | 'int' | 4 | 10 | 0 | 0 | 0
=> 'n' | 'nvarchar' | 20 | 0 | 0 | 1 | 0
=> 'nm' | 'nvarchar' | -1 | 0 | 0 | 1 | 0
=> 'd' | 'decimal' | 9 | 10 | 2 | 0 | 0
=> 'f' | 'float' | 8 | 53 | 0 | 1 | 0
=> 'r' | 'real' | 4 | 24 | 0 | 1 | 0
=> 'd2' | 'datetime2' | 7 | 23 | 3 | 1 | 0
=> 't' | 'time' | 5 | 16 | 7 | 1 | 0
=> 'b' | 'varbinary' | 16 | 0 | 0 | 1 | 0
=> 'c' | 'char' | 5 | 0 | 0 | 0 | 0
=> 'bi' | 'bit' | 1 | 1 | 0 | 1 | 0
=> 'u' | 'uniqueidentifier' | 16 | 0 | 0 | 1 | 0
=> 'mo' | 'money' | 8 | 19 | 4 | 1 | 0
=> 'x' | 'int' | 4 | 10 | 0 | 1 | 1

SELECT COLUMN_NAME, IS_NULLABLE, DATA_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_OCTET_LENGTH, NUMERIC_PRECISION, NUMERIC_PRECISION_RADIX, NUMERIC_SCALE, DATETIME_PRECISION FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 'm' AND COLUMN_NAME <> 'x' ORDER BY ORDINAL_POSITION
=> 'i' | 'NO' | 'int' | NULL | NULL | 10 | 10 | 0 | NULL
=> 'n' | 'YES' | 'nvarchar' | 10 | 20 | NULL | NULL | NULL | NULL
=> 'nm' | 'YES' | 'nvarchar' | -1 | -1 | NULL | NULL | NULL | NULL
=> 'd' | 'NO' | 'decimal' | NULL | NULL | 10 | 10 | 2 | NULL
=> 'f' | 'YES' | 'float' | NULL | NULL | 53 | 2 | NULL | NULL
=> 'r' | 'YES' | 'real' | NULL | NULL | 24 | 2 | NULL | NULL
=> 'd2' | 'YES' | 'datetime2' | NULL | NULL | NULL | NULL | NULL | 3
=> 't' | 'YES' | 'time' | NULL | NULL | NULL | NULL | NULL | 7
=> 'b' | 'YES' | 'varbinary' | 16 | 16 | NULL | NULL | NULL | NULL
=> 'c' | 'NO' | 'char' | 5 | 5 | NULL | NULL | NULL | NULL
=> 'bi' | 'YES' | 'bit' | NULL | NULL | NULL | NULL | NULL | NULL
=> 'u' | 'YES' | 'uniqueidentifier' | NULL | NULL | NULL | NULL | NULL | NULL
=> 'mo' | 'YES' | 'money' | NULL | NULL | 19 | 10 | 4 | NULL

SELECT i, i + 1, n, ISNULL(n, ''), COALESCE(n, ''), d * 2, @@ROWCOUNT, COUNT(*) OVER (), LEN(c), CAST(i AS bigint) FROM dbo.m
:> int, int null, nvarchar(10) null, nvarchar(10), nvarchar(10) null, decimal(12,2) null, int, int, int, bigint null

CREATE LOGIN login_reader WITH PASSWORD = 'Secret-1'

CREATE USER login_reader FOR LOGIN login_reader

@login_reader SELECT name FROM sys.tables

@login_reader SELECT i FROM dbo.m
!> 229

@login_reader SELECT OBJECT_ID('dbo.m')
=> NULL

@login_reader INSERT dbo.m (i, d, c) VALUES (1, 1, 'c')
!> 229

@login_reader CREATE TABLE dbo.q (x int)
!> 262

@login_reader DROP TABLE dbo.m
!> 3701

@login_reader EXEC sys.sp_cdc_enable_db
!> 22902

GRANT SELECT ON dbo.m TO login_reader

@login_reader SELECT i FROM dbo.m

@login_reader SELECT name FROM sys.tables
=> 'm'

@login_reader UPDATE dbo.m SET d = 1
!> 229

DENY SELECT ON dbo.m TO login_reader

@login_reader SELECT i FROM dbo.m
!> 229

REVOKE SELECT ON dbo.m TO login_reader

EXEC sys.sp_cdc_enable_db

CREATE ROLE gate

EXEC sys.sp_cdc_enable_table N'dbo', N'm', @role_name = N'gate', @captured_column_list = N'i, n, d'

INSERT dbo.m (i, d, c) VALUES (1, 1, 'c')

EXEC fake.run_capture

@login_reader EXEC sys.sp_cdc_help_change_data_capture

@login_reader SELECT sys.fn_cdc_get_min_lsn('dbo_m')
=> 0x00000000000000000000

@login_reader DECLARE @a binary(10) = sys.fn_cdc_get_max_lsn(); SELECT i FROM cdc.fn_cdc_get_all_changes_dbo_m(@a, @a, 'all')
!> 229

GRANT SELECT ON dbo.m TO login_reader

ALTER ROLE gate ADD MEMBER login_reader

@login_reader DECLARE @a binary(10) = sys.fn_cdc_get_max_lsn(); SELECT i, n, d FROM cdc.fn_cdc_get_all_changes_dbo_m(@a, @a, 'all')
=> 1 | NULL | 1.00

SELECT column_name, column_ordinal FROM cdc.captured_columns ORDER BY column_ordinal
=> 'i' | 1
=> 'n' | 2
=> 'd' | 3

ALTER TABLE dbo.m DROP COLUMN n

ALTER TABLE dbo.m ALTER COLUMN i bigint NOT NULL
!> 4928

EXEC sp_rename 'dbo.m.d', 'dd', 'COLUMN'
!> 4928

CREATE TABLE dbo.m (x int)
!> 2714

DROP TABLE dbo.nope
!> 3701

DROP TABLE IF EXISTS dbo.nope

CREATE TABLE dbo.w (x int, x int)
!> 2705

ALTER TABLE dbo.m ADD z int NOT NULL
!> 4901

CREATE UNIQUE INDEX u ON dbo.nope (x)
!> 1088

SELECT OBJECT_NAME(OBJECT_ID('dbo.m')), SCHEMA_NAME(1), DB_NAME(), COL_LENGTH('dbo.m', 'c'), COLUMNPROPERTY(OBJECT_ID('dbo.m'), 'i', 'AllowsNull'), TYPE_ID('int')
=> 'm' | 'dbo' | 'shop' | 5 | 0 | 56

USE nowhere
!> 911
