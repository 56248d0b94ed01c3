//! Who waited for whom. Within a session a call comes after those that had ended when it began; calls that
//! only share a trace are connected where one holds the texts of another; and spans may name others.

use std::collections::{BTreeMap, HashMap};

use super::Call;
use crate::Moment;

/// The calls that each call waits for, and why.
pub(super) struct Waits {
    pub(super) waits: Vec<Vec<usize>>,
    pub(super) reasons: Reasons,
}

/// How many calls wait, by why.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reasons {
    pub(super) by_session: u64,
    pub(super) by_prompt: u64,
    pub(super) by_link: u64,
}

/// Calls met so far, as later ones look for them.
#[derive(Default)]
struct Before<'c> {
    /// By session: ends and numbers, with the start.
    sessions: HashMap<&'c str, BTreeMap<(Moment, usize), Moment>>,
    /// By trace and all that was asked, or by trace and what was answered: the latest.
    prompts: HashMap<(&'c str, u64), usize>,
    answers: HashMap<(&'c str, u64), usize>,
    spans: HashMap<u128, usize>,
}

impl Waits {
    /// Of calls in the order of their starts: nobody waits for what stands behind it.
    pub(super) fn of(calls: &[Call]) -> Self {
        let mut all = Self { waits: Vec::with_capacity(calls.len()), reasons: Reasons::default() };
        let mut before = Before::default();
        for (number, call) in calls.iter().enumerate() {
            let mut waits = before.named(call, calls);
            all.reasons.by_link += u64::from(!waits.is_empty());
            let (others, reason) = match call.row.session.as_deref() {
                Some(session) => (before.of_session(session, call.start()), &mut all.reasons.by_session),
                None => (before.held(call, calls), &mut all.reasons.by_prompt),
            };
            *reason += u64::from(!others.is_empty());
            waits.extend(others);
            waits.sort_unstable();
            waits.dedup();
            all.waits.push(waits);
            before.add(number, call);
        }
        all
    }
}

impl<'c> Before<'c> {
    fn add(&mut self, number: usize, call: &'c Call) {
        self.spans.insert(call.key(), number);
        if let Some(session) = call.row.session.as_deref() {
            self.sessions.entry(session).or_default().insert((call.end, number), call.start());
            return;
        }
        let trace = call.trace.as_str();
        self.prompts.extend(call.said.prefixes.last().map(|&whole| ((trace, whole), number)));
        self.answers.extend(call.said.answer.map(|answer| ((trace, answer), number)));
    }

    /// The span around a call and those it names, as far as they had ended.
    fn named(&self, call: &Call, calls: &[Call]) -> Vec<usize> {
        let keys = call.links.iter().chain(&call.parent);
        let found = keys.filter_map(|key| self.spans.get(key).copied());
        found.filter(|&other| calls[other].end <= call.start()).collect()
    }

    /// What of the session had ended by `start`, without what another one of these came after already.
    fn of_session(&self, session: &str, start: Moment) -> Vec<usize> {
        let Some(calls) = self.sessions.get(session) else { return Vec::new() };
        let ended = calls.range(..=(start, usize::MAX)).rev();
        let mut latest = None;
        let mut found = Vec::new();
        for (&(end, number), &began) in ended {
            if latest.is_some_and(|latest| end <= latest) {
                break;
            }
            latest = latest.max(Some(began));
            found.push(number);
        }
        found
    }

    /// Calls of the trace whose whole prompt this one begins with, the longest, or whose answers it holds.
    fn held(&self, call: &Call, calls: &[Call]) -> Vec<usize> {
        let trace = call.trace.as_str();
        let had_ended = |other: &usize| calls[*other].end <= call.start();
        let earlier = call.said.prefixes.iter().rev().skip(1);
        let prompt =
            earlier.filter_map(|prefix| self.prompts.get(&(trace, *prefix)).copied()).find(had_ended);
        let answers = call.said.texts.iter().filter_map(|text| self.answers.get(&(trace, *text)).copied());
        prompt.into_iter().chain(answers.filter(had_ended)).collect()
    }
}
