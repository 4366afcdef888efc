# PARSE reads as its culture writes, and is no CAST.
SELECT PARSE('' AS int)
!> 9819

SELECT TRY_PARSE('' AS int), TRY_PARSE('x' AS date), TRY_PARSE('12' AS int), TRY_CAST('' AS int)
:> int null, date null, int null, int null
=> NULL | NULL | 12 | 0

SELECT PARSE('1,234.5' AS decimal(8, 2) USING 'en-US'), PARSE('$2.50' AS money), PARSE('(3)' AS money), PARSE('12.00' AS int)
=> 1234.50 | 2.5000 | -3.0000 | 12

SELECT PARSE('Monday, 13 December 2010' AS date USING 'en-us'), PARSE('12/13/2010' AS datetime2(0))
=> 2010-12-13 | 2010-12-13 00:00:00

SELECT PARSE('13/12/2010' AS date)
!> 9819

SELECT PARSE('13/12/2010' AS date USING 'el-GR')
!> 50000

SELECT TRY_PARSE('13/12/2010' AS date USING 'el-GR')
!> 50000

SELECT PARSE('x' AS varchar(3))
!> 10761

SELECT PARSE(1 AS int)
!> 8116

SELECT PARSE(NULL AS int)
!> 8116

DECLARE @s varchar(10); SELECT PARSE(@s AS int)
=> NULL

SELECT PARSE('1')
!> 102

# Bits bind as sums do, from left to right.
SELECT 4 & 2 + 1, 1 | 2 + 4, 6 ^ 3 - 1, 2 * 3 & 4
=> 1 | 7 | 4 | 4

# Grouping sets are groups of each set, one after the other.
CREATE TABLE dbo.sales (region varchar(9) NOT NULL, item varchar(9) NULL, amount int NOT NULL)

INSERT dbo.sales VALUES ('north', 'pen', 1), ('north', 'ink', 2), ('south', 'pen', 4), ('south', NULL, 8)

SELECT region, item, SUM(amount) AS total, GROUPING(region) AS r, GROUPING(item) AS i, GROUPING_ID(region, item) AS both FROM dbo.sales GROUP BY ROLLUP (region, item) ORDER BY both, region, item
:> varchar(9) null, varchar(9) null, int null, tinyint, tinyint, int null
=> 'north' | 'ink' | 2 | 0 | 0 | 0
=> 'north' | 'pen' | 1 | 0 | 0 | 0
=> 'south' | NULL | 8 | 0 | 0 | 0
=> 'south' | 'pen' | 4 | 0 | 0 | 0
=> 'north' | NULL | 3 | 0 | 1 | 1
=> 'south' | NULL | 12 | 0 | 1 | 1
=> NULL | NULL | 15 | 1 | 1 | 3

SELECT region, item, COUNT(*) FROM dbo.sales GROUP BY CUBE (region, item) HAVING GROUPING(region) = 1 ORDER BY 3, 2
=> NULL | NULL | 1
=> NULL | 'ink' | 1
=> NULL | 'pen' | 2
=> NULL | NULL | 4

SELECT ISNULL(region, 'all') AS region, SUM(amount) FROM dbo.sales GROUP BY GROUPING SETS ((region), ()) ORDER BY 1
=> 'all' | 15
=> 'north' | 3
=> 'south' | 12

SELECT region, item, SUM(amount) FROM dbo.sales WHERE item = 'pen' GROUP BY region, ROLLUP (item) ORDER BY 1, 2
=> 'north' | NULL | 1
=> 'north' | 'pen' | 1
=> 'south' | NULL | 4
=> 'south' | 'pen' | 4

SELECT region, SUM(amount) FROM dbo.sales GROUP BY region WITH ROLLUP ORDER BY GROUPING(region), region
=> 'north' | 3
=> 'south' | 12
=> NULL | 15

SELECT UPPER(region) + '!', MAX(amount) FROM dbo.sales GROUP BY GROUPING SETS (UPPER(region), ROLLUP (UPPER(region))) ORDER BY 1
=> NULL | 8
=> 'NORTH!' | 2
=> 'NORTH!' | 2
=> 'SOUTH!' | 8
=> 'SOUTH!' | 8

SELECT region, GROUPING(region) FROM dbo.sales GROUP BY region ORDER BY 1
=> 'north' | 0
=> 'south' | 0

SELECT COUNT(*) FROM dbo.sales GROUP BY ()
=> 4

SELECT GROUPING(item) FROM dbo.sales GROUP BY region
!> 8161

SELECT amount FROM dbo.sales GROUP BY ROLLUP (region)
!> 8120

SELECT region, RANK() OVER (ORDER BY SUM(amount)) FROM dbo.sales GROUP BY ROLLUP (region)
!> 50000

SELECT region, (SELECT MAX(s.amount) FROM dbo.sales s WHERE s.region = o.region) FROM dbo.sales o GROUP BY ROLLUP (region)
!> 50000

SELECT region, SUM(amount) FROM dbo.sales WHERE 1 = 0 GROUP BY ROLLUP (region)
!> 50000

# One version, wherever it is told.
SELECT CASE WHEN @@VERSION LIKE '% - ' + CAST(SERVERPROPERTY('ProductVersion') AS varchar(30)) + ' %' THEN 1 END, @@MICROSOFTVERSION / 0x1000000, CAST(SERVERPROPERTY('ProductBuild') AS int) - @@MICROSOFTVERSION % 65536
=> 1 | 16 | 0
