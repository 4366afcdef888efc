# More queries: edges of names, grouping, ordering, changes through joins.
CREATE TABLE dbo.o (id int NOT NULL PRIMARY KEY, c int NULL, amt decimal(10,2) NULL, d datetime2(3) NULL, n nvarchar(20) COLLATE Latin1_General_CS_AS NULL)

INSERT dbo.o VALUES (1, 1, 10.5, '2024-01-01', N'a'), (2, 1, 20, '2024-01-02', N'A'), (3, 2, NULL, NULL, N'b'), (4, NULL, 5, '2024-01-04', N'')

SELECT n, COUNT(*) FROM dbo.o GROUP BY n ORDER BY n
=> '' | 1
=> 'a' | 1
=> 'A' | 1
=> 'b' | 1

SELECT id FROM dbo.o WHERE n = N'A'
=> 2

SELECT id FROM dbo.o WHERE n = N'A' COLLATE Latin1_General_CI_AS ORDER BY id
=> 1
=> 2

SELECT c, SUM(amt), AVG(amt) FROM dbo.o GROUP BY c ORDER BY c
:> int null, decimal(38,2) null, decimal(38,6) null
=> NULL | 5.00 | 5.000000
=> 1 | 30.50 | 15.250000
=> 2 | NULL | NULL

SELECT c + 1, COUNT(*) FROM dbo.o GROUP BY c + 1 ORDER BY c + 1
=> NULL | 1
=> 2 | 2
=> 3 | 1

SELECT id FROM dbo.o GROUP BY c
!> 8120

SELECT * FROM dbo.o GROUP BY c
!> 8120

SELECT c FROM dbo.o GROUP BY c ORDER BY amt
!> 8127

SELECT c FROM dbo.o HAVING c > 1
!> 8120

SELECT MAX(COUNT(*)) FROM dbo.o GROUP BY c
!> 130

SELECT SUM((SELECT 1)) FROM dbo.o
!> 130

SELECT SUM(n) FROM dbo.o
!> 8117

SELECT MAX(CAST(1 AS bit))
!> 8117

SELECT id, SUM(amt) OVER (PARTITION BY c ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM dbo.o ORDER BY id
=> 1 | 10.50
=> 2 | 30.50
=> 3 | NULL
=> 4 | 5.00

SELECT id, SUM(amt) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM dbo.o
!> 4194

SELECT id, FIRST_VALUE(n) OVER (ORDER BY id DESC), COUNT(*) OVER (PARTITION BY c), PERCENT_RANK() OVER (ORDER BY id), CUME_DIST() OVER (ORDER BY c) FROM dbo.o ORDER BY id
=> 1 | '' | 2 | 0 | 0.75
=> 2 | '' | 2 | 0.3333333333333333 | 0.75
=> 3 | '' | 1 | 0.6666666666666666 | 1
=> 4 | '' | 1 | 1 | 0.25

SELECT COUNT(DISTINCT c) OVER () FROM dbo.o
!> 10759

SELECT TOP (1) id FROM dbo.o UNION ALL SELECT id FROM dbo.o ORDER BY id
=> 1
=> 1
=> 2
=> 3
=> 4

SELECT id FROM (SELECT TOP (2) id FROM dbo.o ORDER BY id DESC) x ORDER BY id
=> 3
=> 4

SELECT 1 AS a UNION ALL SELECT '2' UNION ALL SELECT 3.5
:> decimal(11,1)
=> 1.0
=> 2.0
=> 3.5

SELECT 1 UNION SELECT 'x'
=> 1
!> 245

SELECT 1 AS a UNION ALL SELECT 2 EXCEPT SELECT 2
=> 1

SELECT 1 UNION ALL (SELECT 1 INTERSECT SELECT 2)
=> 1

SELECT 2 AS v UNION ALL SELECT 2 INTERSECT SELECT 2
=> 2
=> 2

SELECT NULL AS v UNION SELECT NULL
=> NULL

SELECT CASE WHEN EXISTS (SELECT NULL) THEN 1 ELSE 0 END, CASE WHEN (SELECT NULL) IS NULL THEN 1 END, CASE WHEN 1 = ALL (SELECT 1 WHERE 1 = 0) THEN 1 ELSE 0 END, CASE WHEN 1 = ANY (SELECT 1 WHERE 1 = 0) THEN 1 ELSE 0 END
=> 1 | 1 | 1 | 0

SELECT id FROM dbo.o WHERE c BETWEEN 2 AND 1

SELECT id FROM dbo.o WHERE NOT (c = 1) ORDER BY id
=> 3

SELECT id FROM dbo.o WHERE c <> 1 OR c IS NULL ORDER BY id
=> 3
=> 4

SELECT id FROM dbo.o WHERE c !< 2
=> 3

SELECT id FROM dbo.o WHERE d >= '20240102' AND d < '2024-01-04T00:00:00.001' ORDER BY d DESC
=> 4
=> 2

SELECT id FROM dbo.o WHERE d = 'rubbish'
!> 241

SELECT id FROM dbo.o WHERE amt = '10.50'
=> 1

SELECT id FROM dbo.o WHERE n > 5
!> 245

SELECT id FROM dbo.o WHERE (c, id) = (1, 1)
!> 50000

SELECT id FROM dbo.o WHERE c
!> 4145

SELECT o.*, x.* FROM dbo.o o JOIN (VALUES (1)) x (k) ON x.k = o.id
=> 1 | 1 | 10.50 | 2024-01-01 00:00:00.000 | 'a' | 1

SELECT y.* FROM dbo.o x
!> 107

SELECT dbo.o.id, o.id FROM dbo.o WHERE id = 1
=> 1 | 1

SELECT dbo.o.id FROM dbo.o o
!> 4104

SELECT x.id FROM dbo.o x, dbo.o y WHERE x.id = y.c AND y.id = 3
=> 2

SELECT a.id, b.id FROM dbo.o a LEFT JOIN dbo.o b ON a.c = b.id WHERE b.id IS NULL
=> 4 | NULL

SELECT a.id, b.id, c.id FROM dbo.o a LEFT JOIN (dbo.o b JOIN dbo.o c ON b.id = c.c) ON a.id = b.id ORDER BY a.id, c.id
=> 1 | 1 | 1
=> 1 | 1 | 2
=> 2 | 2 | 3
=> 3 | NULL | NULL
=> 4 | NULL | NULL

SELECT a.id FROM dbo.o a RIGHT JOIN (VALUES (1), (9)) v (k) ON a.id = v.k ORDER BY v.k
=> 1
=> NULL

SELECT COUNT(*) FROM dbo.o a CROSS JOIN dbo.o b
=> 16

SELECT id AS n FROM dbo.o ORDER BY n DESC
=> 4
=> 3
=> 2
=> 1

SELECT id, n FROM dbo.o ORDER BY CASE WHEN id > 2 THEN 0 ELSE 1 END, id
=> 3 | 'b'
=> 4 | ''
=> 1 | 'a'
=> 2 | 'A'

SELECT DISTINCT c FROM dbo.o ORDER BY c DESC
=> 2
=> 1
=> NULL

SELECT id FROM dbo.o ORDER BY id, id
!> 169

SELECT id FROM dbo.o ORDER BY 'x'
!> 408

SELECT TOP (2) c FROM dbo.o ORDER BY c
=> NULL
=> 1

WITH x AS (SELECT id FROM dbo.o), y AS (SELECT id FROM x WHERE id > 2) SELECT COUNT(*) FROM x, y
=> 8

WITH x (a, b) AS (SELECT 1) SELECT * FROM x
!> 8159

WITH x AS (SELECT 1) SELECT * FROM x
!> 8155

WITH x AS (SELECT 1 AS a), x AS (SELECT 2 AS a) SELECT * FROM x
!> 239

SELECT 1 WITH x AS (SELECT 1 AS a) SELECT * FROM x
!> 319

WITH t AS (SELECT 1 AS id, CAST('r' AS varchar(20)) AS p UNION ALL SELECT id + 1, CAST(p + 'x' AS varchar(20)) FROM t WHERE id < 3) SELECT * FROM t ORDER BY id
=> 1 | 'r'
=> 2 | 'rx'
=> 3 | 'rxx'

WITH t AS (SELECT 1 AS id UNION ALL SELECT COUNT(*) FROM t) SELECT * FROM t
!> 467

WITH t AS (SELECT 1 AS id UNION SELECT id + 1 FROM t WHERE id < 3) SELECT * FROM t
!> 252

DECLARE @x int; SELECT @x = id FROM dbo.o ORDER BY id; SELECT @x
=> 4

DECLARE @x int = 7; SELECT @x = id FROM dbo.o WHERE 1 = 0; SELECT @x; SET @x = (SELECT id FROM dbo.o WHERE 1 = 0); SELECT @x
=> 7
=> NULL

DECLARE @s varchar(20) = ''; SELECT @s = @s + n FROM dbo.o ORDER BY id; SELECT @s
=> 'aAb'

DECLARE @x int; SELECT @x = 1, id FROM dbo.o
!> 141

UPDATE dbo.o SET c = id, amt = c WHERE id IN (1, 3); SELECT c, amt FROM dbo.o WHERE id IN (1, 3) ORDER BY id
=> 1 | 1.00
=> 3 | 2.00

UPDATE TOP (1) dbo.o SET c = 0 WHERE id > 100; SELECT @@ROWCOUNT
=> 0

UPDATE dbo.o SET id = 2 WHERE id = 1
!> 2627

UPDATE dbo.o SET id = 5 - id; SELECT COUNT(*) FROM dbo.o
=> 4

DELETE o FROM dbo.o o JOIN (VALUES (1), (1)) v (k) ON v.k = o.id; SELECT @@ROWCOUNT
=> 1

INSERT dbo.o (id) OUTPUT inserted.id, inserted.c SELECT v FROM (VALUES (10), (11)) x (v)
=> 10 | NULL
=> 11 | NULL

DECLARE @out TABLE (i int); DELETE dbo.o OUTPUT deleted.id INTO @out WHERE id > 9; SELECT i FROM @out ORDER BY i
=> 10
=> 11

INSERT dbo.o (id) VALUES (20), ('x')
!> 245

INSERT dbo.o (id) SELECT 2
!> 2627

CREATE TABLE dbo.dflt (a int DEFAULT 5, b int NOT NULL DEFAULT (1 + 1), c datetime2 DEFAULT SYSUTCDATETIME(), CONSTRAINT ck CHECK (a > 0))

INSERT dbo.dflt DEFAULT VALUES

INSERT dbo.dflt (a, b) VALUES (DEFAULT, DEFAULT), (NULL, 7)

SELECT a, b, CASE WHEN c IS NULL THEN 0 ELSE 1 END FROM dbo.dflt
=> 5 | 2 | 1
=> 5 | 2 | 1
=> NULL | 7 | 1

INSERT dbo.dflt (a) VALUES (-1)
!> 547

UPDATE dbo.dflt SET b = NULL
!> 515

CREATE TABLE dbo.uq (a int NULL UNIQUE, b int NULL)

INSERT dbo.uq VALUES (NULL, 1)

INSERT dbo.uq VALUES (NULL, 2)
!> 2627

CREATE UNIQUE INDEX ix ON dbo.uq (b)

INSERT dbo.uq VALUES (3, 1)
!> 2601

CREATE UNIQUE INDEX ix ON dbo.uq (b)
!> 1913

ALTER TABLE dbo.uq ADD b int
!> 2705

ALTER TABLE dbo.uq DROP COLUMN nope
!> 4924

ALTER TABLE dbo.uq DROP COLUMN b
!> 5074
!> 4922

MERGE dbo.uq t USING (SELECT 1 AS k) s ON 1 = 0 WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT (a, b) VALUES (9, 9) OUTPUT $action, deleted.b, inserted.b;
=> 'DELETE' | 1 | NULL
=> 'INSERT' | NULL | 9

MERGE dbo.uq t USING (SELECT 9 AS k) s ON t.a = s.k WHEN MATCHED AND t.b = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET b += 1;

SELECT a, b FROM dbo.uq
=> 9 | 10

MERGE dbo.uq t USING (SELECT 9 AS k) s ON t.a = s.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET b += 1;
!> 5324

TRUNCATE TABLE dbo.uq

SELECT COUNT(*) FROM dbo.uq
=> 0

SELECT v FROM (VALUES (1), (2), (3)) x (v) WHERE v !> 2 AND v !< 2 AND v <> 1 AND v != 3
=> 2
