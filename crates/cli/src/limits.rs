//! What this process may use of the system.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the process have as many files open as it may: entries on a drive stay open while there is room. A
/// refusal costs speed only.
pub(crate) fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
