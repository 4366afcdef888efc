//! No secret is ever printed: every way to fail that a configuration and a server have, with one
//! marker in place of every secret, at the loudest level of the log.

use std::{fs, net::TcpListener, path::Path};

use crate::{
    fake::{Serving, batch, log_in},
    support::{Place, command},
};

/// What must not be seen: as it is, and as it is written in base64 and in URLs.
const MARKER: &str = "m4rk3r/s3cr3t";
const HIDDEN: [&str; 4] = [MARKER, "m4rk3r", "bTRyazNyL3MzY3IzdA", "m4rk3r%2Fs3cr3t"];
const PASSWORD: &str = "P\u{e4}ss1!";

/// Runs every command that reads a configuration, and looks at all that it prints.
fn drive(place: &Place, name: &str, config: &str) {
    let path = place.path("cdc.toml");
    fs::write(&path, config).expect("is written");
    let path = path.to_string_lossy().into_owned();
    for (arguments, json) in [
        (&["run", &path, "--once"][..], false),
        (&["status", &path][..], true),
        (&["doctor", &path, "--strict"][..], false),
        (&["doctor", &path, "--strict"][..], true),
    ] {
        let mut command = command(arguments);
        command.args(["--log-level", "trace"]);
        if json {
            command.args(["--json", "--log-format", "json"]);
        }
        command.env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        command.env("MARKED", MARKER).env("FAKE_PASSWORD", PASSWORD);
        let output = command.output().expect("the binary starts");
        let all = [output.stdout.as_slice(), &output.stderr].concat();
        let all = String::from_utf8_lossy(&all);
        assert!(!all.is_empty(), "{name}: {arguments:?} says nothing");
        for hidden in HIDDEN {
            assert!(!all.contains(hidden), "{name}: {arguments:?} shows {hidden}:\n{all}");
        }
        assert!(!output.status.success(), "{name}: {arguments:?} is no failure:\n{all}");
    }
}

/// A configuration of a server at a port, with a login.
fn source(port: u16, login: &str) -> String {
    format!(
        "[source]\nkind = \"sqlserver\"\nhost = \"127.0.0.1\"\nport = {port}\n\
         encryption = \"off\"\ndatabase = \"shop\"\nattempts_max = 2\nretry_pause_first = \"1ms\"\n\
         retry_pause_max = \"1ms\"\nconnect_timeout = \"2s\"\n{login}\n[target]\nroot = \"lake\"\n\
         [run]\nattempts_max = 1\n[[tables]]\nsource = \"dbo.orders\"\n"
    )
}

#[test]
fn a_configuration_with_secrets_in_the_wrong_place_shows_none() {
    let place = Place::new();
    let command_words = format!("login_command = [\"sh\", \"-c\", \"{MARKER}\", 5]");
    for (name, login) in [
        ("a literal password", format!("user = \"u\"\npassword = \"{MARKER}\"")),
        ("a literal token", format!("token = \"{MARKER}\"")),
        ("a literal that is no text", format!("token = [\"{MARKER}\"]")),
        ("a literal in a table", format!("password = {{ value = \"{MARKER}\" }}")),
        ("an unknown key with a secret's name", format!("client_secret = \"{MARKER}\"")),
        ("a url with a password", format!("application = \"http://u:{MARKER}@h/\"")),
        ("a text that does not end", format!("user = \"u\"\npassword = \"{MARKER}")),
        ("a value that is no value", format!("user = \"u\"\npassword = {MARKER}")),
        ("a key twice", format!("user = \"u\"\npassword = \"{MARKER}\"\npassword = \"x\"")),
        ("words that are no list", command_words),
        (
            "two logins",
            format!(
                "user = \"u\"\npassword_env = \"MARKED\"\n\
                               login_command = [\"{MARKER}\"]"
            ),
        ),
    ] {
        drive(&place, name, &source(1, &login));
    }
}

#[test]
#[cfg(unix)]
fn a_login_that_fails_shows_no_secret() {
    let place = Place::new();
    let script = place.path("start.sql");
    let text = "CREATE DATABASE shop;\nGO\nUSE shop;\nEXEC sys.sp_cdc_enable_db;\n";
    fs::write(&script, text).expect("is written");
    let script = script.to_string_lossy().into_owned();
    let fixed = ["--clock", "virtual", "--script", &script, "--user", "tester"];
    let serving =
        Serving::start(&place, &[&fixed[..], &["--password-env", "FAKE_PASSWORD"]].concat());
    let port: u16 = serving.address.rsplit(':').next().expect("one").parse().expect("a port");
    let file = place.path("secret");
    fs::write(&file, MARKER).expect("is written");
    let file = file.display();
    let logins = [
        ("a wrong password", "user = \"tester\"\npassword_env = \"MARKED\"".to_owned()),
        ("an unknown user", "user = \"nobody\"\npassword_env = \"MARKED\"".to_owned()),
        ("a password of a file", format!("user = \"tester\"\npassword_file = \"{file}\"")),
        ("a token", "token_env = \"MARKED\"".to_owned()),
        ("a token of a file", format!("token_file = \"{file}\"")),
        ("a command's token", format!("login_command = [\"cat\", \"{file}\"]")),
        (
            "a command that fails",
            format!(
                "login_command = [\"sh\", \"-c\", \"echo {MARKER}; echo {MARKER} >&2; exit 1\"]"
            ),
        ),
        ("a command that is not there", format!("login_command = [\"/no/{MARKER}\"]")),
        (
            "a command that does not end",
            format!(
                "login_command = [\"sh\", \"-c\", \"echo {MARKER}; exec sleep 60\"]\n\
                 login_command_timeout = \"100ms\""
            ),
        ),
    ];
    for (name, login) in &logins {
        drive(&place, name, &source(port, login));
    }
    // The same password where the server asks for encryption that it has not, or that nobody trusts.
    let password = "user = \"tester\"\npassword_env = \"MARKED\"";
    for encryption in ["required", "strict"] {
        let text = source(port, password).replace("\"off\"", &format!("\"{encryption}\""));
        drive(&place, "a certificate that nobody trusts", &text);
        drive(&place, "a certificate of another name", &text.replace("127.0.0.1", "127.0.0.2"));
    }
    drive(&place, "an unknown database", &source(port, password).replace("shop", "none"));
    quoted_by_the_server(&place, &serving.address, port);
}

/// The server's own words quote what it was sent, or what it holds.
fn quoted_by_the_server(place: &Place, address: &str, port: u16) {
    let (mut administrator, _) = log_in(address, PASSWORD);
    let right = "user = \"tester\"\npassword_env = \"FAKE_PASSWORD\"";
    for (number, statement) in [
        (245, "SELECT"),
        (245, "EXECUTE"),
        (1_205, "SELECT"),
        (18_456, "SELECT"),
        (50_000, "SELECT"),
    ] {
        let plant = format!(
            "EXEC fake.inject_error {number}, 1000, N'{statement}', \
             N'Conversion failed when converting the value ''{MARKER}''.'"
        );
        batch(&mut administrator, "EXEC fake.clear_faults");
        batch(&mut administrator, &plant);
        if statement == "SELECT" {
            // The server does send it.
            let reply = batch(&mut administrator, "SELECT 1");
            let sent: Vec<u8> = MARKER.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert!(reply.windows(sent.len()).any(|window| window == sent));
        }
        drive(place, &format!("error {number} of {statement}"), &source(port, right));
    }
}

#[test]
fn a_server_that_is_not_there_or_answers_nonsense_shows_no_secret() {
    let place = Place::new();
    let login = "user = \"u\"\npassword_env = \"MARKED\"";
    drive(&place, "nobody listens", &source(1, login));
    // It sends back what it was sent: a login, with the password in it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("has one").port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut echo = client.try_clone().expect("a socket");
                let _ = std::io::copy(&mut client, &mut echo);
            });
        }
    });
    for encryption in ["off", "required", "strict"] {
        let text = source(port, login).replace("\"off\"", &format!("\"{encryption}\""));
        drive(&place, "an echo", &text);
    }
}

#[test]
fn the_authorities_of_the_system_are_believed_and_no_others() {
    let place = Place::new();
    let (script, certificate) = (place.path("start.sql"), place.path("server.pem"));
    let text = "CREATE DATABASE shop;\nGO\nUSE shop;\nEXEC sys.sp_cdc_enable_db;\n\
                CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY);\n\
                EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', \
                @role_name = NULL;\nINSERT dbo.orders VALUES (1);\nEXEC fake.run_capture;\n";
    fs::write(&script, text).expect("is written");
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let (script, certificate) = (shown(&script), shown(&certificate));
    let fixed = ["--clock", "virtual", "--script", &script, "--user", "tester"];
    let more = ["--password-env", "FAKE_PASSWORD", "--write-certificate", &certificate];
    let serving = Serving::start(&place, &[&fixed[..], &more].concat());
    let port: u16 = serving.address.rsplit(':').next().expect("one").parse().expect("a port");
    let login = "user = \"tester\"\npassword_env = \"FAKE_PASSWORD\"";
    let path = place.path("cdc.toml");
    fs::write(&path, source(port, login).replace("\"off\"", "\"required\"")).expect("is written");
    let run = |trusted: Option<&str>| {
        let mut command = command(&["doctor", &shown(&path), "--json"]);
        command.env("FAKE_PASSWORD", PASSWORD).env_remove("SSL_CERT_DIR");
        if let Some(file) = trusted {
            command.env("SSL_CERT_FILE", file);
        }
        crate::support::Ended::of(&command.output().expect("the binary starts"))
    };
    let report = run(Some(&certificate)).json();
    assert!(report["findings"].is_array(), "{report}");
    let report = run(None).expect(2);
    assert_eq!(report["error"]["kind"], "config", "{report}");
    let advice = report["error"]["advice"].as_str().expect("a text");
    assert!(advice.contains("source.tls_ca_file"), "{report}");
}
