//! A workload that was read once and is replayed often: many runs at a time share it.

use std::sync::Arc;

use wavetank_model::{Dependencies, Nanos, Opening, Request, Result, SessionId, Workload};

use super::growth::Gaps;

/// All requests of a workload, in the order they are asked for, without names.
#[derive(Debug)]
pub struct Tape {
    /// When each session starts, and where its turns end in `turns`.
    sessions: Vec<(Nanos, u32)>,
    turns: Vec<Request>,
    /// Where each session is in `sessions`: a trace that is not sorted numbers them in its own order.
    places: Vec<u32>,
    /// Sessions that wait for no other; they stand first.
    roots: usize,
    dependencies: Option<Arc<Dependencies>>,
    /// Inputs cut to what their ids cover.
    pub clamped: u64,
    /// How the trace was read.
    pub notes: Vec<String>,
}

impl Tape {
    /// Takes all requests of `workload`.
    pub fn of(workload: &mut dyn Workload) -> Result<Self> {
        let dependencies = workload.dependencies();
        let mut tape = Self {
            sessions: Vec::new(),
            turns: Vec::new(),
            places: Vec::new(),
            roots: 0,
            dependencies: dependencies.clone(),
            clamped: 0,
            notes: Vec::new(),
        };
        let mut openings = Vec::new();
        while let Some(opening) = workload.open()? {
            openings.push(opening);
        }
        tape.roots = openings.len();
        for opening in openings {
            tape.add(opening, workload)?;
        }
        for graph in dependencies.iter() {
            let sessions = (0..graph.sessions() as u32).map(SessionId);
            for session in sessions.filter(|&session| !graph.is_root(session)) {
                let request = workload.follow_up(session, 0)?;
                tape.add(Opening { at: Nanos::ZERO, request }, workload)?;
            }
        }
        Ok(tape)
    }

    /// Takes all turns of a session.
    fn add(&mut self, Opening { at, request }: Opening, workload: &mut dyn Workload) -> Result<()> {
        let session = request.session;
        self.places.resize(self.places.len().max(session.index() + 1), u32::MAX);
        self.places[session.index()] = self.sessions.len() as u32;
        let mut next = Some(request);
        while let Some(request) = next.take() {
            if request.think.is_some() {
                next = Some(workload.follow_up(session, request.turn + 1)?);
            }
            self.turns.push(request);
        }
        self.sessions.push((at, self.turns.len() as u32));
        Ok(())
    }

    /// The same, with what reading a trace found.
    #[must_use]
    pub fn with_findings(self, clamped: u64, notes: Vec<String>) -> Self {
        Self { clamped, notes, ..self }
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let ids: usize = self.turns.iter().map(|turn| turn.prompt.ids()).sum();
        size_of_val(&*self.turns) + size_of_val(&*self.sessions) + ids * size_of::<u64>()
    }

    /// How many requests there are.
    pub fn requests(&self) -> usize {
        self.turns.len()
    }

    /// The workload again.
    pub fn workload(&self) -> TapeReader<'_> {
        self.first(self.requests())
    }

    /// The sessions that start first and have at least `requests` requests together, at least one session.
    /// Where sessions wait for others, they are all of them: a part of a graph would be another graph.
    pub fn first(&self, requests: usize) -> TapeReader<'_> {
        let enough = self.sessions.partition_point(|&(_, end)| (end as usize) < requests);
        let sessions = match self.dependencies {
            Some(_) => self.sessions.len(),
            None => (enough + 1).min(self.sessions.len()),
        };
        TapeReader { tape: self, sessions, opened: 0, gaps: Gaps::default() }
    }

    /// A turn of a session.
    fn turn(&self, session: SessionId, turn: u32) -> &Request {
        &self.turns[self.start(self.places[session.index()] as usize) + turn as usize]
    }

    /// Where the turns of a session begin.
    fn start(&self, session: usize) -> usize {
        session.checked_sub(1).map_or(0, |before| self.sessions[before].1 as usize)
    }
}

/// A workload from a tape; copies are made of what is asked for only.
#[derive(Clone, Debug)]
pub struct TapeReader<'a> {
    tape: &'a Tape,
    sessions: usize,
    opened: usize,
    /// Answers that were not given in this run.
    gaps: Gaps,
}

impl Workload for TapeReader<'_> {
    fn open(&mut self) -> Result<Option<Opening>> {
        if self.opened == self.sessions.min(self.tape.roots) {
            return Ok(None);
        }
        let (at, _) = self.tape.sessions[self.opened];
        let request = self.tape.turns[self.tape.start(self.opened)].clone();
        self.opened += 1;
        Ok(Some(Opening { at, request }))
    }

    fn follow_up(&mut self, session: SessionId, turn: u32) -> Result<Request> {
        let mut request = self.tape.turn(session, turn).clone();
        if request.prompt.is_continued() {
            let first = self.tape.turn(session, 0).prompt.clone();
            request.prompt = self.gaps.prompt(session, first, request.prompt.tokens());
        }
        Ok(request)
    }

    fn has_follow_ups(&self) -> bool {
        self.tape.dependencies.is_some() || self.requests() > self.sessions as u64
    }

    fn requests(&self) -> u64 {
        self.tape.start(self.sessions) as u64
    }

    fn dependencies(&self) -> Option<Arc<Dependencies>> {
        self.tape.dependencies.clone()
    }

    fn rejected(&mut self, session: SessionId, turn: u32) {
        let request = self.tape.turn(session, turn);
        if request.prompt.is_continued() {
            self.gaps.note(session, request.prompt.tokens(), request.output_tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::requests::Source;
    use crate::{Input, Loaded, Options, Starts};

    /// Sessions of one to three turns, not sorted by time.
    fn loaded(starts: Starts) -> Loaded {
        let rows: Vec<String> = (0..40u32)
            .map(|row| {
                let (session, time) = (row * 7 % 19, 1000 + row * 10 - (row % 3) * 25);
                let named =
                    if session < 12 { format!(r#""session_id":"s{session}","#) } else { String::new() };
                let time = if session < 12 && row >= 19 { row * 100 } else { time };
                format!(
                    r#"{{{named}"timestamp":{time},"input_length":{},"output_length":3,"hash_ids":[{},{}]}}"#,
                    600 + row,
                    row % 5,
                    row
                )
            })
            .collect();
        let input = Input::Bytes(Arc::from(rows.join("\n").as_bytes()));
        crate::open(&Source::with("mooncake", vec![input]).unwrap(), &Options::of(starts)).unwrap()
    }

    /// All a workload has to say.
    fn told(workload: &mut dyn Workload) -> Vec<String> {
        let mut told = vec![format!("{} {}", workload.requests(), workload.has_follow_ups())];
        let openings: Vec<_> = std::iter::from_fn(|| workload.open().unwrap()).collect();
        for Opening { at, request } in openings {
            told.push(format!("{at:?} {request:?}"));
            let (session, mut more, mut turn) = (request.session, request.think.is_some(), 0);
            while more {
                turn += 1;
                let request = workload.follow_up(session, turn).unwrap();
                told.push(format!("{request:?}"));
                more = request.think.is_some();
            }
        }
        told
    }

    /// Broken by: a session looked for where another one is, times that are not the run's, or a second
    /// reading that goes on where the first ended.
    #[test]
    fn a_tape_says_what_the_trace_says() {
        for starts in [Starts::Scheduled { speedup: 1.7 }, Starts::Ignored] {
            let tape = Tape::of(loaded(starts).workload.as_mut()).unwrap();
            let direct = told(loaded(starts).workload.as_mut());
            assert!(direct.len() == 41 && direct[0] == "40 true", "{}", direct[0]);
            assert_eq!(told(&mut tape.workload()), direct);
            assert_eq!(told(&mut tape.workload()), direct, "and again");
        }
    }

    #[test]
    fn the_first_requests_come_in_whole_sessions() {
        let tape = Tape::of(loaded(Starts::Scheduled { speedup: 1.0 }).workload.as_mut()).unwrap();
        let whole = told(&mut tape.workload());
        let mut before = 0;
        for wanted in [0, 1, 5, 20, 39, 40, 99] {
            let first = told(&mut tape.first(wanted));
            let requests = first.len() - 1;
            assert!(
                (wanted.min(40)..wanted + 3).contains(&requests.max(wanted.min(1))),
                "{wanted}: {requests}"
            );
            assert!(requests >= before && requests > 0);
            assert_eq!(first[1..], whole[1..=requests], "a part is how the whole begins");
            before = requests;
        }
        assert_eq!(before, 40);
    }
}
