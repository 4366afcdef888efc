# Keys, comparisons, groups and sorting go by one rule.
CREATE TABLE dbo.words (w nvarchar(20) COLLATE Latin1_General_100_CI_AI NOT NULL PRIMARY KEY)

INSERT dbo.words VALUES (N'Café'), (N'tea')

INSERT dbo.words VALUES (N'CAFE')
!> 2627

SELECT w FROM dbo.words WHERE w = N'cafe'
=> 'Café'

SELECT w FROM dbo.words WHERE w > N'cafe' AND w < N'teá '

UPDATE dbo.words SET w = N'cafe ' WHERE w = N'CAFÉ'

SELECT w FROM dbo.words ORDER BY w
=> 'cafe '
=> 'tea'

CREATE TABLE dbo.greek (w nvarchar(20) COLLATE Greek_CI_AS NOT NULL PRIMARY KEY)

INSERT dbo.greek VALUES (N'ΣΊΣΥΦΟΣ')

INSERT dbo.greek VALUES (N'σίσυφος')
!> 2627

SELECT COUNT(*) FROM dbo.greek WHERE w = N'σίσυφοσ'
=> 1

CREATE TABLE dbo.cased (w varchar(20) COLLATE Latin1_General_CS_AS NOT NULL PRIMARY KEY)

INSERT dbo.cased VALUES ('b'), ('B'), ('a'), ('A')

SELECT w FROM dbo.cased WHERE w >= 'a' AND w < 'b'
=> 'a'
=> 'A'

CREATE TABLE dbo.bins (b varbinary(8) NOT NULL PRIMARY KEY)

INSERT dbo.bins VALUES (0x01), (0x0100000001), (0x00)

INSERT dbo.bins VALUES (0x0100)
!> 2627

INSERT dbo.bins VALUES (0x)
!> 2627

SELECT b FROM dbo.bins WHERE b = 0x010000
=> 0x01

SELECT b FROM dbo.bins WHERE b > 0x01 ORDER BY b
=> 0x0100000001

# A database's own collation decides for columns that name none.
CREATE DATABASE exact COLLATE Latin1_General_CS_AS

CREATE TABLE exact.dbo.t (w varchar(9) NOT NULL PRIMARY KEY)

INSERT exact.dbo.t VALUES ('a'), ('A')

INSERT exact.dbo.t VALUES ('a ')
!> 2627

SELECT COUNT(*) FROM exact.dbo.t WHERE w = 'A'
=> 1

# The length of a text of a code page is that of its bytes.
CREATE TABLE dbo.bytes (id int NOT NULL PRIMARY KEY, u varchar(4) COLLATE Latin1_General_100_CI_AS_SC_UTF8 NULL, j varchar(4) COLLATE Japanese_CI_AS NULL, l varchar(4) NULL, c char(4) COLLATE Japanese_CI_AS NULL)

INSERT dbo.bytes VALUES (1, N'éé', N'漢字', N'éééé', N'漢')

INSERT dbo.bytes (id, u) VALUES (2, N'ééé')
!> 2628

INSERT dbo.bytes (id, j) VALUES (2, N'漢字x')
!> 2628

INSERT dbo.bytes (id, c) VALUES (2, N'漢字x')
!> 2628

INSERT dbo.bytes (id, j) VALUES (2, N'ｶｶｶｶ')

UPDATE dbo.bytes SET u = u + N'x' WHERE id = 1
!> 2628

SELECT DATALENGTH(u), DATALENGTH(j), DATALENGTH(l), DATALENGTH(c) FROM dbo.bytes ORDER BY id
=> 4 | 4 | 4 | 4
=> NULL | 4 | NULL | NULL

ALTER TABLE dbo.bytes ALTER COLUMN j varchar(3)
!> 2628
