//! Calls: parameters, prepared statements, outputs, descriptions.

use cdc_fake::Value;

use super::rig::{Reply, Rig, int, named, output, text};
use crate::talk::StatementKind;

#[test]
fn executesql_gives_rows_then_status_then_output_values() {
    let mut rig = Rig::new();
    let replies = rig
        .call(
            "sp_executesql",
            vec![
                text("SET @b = @a + 1 SELECT @a AS a"),
                text("@a int, @b int OUTPUT"),
                int(41),
                output(int(0)),
            ],
        )
        .0;
    let [
        Reply::Columns(_),
        Reply::Row(row),
        Reply::Done(done),
        Reply::Status(0),
        Reply::Returned(3, _, b),
    ] = &replies[..]
    else {
        panic!("{replies:?}")
    };
    assert_eq!((row, b), (&vec![Value::Int(41)], &Value::Int(42)));
    assert!(done.in_procedure);
}

#[test]
fn parameters_are_matched_by_name_with_and_without_an_at_sign() {
    let mut rig = Rig::new();
    let recording = rig.call(
        "sp_executesql",
        vec![
            named("stmt", text("SELECT @x - @y")),
            named("params", text("@x int, @y int")),
            named("@y", int(1)),
            named("@x", int(3)),
        ],
    );
    assert_eq!(recording.rows(), [[Value::Int(2)]]);
}

#[test]
fn a_parameter_that_is_missing_or_too_much_is_refused() {
    let mut rig = Rig::new();
    let recording = rig.call("sp_executesql", vec![text("SELECT @x"), text("@x int")]);
    assert_eq!(recording.errors(), [8178]);
    let recording = rig.call("sp_executesql", vec![text("SELECT 1"), text(""), int(1)]);
    assert_eq!(recording.errors(), [8144]);
    assert_eq!(rig.call("sp_nothing", vec![]).errors(), [2812]);
    assert_eq!(rig.call("sp_cursoropen", vec![]).errors(), [50_000]);
}

#[test]
fn a_prepared_statement_runs_by_its_handle_until_it_is_given_back() {
    let mut rig = Rig::new();
    let recording = rig.call(
        "sp_prepexec",
        vec![output(int(0)), text("@P1 int"), text("SELECT @P1 * 2"), int(21)],
    );
    assert_eq!(recording.rows(), [[Value::Int(42)]]);
    let Some(Reply::Returned(0, _, Value::Int(handle))) = recording.0.last() else {
        panic!("{recording:?}")
    };
    let again = rig.call("sp_execute", vec![int(*handle), int(4)]);
    assert_eq!(again.rows(), [[Value::Int(8)]]);
    assert_eq!(rig.call("sp_unprepare", vec![int(*handle)]).errors(), []);
    assert_eq!(rig.call("sp_execute", vec![int(*handle), int(4)]).errors(), [8179]);
    let recording =
        rig.call("sp_prepare", vec![output(int(0)), text("@a int"), text("SELECT @a"), int(1)]);
    assert!(recording.rows().is_empty());
    assert!(matches!(recording.0.last(), Some(Reply::Returned(0, _, Value::Int(2)))));
}

#[test]
fn a_text_that_sets_options_leaves_the_callers_as_they_were() {
    let mut rig = Rig::new();
    rig.call("sp_executesql", vec![text("SET LOCK_TIMEOUT 5 SET NOCOUNT ON")]);
    assert_eq!(rig.one("SELECT @@LOCK_TIMEOUT"), (-1).into());
    rig.run("EXEC ('SET LOCK_TIMEOUT 6')");
    assert_eq!(rig.one("SELECT @@LOCK_TIMEOUT"), (-1).into());
}

#[test]
fn undeclared_parameters_take_the_types_of_their_columns() {
    let mut rig = Rig::new();
    rig.run("CREATE TABLE p (a int, b varchar(7), c decimal(9, 3))");
    let described = |rig: &mut Rig, statement: &str| {
        let rows = rig.call("sp_describe_undeclared_parameters", vec![text(statement)]).rows();
        rows.iter().map(|row| (row[1].clone(), row[3].clone())).collect::<Vec<_>>()
    };
    let pair = |name: &str, sql_type: &str| (Value::text(name), Value::text(sql_type));
    assert_eq!(
        described(&mut rig, "INSERT p (c, a) VALUES (@P1, @P2)"),
        [pair("@P1", "decimal(9,3)"), pair("@P2", "int")]
    );
    assert_eq!(
        described(&mut rig, "UPDATE p SET b = @x WHERE a = @y AND c IN (@z)"),
        [pair("@x", "varchar(7)"), pair("@y", "int"), pair("@z", "decimal(9,3)")]
    );
    assert_eq!(
        described(&mut rig, "SELECT * FROM p WHERE a > @y AND b LIKE @x"),
        [pair("@y", "int"), pair("@x", "varchar(7)")]
    );
    let unknown =
        rig.call("sp_describe_undeclared_parameters", vec![text("SELECT * FROM p WHERE @a = @b")]);
    assert_eq!(unknown.errors(), [11_508]);
}

#[test]
fn a_temporary_table_goes_with_the_text_that_created_it() {
    let mut rig = Rig::new();
    rig.run("EXEC ('CREATE TABLE #inner (a int) INSERT #inner VALUES (1) SELECT a FROM #inner')");
    assert_eq!(rig.error("SELECT a FROM #inner"), 208);
    rig.run("CREATE TABLE #outer (a int) EXEC ('INSERT #outer VALUES (1)')");
    assert_eq!(rig.ints("SELECT a FROM #outer"), [1]);
    rig.run("BEGIN TRAN EXEC ('CREATE TABLE #inner (a int)') COMMIT CREATE TABLE #inner (b int)");
}

#[test]
fn exec_takes_outputs_and_the_status_into_variables() {
    let mut rig = Rig::new();
    let text = "DECLARE @n int, @r int
        EXEC @r = sp_executesql N'SET @o = @i * 2', N'@i int, @o int OUTPUT', @i = 4, @o = @n OUTPUT
        SELECT @n, @r";
    let recording = rig.run(text);
    assert_eq!(recording.rows(), [[Value::Int(8), Value::Int(0)]]);
    assert!(recording.counts().contains(&(StatementKind::Execute, None)));
    assert_eq!(rig.one("DECLARE @t nvarchar(50) = N'SELECT 5' EXEC (@t)"), 5.into());
    assert_eq!(rig.error("EXEC nothing"), 2812);
}

#[test]
fn an_error_in_a_called_text_reaches_the_callers_catch() {
    let mut rig = Rig::new();
    let text = "BEGIN TRY EXEC ('SELECT 1 / 0') SELECT 1 END TRY \
                BEGIN CATCH SELECT ERROR_NUMBER() END CATCH";
    let rows = rig.rows(text);
    assert_eq!(rows, [[Value::Int(8134)]]);
    assert_eq!(
        rig.error(
            "DECLARE @s nvarchar(99) = N'EXEC sp_executesql @s, N''@s nvarchar(99)'', @s' \
                          EXEC sp_executesql @s, N'@s nvarchar(99)', @s"
        ),
        217
    );
}

#[test]
fn the_first_result_of_a_text_is_described_without_running_it() {
    let mut rig = Rig::new();
    let recording = rig.call(
        "sp_describe_first_result_set",
        vec![text("SELECT CAST(@a AS decimal(10,2)) AS n, N'x' s"), text("@a int")],
    );
    let rows = recording.rows();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0][2], "n".into());
    assert_eq!(rows[0][5], "decimal(10,2)".into());
    assert_eq!((&rows[0][7], &rows[0][8]), (&Value::Int(10), &Value::Int(2)));
}
