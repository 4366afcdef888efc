-- A table that is captured twice, whose columns change, and that is written while the clocks of New York
-- go back. Read by tests/src/bin/client_fixture.rs.
USE sales
GO
CREATE TABLE dbo.switched (
    id int NOT NULL,
    part nvarchar(10) NOT NULL,
    name varchar(40) COLLATE Greek_CI_AS NULL,
    at datetime2(7) NULL,
    amount decimal(9, 2) NULL,
    CONSTRAINT pk_switched PRIMARY KEY (id, part)
)
GO
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'switched', @role_name = NULL
GO
INSERT INTO dbo.switched VALUES (1, N'a', N'Καλημέρα', '2024-02-29 12:34:56.1234567', 1.5), (1, N'β', NULL, NULL, NULL)
GO
EXEC fake.advance_clock 60
GO
ALTER TABLE dbo.switched ADD note nvarchar(max) NULL
GO
UPDATE dbo.switched SET note = N'not captured', amount = 2 WHERE part = N'a'
GO
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'switched', @role_name = NULL,
    @capture_instance = N'dbo_switched_2'
GO
INSERT INTO dbo.switched VALUES (2, N'a', N'κόσμε', '9999-12-31 23:59:59.9999999', -9999999.99, N'captured')
GO
ALTER TABLE dbo.switched ALTER COLUMN amount decimal(19, 2) NULL
GO
EXEC fake.advance_clock 60
GO
UPDATE dbo.switched SET part = N'c' WHERE id = 1 AND part = N'β'
GO
BEGIN TRANSACTION
INSERT INTO dbo.switched (id, part) VALUES (3, N'a')
UPDATE dbo.switched SET note = N'in one transaction' WHERE id = 3
DELETE FROM dbo.switched WHERE id = 3
COMMIT TRANSACTION
GO
ALTER TABLE dbo.switched DROP COLUMN at
GO
EXEC fake.set_clock '2026-11-01 05:15:00'
GO
INSERT INTO dbo.switched (id, part) VALUES (10, N'a')
GO
EXEC fake.advance_clock 1200
GO
INSERT INTO dbo.switched (id, part) VALUES (11, N'a')
GO
EXEC fake.advance_clock 1200
GO
INSERT INTO dbo.switched (id, part) VALUES (12, N'a')
GO
EXEC fake.advance_clock 1200
GO
INSERT INTO dbo.switched (id, part) VALUES (13, N'a')
GO
EXEC fake.advance_clock 1200
GO
INSERT INTO dbo.switched (id, part) VALUES (14, N'a')
GO
EXEC fake.advance_clock 1200
GO
INSERT INTO dbo.switched (id, part) VALUES (15, N'a')
GO
EXEC fake.advance_clock 600
GO
EXEC fake.run_capture
