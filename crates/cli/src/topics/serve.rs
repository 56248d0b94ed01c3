//! `wavetank help serve`.

use super::{Topic, choices};

pub(super) const ENTRY: Topic =
    Topic { name: "serve", about: "the KV-cache server: doors, tiers, what it tells", text };

fn text() -> String {
    format!(
        "\
The KV-cache server

  wavetank serve --l1-size-gb 100 --eviction-policy lru --l2 direct:/mnt/nvme:2TiB

Two doors to the same objects: RESP for Redis clients and LMCache's resp adapter (--port, 7379), and HTTP for
the native API, a page, status and metrics (--http-port, 7380). It listens on this machine only; a --host
that others reach needs a password (--password-file, or WAVETANK_PASSWORD).

Memory is --l1-size-gb, behind it is any number of --l2 BACKEND:LOCATION[:CAPACITY]; files are there again
after a restart. Who leaves full memory is --eviction-policy:

{}
Tenants: --quota SALT=SIZE and --default-quota, with isolated_lru. Spans: --enable-tracing, and
--otlp-endpoint or --otlp-file. Every storage call: --trace-level storage --trace-output calls.lct.zst;
wavetank trace replay plays it again.

--config FILE takes every flag as TOML, --check prints the plan and ends, SIGTERM and Ctrl-C drain it. The
API: docs/serve.md; the flags: wavetank serve --help.
",
        choices("eviction")
    )
}
