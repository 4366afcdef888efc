# Change data capture: masks of wide updates, gates, gaps and what readers of the log see.
EXEC sys.sp_cdc_enable_db

CREATE TABLE dbo.p (a int NOT NULL, b int NOT NULL, v varchar(max) NULL, CONSTRAINT pk_p PRIMARY KEY (a, b))

EXEC sys.sp_cdc_enable_table N'dbo', N'p', NULL, @supports_net_changes = 1

INSERT dbo.p VALUES (1, 1, 'x'), (1, 2, 'y')

UPDATE dbo.p SET b = 3 WHERE b = 2

UPDATE dbo.p SET v = NULL WHERE b = 1

EXEC fake.run_capture

SELECT [__$operation], [__$update_mask], a, b, v FROM cdc.dbo_p_CT ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]
=> 2 | 0x07 | 1 | 1 | 'x'
=> 2 | 0x07 | 1 | 2 | 'y'
=> 1 | 0x07 | 1 | 2 | 'y'
=> 2 | 0x07 | 1 | 3 | 'y'
=> 3 | 0x04 | 1 | 1 | 'x'
=> 4 | 0x04 | 1 | 1 | NULL

SELECT [__$operation], a, b FROM cdc.fn_cdc_get_net_changes_dbo_p(sys.fn_cdc_get_min_lsn('dbo_p'), sys.fn_cdc_get_max_lsn(), 'all') ORDER BY a, b
=> 2 | 1 | 1
=> 2 | 1 | 3

# A statement that fails in the middle of a batch leaves what was before it.
INSERT dbo.p VALUES (5, 5, NULL); INSERT dbo.p VALUES (5, 5, NULL); INSERT dbo.p VALUES (6, 6, NULL)
!> 2627

EXEC fake.run_capture

SELECT a FROM cdc.dbo_p_CT WHERE a >= 5 ORDER BY [__$start_lsn]
=> 5
=> 6

# Two statements are two positions; one transaction over two tables is one.
CREATE TABLE dbo.q (k int PRIMARY KEY)

EXEC sys.sp_cdc_enable_table N'dbo', N'q', NULL

BEGIN TRAN; INSERT dbo.p VALUES (7, 7, NULL); INSERT dbo.q VALUES (7); COMMIT

EXEC fake.run_capture

SELECT COUNT(*) FROM cdc.dbo_p_CT p JOIN cdc.dbo_q_CT q ON p.[__$start_lsn] = q.[__$start_lsn] WHERE p.a = 7
=> 1

SELECT CASE WHEN sys.fn_cdc_map_lsn_to_time(q.[__$start_lsn]) = m.tran_end_time THEN 1 ELSE 0 END FROM cdc.dbo_q_CT q JOIN cdc.lsn_time_mapping m ON m.start_lsn = q.[__$start_lsn]
=> 1

# A range below the newer instance's low mark is refused for it, and served for the older one.
SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_dbo_q(sys.fn_cdc_get_min_lsn('dbo_p'), sys.fn_cdc_get_max_lsn(), 'all')
!> 313

SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_dbo_q(sys.fn_cdc_get_max_lsn(), sys.fn_cdc_get_max_lsn(), 'all')
=> 1

SELECT COUNT(*) FROM CDC.FN_CDC_GET_ALL_CHANGES_DBO_Q(sys.fn_cdc_get_max_lsn(), sys.fn_cdc_get_max_lsn(), N'All')
=> 1

# Time relations at a commit's own time.
EXEC fake.advance_clock 10

INSERT dbo.q VALUES (8)

EXEC fake.advance_clock 10

INSERT dbo.q VALUES (9)

EXEC fake.run_capture

DECLARE @t datetime = (SELECT m.tran_end_time FROM cdc.lsn_time_mapping m JOIN cdc.dbo_q_CT q ON q.[__$start_lsn] = m.start_lsn WHERE q.k = 8); SELECT (SELECT k FROM cdc.dbo_q_CT WHERE [__$start_lsn] = sys.fn_cdc_map_time_to_lsn('largest less than', @t)), (SELECT k FROM cdc.dbo_q_CT WHERE [__$start_lsn] = sys.fn_cdc_map_time_to_lsn('largest less than or equal', @t)), (SELECT k FROM cdc.dbo_q_CT WHERE [__$start_lsn] = sys.fn_cdc_map_time_to_lsn('smallest greater than', @t)), (SELECT k FROM cdc.dbo_q_CT WHERE [__$start_lsn] = sys.fn_cdc_map_time_to_lsn('smallest greater than or equal', @t))
=> 7 | 8 | 9 | 8
