# Queries.
CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY, g int NULL, v varchar(10) NULL)

CREATE TABLE dbo.b (id int NULL, w int NULL)

INSERT dbo.a VALUES (1, 1, 'one'), (2, 1, 'two'), (3, NULL, 'three'), (4, NULL, NULL), (5, 2, 'five')

INSERT dbo.b VALUES (1, 10), (1, 11), (3, 30), (NULL, 99)

SELECT id FROM dbo.a WHERE id NOT IN (SELECT id FROM dbo.b)

SELECT id FROM dbo.a WHERE NOT EXISTS (SELECT * FROM dbo.b WHERE b.id = a.id) ORDER BY id
=> 2
=> 4
=> 5

SELECT a.id, b.w FROM dbo.a LEFT JOIN dbo.b ON a.id = b.id AND b.w > 10 ORDER BY a.id, b.w
=> 1 | 11
=> 2 | NULL
=> 3 | 30
=> 4 | NULL
=> 5 | NULL

SELECT a.id, b.w FROM dbo.a LEFT JOIN dbo.b ON a.id = b.id AND a.id = 3 WHERE a.id IN (1, 3) ORDER BY a.id
=> 1 | NULL
=> 3 | 30

SELECT a.id, b.w FROM dbo.a FULL JOIN dbo.b ON a.id = b.id WHERE a.id IS NULL OR b.w IS NULL ORDER BY a.id, b.w
=> NULL | 99
=> 2 | NULL
=> 4 | NULL
=> 5 | NULL

SELECT g, COUNT(*), COUNT(v), MAX(v) FROM dbo.a GROUP BY g ORDER BY g
=> NULL | 2 | 1 | 'three'
=> 1 | 2 | 2 | 'two'
=> 2 | 1 | 1 | 'five'

SELECT g, COUNT(*) FROM dbo.a GROUP BY ROLLUP (g) ORDER BY GROUPING(g), g
=> NULL | 2
=> 1 | 2
=> 2 | 1
=> NULL | 5

SELECT COUNT(*) FROM dbo.a WHERE 1 = 0
=> 0

SELECT COUNT(*) FROM dbo.a WHERE 1 = 0 GROUP BY g

SELECT SUM(id) FROM dbo.a HAVING COUNT(*) > 100

SELECT v, COUNT(*) FROM dbo.a
!> 8120

SELECT id FROM dbo.a WHERE COUNT(*) > 1
!> 147

SELECT TOP (2) WITH TIES id, g FROM dbo.a ORDER BY g DESC
=> 5 | 2
=> 1 | 1
=> 2 | 1

SELECT TOP (50) PERCENT id FROM dbo.a ORDER BY id
=> 1
=> 2
=> 3

SELECT TOP (2) WITH TIES id FROM dbo.a
!> 1062

SELECT TOP (-1) id FROM dbo.a
!> 127

SELECT id FROM dbo.a ORDER BY id OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
=> 2
=> 3

SELECT id FROM dbo.a ORDER BY id OFFSET -1 ROWS
!> 10742

SELECT id AS x FROM dbo.a WHERE id < 3 UNION SELECT w FROM dbo.b ORDER BY x DESC
=> 99
=> 30
=> 11
=> 10
=> 2
=> 1

SELECT id FROM dbo.a UNION ALL SELECT id, w FROM dbo.b
!> 205

SELECT id FROM dbo.a UNION SELECT id FROM dbo.b ORDER BY v
!> 104

SELECT id FROM dbo.b EXCEPT SELECT id FROM dbo.a
=> NULL

SELECT id FROM dbo.b INTERSECT SELECT id FROM dbo.a ORDER BY 1
=> 1
=> 3

SELECT DISTINCT g FROM dbo.a ORDER BY id
!> 145

SELECT id FROM dbo.a ORDER BY 2
!> 108

SELECT id, (SELECT MAX(w) FROM dbo.b WHERE b.id = a.id) FROM dbo.a WHERE id < 3 ORDER BY id
=> 1 | 11
=> 2 | NULL

SELECT id, (SELECT w FROM dbo.b WHERE b.id = a.id) FROM dbo.a
!> 512

SELECT id FROM dbo.a WHERE id > ALL (SELECT id FROM dbo.b WHERE id IS NOT NULL) ORDER BY id
=> 4
=> 5

SELECT id FROM dbo.a WHERE id = ANY (SELECT id FROM dbo.b) ORDER BY id
=> 1
=> 3

WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT SUM(i) FROM n
=> 15

WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n
!> 530

WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 200) SELECT COUNT(*) FROM n OPTION (MAXRECURSION 0)
=> 200

WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1.5 FROM n WHERE i < 5) SELECT SUM(i) FROM n
!> 240

SELECT a.id, x.w FROM dbo.a CROSS APPLY (SELECT TOP (1) w FROM dbo.b WHERE b.id = a.id ORDER BY w DESC) x ORDER BY a.id
=> 1 | 11
=> 3 | 30

SELECT a.id, x.w FROM dbo.a OUTER APPLY (SELECT TOP (1) w FROM dbo.b WHERE b.id = a.id ORDER BY w DESC) x WHERE a.id < 3 ORDER BY a.id
=> 1 | 11
=> 2 | NULL

SELECT id, SUM(id) OVER (ORDER BY g), SUM(id) OVER (ORDER BY g ROWS UNBOUNDED PRECEDING), SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING), LAST_VALUE(id) OVER (ORDER BY g) FROM dbo.a WHERE id IN (1, 2, 5) ORDER BY id
=> 1 | 3 | 1 | 3 | 2
=> 2 | 3 | 3 | 8 | 2
=> 5 | 8 | 8 | 7 | 5

SELECT id, ROW_NUMBER() OVER (PARTITION BY g ORDER BY id DESC), RANK() OVER (ORDER BY g), DENSE_RANK() OVER (ORDER BY g), NTILE(2) OVER (ORDER BY id), LAG(id, 1, 0) OVER (ORDER BY id), LEAD(v) OVER (ORDER BY id) FROM dbo.a ORDER BY id
=> 1 | 2 | 3 | 2 | 1 | 0 | 'two'
=> 2 | 1 | 3 | 2 | 1 | 1 | 'three'
=> 3 | 2 | 1 | 1 | 1 | 2 | NULL
=> 4 | 1 | 1 | 1 | 2 | 3 | 'five'
=> 5 | 1 | 5 | 3 | 2 | 4 | NULL

SELECT id FROM dbo.a WHERE ROW_NUMBER() OVER (ORDER BY id) = 1
!> 4108

SELECT ROW_NUMBER() OVER () FROM dbo.a
!> 4112

SELECT ROW_NUMBER() OVER (ORDER BY 1) FROM dbo.a
!> 5308

SELECT SUBSTRING('hello', 0, 3), SUBSTRING('hello', -1, 3), SUBSTRING('hello', 4, 10), LEFT('hello', 0), RIGHT('hello', 2), SUBSTRING('hello', 10, 1)
=> 'he' | 'h' | 'lo' | '' | 'lo' | ''

SELECT SUBSTRING('hello', 2, -1)
!> 537

SELECT LEFT('hello', -1)
!> 537

SELECT CHARINDEX('l', 'hello'), CHARINDEX('l', 'hello', 4), CHARINDEX('z', 'hello'), CHARINDEX('', 'hello'), PATINDEX('%l_o%', 'hello'), STUFF('hello', 2, 3, 'X'), STUFF('hello', 6, 1, 'X'), STUFF('hello', 0, 1, 'X')
=> 3 | 4 | 0 | 0 | 3 | 'hXo' | NULL | NULL

SELECT REPLACE('aAa', 'A', 'b'), REPLICATE('ab', 0), REPLICATE('ab', -1), REVERSE('abc'), SPACE(2) + 'x', CONCAT('a', NULL, 1), CONCAT_WS('-', 'a', NULL, 'b'), TRANSLATE('[x]', '[]', '()'), QUOTENAME('a]b'), LTRIM('  a'), TRIM('x' FROM 'xax')
=> 'bbb' | '' | NULL | 'cba' | '  x' | 'a1' | 'a-b' | '(x)' | '[a]]b]' | 'a' | 'a'

SELECT STRING_AGG(v, ',') WITHIN GROUP (ORDER BY id DESC) FROM dbo.a
=> 'five,three,two,one'

SELECT value FROM STRING_SPLIT('a,,b', ',')
=> 'a'
=> ''
=> 'b'

SELECT CASE WHEN 'a_c' LIKE 'a[_]c' THEN 1 ELSE 0 END, CASE WHEN 'abc' LIKE 'a_c' THEN 1 ELSE 0 END, CASE WHEN 'a%c' LIKE 'a!%c' ESCAPE '!' THEN 1 ELSE 0 END, CASE WHEN 'b' LIKE '[^a-c]' THEN 1 ELSE 0 END, CASE WHEN NULL LIKE '%' THEN 1 ELSE 0 END
=> 1 | 1 | 1 | 0 | 0

SELECT ASCII(''), CHAR(256), CHAR(65), UNICODE(N'é'), NCHAR(233), STR(123.456, 6, 2), STR(12345, 3), LEN(''), UPPER('straße')
=> NULL | NULL | 'A' | 233 | 'é' | '123.46' | '***' | 0 | 'STRAßE'

SELECT a.nope FROM dbo.a
!> 207

SELECT z.id FROM dbo.a
!> 4104

SELECT id FROM dbo.a, dbo.b
!> 209

SELECT * FROM dbo.nope
!> 208

SELECT nope(1)
!> 195

SELECT dbo.nope(1)
!> 4121

SELEC 1
!> 2812

SELECT 1 FROM
!> 102

SELECT @x
!> 137

SELECT LEN()
!> 174

SELECT id AS x FROM dbo.a WHERE x = 1
!> 207

SELECT a.id FROM dbo.a JOIN dbo.b ON a.id = b.id JOIN dbo.a ON a.id = 1
!> 1013

SELECT * FROM (SELECT 1) x
!> 8155

SELECT * FROM (SELECT 1 AS a, 2 AS a) x
!> 8156

SELECT x.a, x.b FROM (VALUES (1, 'p'), (2, NULL)) x (a, b) ORDER BY x.a
:> int, varchar(1) null
=> 1 | 'p'
=> 2 | NULL

SELECT * FROM (VALUES (1), (1, 2)) x (a)
!> 10709

SELECT * FROM (SELECT id FROM dbo.a ORDER BY id) x
!> 1033

SELECT COUNT(DISTINCT g), SUM(DISTINCT g) FROM dbo.a
=> 2 | 3

SELECT id FROM dbo.a WHERE v > 'one' OR v IS NULL ORDER BY v DESC, id
=> 2
=> 3
=> 4

SELECT g, SUM(id) FROM dbo.a GROUP BY g HAVING SUM(id) > 5 ORDER BY SUM(id) DESC
=> NULL | 7

SELECT id / 0 FROM dbo.a WHERE 1 = 0

SELECT EXISTS (SELECT 1)
!> 102

SELECT 1 = 1
!> 102

UPDATE a SET v = 'U' + v FROM dbo.a a JOIN dbo.b b ON a.id = b.id

SELECT v FROM dbo.a WHERE id IN (1, 3, 4) ORDER BY id
=> 'Uone'
=> 'Uthree'
=> NULL

DELETE TOP (1) FROM dbo.b WHERE w > 10 OUTPUT deleted.w
!> 102

UPDATE dbo.b SET w += 1, id = w OUTPUT deleted.w, inserted.w, inserted.id WHERE w = 30
=> 30 | 31 | 30

DECLARE @v int = 5; UPDATE dbo.b SET @v = w = w + @v WHERE w = 31; SELECT @v
=> 36

MERGE dbo.b AS t USING (VALUES (1), (1)) s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET w = 0;
!> 8672

MERGE dbo.b AS t USING (VALUES (7)) s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, w) VALUES (s.id, 1) OUTPUT $action, inserted.id
!> 10713

MERGE dbo.b AS t USING (VALUES (7)) s (id) ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, w) VALUES (s.id, 1) OUTPUT $action, inserted.id, deleted.id;
=> 'INSERT' | 7 | NULL

SELECT PIVOTED.[1], PIVOTED.[2] FROM (SELECT g, id FROM dbo.a) s PIVOT (SUM(id) FOR g IN ([1], [2])) AS PIVOTED
!> 50000
