# What cannot be read: near a keyword, near anything else, a WITH without its semicolon.
SELECT FROM dbo.t
!> 156

SELECT 1 +
!> 102

SELECT 1 )
!> 102

SELECT 1 a b
!> 102

UPDATE dbo.t SET
!> 102

SELECT 1 WITH c AS (SELECT 1 AS a) SELECT a FROM c
!> 319

DECLARE @a int = 1 WITH c AS (SELECT 1 AS a) SELECT a FROM c
!> 319

SELECT name FROM sys.tables AS t WITH c AS (SELECT 1 AS a) SELECT a FROM c
!> 336

SELECT name FROM sys.tables WHERE 1 = 1 WITH c AS (SELECT 1 AS a) SELECT a FROM c
!> 319

BEGIN WITH c AS (SELECT 1 AS a) SELECT a FROM c END
=> 1

SELECT 1; WITH c AS (SELECT 2 AS a) SELECT a FROM c
=> 1
=> 2

IF 1 SELECT 2
!> 4145

SELECT 1 WHERE 1
!> 4145

SELECT CASE WHEN 1 THEN 2 END
!> 4145

SELECT 1 WHERE NOT (SELECT 1)
!> 4145

# What a server has and this one does not is refused by name; what nobody has does not exist.
SELECT PARSENAME('a.b', 1)
!> 50000

SELECT JSON_VALUE('{}', '$.a')
!> 50000

SELECT NO_SUCH_FUNCTION(1)
!> 195

# A column that something needs: each that does, and what it comes to.
CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, a int NULL CONSTRAINT df_a DEFAULT 1, b varchar(5) NULL, c AS b + 'x', d int NULL CONSTRAINT ck_d CHECK (d > 0), e int NULL, f int NULL)

CREATE INDEX ix_a ON dbo.t (a) INCLUDE (b)

CREATE INDEX ix_b ON dbo.t (b)

ALTER TABLE dbo.t DROP COLUMN id
!> 5074
!> 4922

ALTER TABLE dbo.t DROP COLUMN a
!> 5074
!> 5074
!> 4922

ALTER TABLE dbo.t DROP COLUMN b
!> 5074
!> 5074
!> 5074
!> 4922

ALTER TABLE dbo.t DROP COLUMN d
!> 5074
!> 4922

BEGIN TRY ALTER TABLE dbo.t DROP COLUMN d END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH
=> 4922

ALTER TABLE dbo.t DROP COLUMN e

ALTER TABLE dbo.t ALTER COLUMN id bigint NOT NULL
!> 5074
!> 4922

ALTER TABLE dbo.t ALTER COLUMN a bigint
!> 5074
!> 5074
!> 4922

ALTER TABLE dbo.t ALTER COLUMN b varchar(9)
!> 5074
!> 4922

EXEC sp_rename 'dbo.t.d', 'dd', 'COLUMN'
!> 15336

EXEC sp_rename 'dbo.t.f', 'g', 'COLUMN'

ALTER TABLE dbo.t DROP CONSTRAINT ck_d

ALTER TABLE dbo.t DROP COLUMN d

ALTER TABLE dbo.t DROP COLUMN c

ALTER TABLE dbo.t ALTER COLUMN b varchar(9)

DROP INDEX ix_b ON dbo.t

SELECT name FROM sys.columns WHERE object_id = OBJECT_ID('dbo.t') ORDER BY column_id
=> 'id'
=> 'a'
=> 'b'
=> 'g'

# A computed column that cannot be computed of the rows that are there is not added.
CREATE TABLE dbo.z (a int NOT NULL)

INSERT dbo.z VALUES (0)

ALTER TABLE dbo.z ADD q AS 1 / a
!> 8134

SELECT * FROM dbo.z
=> 0

UPDATE dbo.z SET a = 2

ALTER TABLE dbo.z ADD q AS 10 / a

INSERT dbo.z VALUES (0)
!> 8134

EXEC sp_rename 'dbo.z.q', 'r', 'COLUMN'

ALTER TABLE dbo.z DROP COLUMN r

INSERT dbo.z VALUES (0)

# What a result would be, column by column.
EXEC sp_describe_first_result_set N'SELECT id, N''é'' COLLATE Greek_CI_AS AS g FROM dbo.t'
:> bit, int, nvarchar(128) null, bit, int, nvarchar(256) null, smallint, tinyint, tinyint, nvarchar(128) null, int null, nvarchar(128) null, nvarchar(128) null, nvarchar(128) null, nvarchar(4000) null, int null, nvarchar(128) null, nvarchar(128) null, nvarchar(128) null, bit, bit, bit, nvarchar(128) null, nvarchar(128) null, nvarchar(128) null, nvarchar(128) null, nvarchar(128) null, bit, bit null, bit, bit, bit, smallint null, smallint null, smallint null, int null, int null, int null, tinyint null
=> 0 | 1 | 'id' | 0 | 56 | 'int' | 4 | 10 | 0 | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | 0 | 0 | 0 | NULL | NULL | NULL | NULL | NULL | 0 | NULL | 1 | 0 | 0 | NULL | NULL | NULL | 56 | 4 | NULL | NULL
=> 0 | 2 | 'g' | 0 | 231 | 'nvarchar(1)' | 2 | 0 | 0 | 'Greek_CI_AS' | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | 0 | 0 | 0 | NULL | NULL | NULL | NULL | NULL | 0 | NULL | 0 | 1 | 0 | NULL | NULL | NULL | 231 | 2 | 13632520 | 0
