//! Check d: the reference's native client stores and loads chunks through our server, which has memory for a
//! quarter of them, then through another on the same directory. It stores no faster than the tier behind
//! takes them: what a slow tier was not in time for is let go by design, and no disk's speed is checked here.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::{target_dir, test_binary};

/// Stores (or not), then asks for and loads all chunks with the reference's client.
const CLIENT: &str = r#"
import asyncio, hashlib, json, sys, urllib.request
from lmcache.v1.storage_backend.resp_client import RESPClient

port, http_port, stores = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "store"
# A part is what may be on its way to the tier behind at a time: a quarter of memory.
CHUNKS, SIZE, PART = 256, 1 << 20, 16

def key(number):
    digest = hashlib.sha256(number.to_bytes(4, "big")).hexdigest()
    return f"meta-llama/Llama-3.1-8B@02010201@0@{digest}" + ("@tenant-a" if number % 4 == 0 else "")

def chunk(number):
    return bytearray(hashlib.shake_128(number.to_bytes(4, "big")).digest(SIZE))

def status():
    address, allowed = f"http://127.0.0.1:{http_port}/status", {"Authorization": "Bearer p"}
    return json.load(urllib.request.urlopen(urllib.request.Request(address, headers=allowed)))

async def settle():
    while (now := status())["in_flight"]["l2_stores"] or any(tier["waiting"] for tier in now["tiers"]):
        await asyncio.sleep(0.01)

async def work():
    client = RESPClient("127.0.0.1", port, 8, username="u", password="p")
    names, chunks = [key(n) for n in range(CHUNKS)], [chunk(n) for n in range(CHUNKS)]
    for first in range(0, CHUNKS, PART) if stores else ():
        part = slice(first, first + PART)
        await client.batch_set(names[part], [memoryview(c) for c in chunks[part]])
        await settle()
    there = await client.batch_exists(names + [key(CHUNKS), key(CHUNKS + 1)])
    assert there == [True] * CHUNKS + [False] * 2, f"{sum(there)} are there"
    loaded = [bytearray(SIZE) for _ in range(CHUNKS)]
    # As many at a time as a lookup finds: each was seen before it is loaded.
    for first in range(0, CHUNKS, 32):
        part = slice(first, first + 32)
        assert all(await client.batch_exists(names[part]))
        await client.batch_get(names[part], [memoryview(c) for c in loaded[part]])
    wrong = sum(a != b for a, b in zip(chunks, loaded))
    assert wrong == 0, f"{wrong} chunks differ"
    client.close()
    memory, disk = status()["tiers"]
    print(f"{CHUNKS} chunks of {SIZE} bytes {'stored, ' if stores else ''}found and loaded;"
          f" {disk['copied']} copied to disk, {disk['loaded']} loaded from it, {memory['evicted']} evicted")

asyncio.run(asyncio.wait_for(work(), 240))
"#;
const PATIENCE: Duration = Duration::from_secs(30);

/// What went wrong.
pub(super) fn served(python: &Path) -> Vec<String> {
    let folder = target_dir().join("interop/served");
    let check = || {
        for way in ["store", "load"] {
            let server = Server::start(&folder)?;
            println!("resp {way}: {}", client(python, &server, way)?);
            server.end()?;
        }
        Ok(())
    };
    check().err().map(|problem: String| format!("resp: {problem}")).into_iter().collect()
}

fn client(python: &Path, server: &Server, way: &str) -> Result<String, String> {
    let mut command = Command::new(python);
    let [port, http_port] = [server.port, server.http_port].map(|port| port.to_string());
    command.args(["-c", CLIENT, &port, &http_port, way]).env("LMCACHE_LOG_LEVEL", "WARNING");
    let output = command.output().map_err(|e| format!("python: {e}"))?;
    let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let problem = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(told) } else { Err(format!("{way}: {}", problem.trim())) }
}

/// A port that nobody has.
fn free() -> Result<(TcpListener, u16), String> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|held| Ok((held.local_addr()?.port(), held)));
    found.map(|(port, held)| (held, port)).map_err(|e| format!("no port: {e}"))
}

struct Server {
    child: Child,
    port: u16,
    http_port: u16,
}

impl Server {
    fn start(folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        // Both are held until both are known, so that they differ.
        let held = [free()?, free()?];
        let [port, http_port] = held.each_ref().map(|(_, port)| *port);
        drop(held);
        let behind = format!("buffered:{}:1GiB", folder.display());
        let mut command = Command::new(test_binary());
        command.args(["serve", "--l1-size-gb", "0.0625", "--eviction-policy", "LRU", "--l2", &behind]);
        command.args(["--user", "u", "--port", &port.to_string(), "--http-port", &http_port.to_string()]);
        let child = command.env("WAVETANK_PASSWORD", "p").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|e| format!("wavetank: {e}"))?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("the server ended with {status}"));
            }
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                return Err("the server does not start".to_owned());
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { child, port, http_port })
    }

    /// As a service manager ends it.
    fn end(mut self) -> Result<(), String> {
        let id = Pid::from_raw(self.child.id() as i32);
        kill(id, Signal::SIGTERM).map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended has no process of this number any more, as far as we know it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
