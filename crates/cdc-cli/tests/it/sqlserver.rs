//! From a server over TDS into Delta: `cdc fake serve` in one process, `cdc run` in another, with a
//! login that has the least rights.

use std::{collections::BTreeMap, fs, path::Path};

use cdc_cli::bronze::Bronze;

use crate::{
    fake::{Serving, batch, log_in},
    support::{Ended, Place, command, table},
};

const SCRIPT: &str = "
CREATE DATABASE shop;
GO
USE shop;
EXEC sys.sp_cdc_enable_db;
CREATE TABLE dbo.orders (
    id int NOT NULL PRIMARY KEY, item nvarchar(50) NULL, amount decimal(10, 2) NULL, paid money NULL,
    note varchar(max) NULL, at datetime2(7) NULL
);
CREATE TABLE dbo.lines (shop char(3) NOT NULL, line int NOT NULL, PRIMARY KEY (shop, line));
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', @role_name = NULL;
EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'lines', @role_name = NULL;
CREATE LOGIN reader WITH PASSWORD = N'P\u{e4}ss1!';
CREATE USER reader FOR LOGIN reader;
GRANT SELECT ON dbo.orders TO reader;
GRANT SELECT ON dbo.lines TO reader;
GRANT SELECT ON cdc.dbo_lines_CT TO reader;
GO
USE shop;
INSERT dbo.orders VALUES (1, N'pen', 1.50, 922337203685477.5807, 'a', '2025-01-02T03:04:05.1234567'),
    (2, N'\u{3b1}\u{1F600}', NULL, NULL, NULL, NULL);
UPDATE dbo.orders SET amount = 2.50 WHERE id = 1;
INSERT dbo.lines VALUES ('b', 1), ('a', 1), ('a', 2);
EXEC fake.run_capture;
GO
";

fn write(place: &Place, address: &str, login: &str, certificate: &Path) -> String {
    let port = address.rsplit(':').next().expect("has a port");
    let text = format!(
        "[source]\nkind = \"sqlserver\"\nhost = \"localhost\"\nport = {port}\ndatabase = \"shop\"\n\
         user = \"{login}\"\npassword_env = \"FAKE_PASSWORD\"\ntls_ca_file = \"{}\"\n\
         [target]\nroot = \"lake\"\n{}{}",
        certificate.display(),
        table("dbo.orders", "orders", "earliest"),
        table("dbo.lines", "lines", "earliest"),
    );
    let path = place.path("cdc.toml");
    fs::write(&path, text).expect("is written");
    path.to_string_lossy().into_owned()
}

fn run(arguments: &[&str], password: &str) -> Ended {
    let mut command = command(arguments);
    Ended::of(&command.env("FAKE_PASSWORD", password).output().expect("the binary starts"))
}

#[test]
fn a_login_with_the_least_rights_copies_from_a_server_and_goes_on_from_its_mark() {
    let password = "P\u{e4}ss1!";
    let place = Place::new();
    let (script, certificate) = (place.path("start.sql"), place.path("server.pem"));
    fs::write(&script, SCRIPT).expect("is written");
    let serving = Serving::start(
        &place,
        &[
            "--clock",
            "virtual",
            "--script",
            &script.to_string_lossy(),
            "--user",
            "tester",
            "--password-env",
            "FAKE_PASSWORD",
            "--write-certificate",
            &certificate.to_string_lossy(),
        ],
    );
    let config = write(&place, &serving.address, "reader", &certificate);
    let once = ["run", &config, "--once", "--json"];

    // A right is missing: the table stops with the statement that grants it, the other is copied.
    let ended = run(&once, password);
    assert_ne!(ended.code, 0);
    let report = ended.json();
    let tables: BTreeMap<_, _> = report["tables"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|table| (table["table"].as_str().expect("a name").to_owned(), table.clone()))
        .collect();
    let error = &tables["orders"]["error"];
    assert_eq!(error["kind"], "unauthorized", "{report}");
    let grant = "GRANT SELECT ON [cdc].[dbo_orders_CT] TO [reader]";
    assert!(error["advice"].as_str().expect("a text").contains(grant), "{report}");
    assert!(tables["lines"]["error"].is_null(), "{report}");
    assert_eq!(tables["lines"]["rows"], 3);

    let (mut stream, _) = log_in(&serving.address, password);
    batch(&mut stream, grant);
    run(&once, password).expect(0);
    let orders = Bronze::new(place.lake().join("bronze/orders"));
    assert_eq!(orders.count().expect("is read"), 4);

    // What happens later is copied by the next run, and nothing twice.
    batch(
        &mut stream,
        "DELETE dbo.orders WHERE id = 2; INSERT dbo.orders (id, item) VALUES (3, N'ink'); \
         EXEC fake.run_capture",
    );
    run(&once, password).expect(0);
    let again = run(&once, password).expect(0);
    assert_eq!(again["tables"][0]["rows"], 0);
    assert_eq!(orders.count().expect("is read"), 6);
    let columns = ["id", "item", "amount", "paid", "note", "at"];
    let latest = orders.latest(&["id"], &columns).expect("is read");
    let shown = format!("{latest:?}");
    assert_eq!(latest.len(), 2, "{shown}");
    assert!(shown.contains("ink") && shown.contains("pen"), "{shown}");
    let status = run(&["status", &config, "--json"], password).expect(0);
    assert!(status.to_string().contains("copied"), "{status}");

    // A wrong password is refused, and shown by nothing.
    let refused = run(&["run", &config, "--once", "--json"], "planted");
    assert_ne!(refused.code, 0);
    let all = format!("{}{}", refused.stdout, refused.stderr);
    assert!(all.contains("18456") && !all.contains("planted"), "{all}");
}
