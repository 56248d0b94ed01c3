//! A port for backends that can only block: a few threads that take pieces and give them back.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::backend::{Completion, Held, NewEntry, Piece, Port, Seal};
use crate::buffer::Buffer;

/// A backend whose calls return when they are done. As [`Port`], from any thread.
pub(crate) trait Blocking: Send + Sync + 'static {
    fn create(&self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>>;
    fn write(
        &self,
        held: &Arc<dyn Held>,
        piece: Piece,
        buffer: &mut Buffer,
        seal: Option<Seal>,
    ) -> io::Result<()>;
    fn commit(&self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>>;
    fn open(&self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        Ok(Arc::clone(held))
    }
    fn read(&self, held: &Arc<dyn Held>, piece: Piece, buffer: &mut Buffer) -> io::Result<()>;
    fn remove(&self, held: Arc<dyn Held>) -> io::Result<()>;
}

struct Job {
    held: Arc<dyn Held>,
    piece: Piece,
    buffer: Buffer,
    kind: Kind,
}

enum Kind {
    Read,
    Write(Option<Seal>),
}

/// The port.
pub(crate) struct ThreadPort<B: Blocking> {
    backend: Arc<B>,
    jobs: Option<Sender<Job>>,
    done: Receiver<Completion>,
    in_flight: usize,
    threads: Vec<JoinHandle<()>>,
}

impl<B: Blocking> ThreadPort<B> {
    /// A port with `depth` threads.
    pub(crate) fn new(backend: Arc<B>, depth: usize) -> io::Result<Self> {
        let (jobs, queue) = channel();
        let (finished, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for _ in 0..depth.max(1) {
            let (backend, queue, finished) = (Arc::clone(&backend), Arc::clone(&queue), finished.clone());
            let thread = std::thread::Builder::new().name("store-io".to_owned());
            threads.push(thread.spawn(move || work(&*backend, &queue, &finished))?);
        }
        Ok(Self { backend, jobs: Some(jobs), done, in_flight: 0, threads })
    }

    fn queue(&mut self, job: Job) {
        self.in_flight += 1;
        let jobs = self.jobs.as_ref().expect("open until dropped");
        assert!(jobs.send(job).is_ok(), "the threads live as long as the port");
    }
}

fn work<B: Blocking>(backend: &B, queue: &Mutex<Receiver<Job>>, finished: &Sender<Completion>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { held, piece, mut buffer, kind }) = job else { return };
        let submitted = Instant::now();
        let result = match kind {
            Kind::Read => backend.read(&held, piece, &mut buffer),
            Kind::Write(seal) => backend.write(&held, piece, &mut buffer, seal),
        };
        // What it held goes before the piece is reported: who removes the entry then finds it free.
        drop(held);
        let done = Completion { token: piece.token, buffer, result, submitted, finished: Instant::now() };
        if finished.send(done).is_err() {
            return;
        }
    }
}

impl<B: Blocking> Port for ThreadPort<B> {
    fn create(&mut self, entry: &NewEntry<'_>) -> io::Result<Arc<dyn Held>> {
        self.backend.create(entry)
    }

    fn write(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer, seal: Option<Seal>) {
        self.queue(Job { held: Arc::clone(held), piece, buffer, kind: Kind::Write(seal) });
    }

    fn commit(&mut self, held: Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.backend.commit(held)
    }

    fn open(&mut self, held: &Arc<dyn Held>) -> io::Result<Arc<dyn Held>> {
        self.backend.open(held)
    }

    fn read(&mut self, held: &Arc<dyn Held>, piece: Piece, buffer: Buffer) {
        self.queue(Job { held: Arc::clone(held), piece, buffer, kind: Kind::Read });
    }

    fn remove(&mut self, held: Arc<dyn Held>) -> io::Result<()> {
        self.backend.remove(held)
    }

    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, deadline: Option<Instant>, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        done.extend(self.done.try_iter());
        if let (true, Some(deadline)) = (done.len() == before && self.in_flight > 0, deadline) {
            match self.done.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(completion) => done.push(completion),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("an I/O thread has died"));
                }
            }
            done.extend(self.done.try_iter());
        }
        self.in_flight -= done.len() - before;
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl<B: Blocking> Drop for ThreadPort<B> {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
