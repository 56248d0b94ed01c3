//! The peers step of `ci`: the servers and launchers that tests work with, from the package registries this
//! machine knows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, target_dir, text_of};
use crate::{Failure, no_arguments};

/// Programs from Debian's packages: what each is called, and its package.
const PACKAGES: &[[&str; 2]] = &[
    ["fio", "fio"],
    ["redis-server", "redis-server"],
    ["redis-benchmark", "redis-tools"],
    ["mpirun", "openmpi-bin"],
    ["chromium", "chromium"],
    ["faketime", "faketime"],
];

/// A virtual environment of Python.
struct Environment {
    /// Its folder.
    name: &'static str,
    packages: &'static [&'static str],
    /// The program of it that tests start, and how they are told where it is.
    program: &'static str,
    told_by: &'static str,
}

const ENVIRONMENTS: &[Environment] = &[
    // An S3 server. Its `server` extra brings every service of AWS and takes four times as long to install.
    Environment {
        name: "moto",
        packages: &["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"],
        program: "moto_server",
        told_by: "WAVETANK_MOTO_SERVER",
    },
    // Clients and receivers of our servers: Redis' own, OTLP, a reader of metrics, OpenAI's; what subscribers
    // to the KV events of live workers use.
    Environment {
        name: "clients",
        packages: &[
            "redis==8.1.0",
            "opentelemetry-proto==1.45.2",
            "grpcio==1.85.1",
            "prometheus-client==0.26.0",
            "trustme==1.2.1",
            "openai==3.49.0",
            "pyzmq==27.3.0",
            "msgspec==0.22.0",
        ],
        program: "python",
        told_by: "WAVETANK_PYTHON",
    },
];
/// What was installed, inside its virtual environment.
const INSTALLED: &str = "installed.txt";

/// The chore: only that step.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    no_arguments(args)?;
    Ok(install()?)
}

/// Makes sure that all of them are here.
pub(crate) fn install() -> Result<(), String> {
    PACKAGES.iter().try_for_each(package)?;
    ENVIRONMENTS.iter().try_for_each(|environment| fill(environment, &environment.folder()))
}

/// A Python of its own with `packages`, made unless it is there.
pub(crate) fn python(name: &'static str, packages: &'static [&'static str]) -> Result<PathBuf, String> {
    let environment = Environment { name, packages, program: "python", told_by: "" };
    fill(&environment, &environment.folder())?;
    std::path::absolute(environment.folder().join("bin/python")).map_err(|e| e.to_string())
}

/// Makes tests fail where a peer is missing, instead of being skipped, and says where they are.
pub(crate) fn require(command: &mut Command) -> Result<&mut Command, String> {
    for environment in ENVIRONMENTS {
        let program = environment.folder().join("bin").join(environment.program);
        // A path with dots is kept: a link to Python must not be followed out of its environment.
        command.env(environment.told_by, std::path::absolute(program).map_err(|e| e.to_string())?);
    }
    Ok(command.env("WAVETANK_REQUIRE_PEERS", "1"))
}

impl Environment {
    fn folder(&self) -> PathBuf {
        target_dir().join("peers").join(self.name)
    }
}

/// Makes sure that a program is here.
fn package([program, package]: &[&str; 2]) -> Result<(), String> {
    if let Ok(version) = text_of(program, &["--version"]) {
        println!("{}", version.lines().next().unwrap_or_default());
        return Ok(());
    }
    if text_of("id", &["-u"])? != "0" {
        return Err(format!("{program} is missing; as root: apt-get install {package}"));
    }
    for words in [&["update", "-q"][..], &["install", "-q", "-y", "--no-install-recommends", package]] {
        process::run(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

/// Fills a virtual environment unless it has just these packages.
fn fill(environment: &Environment, folder: &Path) -> Result<(), String> {
    let packages = environment.packages;
    let wanted = packages.join("\n");
    let mark = folder.join(INSTALLED);
    // An environment that was moved still has its mark, and its programs name the old place.
    let program = folder.join("bin").join(environment.program);
    let starts = || text_of(&program.to_string_lossy(), &["--help"]).is_ok();
    if fs::read_to_string(&mark).is_ok_and(|found| found == wanted) && starts() {
        println!("{}: {}", folder.display(), packages.join(", "));
        return Ok(());
    }
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
    process::run(&mut pip)?;
    // Last, so that what was interrupted is done again.
    fs::write(&mark, wanted).map_err(|e| format!("{}: {e}", mark.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_installed_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment { packages: &["a==1", "b==2"], ..ENVIRONMENTS[0] };
        fs::write(folder.path().join(INSTALLED), "a==1\nb==2").unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("/bin/true", folder.path().join("bin/moto_server")).unwrap();
        assert_eq!(fill(&environment, folder.path()), Ok(()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn tests_are_told_where_the_server_is() {
        let mut command = Command::new("cargo");
        require(&mut command).unwrap();
        let place = command.get_envs().find(|(name, _)| *name == "WAVETANK_MOTO_SERVER").unwrap().1.unwrap();
        assert!(Path::new(place).is_absolute() && Path::new(place).ends_with("peers/moto/bin/moto_server"));
    }
}
