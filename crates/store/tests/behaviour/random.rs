//! Two threads, one backend, random operations: each thread's model says what must come back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wavetank_store::Key;
use wavetank_store::backend::{Backend, Held};

use crate::driver::{Dice, Driver, Order, made};
use crate::stage::Stage;

const STEPS: usize = 150;
const KEYS: usize = 12;

/// What a thread knows of an entry.
#[derive(Clone)]
struct Known {
    held: Arc<dyn Held>,
    seed: u64,
    len: usize,
}

/// Open entries that either thread may read and close.
type Opened = Mutex<Vec<Known>>;

struct Actor<'a> {
    name: u64,
    driver: Driver,
    dice: Dice,
    model: HashMap<Key, Known>,
    opened: &'a Opened,
    keeps: bool,
}

impl Actor<'_> {
    fn step(&mut self, number: usize) {
        let key = Key::from(format!("{}/{}", self.name, self.dice.below(KEYS)).as_str());
        match self.dice.below(8) {
            0..=2 => self.put(&key, number),
            3 | 4 => self.take(&key),
            5 => self.open(&key),
            6 => self.read_opened(),
            _ => self.remove(&key),
        }
    }

    fn put(&mut self, key: &Key, number: usize) {
        let len = match self.dice.below(10) {
            0 => (1 << 20) + self.dice.below(9000),
            1 => 0,
            _ => self.dice.below(100_000),
        };
        let seed = self.name << 32 | number as u64;
        let order = Order::Shuffled(seed);
        let held = self.driver.put_in(order, key, &made(seed, len)).unwrap();
        // The new one is there before the old one goes, as when a store replaces an entry.
        if let Some(old) = self.model.insert(key.clone(), Known { held, seed, len }) {
            self.driver.port.remove(old.held).unwrap();
        }
    }

    fn take(&mut self, key: &Key) {
        let Some(Known { held, seed, len }) = self.model.get(key).cloned() else { return };
        let back = self.driver.take(&held, len).unwrap();
        assert!(!self.keeps || back == made(seed, len), "{key:?}");
    }

    fn open(&mut self, key: &Key) {
        let Some(known) = self.model.get(key) else { return };
        let held = self.driver.port.open(&known.held).unwrap();
        self.opened.lock().unwrap().push(Known { held, ..known.clone() });
    }

    /// Reads an entry that either thread opened and may have removed since.
    fn read_opened(&mut self) {
        let Some(Known { held, seed, len }) = self.opened.lock().unwrap().pop() else { return };
        let back = self.driver.read(Order::Forward, &held, len).unwrap();
        assert!(!self.keeps || back == made(seed, len), "opened {seed:x}");
    }

    fn remove(&mut self, key: &Key) {
        if let Some(known) = self.model.remove(key) {
            self.driver.port.remove(known.held).unwrap();
        }
    }
}

fn act(backend: &Arc<dyn Backend>, name: u64, opened: &Opened, keeps: bool) -> HashMap<Key, (u64, usize)> {
    let driver = Driver::new(backend, 3);
    let mut actor = Actor { name, driver, dice: Dice::new(name), model: HashMap::new(), opened, keeps };
    (0..STEPS).for_each(|number| actor.step(number));
    actor.model.into_iter().map(|(key, known)| (key, (known.seed, known.len))).collect()
}

#[test]
fn threads_see_what_they_wrote() {
    for stage in Stage::every(|_| true) {
        let backend = stage.open();
        let opened = Opened::default();
        let models: Vec<_> = std::thread::scope(|scope| {
            let (backend, opened, keeps) = (&backend, &opened, stage.keeps());
            let threads: Vec<_> =
                (1..=2).map(|name| scope.spawn(move || act(backend, name, opened, keeps))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        drop((backend, opened));
        if !stage.entry.caps.survives {
            continue;
        }
        let mut expected: HashMap<_, _> = models.into_iter().flatten().collect();
        let (backend, found, _) = stage.reopen();
        let mut driver = Driver::new(&backend, 3);
        for found in found {
            let (seed, len) = expected.remove(&found.key).unwrap_or_else(|| panic!("{:?}", found.key));
            assert!(driver.take(&found.held, len).unwrap() == made(seed, len), "{}", stage.name);
        }
        assert!(expected.is_empty(), "{}: lost {expected:?}", stage.name);
    }
}
