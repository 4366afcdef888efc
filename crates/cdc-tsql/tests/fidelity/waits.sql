# Locks, versions and what a failed statement leaves, over several sessions.
CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, v int NOT NULL)

INSERT dbo.t VALUES (1, 1), (2, 2)

@b SET LOCK_TIMEOUT 0

# Inserted rows are held too, and deleted ones.
BEGIN TRAN; INSERT dbo.t VALUES (3, 3); DELETE dbo.t WHERE id = 2

@b SELECT COUNT(*) FROM dbo.t
!> 1222

@b SELECT id FROM dbo.t WITH (READUNCOMMITTED) ORDER BY id
=> 1
=> 3

@b INSERT dbo.t VALUES (3, 30)
!> 1222

@b INSERT dbo.t VALUES (2, 20)
!> 1222

@b SELECT v FROM dbo.t WHERE id = 1
=> 1

@b ALTER TABLE dbo.t ADD x int NULL
!> 1222

@b DROP TABLE dbo.t
!> 1222

ROLLBACK

@b SELECT COUNT(*) FROM dbo.t
=> 2

# READ COMMITTED SNAPSHOT reads what was committed last.
ALTER DATABASE shop SET READ_COMMITTED_SNAPSHOT ON

BEGIN TRAN; UPDATE dbo.t SET v = 100 WHERE id = 1

@b SELECT v FROM dbo.t WHERE id = 1
=> 1

@b SELECT v FROM dbo.t WITH (READCOMMITTEDLOCK) WHERE id = 1
!> 1222

@b UPDATE dbo.t SET v = v + 1 WHERE id = 1
!> 1222

COMMIT

@b UPDATE dbo.t SET v = v + 1 WHERE id = 1

SELECT v FROM dbo.t WHERE id = 1
=> 101

# A savepoint gives back rows, and the transaction goes on.
BEGIN TRAN; UPDATE dbo.t SET v = 0 WHERE id = 1; SAVE TRAN one; UPDATE dbo.t SET v = 0 WHERE id = 2; SAVE TRAN two; DELETE dbo.t; ROLLBACK TRAN one; SELECT id, v FROM dbo.t ORDER BY id
=> 1 | 0
=> 2 | 2

ROLLBACK TRAN two
!> 6401

SELECT @@TRANCOUNT
=> 1

COMMIT

# An error inside of TRY leaves the statement undone and the rest done.
BEGIN TRY; BEGIN TRAN; INSERT dbo.t VALUES (10, 1); INSERT dbo.t VALUES (11, 1), (10, 2); END TRY BEGIN CATCH; SELECT ERROR_NUMBER(), @@TRANCOUNT; END CATCH; COMMIT; SELECT id FROM dbo.t WHERE id >= 10
=> 2627 | 1
=> 10

BEGIN TRY; EXEC ('SELECT * FROM dbo.nowhere'); END TRY BEGIN CATCH; SELECT ERROR_NUMBER(); END CATCH
=> 208

BEGIN TRY; BEGIN TRY; SELECT 1 / 0; END TRY BEGIN CATCH; THROW; END CATCH; END TRY BEGIN CATCH; SELECT ERROR_NUMBER(), ERROR_MESSAGE(); END CATCH
=> 8134 | 'Divide by zero error encountered.'

BEGIN TRY; SELECT 1; END TRY BEGIN CATCH; SELECT 2; END CATCH; SELECT @@ERROR
=> 1
=> 0

# Dirty reads never last: what was rolled back was never there.
BEGIN TRAN; INSERT dbo.t VALUES (50, 1)

@b SELECT COUNT(*) FROM dbo.t WITH (NOLOCK) WHERE id = 50
=> 1

ROLLBACK

@b SELECT COUNT(*) FROM dbo.t WITH (NOLOCK) WHERE id = 50
=> 0

# A snapshot sees no change of others, and its own.
ALTER DATABASE shop SET ALLOW_SNAPSHOT_ISOLATION ON

@b SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRAN; SELECT COUNT(*) FROM dbo.t
=> 3

DELETE dbo.t WHERE id = 10

INSERT dbo.t VALUES (60, 1), (61, 1)

@b SELECT COUNT(*) FROM dbo.t
=> 3

@b INSERT dbo.t VALUES (70, 1); SELECT COUNT(*) FROM dbo.t
=> 4

@b INSERT dbo.t VALUES (60, 2)
!> 2627

@b DELETE dbo.t WHERE id = 10
!> 3960

@b SELECT @@TRANCOUNT, (SELECT COUNT(*) FROM dbo.t)
=> 0 | 4
