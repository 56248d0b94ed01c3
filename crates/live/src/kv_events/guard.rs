//! The door before the sockets of ZeroMQ. Their library takes memory for whatever length a frame announces; a
//! subscriber has nothing long to say, and whoever announces more is shown out before the library hears of
//! it.
//!
//! Frames are those of ZMTP 3 (<https://rfc.zeromq.org/spec/23/>): a greeting of 64 bytes, then a byte of
//! flags, a length of one or eight bytes, and as many bytes.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Bytes of a message from a subscriber: a topic, or a question.
const MOST_MESSAGE: u64 = 64 << 10;
/// What a frame takes besides its bytes.
const FRAME: u64 = 64;
/// Subscribers of a worker, or those who ask it, at a time.
const MOST_GUESTS: usize = 1024;
const GREETING: u64 = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;

/// Lets guests through to `inner`, each of which may say so many bytes in all.
pub(super) async fn watch(door: TcpListener, inner: SocketAddr, most_bytes: u64) {
    let places = Arc::new(Semaphore::new(MOST_GUESTS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        // One that is gone again is nobody's trouble; without descriptors the next one may have better luck.
        let Ok((guest, _)) = door.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        tokio::spawn(async move {
            lead(guest, inner, most_bytes).await;
            drop(place);
        });
    }
}

async fn lead(guest: TcpStream, inner: SocketAddr, most_bytes: u64) {
    let Ok(library) = TcpStream::connect(inner).await else { return };
    let _ = (guest.set_nodelay(true), library.set_nodelay(true));
    let (from_guest, mut to_guest) = guest.into_split();
    let (mut from_library, to_library) = library.into_split();
    let answers = tokio::spawn(async move { copy(&mut from_library, &mut to_guest).await });
    listen(from_guest, to_library, Frames::new(most_bytes)).await;
    answers.abort();
}

/// Passes on what is said until the guest has left or goes too far.
async fn listen(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut frames: Frames) {
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut part).await {
        if frames.see(&part[..length]).is_err() || to.write_all(&part[..length]).await.is_err() {
            return;
        }
    }
}

/// Where in the frames of a guest one is.
#[derive(Debug)]
struct Frames {
    state: State,
    /// Bytes of the message so far.
    message: u64,
    /// Bytes that may still come.
    left: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many bytes follow, then another frame.
    Body(u64),
    Flags,
    /// So many bytes of the length follow, after these.
    Length {
        missing: u8,
        so_far: u64,
        flags: u8,
    },
}

/// Somebody went too far.
#[derive(Debug, PartialEq, Eq)]
struct TooLong;

impl Frames {
    fn new(most_bytes: u64) -> Self {
        Self { state: State::Body(GREETING), message: 0, left: most_bytes }
    }

    /// Takes the next bytes into account.
    fn see(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(TooLong)?;
        while let Some((&first, rest)) = bytes.split_first() {
            match self.state {
                State::Body(missing) => {
                    let here = missing.min(bytes.len() as u64);
                    bytes = &bytes[here as usize..];
                    self.state = if missing > here { State::Body(missing - here) } else { State::Flags };
                    continue;
                }
                State::Flags => {
                    let missing = if first & LONG == 0 { 1 } else { 8 };
                    self.state = State::Length { missing, so_far: 0, flags: first };
                }
                State::Length { missing, so_far, flags } => {
                    self.state = self.measured(missing - 1, so_far << 8 | u64::from(first), flags)?;
                }
            }
            bytes = rest;
        }
        Ok(())
    }

    fn measured(&mut self, missing: u8, length: u64, flags: u8) -> Result<State, TooLong> {
        if missing > 0 {
            return Ok(State::Length { missing, so_far: length, flags });
        }
        self.message = self.message.saturating_add(length).saturating_add(FRAME);
        if self.message > MOST_MESSAGE {
            return Err(TooLong);
        }
        if flags & MORE == 0 {
            self.message = 0;
        }
        Ok(if length == 0 { State::Flags } else { State::Body(length) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Vec<u8> {
        vec![0xff; GREETING as usize]
    }

    fn long(flags: u8, length: u64) -> Vec<u8> {
        [&[flags | LONG][..], &length.to_be_bytes()].concat()
    }

    /// What is made of `bytes` does not depend on how they are cut.
    fn seen(bytes: &[u8]) -> Result<(), TooLong> {
        let in_parts = |size: usize| {
            let mut frames = Frames::new(1 << 20);
            bytes.chunks(size).try_for_each(|part| frames.see(part))
        };
        let whole = in_parts(bytes.len().max(1));
        for size in [1, 3, 64, 100] {
            assert_eq!(in_parts(size), whole, "in parts of {size}");
        }
        whole
    }

    /// Broken by: a length that is believed, many small frames of one message, or a length read from the
    /// wrong place.
    #[test]
    fn what_is_long_is_not_let_through() {
        let question = [&[MORE, 0, 0, 8][..], &[0; 8]].concat();
        assert_eq!(seen(&greeting()), Ok(()));
        assert_eq!(seen(&[greeting(), question.repeat(1000)].concat()), Ok(()));
        let fits = MOST_MESSAGE - FRAME;
        assert_eq!(seen(&[greeting(), long(0, fits), vec![LONG; fits as usize], question].concat()), Ok(()));
        for length in [fits + 1, 1 << 40, u64::MAX] {
            assert_eq!(seen(&[greeting(), long(0, length)].concat()), Err(TooLong), "{length}");
        }
        let frames = MOST_MESSAGE / FRAME;
        assert_eq!(seen(&[greeting(), [MORE, 0].repeat(frames as usize)].concat()), Ok(()));
        assert_eq!(seen(&[greeting(), [MORE, 0].repeat(frames as usize + 1)].concat()), Err(TooLong));
        assert_eq!(seen(&[greeting(), [0, 0].repeat(frames as usize + 1)].concat()), Ok(()));
    }

    #[test]
    fn nobody_says_more_than_may_be_kept_of_it() {
        let mut frames = Frames::new(100);
        assert_eq!(
            (frames.see(&greeting()), frames.see(&[0, 0]), frames.see(&[0; 35])),
            (Ok(()), Ok(()), Err(TooLong))
        );
    }
}
