//! Requests of agents as a graph: who waits for whom, and how long after.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use wavetank_model::{Error, Nanos, Result};

use super::Ended;
use super::event::{Launch, Tool};
use crate::Moment;

/// The requests of all sessions, held until the last one is known.
#[derive(Default)]
pub(super) struct Graph {
    ended: Vec<Ended>,
    /// When tools worked, by session.
    tools: BTreeMap<String, Vec<(Moment, Moment)>>,
    launches: Vec<Launch>,
    parents: BTreeMap<String, Option<String>>,
    /// The request to be handed over next, once all are there.
    next: Option<usize>,
}

impl Graph {
    pub(super) fn add_tool(&mut self, tool: Tool) {
        self.tools.entry(tool.session).or_default().push((tool.start, tool.end));
        self.launches.extend(tool.launch);
    }

    /// A session works for one other at most.
    pub(super) fn check_parent(&mut self, ended: &Ended) -> Result<()> {
        let Some(session) = &ended.row.session else { return Ok(()) };
        match self.parents.entry(session.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(ended.parent.clone());
                Ok(())
            }
            Entry::Occupied(entry) if *entry.get() == ended.parent => Ok(()),
            Entry::Occupied(_) => {
                Err(Error::input(format!("session \"{session}\" has another parent than before"))
                    .hint("\"parent_session_id\" is the same for all requests of a session"))
            }
        }
    }

    pub(super) fn add(&mut self, ended: Ended) {
        self.ended.push(ended);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.next.is_some()
    }

    /// All requests are there: they are put in order and connected.
    pub(super) fn complete(&mut self) {
        let key = |ended: &Ended| (ended.row.start, ended.end, ended.row.request.clone());
        self.ended.sort_by_cached_key(key);
        let waits = Waits::of(self).waits;
        for (request, waits) in waits.into_iter().enumerate() {
            self.wait(request, waits);
        }
        self.next = Some(0);
    }

    /// Makes a request wait; what lies between is tools' work as far as tools worked, and otherwise a pause.
    fn wait(&mut self, request: usize, waits: Vec<usize>) {
        let Some(last) = waits.iter().map(|&other| self.ended[other].end).max() else { return };
        let start = self.ended[request].row.start.unwrap_or_default();
        let gap = start.since(last).unwrap_or(Nanos::ZERO);
        let session = self.ended[request].row.session.as_deref().unwrap_or_default();
        let worked = self.tools.get(session).map_or(Nanos::ZERO, |tools| covered(tools, last, start));
        let wait_for = waits.iter().filter_map(|&other| self.ended[other].row.request.clone()).collect();
        let row = &mut self.ended[request].row;
        row.wait_for = wait_for;
        row.pause = Some(gap - worked);
        row.tool_wait = (worked > Nanos::ZERO).then_some(worked);
    }

    /// The next request of the graph.
    pub(super) fn take(&mut self) -> Option<Ended> {
        let next = self.next.as_mut()?;
        let ended = self.ended.get_mut(*next)?;
        *next += 1;
        let (row, place) = (std::mem::take(&mut ended.row), std::mem::take(&mut ended.place));
        Some(Ended { row, end: ended.end, parent: None, place })
    }
}

/// How much of the time from `from` to `to` some tool worked.
fn covered(tools: &[(Moment, Moment)], from: Moment, to: Moment) -> Nanos {
    let mut spans: Vec<_> = tools.iter().map(|&(start, end)| (start.max(from), end.min(to))).collect();
    spans.sort_unstable();
    let (mut covered, mut reached) = (Nanos::ZERO, from);
    for (start, end) in spans {
        covered += end.since(start.max(reached)).unwrap_or(Nanos::ZERO);
        reached = reached.max(end);
    }
    covered
}

/// Who waits for whom, by number.
struct Waits<'g> {
    ended: &'g [Ended],
    /// Requests of each session, in order.
    sessions: BTreeMap<&'g str, Vec<usize>>,
    waits: Vec<Vec<usize>>,
}

impl<'g> Waits<'g> {
    fn of(graph: &'g Graph) -> Self {
        let mut sessions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (request, ended) in graph.ended.iter().enumerate() {
            sessions.entry(ended.row.session.as_deref().unwrap_or_default()).or_default().push(request);
        }
        let waits = vec![Vec::new(); graph.ended.len()];
        let mut all = Self { ended: &graph.ended, sessions, waits };
        all.chain();
        let launches = Launches::of(graph);
        for (child, parent) in &graph.parents {
            all.join(child, parent.as_deref(), &launches);
        }
        all
    }

    /// A request waits for the one before it in its session.
    fn chain(&mut self) {
        for requests in self.sessions.values() {
            for pair in requests.windows(2) {
                self.waits[pair[1]].push(pair[0]);
            }
        }
    }

    /// A session waits for who started it, and who goes on after it waits for it.
    fn join(&mut self, child: &str, parent: Option<&str>, launches: &Launches<'_>) {
        let Some(requests) = self.sessions.get(child) else { return };
        let parents: &[usize] = parent.and_then(|name| self.sessions.get(name)).map_or(&[], Vec::as_slice);
        let first = requests[0];
        let last = *requests.iter().max_by_key(|&&request| self.ended[request].end).unwrap_or(&first);
        let start = |request: usize| self.ended[request].row.start;
        // Nothing waits for what began with it or later: so nobody waits for itself on the way round.
        let told = launches.source(child).filter(|&source| start(source) < start(first));
        let source = told.or_else(|| parents.iter().copied().rfind(|&other| start(other) < start(first)));
        let is_after =
            |&other: &usize| start(other) >= Some(self.ended[last].end) && start(other) > start(last);
        let told = launches.consumer(child).filter(is_after);
        let consumer = told.or_else(|| parents.iter().copied().find(is_after));
        for (who, whom) in
            source.map(|source| (first, source)).into_iter().chain(consumer.map(|it| (it, last)))
        {
            if !self.waits[who].contains(&whom) {
                self.waits[who].push(whom);
            }
        }
    }
}

/// What harnesses say of who started which session.
struct Launches<'g> {
    numbers: HashMap<&'g str, usize>,
    by_child: HashMap<&'g str, &'g Launch>,
}

impl<'g> Launches<'g> {
    fn of(graph: &'g Graph) -> Self {
        if graph.launches.is_empty() {
            return Self { numbers: HashMap::new(), by_child: HashMap::new() };
        }
        let named = |(number, ended): (usize, &'g Ended)| Some((ended.row.request.as_deref()?, number));
        let by_child = graph.launches.iter().filter_map(|launch| Some((launch.child.as_deref()?, launch)));
        Self {
            numbers: graph.ended.iter().enumerate().filter_map(named).collect(),
            by_child: by_child.collect(),
        }
    }

    fn source(&self, child: &str) -> Option<usize> {
        self.numbers.get(self.by_child.get(child)?.source.as_str()).copied()
    }

    fn consumer(&self, child: &str) -> Option<usize> {
        self.numbers.get(self.by_child.get(child)?.consumer.as_deref()?).copied()
    }
}
