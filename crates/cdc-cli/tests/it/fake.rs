//! `cdc fake serve`, and a client of it as small as one can be.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::support::{Ended, Place, cdc, command};

/// A process that is ended when a test fails.
pub(crate) struct Serving {
    child: Option<Child>,
    pub(crate) address: String,
}

impl Serving {
    pub(crate) fn start(place: &Place, more: &[&str]) -> Self {
        let file = place.path("address");
        let path = file.to_string_lossy().into_owned();
        let fixed = ["fake", "serve", "--json", "--listen", "127.0.0.1:0", "--address-file", &path];
        let child = command(&[&fixed[..], more].concat())
            .env("FAKE_PASSWORD", "P\u{e4}ss1!")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut serving = Self { child: Some(child), address: String::new() };
        serving.address = serving.wait_for(&file);
        serving
    }

    fn wait_for(&mut self, file: &Path) -> String {
        let begun = Instant::now();
        loop {
            if let Ok(address) = fs::read_to_string(file) {
                return address.trim().to_owned();
            }
            let child = self.child.as_mut().expect("runs");
            let ended = child.try_wait().expect("is a child");
            assert!(ended.is_none() && begun.elapsed() < Duration::from_secs(30), "{ended:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks for a stop, and reads how it ended.
    #[cfg(unix)]
    fn stop(mut self) -> Ended {
        let child = self.child.take().expect("runs");
        let kill = format!("kill -TERM {}", child.id());
        let sent = std::process::Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("sh is there").success());
        Ended::of(&child.wait_with_output().expect("ends"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Sends one packet, and reads the reply's packets.
fn ask(stream: &mut TcpStream, kind: u8, body: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(body.len() + 8).expect("one packet").to_be_bytes();
    stream.write_all(&[&[kind, 1, high, low, 0, 0, 0, 0], body].concat()).expect("is sent");
    let mut reply = Vec::new();
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header).expect("a packet");
        let mut packet = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
        stream.read_exact(&mut packet).expect("its bytes");
        reply.extend(packet);
        if header[1] & 1 == 1 {
            return reply;
        }
    }
}

/// A session without TLS: the connection, and the reply to the login.
pub(crate) fn log_in(address: &str, password: &str) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("listens");
    let mut prelogin = vec![0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF];
    prelogin.extend([9, 0, 0, 0, 0, 0, 2]);
    ask(&mut stream, 18, &prelogin);
    let scrambled = units(password).iter().map(|b| b.rotate_left(4) ^ 0xA5).collect();
    let mut texts: Vec<Vec<u8>> = vec![Vec::new(); 9];
    (texts[1], texts[2], texts[8]) = (units("tester"), scrambled, units("shop"));
    let mut fixed = Vec::new();
    for number in [0x7400_0004_u32, 4096, 7, 1, 0] {
        fixed.extend(number.to_le_bytes());
    }
    fixed.extend([224, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut data = Vec::new();
    for text in texts {
        fixed.extend(u16::try_from(94 + data.len()).expect("short").to_le_bytes());
        fixed.extend(u16::try_from(text.len() / 2).expect("short").to_le_bytes());
        data.extend(text);
    }
    fixed.resize(90, 0);
    let length = u32::try_from(94 + data.len()).expect("short").to_le_bytes();
    let reply = ask(&mut stream, 16, &[length.to_vec(), fixed, data].concat());
    (stream, reply)
}

/// Runs a batch of statements.
pub(crate) fn batch(stream: &mut TcpStream, text: &str) -> Vec<u8> {
    let headers = [22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    ask(stream, 1, &[headers.to_vec(), units(text)].concat())
}

fn contains(reply: &[u8], part: &[u8]) -> bool {
    reply.windows(part.len()).any(|window| window == part)
}

/// The SQL of the guide's first script, and of its first reads.
fn guide() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/fake-sql-server.md");
    let guide = fs::read_to_string(path).expect("is in the repository");
    guide
        .split("```sql\n")
        .skip(1)
        .map(|after| after.split("```").next().expect("is closed").to_owned())
        .collect()
}

#[test]
#[cfg(unix)]
fn a_client_logs_in_to_the_guides_server_and_reads_its_changes() {
    let place = Place::new();
    let blocks = guide();
    let script = place.path("start.sql");
    fs::write(&script, &blocks[0]).expect("is written");
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
            "--encryption",
            "off",
        ],
    );
    let (_, refused) = log_in(&serving.address, "wrong");
    assert!(contains(&refused, &18_456_u32.to_le_bytes()), "{refused:?}");
    let (mut stream, welcome) = log_in(&serving.address, "P\u{e4}ss1!");
    assert_eq!(welcome.iter().filter(|byte| **byte == 0xAD).count().min(1), 1, "LOGINACK");
    let mut run = |text: &str| batch(&mut stream, text);
    let changes = run(&blocks[1]);
    for item in ["pen", "ink"] {
        assert!(contains(&changes, &units(item)), "{changes:?}");
    }
    // The two inserts, and the two images of the update: four rows, then the two net ones.
    let done = |rows: u64| [&[0xC1, 0][..], &rows.to_le_bytes()].concat();
    assert!(contains(&changes, &done(4)) && contains(&changes, &done(2)), "{changes:?}");
    let report = serving.stop().expect(0);
    assert_eq!((&report["command"], &report["stopped"]), (&"fake serve".into(), &true.into()));
}

#[test]
#[cfg(unix)]
fn a_real_clock_moves_by_itself() {
    let place = Place::new();
    let script = place.path("start.sql");
    fs::write(&script, "CREATE DATABASE shop").expect("is written");
    let script = script.to_string_lossy();
    let faults = place.path("faults.toml");
    fs::write(&faults, "[[error]]\nnumber = 1205\nstatement = \"SELECT\"\n").expect("is written");
    let serving = Serving::start(
        &place,
        &[
            "--script",
            &script,
            "--faults",
            &faults.to_string_lossy(),
            "--user",
            "tester",
            "--zone",
            "+02:00",
        ],
    );
    let (mut stream, _) = log_in(&serving.address, "");
    let mut run = |text: &str| batch(&mut stream, text);
    assert!(contains(&run("SELECT 1"), &1205_u32.to_le_bytes()), "the planted error");
    let text = "DECLARE @begun datetime2 = SYSUTCDATETIME() WAITFOR DELAY '00:00:00.050' \
                IF DATEDIFF(ms, @begun, SYSUTCDATETIME()) >= 50 \
                AND DATEPART(tz, SYSDATETIMEOFFSET()) = 120 SELECT N'passed' ELSE SELECT N'not'";
    assert!(contains(&run(text), &units("passed")));
    serving.stop().expect(0);
}

#[test]
fn what_cannot_be_served_is_refused_with_its_reason() {
    let place = Place::new();
    let script = place.path("bad.sql");
    fs::write(&script, "SELECT 1\nGO\nCREATE TABLE t (a nothing)\n").expect("is written");
    let script = script.to_string_lossy();
    let report = cdc(&["fake", "serve", "--json", "--listen", "127.0.0.1:0", "--script", &script]);
    let report = report.expect(2);
    let message = report["error"]["message"].as_str().expect("a text");
    assert!(message.contains("line=3"), "{message}");
    for wrong in [["--zone", "Nowhere/Land"], ["--certificate", "c.pem"], ["--clock", "sundial"]] {
        let ended = cdc(&["fake", "serve", wrong[0], wrong[1]]);
        assert_eq!(ended.code, 2, "{wrong:?}");
    }
    let missing = cdc(&["fake", "serve", "--json", "--password-env", "NO_SUCH_VARIABLE"]).expect(2);
    assert!(missing["error"]["advice"].as_str().expect("a text").contains("--password-env"));
}
