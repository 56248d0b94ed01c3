//! A mock with a small cache, requests that share prefixes, and what its engines have by their own account.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use wavetank_cache::{Change, ChangeKind};
use wavetank_live::kv_events::{
    Counts, Encoding, Endpoints, KvEvents, KvEventsArgs, KvEventsPlan, block_hash,
};
use wavetank_live::mock::{Answer, Ask, Control, Desk, End, Finish, Follow};
use wavetank_model::{BlockKey, Priority, Prompt, RequestId, ServeEvent, Sink, WorkerId, mix};
use wavetank_sim::{ConcurrencyUnit, EngineConfig, Load, Plan};

const BLOCK: u32 = 8;
const WORKERS: u32 = 2;

/// What is started.
pub(crate) struct Setting {
    pub(crate) engine: &'static str,
    pub(crate) encoding: Encoding,
    pub(crate) is_ahead: bool,
    pub(crate) ranks: u32,
}

impl Default for Setting {
    fn default() -> Self {
        Self { engine: "vllm", encoding: Encoding::Map, is_ahead: false, ranks: 1 }
    }
}

impl Setting {
    fn plan(&self) -> Plan {
        let engine = EngineConfig {
            engine_type: self.engine.to_owned(),
            speedup_ratio: 200.0,
            block_size: BLOCK,
            num_gpu_blocks: 120,
            async_scheduling: self.is_ahead,
            data_parallel_ranks: self.ranks,
            ..EngineConfig::default()
        };
        Plan {
            engine,
            num_workers: WORKERS,
            load: Load::Closed { concurrency: 1, unit: ConcurrencyUnit::Requests },
            seed: 1,
            ..Plan::default()
        }
    }
}

/// What engines have by their own account, and what is in blocks.
#[derive(Default)]
pub(crate) struct View {
    /// In how many caches of each worker a block is.
    held: BTreeMap<(u32, u64), u32>,
    contents: HashMap<u64, Vec<u64>>,
}

impl View {
    /// Panics unless `held` is what the worker has.
    pub(crate) fn check(&self, worker: u32, held: &HashMap<u64, Vec<u64>>) {
        let has: Vec<u64> = self.held_by(worker).collect();
        assert!(has.len() > 20, "{} blocks are left", has.len());
        assert_eq!(held.len(), has.len());
        for hash in has {
            assert_eq!(held.get(&hash), self.contents.get(&hash), "block {hash} of worker {worker}");
        }
    }

    pub(crate) fn held_by(&self, worker: u32) -> impl Iterator<Item = u64> + '_ {
        self.held.keys().filter(move |(of, _)| *of == worker).map(|&(_, hash)| hash)
    }
}

struct Watch(Arc<Mutex<View>>);

impl Follow for Watch {
    fn asked(&mut self, _request: RequestId, ask: &Ask) {
        let view = &mut *self.0.lock().unwrap();
        let all = ask.tokens.len() as u32;
        for (block, key) in (1..).zip(ask.prompt.content_keys(0, all, 0, BLOCK)) {
            let tokens = ask.tokens[..block * BLOCK as usize].iter().map(|&token| u64::from(token));
            view.contents.insert(block_hash(key), tokens.collect());
        }
    }

    fn cache_changed(&mut self, worker: WorkerId, changes: &[Change]) {
        let held = &mut self.0.lock().unwrap().held;
        for change in changes {
            for slot in (0..BlockKey::PER_GROUP).filter(|slot| change.slots >> slot & 1 == 1) {
                let place = (worker.0, block_hash(BlockKey { group: change.group, slot }));
                match change.kind {
                    ChangeKind::Stored => *held.entry(place).or_default() += 1,
                    ChangeKind::Removed if held[&place] == 1 => drop(held.remove(&place)),
                    ChangeKind::Removed => *held.get_mut(&place).unwrap() -= 1,
                }
            }
        }
    }
}

impl Sink<ServeEvent<'_>> for Watch {
    fn record(&mut self, _event: &ServeEvent<'_>) {}
}

/// A mock that publishes.
pub(crate) struct Mock {
    control: Control,
    desk: Desk,
    view: Arc<Mutex<View>>,
    counts: Arc<Counts>,
    pub(crate) endpoints: Endpoints,
}

impl Mock {
    pub(crate) fn start(setting: &Setting) -> Self {
        let plan = setting.plan();
        let free = "tcp://127.0.0.1:0".to_owned();
        let args = KvEventsArgs {
            endpoint: free.clone(),
            replay: Some(free),
            topic: "kv-events".to_owned(),
            ..Default::default()
        };
        let events = KvEventsPlan { encoding: setting.encoding, ..KvEventsPlan::of(&args, WORKERS).unwrap() };
        let (events, endpoints) = KvEvents::start(&events, &plan).unwrap();
        let (view, counts) = (Arc::<Mutex<View>>::default(), events.counts());
        let followers: Vec<Box<dyn Follow>> = vec![Box::new(Watch(Arc::clone(&view))), Box::new(events)];
        let (control, desk) = Control::start(&plan, followers).unwrap();
        Self { control, desk, view, counts, endpoints }
    }

    /// Serves conversations until someone follows, who may have missed the first ones, then more of them;
    /// what the engines have at the end.
    pub(crate) fn serve_while(self, mut is_followed: impl FnMut() -> bool) -> View {
        for round in 0.. {
            let was_followed = is_followed();
            self.serve();
            assert!(self.counts.published() > 0 && round < 300, "nobody is told anything");
            if was_followed {
                break;
            }
        }
        self.end()
    }

    /// Serves conversations, four at a time.
    fn serve(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let talks = (0..4).map(|user| tokio::spawn(talk(self.desk.clone(), user)));
            for talk in talks.collect::<Vec<_>>() {
                talk.await.unwrap();
            }
        });
    }

    fn end(self) -> View {
        self.control.end().unwrap();
        assert_eq!((self.counts.dropped(), self.counts.unknown_blocks()), (0, 0));
        assert!(self.counts.published() > 0);
        std::mem::take(&mut *self.view.lock().unwrap())
    }
}

/// Turns that begin with one of two long instructions and hold all that was said before.
async fn talk(desk: Desk, user: u32) {
    for topic in 0..5u32 {
        let mut said: Vec<u32> = (0..50).map(|word| 1000 * (user % 2) + word).collect();
        for turn in 0..4u32 {
            said.extend((0..17 + user).map(|word| 100_000 + word * 31 + user * 7 + topic * 13 + turn));
            let answer = (0..21).map(|word| 7 + word * user + turn);
            let asked = said.len() as u32;
            said.extend(answer);
            let answer = desk.ask(ask(&said, asked));
            // Some do not wait for the end.
            if (user, turn) != (3, 2) {
                assert_eq!(end_of(answer).await, End::Completed);
            }
        }
    }
}

fn ask(tokens: &[u32], asked: u32) -> Ask {
    let all = tokens.len() as u32;
    let id = |block: &[u32]| block.iter().fold(1, |id, &token| mix(id, u64::from(token)));
    let ids = tokens.chunks(BLOCK as usize).map(id);
    Ask {
        prompt: Prompt::from_ids(ids, all, BLOCK).answered_after(asked),
        tokens: tokens.into(),
        output_tokens: all - asked,
        finish: Finish::Length,
        priority: Priority::default(),
    }
}

async fn end_of(mut answer: Answer) -> End {
    loop {
        if let Some(end) = answer.more().await.end {
            return end;
        }
    }
}
