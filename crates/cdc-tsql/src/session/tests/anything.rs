//! Whatever a client says: a session answers, or refuses, and goes on.

use proptest::prelude::*;

use super::rig::Rig;

/// Parts of statements, whole ones among them, so that many sequences mean something.
const PARTS: [&str; 44] = [
    "SELECT a, b FROM t",
    "SELECT * FROM t WHERE a >",
    "INSERT t VALUES (5, 'x')",
    "INSERT t (a) SELECT",
    "UPDATE t SET b =",
    "DELETE t WHERE",
    "MERGE t USING (VALUES (1)) s (i) ON t.a = s.i WHEN MATCHED THEN DELETE;",
    "BEGIN TRAN",
    "COMMIT",
    "ROLLBACK",
    "SAVE TRAN s",
    "ROLLBACK TRAN s",
    "BEGIN TRY",
    "END TRY BEGIN CATCH",
    "END CATCH",
    "BEGIN",
    "END",
    "IF 1 = 1",
    "ELSE",
    "THROW",
    "RETURN",
    "DECLARE @x int = 1",
    "SET @x = @x +",
    "SELECT @x",
    "SET XACT_ABORT ON",
    "SET IMPLICIT_TRANSACTIONS ON",
    "SET ROWCOUNT 1",
    "CREATE TABLE #u (a int)",
    "INSERT #u VALUES (1)",
    "DROP TABLE IF EXISTS #u",
    "EXEC ('SELECT 1 / 0')",
    "EXEC sp_executesql N'SELECT @p', N'@p int', 1",
    "ALTER TABLE t ADD c int NULL",
    "OUTPUT inserted.a",
    "1",
    "NULL",
    "'x'",
    "a",
    "(",
    ")",
    ",",
    ";",
    "UNION ALL",
    "CAST('x' AS int)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_session_lives_through_any_batches(
        batches in proptest::collection::vec(
            proptest::collection::vec(proptest::sample::select(PARTS.to_vec()), 1..8),
            1..4,
        )
    ) {
        let mut rig = Rig::new();
        rig.run("CREATE TABLE t (a int PRIMARY KEY, b varchar(5)) INSERT t VALUES (1, 'a'), (2, 'b')");
        for batch in &batches {
            rig.tell(&batch.join(" "));
        }
        // What it left open goes with the transaction; the session itself is as good as new.
        rig.tell("SET ROWCOUNT 0 IF @@TRANCOUNT > 0 ROLLBACK");
        prop_assert_eq!(rig.ints("SELECT 1"), [1]);
        drop(rig.session);
        let mut other = rig.server.owner_session("shop").expect("opens");
        let mut recording = super::rig::Recording::default();
        crate::talk::Conversation::batch(&mut other, "SELECT COUNT(*) FROM t", &mut recording);
        prop_assert_eq!(recording.errors(), Vec::<i32>::new());
    }
}
