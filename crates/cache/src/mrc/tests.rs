//! Curves beside plain lists: caches that are searched from end to end.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::cut::{Cut, Part, Trunk, Turn};
use super::stack::{Settings, Stack, is_looked_at, stands_for};
use super::tally::Tally;
use super::window::Window;
use super::*;
use crate::eviction::{self, ALL, LRU, Quotas, policy};

/// A prompt as a test writes it.
type Prompt = Vec<u64>;

/// How a plain cache treats what is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    LastUsed,
    FirstCame,
}

/// A list of blocks, each known by its id and those before it; who leaves first stands in front.
struct Plain {
    order: Order,
    rule: Rule,
    sizes: Sizes,
    capacity: u64,
    entries: VecDeque<(Prompt, u64)>,
    served: u64,
    served_weight: u64,
}

impl Plain {
    fn key(&self, prompt: &[u64], at: usize) -> Prompt {
        match self.rule {
            Rule::Prefix => prompt[..=at].to_vec(),
            Rule::Each => vec![prompt[at]],
        }
    }

    fn place(&self, key: &[u64]) -> Option<usize> {
        self.entries.iter().position(|entry| entry.0 == key)
    }

    fn access(&mut self, prompt: &[u64]) {
        for at in 0..prompt.len() {
            let key = self.key(prompt, at);
            if self.place(&key).is_some() {
                self.served += 1;
                self.served_weight += weight(&key);
            } else if self.rule == Rule::Prefix {
                break;
            }
        }
        for at in (0..prompt.len()).rev() {
            let key = self.key(prompt, at);
            match (self.place(&key), self.order) {
                (Some(_), Order::FirstCame) => {}
                (Some(place), Order::LastUsed) => {
                    let entry = self.entries.remove(place).unwrap();
                    self.entries.push_back(entry);
                }
                (None, _) => self.enter(key),
            }
        }
    }

    fn enter(&mut self, key: Prompt) {
        let size = self.sizes.of(weight(&key));
        self.entries.push_back((key, size));
        while self.entries.iter().map(|entry| entry.1).sum::<u64>() > self.capacity {
            self.entries.pop_front();
        }
    }
}

/// What a block weighs: always the same for the same block, 1 to 5.
fn weight(key: &[u64]) -> u64 {
    1 + key.iter().zip(1..).map(|(id, place)| id * place).sum::<u64>() % 5
}

fn blocks(prompt: &[u64], rule: Rule) -> Vec<Block> {
    let key = |at: usize| if rule == Rule::Prefix { &prompt[..=at] } else { &prompt[at..=at] };
    (0..prompt.len()).map(|at| Block { id: prompt[at], weight: weight(key(at)) }).collect()
}

fn studied(prompts: &[Prompt], plan: Plan) -> Curves {
    let rule = plan.rule;
    let mut study = Study::new(plan).unwrap();
    for prompt in prompts {
        study.push(Access { blocks: &blocks(prompt, rule), tenant: 0 }).unwrap();
    }
    study.finish().unwrap()
}

/// Hit ratios of a plain cache, by blocks and by weight.
fn plain(prompts: &[Prompt], order: Order, plan: &Plan, capacity: u64) -> [f64; 2] {
    let Plan { rule, sizes, .. } = *plan;
    let entries = VecDeque::new();
    let mut cache = Plain { order, rule, sizes, capacity, entries, served: 0, served_weight: 0 };
    prompts.iter().for_each(|prompt| cache.access(prompt));
    let all: Vec<Block> = prompts.iter().flat_map(|prompt| blocks(prompt, rule)).collect();
    let weight: u64 = all.iter().map(|block| block.weight).sum();
    [(cache.served, all.len() as u64), (cache.served_weight, weight)]
        .map(|(part, all)| if all == 0 { 0.0 } else { part as f64 / all as f64 })
}

fn ratios(row: &Row) -> [f64; 2] {
    [row.block_hit_ratio, row.weight_hit_ratio]
}

fn is_near(left: [f64; 2], right: [f64; 2]) -> bool {
    left.iter().zip(right).all(|(left, right)| (left - right).abs() < 1e-12)
}

/// Prompts over few ids, so that they share beginnings, with ids that come again at other places.
fn prompts() -> impl Strategy<Value = Vec<Prompt>> {
    prop::collection::vec(prop::collection::vec(0u64..3, 0..9), 0..120)
}

const CAPACITIES: [u64; 8] = [1, 2, 3, 5, 8, 20, 60, 400];

fn rules_and_sizes() -> impl Iterator<Item = (Rule, Sizes)> {
    let rules = [Rule::Prefix, Rule::Each];
    rules.into_iter().flat_map(|rule| [(rule, Sizes::Equal), (rule, Sizes::Weighed)])
}

proptest! {
    /// Broken by: a block found by its id alone with `Rule::Prefix`, a prompt put back from its head, a
    /// lookup that sees what the same prompt brought, distances without the block itself, and slots that
    /// are lost when the line is made anew.
    #[test]
    fn lru_is_a_plain_list_at_every_capacity(prompts in prompts()) {
        for (rule, sizes) in rules_and_sizes() {
            let plan = Plan { rule, sizes, ..Plan::exact() };
            let curves = studied(&prompts, plan.clone());
            for capacity in CAPACITIES {
                let expected = plain(&prompts, Order::LastUsed, &plan, capacity);
                let found = ratios(&curves.lru.at(capacity));
                prop_assert!(is_near(found, expected), "{capacity}: {found:?}, not {expected:?}");
            }
        }
    }

    /// Broken by: a hit that renews, an entry that was driven out by its own prompt and is thought to be
    /// there, and a prompt of which one block is let in twice.
    #[test]
    fn simulations_of_everything_are_plain_lists(prompts in prompts()) {
        for (rule, sizes) in rules_and_sizes() {
            let policies = vec![policy("fifo").unwrap(), LRU];
            // Below the largest weight a simulated cache refuses what a plain list lets through.
            let capacities = CAPACITIES.map(|capacity| capacity.max(5)).to_vec();
            let plan = Plan { rule, sizes, policies, capacities, ..Plan::exact() };
            let curves = studied(&prompts, plan.clone());
            for (order, curve) in [Order::FirstCame, Order::LastUsed].into_iter().zip(&curves.simulated) {
                for row in &curve.rows {
                    let expected = plain(&prompts, order, &plan, row.capacity);
                    let policy = curve.policy;
                    prop_assert!(is_near(ratios(row), expected), "{policy}: {row:?}, not {expected:?}");
                }
            }
        }
    }

    /// Broken by: a row that cannot be found when the way to it was dropped, weights that are not doubled,
    /// or are for the trunk, a drawn block that counts for itself alone, and, after the trunk changed, a
    /// block that is taken for new because the one before it is.
    #[test]
    fn a_thinned_stack_is_a_thinned_list(prompts in prompts(), most_blocks in 1usize..40, one_in in 0u32..3) {
        for (rule, sizes) in rules_and_sizes() {
            let settings = Settings { rule, sizes, one_in: 1 << one_in, most_blocks };
            let (found, expected) = (thinned(&prompts, settings), ThinList::of(&prompts, settings));
            prop_assert_eq!(found, expected);
        }
    }
}

/// What was counted for blocks that are not of the trunk, by distance, and what one of them stands for.
type Counted = (Vec<(u64, u64)>, u64);

/// Shows prompts cut into parts to `see`, in two halves with different trunks, each told to `follow` first.
fn in_two_eras<S>(
    (prompts, rule): (&[Prompt], Rule),
    state: &mut S,
    follow: impl Fn(&mut S, &Trunk),
    see: impl Fn(&mut S, &[Part]),
) {
    let (mut cut, mut parts) = (Cut::of(rule, 9), Vec::new());
    let halves = prompts.split_at(prompts.len() / 2);
    for (half, trunk) in [(halves.0, [0, 1]), (halves.1, [1, 2])] {
        let mut window = Window::default();
        (0..40).for_each(|_| window.push(Access { blocks: &blocks(&trunk, rule), tenant: 0 }));
        assert!(cut.trunk.become_these(&window.frequent(rule, &cut.trunk)));
        follow(state, &cut.trunk);
        for prompt in half {
            cut.parts(&blocks(prompt, rule), &mut parts);
            see(state, &parts);
        }
    }
}

fn thinned(prompts: &[Prompt], settings: Settings) -> Counted {
    let mut stack = Stack::of(settings);
    in_two_eras((prompts, settings.rule), &mut stack, Stack::follow, Stack::access);
    let found = stack.finish();
    let pairs = Tally::strata(found.trunk, found.rest);
    let rest = pairs.map(|(distance, here)| (distance, here.rest.blocks)).filter(|pair| pair.1 > 0);
    (rest.collect(), found.one_in)
}

/// The same with a list from the top down that is walked.
struct ThinList {
    settings: Settings,
    one_in: u64,
    stack: Vec<Part>,
    counts: BTreeMap<u64, u64>,
}

impl ThinList {
    fn of(prompts: &[Prompt], settings: Settings) -> Counted {
        let (stack, counts) = (Vec::new(), BTreeMap::new());
        let mut list = Self { settings, one_in: settings.one_in, stack, counts };
        in_two_eras((prompts, settings.rule), &mut list, Self::follow, Self::access);
        (list.counts.into_iter().collect(), list.one_in)
    }

    /// What was of the trunk and is not is forgotten, unless all blocks are looked at.
    fn follow(&mut self, trunk: &Trunk) {
        let all = self.one_in == 1;
        self.stack.retain(|part| all || !part.turn.is_trunk() || trunk.contains(part.id));
    }

    fn size(&self, part: &Part) -> u64 {
        self.settings.sizes.of(part.weight) * stands_for(part.turn, self.one_in)
    }

    fn access(&mut self, parts: &[Part]) {
        let parts: Vec<Part> =
            parts.iter().filter(|part| is_looked_at(part.turn, self.one_in)).copied().collect();
        for part in &parts {
            let Some(place) = self.stack.iter().position(|other| other.id == part.id) else {
                match self.settings.rule {
                    Rule::Prefix => break,
                    Rule::Each => continue,
                }
            };
            let above: u64 = self.stack[..place].iter().map(|part| self.size(part)).sum();
            if !part.turn.is_trunk() {
                let distance = above + self.settings.sizes.of(part.weight);
                *self.counts.entry(distance).or_default() += self.one_in;
            }
        }
        for part in parts.iter().rev() {
            self.stack.retain(|other| other.id != part.id);
            self.stack.insert(0, *part);
        }
        while self.stack.len() > self.settings.most_blocks && self.one_in < Turn::MOST {
            self.one_in *= 2;
            self.stack.retain(|part| is_looked_at(part.turn, self.one_in));
        }
    }
}

/// Broken by: counting what a prompt finds after it was put back (nine of nine), or a distance off by one.
#[test]
fn a_small_case_by_hand() {
    let prompts = [vec![1, 2, 3], vec![1, 2, 4], vec![1, 2, 3]];
    let curves = studied(
        &prompts,
        Plan { policies: vec![policy("fifo").unwrap()], capacities: vec![3], ..Plan::exact() },
    );
    let served = [0, 1, 2, 3, 4, 99].map(|capacity| 9.0 * curves.lru.at(capacity).block_hit_ratio);
    assert_eq!(served.map(f64::round), [0.0, 2.0, 4.0, 4.0, 5.0, 5.0]);
    let totals = curves.lru.totals();
    assert_eq!((totals.requests, totals.blocks, totals.distinct_blocks, totals.footprint), (3, 9, 4, 4));
    assert_eq!([0.2, 0.5, 1.0].map(|share| curves.lru.least_capacity(share)), [Some(1), Some(2), Some(4)]);
    assert_eq!(curves.lru.spread(3), [1, 2, 4]);
    let report = serde_json::to_value(curves.report(&[2, 4])).unwrap();
    assert_eq!(report["bound"]["block_hit_ratio"], 5.0 / 9.0);
    assert_eq!(report["curves"][0]["policy"], "lru");
    assert_eq!(report["curves"][0]["rows"][1]["capacity"], 4);
    // First in 3, 2, 1; then 4 drives 3 out, and 3 comes back for 2, 2 for 1, 1 for 4.
    assert_eq!(report["curves"][1]["rows"][0]["block_hit_ratio"], 4.0 / 9.0);
}

#[test]
fn nothing_is_served_of_nothing() {
    let curves = studied(&[], Plan { policies: vec![LRU], capacities: vec![7], ..Plan::default() });
    assert_eq!(curves.lru.bound().block_hit_ratio, 0.0);
    assert_eq!(curves.simulated[0].rows[0].weight_hit_ratio, 0.0);
    let report = curves.report(&curves.lru.spread(8));
    assert!(report.knees.is_empty() && report.enough.is_empty());
}

#[test]
fn plans_and_weights_that_cannot_be_are_refused() {
    for plan in [Plan { one_in: 3, ..Plan::default() }, Plan { lru_one_in: 0, ..Plan::default() }] {
        assert!(Study::new(plan).is_err());
    }
    let mut study = Study::new(Plan::default()).unwrap();
    let huge = [Block { id: 1, weight: 1 << 58 }];
    let mut push = || study.push(Access { blocks: &huge, tenant: 0 });
    assert!(push().is_ok() && push().is_ok());
    let error = push().unwrap_err().to_string();
    assert!(error.contains("the weights of 3 requests"), "{error}");
}

/// Broken by: a tenant that is not handed to the policy.
#[test]
fn quotas_hold_tenants_back() {
    let quotas = Quotas { default_bytes: None, by_tenant: [(1, 2)].into() };
    let isolated = policy("isolated_lru").unwrap();
    let plan = Plan { policies: vec![isolated], capacities: vec![100], quotas, ..Plan::exact() };
    let mut study = Study::new(plan).unwrap();
    for (tenant, first) in [(0, 10), (1, 20), (0, 10), (1, 20)] {
        let blocks: Vec<Block> = (first..first + 4).map(|id| Block { id, weight: 1 }).collect();
        study.push(Access { blocks: &blocks, tenant }).unwrap();
    }
    let curves = study.finish().unwrap();
    assert_eq!(curves.simulated[0].rows[0].block_hit_ratio, 6.0 / 16.0, "four of one's, two of the other's");
}

/// Conversations that grow turn by turn, beside each other, all behind one system prompt.
fn conversations() -> Vec<Prompt> {
    let mut open: Vec<Prompt> = Vec::new();
    let mut prompts = Vec::new();
    let mut fresh = 100u64;
    for step in 0..6000u64 {
        let draw = mixed(step, 77);
        if open.len() < 150 || draw.is_multiple_of(5) {
            open.push(vec![0, 1, 2]);
        }
        // Most often one of the last that spoke.
        let place = open.len()
            - 1
            - (draw >> 8) as usize % open.len().min(if draw.is_multiple_of(3) { 150 } else { 20 });
        let mut prompt = open.remove(place);
        let grows = 1 + (draw >> 32) % 14;
        prompt.extend(fresh..fresh + grows);
        fresh += grows;
        prompts.push(prompt.clone());
        if prompt.len() < 120 {
            open.push(prompt);
        }
    }
    prompts
}

/// Broken by: a sample whose blocks take one place each, a trunk that stands for several, and conversations
/// of which all blocks are drawn or none.
#[test]
fn samples_are_within_a_point() {
    let prompts = conversations();
    let exact = studied(&prompts, Plan::exact());
    let capacities = exact.lru.spread(8);
    let policies: Vec<_> = ALL.iter().collect();
    let full = studied(
        &prompts,
        Plan { policies: policies.clone(), capacities: capacities.clone(), ..Plan::exact() },
    );
    let sampled = studied(&prompts, Plan { policies, capacities: capacities.clone(), ..Plan::default() });
    for (full, sampled) in full.simulated.iter().zip(&sampled.simulated) {
        for (full, sampled) in full.rows.iter().zip(&sampled.rows) {
            let error = sampled.block_hit_ratio - full.block_hit_ratio;
            assert!(error.abs() < 0.01, "{full:?} {sampled:?}");
        }
    }
    for (policy, curve) in ALL.iter().zip(&sampled.simulated) {
        let greatest = curve.rows.iter().map(|row| row.one_in).max();
        assert_eq!(greatest, Some(if policy.scales { 8 } else { 1 }), "{}", policy.name);
    }
    let bounded = studied(
        &prompts,
        Plan { most_blocks: exact.lru.totals().distinct_blocks as usize / 6, ..Plan::default() },
    );
    assert_eq!(bounded.lru.one_in(), 8);
    for &capacity in &capacities {
        let [bounded, exact] = [&bounded, &exact].map(|curves| curves.lru.at(capacity).block_hit_ratio);
        assert!((bounded - exact).abs() < 0.01, "{capacity}: {bounded} {exact}");
    }
}

/// Broken by: a trunk that is learned once. What all requests begin with then counts for eight or for
/// nothing.
#[test]
fn samples_follow_a_trace_whose_trunk_changes() {
    let later = |prompt: &Prompt| prompt.iter().map(|id| id + 1_000_000).collect();
    let mut prompts = conversations();
    prompts.extend(prompts.iter().map(later).collect::<Vec<Prompt>>());
    let exact = studied(&prompts, Plan::exact());
    let sampled = studied(&prompts, Plan { lru_one_in: 8, ..Plan::default() });
    for capacity in exact.lru.spread(8) {
        let [exact, sampled] = [&exact, &sampled].map(|curves| curves.lru.at(capacity).block_hit_ratio);
        assert!((exact - sampled).abs() < 0.01, "{capacity}: {exact} {sampled}");
    }
}

/// Broken by: anything that is taken from the order of a hash table.
#[test]
fn the_same_seed_is_the_same_curve() {
    let prompts: Vec<Prompt> = conversations().into_iter().take(2000).collect();
    let plan = |seed| Plan {
        policies: ALL.iter().collect(),
        capacities: vec![500, 3000],
        most_blocks: 2000,
        seed,
        ..Plan::default()
    };
    let report = |seed| studied(&prompts, plan(seed)).report(&[500, 3000]);
    assert_eq!(report(1), report(1));
    assert_ne!(report(1), report(2));
    assert_eq!(eviction::LRU.name, report(1).curves[0].policy);
}
