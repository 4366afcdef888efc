//! Statements as the reader gives them: `sqlparser`'s trees for queries, expressions and types,
//! own ones for everything else.

use sqlparser::ast;

use crate::relation::{DateFormat, ObjectName};

/// A batch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Batch {
    pub(crate) statements: Vec<Statement>,
    /// Variables that are used without a DECLARE before them: parameters, or mistakes.
    pub(crate) free: Vec<FreeVariable>,
}

/// A variable that the batch itself does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreeVariable {
    pub(crate) name: String,
    pub(crate) line: u32,
    /// True where a table stands.
    pub(crate) table: bool,
}

/// A statement and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    /// The line in the batch, from 1.
    pub(crate) line: u32,
    pub(crate) body: Body,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Block(Vec<Statement>),
    If {
        condition: ast::Expr,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    While {
        condition: ast::Expr,
        body: Box<Statement>,
    },
    Break,
    Continue,
    Return(Option<ast::Expr>),
    TryCatch {
        body: Vec<Statement>,
        handler: Vec<Statement>,
    },
    /// Number, text and state; none throws the caught error again.
    Throw(Option<[ast::Expr; 3]>),
    RaisError(RaisError),
    Print(ast::Expr),
    Wait(Wait),
    Declare(Vec<Declaration>),
    SetVariable {
        name: String,
        value: ast::Expr,
    },
    Set(Vec<SetOption>),
    Use(String),
    Begin(Option<Label>),
    Commit(Option<Label>),
    Rollback(Option<Label>),
    Save(Label),
    Execute(Execute),
    ExecuteText(ast::Expr),
    /// A query, and how deep its common table expressions may recurse.
    Query(Box<ast::Query>, Option<u16>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    Truncate(ObjectName),
    Definition(Box<Definition>),
    Right(Right),
    Kill(ast::Expr),
    Checkpoint,
}

/// A name that may be given in a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Name(String),
    Variable(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RaisError {
    pub(crate) message: ast::Expr,
    pub(crate) severity: ast::Expr,
    pub(crate) state: ast::Expr,
    pub(crate) arguments: Vec<ast::Expr>,
    pub(crate) set_error: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wait {
    /// `hh:mm:ss` from now.
    Delay(ast::Expr),
    /// Until the server's clock shows `hh:mm:ss`.
    Time(ast::Expr),
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "few of them live at a time")]
pub(crate) enum Declaration {
    Scalar { name: String, data_type: ast::DataType, value: Option<ast::Expr> },
    Table { name: String, table: TableBody },
}

/// A parameter of a statement that is prepared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) data_type: ast::DataType,
    pub(crate) output: bool,
    pub(crate) default: Option<ast::Expr>,
}

/// A `SET` option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SetOption {
    NoCount(bool),
    XactAbort(bool),
    ImplicitTransactions(bool),
    AnsiNulls(bool),
    AnsiWarnings(bool),
    AnsiNullDefault(bool),
    /// `ANSI_DEFAULTS`: several at once.
    AnsiDefaults(bool),
    ArithAbort(bool),
    QuotedIdentifier(bool),
    ConcatNullYieldsNull(bool),
    CursorCloseOnCommit(bool),
    FmtOnly(bool),
    NoExec(bool),
    ParseOnly(bool),
    /// An option that changes nothing here, by its name.
    Harmless,
    TextSize(i64),
    RowCount(ast::Expr),
    LockTimeout(i64),
    DateFirst(u8),
    DateFormat(DateFormat),
    DeadlockPriority,
    Language(String),
    ContextInfo(ast::Expr),
    Isolation(u8),
    IdentityInsert(ObjectName, bool),
}

/// `EXEC`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Execute {
    /// The variable that takes the return status.
    pub(crate) status: Option<String>,
    /// The procedure, or the variable that holds its name.
    pub(crate) procedure: ProcedureName,
    pub(crate) arguments: Vec<ExecuteArgument>,
}

impl Execute {
    /// True for a procedure that controls the fake server itself.
    pub(crate) fn is_control(&self) -> bool {
        match &self.procedure {
            ProcedureName::Name(name) => {
                name.schema.as_deref().is_some_and(|schema| schema.eq_ignore_ascii_case("fake"))
            }
            ProcedureName::Variable(_) => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcedureName {
    Name(ObjectName),
    Variable(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExecuteArgument {
    pub(crate) name: Option<String>,
    /// None for `DEFAULT`.
    pub(crate) value: Option<ast::Expr>,
    /// The variable that takes the parameter's value afterwards.
    pub(crate) output: Option<String>,
}

/// Where a statement's rows of `OUTPUT` go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub(crate) items: Vec<ast::SelectItem>,
    pub(crate) into: Option<(ObjectName, Vec<String>)>,
}

/// A table that a statement changes: an object's name or a FROM clause's alias, and its hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) name: ObjectName,
    pub(crate) alias: Option<String>,
    pub(crate) hints: Vec<ast::Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Insert {
    pub(crate) with: Option<ast::With>,
    pub(crate) top: Option<ast::Top>,
    pub(crate) target: Target,
    /// Empty without a list.
    pub(crate) columns: Vec<String>,
    pub(crate) output: Option<Output>,
    pub(crate) source: InsertSource,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "few of them live at a time")]
pub(crate) enum InsertSource {
    /// Rows of expressions; none is `DEFAULT`.
    Values(Vec<Vec<Option<ast::Expr>>>),
    Query(Box<ast::Query>),
    Execute(Execute),
    ExecuteText(ast::Expr),
    DefaultValues,
}

/// `column = value`, `@variable = value` or `@variable = column = value`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) variable: Option<String>,
    pub(crate) column: Option<String>,
    /// None for `DEFAULT`.
    pub(crate) value: Option<ast::Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    pub(crate) with: Option<ast::With>,
    pub(crate) top: Option<ast::Top>,
    pub(crate) target: Target,
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) output: Option<Output>,
    pub(crate) from: Vec<ast::TableWithJoins>,
    pub(crate) selection: Option<ast::Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delete {
    pub(crate) with: Option<ast::With>,
    pub(crate) top: Option<ast::Top>,
    pub(crate) target: Target,
    pub(crate) output: Option<Output>,
    pub(crate) from: Vec<ast::TableWithJoins>,
    pub(crate) selection: Option<ast::Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Merge {
    pub(crate) with: Option<ast::With>,
    pub(crate) top: Option<ast::Top>,
    pub(crate) target: Target,
    pub(crate) source: ast::TableFactor,
    pub(crate) on: ast::Expr,
    pub(crate) clauses: Vec<MergeClause>,
    pub(crate) output: Option<Output>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MergeClause {
    pub(crate) when: MergeWhen,
    pub(crate) condition: Option<ast::Expr>,
    pub(crate) action: MergeAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeWhen {
    Matched,
    NotMatchedByTarget,
    NotMatchedBySource,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MergeAction {
    Update(Vec<Assignment>),
    Delete,
    Insert { columns: Vec<String>, values: Vec<Option<ast::Expr>> },
    InsertDefaults,
}

/// The columns and constraints of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableBody {
    pub(crate) columns: Vec<ColumnBody>,
    pub(crate) constraints: Vec<Constraint>,
    /// Names of CHECK constraints, and their conditions.
    pub(crate) checks: Vec<(Option<String>, ast::Expr)>,
    /// Indexes that are no constraints.
    pub(crate) indexes: Vec<(String, Index)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnBody {
    pub(crate) name: String,
    /// None for a computed column.
    pub(crate) data_type: Option<ast::DataType>,
    pub(crate) computed: Option<ast::Expr>,
    pub(crate) persisted: bool,
    pub(crate) collation: Option<ast::ObjectName>,
    /// None when not said.
    pub(crate) nullable: Option<bool>,
    pub(crate) identity: Option<(i64, i64)>,
    /// The constraint's name, and the expression.
    pub(crate) default: Option<(Option<String>, ast::Expr)>,
    /// For a default that a new column gives to rows that are there.
    pub(crate) with_values: bool,
}

/// A key or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constraint {
    pub(crate) name: Option<String>,
    pub(crate) primary: bool,
    /// None when not said.
    pub(crate) clustered: Option<bool>,
    /// Columns, and true for one in descending order.
    pub(crate) columns: Vec<(String, bool)>,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "few of them live at a time")]
pub(crate) enum Definition {
    CreateTable {
        name: ObjectName,
        table: TableBody,
    },
    DropTables {
        names: Vec<ObjectName>,
        if_exists: bool,
    },
    AlterTable {
        name: ObjectName,
        action: AlterTable,
        /// As the client wrote it.
        text: String,
    },
    CreateIndex {
        name: String,
        table: ObjectName,
        index: Index,
    },
    DropIndex {
        name: String,
        table: ObjectName,
        if_exists: bool,
    },
    CreateSchema {
        name: String,
        owner: Option<String>,
    },
    DropSchema {
        name: String,
        if_exists: bool,
    },
    CreateType {
        name: ObjectName,
        data_type: ast::DataType,
        nullable: Option<bool>,
    },
    DropType {
        name: ObjectName,
        if_exists: bool,
    },
    CreateDatabase {
        name: String,
        collation: Option<ast::ObjectName>,
    },
    DropDatabases {
        names: Vec<String>,
        if_exists: bool,
    },
    AlterDatabase {
        name: Option<String>,
        option: DatabaseOption,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) unique: bool,
    pub(crate) clustered: bool,
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) included: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "few of them live at a time")]
pub(crate) enum AlterTable {
    Add(TableBody),
    /// A default for a column that is there: its constraint's name, the column, the expression.
    AddDefault {
        name: Option<String>,
        column: String,
        value: ast::Expr,
    },
    AlterColumn(ColumnBody),
    DropColumns {
        names: Vec<String>,
        if_exists: bool,
    },
    DropConstraints {
        names: Vec<String>,
        if_exists: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseOption {
    AllowSnapshotIsolation(bool),
    ReadCommittedSnapshot(bool),
    Recovery(String),
    Compatibility(u32),
    Collation(String),
    /// An option that changes nothing here.
    Harmless,
}

/// Logins, users, roles and rights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Right {
    CreateLogin { name: String, password: String, database: Option<String> },
    AlterLogin { name: String, password: Option<String>, enabled: Option<bool> },
    DropLogin { name: String },
    CreateUser { name: String, login: Option<String>, schema: Option<String> },
    DropUser { name: String, if_exists: bool },
    CreateRole { name: String },
    DropRole { name: String, if_exists: bool },
    RoleMember { role: String, member: String, add: bool, server: bool },
    Permission(Permission),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermissionVerb {
    Grant,
    Deny,
    Revoke,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permission {
    pub(crate) verb: PermissionVerb,
    /// Upper case, words parted by one blank: `VIEW DATABASE STATE`.
    pub(crate) rights: Vec<String>,
    pub(crate) on: Securable,
    pub(crate) principals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Securable {
    /// The database that is open, or the server for a right of servers.
    Nothing,
    Object(ObjectName),
    Schema(String),
    Database(String),
}
