//! `wavetank help environment`: every variable that is read.

use super::{Topic, columns};

pub(super) const ENTRY: Topic =
    Topic { name: "environment", about: "the variables that are read, and by what", text };

/// A variable, or several that belong together.
pub(crate) struct Variable {
    /// Their names.
    pub(crate) names: &'static str,
    /// Who reads them, and what for.
    pub(crate) about: &'static str,
}

/// Every variable, alphabetical. The man page prints this table too.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable {
        names: "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_*",
        about: "credentials, region and the like of the object backend",
    },
    Variable {
        names: "AWS_PROFILE, AWS_SHARED_CREDENTIALS_FILE",
        about: "which section of which file they are in otherwise (default of ~/.aws/credentials)",
    },
    Variable { names: "COLUMNS, NO_COLOR", about: "how wide help is, and that it has no colours" },
    Variable {
        names: "OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_LOCAL_RANK",
        about: "which rank of bench this is, under mpirun of Open MPI; --rank and --ranks win",
    },
    Variable {
        names: "OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL",
        about: "where spans of serve go, where --otlp-endpoint and --otlp-protocol do not say it",
    },
    Variable {
        names: "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE",
        about: "what is sent along, and whom to trust",
    },
    Variable {
        names: "OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME",
        about: "what spans say about their server",
    },
    Variable { names: "PATH", about: "where python3 and bpftrace are looked for" },
    Variable {
        names: "PMI_SIZE, PMI_RANK, MPI_LOCALRANKID",
        about: "which rank of bench this is, under mpiexec of MPICH",
    },
    Variable {
        names: "REDIS_PASSWORD",
        about: "the password of the redis backend, unless password_file names a file",
    },
    Variable {
        names: "SLURM_STEP_NUM_TASKS, SLURM_PROCID, SLURM_LOCALID",
        about: "which rank of bench this is, under srun",
    },
    Variable { names: "TMPDIR", about: "where bench and recordings go that are given no place" },
    Variable { names: "WAVETANK_API_KEY", about: "the key of mock, where --api-key does not say it" },
    Variable { names: "WAVETANK_PASSWORD", about: "the password of serve, unless --password-file does" },
    Variable {
        names: "WAVETANK_PYTHON",
        about: "the Python with AIConfigurator that the timing of \"aic\" engine arguments asks",
    },
    Variable {
        names: "XDG_CACHE_HOME, HOME",
        about: "where what it answered is kept: wavetank/aic in the first, or in .cache of the second",
    },
];

fn text() -> String {
    let rows = VARIABLES.iter().flat_map(|variable| {
        let names = variable.names.split(", ").enumerate();
        names.map(move |(at, name)| (name, if at == 0 { variable.about } else { "" }))
    });
    let table: String = columns(rows).lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!(
        "\
Variables of the environment

Flags and files win over them. What a simulated run gives depends on none.

{table}
A flag may name others: --key-env of trace anonymize, --otlp-header NAME=env:VARIABLE of serve.
"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    /// Broken by: a crate that reads a variable which is not told.
    #[test]
    fn every_variable_that_the_code_reads_is_told() {
        let known: Vec<&str> = VARIABLES.iter().flat_map(|variable| variable.names.split(", ")).collect();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut read = Vec::new();
        for file in sources(&crates) {
            read.extend(read_in(&fs::read_to_string(&file).unwrap()));
        }
        assert!(read.iter().any(|name| name == "WAVETANK_PASSWORD"), "{read:?}");
        assert!(read.iter().any(|name| name == "SLURM_PROCID"), "{read:?}");
        for name in read {
            assert!(known.contains(&name.as_str()), "{name} is read and not in the table");
        }
    }

    /// Rust files of crates, without tests.
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        let is_source = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.ends_with(".rs") && name != "tests.rs" && name != "build.rs" && name != "revision.rs"
        };
        let inner = folders
            .into_iter()
            .filter(|path| !["tests", "examples", "benches"].iter().any(|name| path.ends_with(name)));
        files.into_iter().filter(is_source).chain(inner.flat_map(|folder| sources(&folder))).collect()
    }

    /// Names in the calls that read variables, before a file's own tests.
    fn read_in(text: &str) -> Vec<String> {
        const CALLS: [&str; 7] = [
            "env::var(\"",
            "env::var_os(\"",
            "environment(\"",
            "given(\"",
            " of: \"",
            "number: \"",
            "local: \"",
        ];
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let names = CALLS.iter().flat_map(|call| text.split(call).skip(1));
        let names = names.filter_map(|rest| rest.split('"').next());
        let is_name = |name: &&str| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        names.filter(is_name).map(str::to_owned).collect()
    }
}
