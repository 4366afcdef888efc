# Types: arithmetic, conversions, comparisons.
SELECT 7 / 2, -7 / 2, 7 % -3, -7 % 3
=> 3 | -3 | 1 | -1

SELECT 7 / 2.0, 1 / 3.0, CAST(1 AS decimal(10,2)) / CAST(3 AS decimal(10,2)), CAST(1 AS decimal(38,10)) / CAST(3 AS decimal(38,10))
=> 3.500000 | 0.333333 | 0.3333333333333 | 0.333333

SELECT CAST(1 AS decimal(38,10)) * CAST(3 AS decimal(38,10)), CAST(2 AS decimal(5,2)) + 1, CAST(2 AS decimal(38,38)) 
!> 8115

SELECT CAST(1 AS decimal(38,10)) * CAST(3 AS decimal(38,10)), CAST(2 AS decimal(5,2)) + CAST(1 AS decimal(4,3)), 1.5 + 1
:> decimal(38,6) null, decimal(7,3) null, decimal(3,1)
=> 3.000000 | 3.000 | 2.5

SELECT 2147483647 + 1
!> 8115

SELECT CAST(255 AS tinyint) + CAST(1 AS tinyint)
!> 8115

SELECT CAST(-1 AS tinyint)
!> 220

SELECT CAST(40000 AS smallint)
!> 220

SELECT CAST('40000' AS smallint)
!> 244

SELECT CAST(3000000000 AS int)
!> 8115

SELECT CAST('3000000000' AS int)
!> 248

SELECT 3000000000, 0x0A, 1e3, $1.5, N'x', 'x'
:> decimal(10,0), varbinary(1), float, money, nvarchar(1), varchar(1)
=> 3000000000 | 0x0A | 1000 | 1.5000 | 'x' | 'x'

SELECT CAST(2.5 AS int), CAST(-2.5 AS int), CAST(2.99e0 AS int), CAST(2.5 AS decimal(3,0)), CAST(-2.5 AS decimal(3,0)), ROUND(2.5, 0), ROUND(-2.5, 0), ROUND(150.75, -2), ROUND(150.75, 0, 1)
=> 2 | -2 | 2 | 3 | -3 | 3.0 | -3.0 | 200.00 | 150.00

SELECT CAST($2.55 AS int), CAST(1.005 AS decimal(5,2)), CAST('1.005' AS decimal(5,2)), CAST(1234.5678 AS money), CAST('1,234.5' AS money)
=> 3 | 1.01 | 1.01 | 1234.5678 | 1234.5000

SELECT ROUND(9.4, 0), ROUND(99, -2), ROUND(748.58, -4), ABS(-5), SIGN(-2.5), CEILING(-1.5), FLOOR(-1.5), POWER(2, 10), SQRT(16), POWER(2, -1), POWER(2.0, -1)
=> 9.0 | 100 | 0.00 | 5 | -1.0 | -1 | -2 | 1024 | 4 | 0 | 0.5

SELECT ROUND(748.58, -3)
!> 8115

SELECT CAST('' AS int), CAST(' 12 ' AS int), CAST('' AS datetime), CAST('-' AS money), CAST('' AS float)
=> 0 | 12 | 1900-01-01 00:00:00.000 | 0.0000 | 0

SELECT CAST('' AS decimal(5,2))
!> 8114

SELECT CAST('1e2' AS int)
!> 245

SELECT CAST('1.5' AS int)
!> 245

SELECT CAST('1e2' AS decimal(5,2))
!> 8114

SELECT ISNUMERIC('1e2'), ISNUMERIC('$'), ISNUMERIC(''), ISNUMERIC('-'), ISNUMERIC('.'), ISNUMERIC('abc'), TRY_CAST('x' AS int), TRY_CONVERT(int, '7')
=> 1 | 1 | 0 | 1 | 1 | 0 | NULL | 7

SELECT CAST('2024-02-29' AS datetime), CAST('20240229 23:59:59.999' AS datetime), CAST('20240229 23:59:59.995' AS datetime), CAST('20240229 10:00:00.994' AS datetime)
=> 2024-02-29 00:00:00.000 | 2024-03-01 00:00:00.000 | 2024-02-29 23:59:59.997 | 2024-02-29 10:00:00.993

SELECT CAST('20240229 23:59:30' AS smalldatetime), CAST('20240229 23:59:29.998' AS smalldatetime), CAST('20240229 23:59:29.999' AS smalldatetime)
=> 2024-03-01 00:00:00 | 2024-02-29 23:59:00 | 2024-03-01 00:00:00

SELECT CAST('20240229 23:59:59.9999999' AS datetime2(3)), CAST('23:59:59.99999' AS time(2)), CAST('20240229 10:00:00.1234567' AS datetime2)
=> 2024-03-01 00:00:00.000 | 23:59:59.99 | 2024-02-29 10:00:00.1234567

SELECT CAST('20240230' AS date)
!> 241

SELECT CAST('20240230' AS datetime)
!> 242

SELECT CAST('1700-01-01' AS datetime)
!> 242

SELECT CAST(CAST('2024-02-29 10:00:00.123' AS datetime) AS datetime2(7)), CAST(CAST('2024-02-29 10:00:00.1267' AS datetime2(7)) AS datetime)
=> 2024-02-29 10:00:00.1233333 | 2024-02-29 10:00:00.127

SELECT CONVERT(varchar(30), CAST('2024-02-29 13:04:05.678' AS datetime)), CONVERT(varchar(30), CAST('2024-02-29 13:04:05.678' AS datetime), 120), CONVERT(varchar(30), CAST('2024-02-29 13:04:05.678' AS datetime), 121), CONVERT(varchar(30), CAST('2024-02-29 13:04:05.678' AS datetime), 126), CONVERT(varchar(10), CAST('2024-02-29 13:04:05.678' AS datetime), 112), CONVERT(varchar(30), CAST('2024-02-29 13:04:05.678' AS datetime), 109)
=> 'Feb 29 2024  1:04PM' | '2024-02-29 13:04:05' | '2024-02-29 13:04:05.677' | '2024-02-29T13:04:05.677' | '20240229' | 'Feb 29 2024  1:04:05:677PM'

SELECT CONVERT(varchar(40), CAST('2024-02-29 13:04:05.1234567' AS datetime2(7)), 109), CONVERT(varchar(40), CAST('2024-02-29 13:04:05.12' AS datetime2(2))), CONVERT(varchar(40), CAST('2024-02-29' AS date)), CONVERT(varchar(40), CAST('2024-02-29' AS date), 101), CONVERT(varchar(40), CAST('2024-02-29 13:04:05.678' AS datetime), 127)
=> 'Feb 29 2024  1:04:05.1234567PM' | '2024-02-29 13:04:05.12' | '2024-02-29' | '02/29/2024' | '2024-02-29T13:04:05.677'

SELECT CONVERT(varchar(20), 0x0AFF, 1), CONVERT(varchar(20), 0x0AFF, 2), CONVERT(varbinary(4), '0x0AFF', 1), CONVERT(varbinary(4), '0AFF', 2), CAST(258 AS varbinary(4)), CAST(258 AS binary(2)), CAST(0x0102 AS int), CAST('ab' AS varbinary(5)), CAST(N'ab' AS varbinary(5))
=> '0x0AFF' | '0AFF' | 0x0AFF | 0x0AFF | 0x00000102 | 0x0102 | 258 | 0x6162 | 0x61006200

SELECT CONVERT(varbinary(4), '0xA', 1)
!> 8114

SELECT CONVERT(varchar(20), CAST(1234567.891 AS money)), CONVERT(varchar(20), CAST(1234567.891 AS money), 1), CONVERT(varchar(20), CAST(1234567.891 AS money), 2), CONVERT(varchar(30), 123456789.0e0), CONVERT(varchar(30), 1.0e0/3), CONVERT(varchar(30), 0.1e0, 3), CAST(1e20 AS varchar(30)), CAST(CAST(0.1 AS real) AS varchar(30))
=> '1234567.89' | '1,234,567.89' | '1234567.8910' | '1.23457e+008' | '0.333333' | '1.0000000000000001e-001' | '1e+020' | '0.1'

SELECT CAST(12345 AS varchar(3)), CAST('abcdef' AS varchar(3)), CAST('ab' AS char(4)), LEN('ab  '), DATALENGTH(CAST('ab' AS char(4))), LEN(N'é'), DATALENGTH(N'é'), CAST(REPLICATE('x', 50) AS varchar)
=> '*' | 'abc' | 'ab  ' | 2 | 4 | 1 | 2 | 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'

SELECT CAST(12345 AS nvarchar(3))
!> 8115

SELECT CAST(12.5 AS varchar(3))
!> 8115

CREATE TABLE dbo.s (c varchar(3), d decimal(4,2), n nvarchar(2), t tinyint, b bit)

INSERT dbo.s (c) VALUES ('abcd')
!> 2628

INSERT dbo.s (c) VALUES ('abc   ')

INSERT dbo.s (d) VALUES (123.4)
!> 8115

INSERT dbo.s (d, t, b) VALUES (12.345, 255, 5)

INSERT dbo.s (t) VALUES (256)
!> 220

INSERT dbo.s (b) VALUES ('true'), ('FALSE'), ('1')

SELECT c, d, t, b FROM dbo.s
=> 'abc' | NULL | NULL | NULL
=> NULL | 12.35 | 255 | 1
=> NULL | NULL | NULL | 1
=> NULL | NULL | NULL | 0
=> NULL | NULL | NULL | 1

SELECT CASE WHEN 'a' = 'A ' THEN 1 ELSE 0 END, CASE WHEN 'a' = 'A' COLLATE Latin1_General_BIN2 THEN 1 ELSE 0 END, CASE WHEN N'é' = N'e' THEN 1 ELSE 0 END, CASE WHEN N'é' COLLATE Latin1_General_CI_AI = N'e' THEN 1 ELSE 0 END, CASE WHEN '' = ' ' THEN 1 ELSE 0 END, CASE WHEN 'a ' LIKE 'a' THEN 1 ELSE 0 END, CASE WHEN 'a' LIKE 'a ' THEN 1 ELSE 0 END
=> 1 | 0 | 0 | 1 | 1 | 1 | 0

SELECT CASE WHEN '10' = 10 THEN 1 ELSE 0 END, CASE WHEN '1.0' = 1.0 THEN 1 ELSE 0 END, CASE WHEN CAST('2024-01-01' AS datetime) = '20240101' THEN 1 ELSE 0 END, CASE WHEN 1 = 1.0 THEN 1 ELSE 0 END
=> 1 | 1 | 1 | 1

SELECT CASE WHEN '1.0' = 1 THEN 1 ELSE 0 END
!> 245

SELECT 'a' COLLATE Latin1_General_CI_AS + 'b' COLLATE Latin1_General_CS_AS
!> 468

SELECT '5' + 3, '5' + '3', 5 + '3', '1' + NULL, 1 + CAST('2' AS bigint), 'x' + N'y'
=> 8 | '53' | 8 | NULL | 3 | 'xy'

SELECT 'a' + 1
!> 245

SELECT CAST('2024-01-01' AS datetime) + 1.5, CAST('2024-01-02' AS datetime) - CAST('2024-01-01' AS datetime), CAST(CAST('2024-01-02 12:00' AS datetime) AS int), CAST(CAST('1900-01-02 18:00' AS datetime) AS float)
=> 2024-01-02 12:00:00.000 | 1900-01-02 00:00:00.000 | 45292 | 1.75

SELECT CAST('2024-01-01' AS date) + 1
!> 206

SELECT CAST(CAST('2024-01-01' AS date) AS int)
!> 529

SELECT CAST('2024-01-01' AS datetime2) + 1
!> 206

SELECT CASE WHEN NULL = NULL THEN 1 WHEN NOT (NULL = 1) THEN 2 WHEN NULL IS NULL THEN 3 END
=> 3

SELECT CASE WHEN 1 IN (2, NULL) THEN 'in' WHEN 1 NOT IN (2, NULL) THEN 'not in' ELSE 'unknown' END
=> 'unknown'

SELECT ISNULL(CAST(NULL AS varchar(2)), 'abcdef'), COALESCE(CAST(NULL AS varchar(2)), 'abcdef'), NULLIF(1, 1), NULLIF('a', 'b')
=> 'ab' | 'abcdef' | NULL | 'a'

SELECT COALESCE(NULL, NULL)
!> 4127

SELECT CASE WHEN 1 = 1 THEN NULL ELSE NULL END
!> 8133

SELECT CASE WHEN 1 = 1 THEN 1 ELSE 'x' END, CASE WHEN 1 = 1 THEN 1 ELSE 2.5 END
:> int, decimal(11,1)
=> 1 | 1.0

SELECT CASE WHEN 1 = 0 THEN 1 ELSE 'x' END
!> 245

SELECT DATEADD(month, 1, '20240131'), DATEADD(day, -1, CAST('20240301' AS date)), DATEADD(ms, 2, CAST('20240301' AS datetime)), DATEADD(ns, 150, CAST('20240301' AS datetime2))
=> 2024-02-29 00:00:00.000 | 2024-02-29 | 2024-03-01 00:00:00.003 | 2024-03-01 00:00:00.0000002

SELECT DATEDIFF(year, '20231231', '20240101'), DATEDIFF(month, '20240131', '20240201'), DATEDIFF(week, '20240106', '20240107'), DATEDIFF(second, '20240101', '20240102'), DATEDIFF(hour, '00:59', '01:00')
=> 1 | 1 | 1 | 86400 | 1

SELECT DATEDIFF(ms, '19000101', '20240101')
!> 535

SELECT DATEADD(year, 8000, CAST('20240101' AS datetime))
!> 517

SELECT DATEPART(weekday, '20240303'), DATENAME(weekday, '20240303'), DATEPART(week, '20240101'), DATEPART(iso_week, '20210101'), DATEPART(dayofyear, '20240301'), DATENAME(month, '20240301'), DATEPART(ns, CAST('10:00:00.1234567' AS time)), EOMONTH('20240215'), EOMONTH('20240131', 1)
=> 1 | 'Sunday' | 1 | 53 | 61 | 'March' | 123456700 | 2024-02-29 | 2024-02-29

SELECT CAST('2024-03-01 10:00:00 +02:00' AS datetimeoffset), SWITCHOFFSET(CAST('2024-03-01 10:00:00 +02:00' AS datetimeoffset(0)), '-05:00'), CAST(CAST('2024-03-01 10:00:00 +02:00' AS datetimeoffset) AS datetime2(0)), CONVERT(datetime2(0), CAST('2024-03-01 10:00:00 +02:00' AS datetimeoffset), 1)
=> 2024-03-01 10:00:00.0000000 +02:00 | 2024-03-01 03:00:00 -05:00 | 2024-03-01 10:00:00 | 2024-03-01 08:00:00

SELECT CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier), CAST(CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier) AS varbinary(16)), CAST(0xFF19966F868B11D0B42D00C04FC964FF AS uniqueidentifier)
=> 6F9619FF8B86D011B42D00C04FC964FF | 0xFF19966F868B11D0B42D00C04FC964FF | 6F9619FF8B86D011B42D00C04FC964FF

SELECT CAST('not' AS uniqueidentifier)
!> 8169

SELECT SUM(x), AVG(x), COUNT(*), COUNT(x), MIN(x), MAX(x) FROM (VALUES (1), (2), (NULL)) v (x)
:> int null, int null, int, int, int null, int null
=> 3 | 1 | 3 | 2 | 1 | 2

SELECT AVG(x), SUM(x), AVG(CAST(x AS bigint)) FROM (VALUES (CAST(1 AS decimal(5,2))), (2), (2)) v (x)
:> decimal(38,6) null, decimal(38,2) null, bigint null
=> 1.666666 | 5.00 | 1

SELECT SUM(x) FROM (VALUES (2147483647), (1)) v (x)
!> 8115

SELECT 10 & 6, 10 | 6, 10 ^ 6, ~10, 5 % 0
!> 8134

SELECT 10 & 6, 10 | 6, 10 ^ 6, ~10
=> 2 | 14 | 12 | -11

SELECT 1.0 % 0.3, 5.5e0 % 2
!> 402

SELECT - - 1, +'a', -CAST(1 AS bit)
!> 8117
