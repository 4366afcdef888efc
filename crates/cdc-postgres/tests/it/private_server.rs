//! A PostgreSQL of one's own: from the machine's binaries, in a directory that goes with it, as a
//! user that is not root, gone when the process that started it is gone.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The longest that a server may take to start, and to let go of what a killed one held.
const START_MAX: Duration = Duration::from_secs(60);

/// Where Debian's packages, and others, put the binaries; one directory a version.
const PLACES: [&str; 3] = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt"];

/// A server that runs. The first argument of [`Server::start`] says what may differ.
pub(crate) struct Server {
    binaries: PathBuf,
    directory: PathBuf,
    port: u16,
    user: Option<(u32, u32)>,
    settings: Vec<String>,
    child: Option<Child>,
}

/// The directory with `initdb` and `postgres`: of the newest version that is there.
///
/// # Errors
/// A text that says what is missing.
pub(crate) fn binaries() -> Result<PathBuf, String> {
    let complete = |directory: &Path| {
        ["initdb", "postgres", "pg_isready"].iter().all(|name| directory.join(name).is_file())
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for place in PLACES {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let directory = entry.path().join("bin");
            let name = entry.file_name().to_string_lossy().into_owned();
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            if complete(&directory) {
                found.push((digits.parse().unwrap_or(0), directory));
            }
        }
    }
    found.sort();
    if let Some((_, directory)) = found.pop() {
        return Ok(directory);
    }
    let plain = std::env::split_paths(&path).find(|directory| complete(directory));
    plain.ok_or_else(|| {
        "no initdb and postgres on this machine; apt-get install postgresql brings them".to_owned()
    })
}

impl Server {
    /// Starts a server in a new directory. It listens on a socket there and on a port of
    /// 127.0.0.1, trusts everybody, and has a superuser `cdc` and the database `postgres`.
    ///
    /// # Errors
    /// When a program fails or the server does not answer in time.
    pub(crate) fn start(binaries: &Path, settings: &[&str]) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("cdc-pg-").tempdir()?.keep();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        let user = not_root()?;
        if let Some((user, group)) = user {
            chown(&directory, Some(user), Some(group))?;
        }
        let port = free_port()?;
        let mut server = Self {
            binaries: binaries.to_owned(),
            directory,
            port,
            user,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            child: None,
        };
        let mut initdb = server.command("initdb");
        initdb.args(["--username=cdc", "--auth=trust", "--encoding=UTF8", "--no-locale"]);
        initdb.args(["--no-sync", "--pgdata"]).arg(server.data());
        let output = initdb.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(io::Error::other(format!("initdb: {said}")));
        }
        server.run()?;
        Ok(server)
    }

    /// The directory of its socket, which is the host of a connection to it.
    #[must_use]
    pub(crate) fn host(&self) -> String {
        self.directory.display().to_string()
    }

    /// Its port.
    #[must_use]
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its files, for a certificate for instance.
    #[must_use]
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Gives a file to the user that the server runs as, who alone may read it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn place(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.data().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        match self.user {
            Some((user, group)) => chown(&path, Some(user), Some(group)),
            None => Ok(()),
        }
    }

    /// Ends every process of the server at once, as a crash would: nothing is written out, every
    /// connection breaks, and the next start recovers.
    ///
    /// # Errors
    /// When the server cannot be signalled.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        // The shell sends the signal when it is told to, or its input ends.
        if let Some(mut input) = child.stdin.take() {
            input.write_all(b"keep\n")?;
        }
        child.wait().map(drop)
    }

    /// Starts the server again in its directory.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub(crate) fn restart(&mut self, settings: &[&str]) -> io::Result<()> {
        self.kill()?;
        self.settings.extend(settings.iter().map(|setting| (*setting).to_owned()));
        self.run()
    }

    fn run(&mut self) -> io::Result<()> {
        // The server lives as long as the shell's input is open, which ends with this process,
        // however that one ends; then the directory goes too.
        let script = "here=$PWD; \"$@\" & server=$!; read answer; kill -QUIT $server; \
                      wait $server; [ \"$answer\" = keep ] || { cd / && rm -rf \"$here\"; }";
        let mut shell = self.command("sh");
        shell.args(["-c", script, "sh"]).arg(self.binaries.join("postgres"));
        shell.arg("-D").arg(self.data()).arg("-k").arg(&self.directory);
        shell.arg("-p").arg(self.port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "logging_collector=off", "max_connections=64"]
        {
            shell.args(["-c", setting]);
        }
        for setting in &self.settings {
            shell.args(["-c", setting]);
        }
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log())?;
        shell.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        self.child = Some(shell.spawn()?);
        let begun = Instant::now();
        loop {
            let mut ready = self.command("pg_isready");
            ready.arg("-h").arg(&self.directory).arg("-p").arg(self.port.to_string());
            ready.stdout(Stdio::null()).stderr(Stdio::null());
            if ready.status()?.success() {
                return Ok(());
            }
            if begun.elapsed() > START_MAX {
                let mut said = String::new();
                fs::File::open(self.log())?.read_to_string(&mut said)?;
                return Err(io::Error::other(format!("the server does not answer: {said}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    fn command(&self, program: &str) -> Command {
        let own = self.binaries.join(program);
        let mut command = if own.is_file() { Command::new(own) } else { Command::new(program) };
        command.current_dir(&self.directory).env("LC_ALL", "C").env("TZ", "UTC");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let ended = self.kill();
        let removed = fs::remove_dir_all(&self.directory);
        if let Err(error) = ended.and(removed) {
            eprintln!("a PostgreSQL of a test stays behind: {error}");
        }
    }
}

/// Whom the server runs as when this process is root's, which it refuses to run as.
fn not_root() -> io::Result<Option<(u32, u32)>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    for name in ["postgres", "nobody"] {
        for line in users.lines() {
            let fields: Vec<_> = line.split(':').collect();
            if let [user, _, id, group, ..] = fields.as_slice()
                && *user == name
                && let (Ok(id), Ok(group)) = (id.parse(), group.parse())
            {
                return Ok(Some((id, group)));
            }
        }
    }
    Err(io::Error::other("root runs this, and there is no user postgres or nobody"))
}

fn free_port() -> io::Result<u16> {
    std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr().map(|address| address.port())
}
