//! A real `redis-server`, where one is installed.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::client::Client;
use crate::server::eventually;

/// A server that ends with this.
pub(crate) struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    /// Starts one; none, said loudly, where it is not installed.
    #[allow(clippy::print_stderr, reason = "what was not compared is said")]
    pub(crate) fn start(more: &[&str]) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let port = address.port().to_string();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--databases", "1"]).args(more);
        let Ok(child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("NOT COMPARED: redis-server is not installed");
            return None;
        };
        let peer = Self { child, address };
        eventually("redis-server listens", || TcpStream::connect(address).is_ok());
        Some(peer)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
