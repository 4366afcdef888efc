# What WITH names is there for every statement that changes rows.
CREATE TABLE dbo.t (id int IDENTITY NOT NULL PRIMARY KEY, k int NOT NULL, v varchar(9) NULL, w AS k * 2)

INSERT dbo.t (k, v) VALUES (1, 'a'), (1, 'b'), (2, 'c'), (3, 'd')

CREATE TABLE dbo.s (k int NOT NULL, v varchar(9) NULL)

INSERT dbo.s VALUES (2, 'two'), (9, 'nine')

# As a source.
WITH x AS (SELECT k, v FROM dbo.s WHERE k = 2) UPDATE t SET v = x.v OUTPUT deleted.v, inserted.v FROM dbo.t AS t JOIN x ON x.k = t.k
=> 'c' | 'two'

WITH x AS (SELECT MAX(id) AS id FROM dbo.t) DELETE FROM dbo.t OUTPUT deleted.* WHERE id IN (SELECT id FROM x)
=> 4 | 3 | 'd' | 6

WITH x AS (SELECT k, v FROM dbo.s), y AS (SELECT k + 1 AS k, v FROM x) MERGE dbo.t AS t USING y ON t.k = y.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND y.k < (SELECT MAX(k) + 5 FROM x) THEN INSERT (k, v) VALUES (y.k, y.v) OUTPUT $action, inserted.k, inserted.v;
=> 'INSERT' | 3 | 'two'
=> 'INSERT' | 10 | 'nine'

WITH x AS (SELECT k FROM dbo.s WHERE k > 2) INSERT dbo.t (k, v) SELECT k, 'new' FROM x

SELECT k, v FROM dbo.t ORDER BY k, v
=> 1 | 'a'
=> 1 | 'b'
=> 2 | 'two'
=> 3 | 'two'
=> 9 | 'new'
=> 10 | 'nine'

# As the target: the rows of its one table change.
WITH twice AS (SELECT id, k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM dbo.t) DELETE FROM twice OUTPUT deleted.k WHERE n > 1
=> 1

WITH top_one (number, text) AS (SELECT TOP (1) k, v FROM dbo.t ORDER BY k DESC) UPDATE top_one SET text = 'last', number += 1 OUTPUT deleted.*, inserted.text
=> 10 | 'nine' | 'last'

WITH c AS (SELECT * FROM dbo.t WHERE k < 3) UPDATE c SET v = s.v + '!' FROM c JOIN dbo.s AS s ON s.k = c.k

WITH c AS (SELECT k AS number, v FROM dbo.t WHERE k > 1) MERGE c USING (VALUES (2, 'x'), (50, 'y')) AS n (k, v) ON c.number = n.k WHEN MATCHED THEN UPDATE SET v = c.v + n.v WHEN NOT MATCHED BY SOURCE AND c.number > 9 THEN DELETE WHEN NOT MATCHED THEN INSERT (number, v) VALUES (n.k, n.v) OUTPUT $action, deleted.number, inserted.number, inserted.v;
=> 'DELETE' | 11 | NULL | NULL
=> 'UPDATE' | 2 | 2 | 'two!x'
=> 'INSERT' | NULL | 50 | 'y'

SELECT k, v FROM dbo.t ORDER BY k
=> 1 | 'a'
=> 2 | 'two!x'
=> 3 | 'two'
=> 9 | 'new'
=> 50 | 'y'

UPDATE d SET v = 'derived' FROM (SELECT id, v FROM dbo.t WHERE k = 50) AS d

SELECT v FROM dbo.t WHERE k = 50
=> 'derived'

# What is no plain selection from one table is refused, and so is a column that it computes.
WITH c AS (SELECT k, COUNT(*) AS n FROM dbo.t GROUP BY k) DELETE FROM c WHERE n > 1
!> 50000

WITH c AS (SELECT DISTINCT k FROM dbo.t) UPDATE c SET k = 1
!> 50000

WITH c AS (SELECT t.k FROM dbo.t AS t JOIN dbo.s AS s ON s.k = t.k) DELETE FROM c
!> 50000

WITH c AS (SELECT k FROM dbo.t UNION ALL SELECT k FROM dbo.s) DELETE FROM c
!> 50000

WITH c AS (SELECT id, k + 1 AS n FROM dbo.t) UPDATE c SET n = 1
!> 4406

WITH c AS (SELECT id FROM dbo.t) UPDATE c SET v = 'x'
!> 207

WITH c AS (SELECT id, k + 1 AS n FROM dbo.t) DELETE FROM c OUTPUT deleted.*
!> 50000

WITH c AS (SELECT k, v FROM dbo.t) INSERT INTO c (k) VALUES (1)
!> 50000

WITH c AS (SELECT MAX(k) AS k FROM dbo.t) INSERT dbo.s (k) VALUES ((SELECT k FROM c))
!> 50000

SELECT COUNT(*) FROM dbo.t
=> 5

# The table's name is hidden by the expression's.
WITH s AS (SELECT id, k FROM dbo.t WHERE k = 9) DELETE FROM s

SELECT (SELECT COUNT(*) FROM dbo.t), (SELECT COUNT(*) FROM dbo.s)
=> 4 | 2

# What cannot be computed is no constraint of anybody's.
CREATE TABLE dbo.quotient (id int NOT NULL PRIMARY KEY, d int NOT NULL, q AS 100 / d)

INSERT dbo.quotient VALUES (1, 0)
!> 8134

SELECT name FROM sys.objects WHERE parent_object_id = OBJECT_ID('dbo.quotient') AND type <> 'PK'

SELECT (SELECT COUNT(*) FROM sys.check_constraints), (SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS WHERE CONSTRAINT_TYPE = 'CHECK')
=> 0 | 0
