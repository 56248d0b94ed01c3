//! Turns that hold what was said before, answers included.

use wavetank_model::{Request, Workload};

use crate::requests::Source;
use crate::{Input, Options, Starts, Tape};

const SAMPLE: &str = include_str!("../../../tests/samples/mooncake_delta.jsonl");

fn workload() -> Box<dyn Workload> {
    let source = Source::with("mooncake-delta", vec![Input::Bytes(SAMPLE.as_bytes().into())]).unwrap();
    crate::open(&source, &Options::of(Starts::Scheduled { speedup: 1.0 })).unwrap().workload
}

/// All requests by session, of which the turns in `rejected` are given up.
fn play(workload: &mut dyn Workload, rejected: &[(u32, u32)]) -> Vec<Vec<Request>> {
    let openings: Vec<_> = std::iter::from_fn(|| workload.open().unwrap()).collect();
    let mut sessions = Vec::new();
    for opening in openings {
        let mut turns = vec![opening.request];
        while let Some(last) = turns.last().filter(|turn| turn.think.is_some()) {
            let (session, turn) = (last.session, last.turn);
            if rejected.contains(&(session.0, turn)) {
                workload.rejected(session, turn);
            }
            turns.push(workload.follow_up(session, turn + 1).unwrap());
        }
        sessions.push(turns);
    }
    sessions
}

fn lengths(sessions: &[Vec<Request>]) -> Vec<Vec<u32>> {
    sessions.iter().map(|turns| turns.iter().map(|turn| turn.prompt.tokens()).collect()).collect()
}

/// How many blocks of 16 tokens two prompts share at their beginning.
fn shared(one: &Request, other: &Request) -> usize {
    let keys = one.prompt.keys_from(0, 16).zip(other.prompt.keys_from(0, 16));
    keys.take_while(|(one, other)| one == other).count()
}

/// Broken by: a turn without the answer before it, or with another session's.
#[test]
fn a_turn_holds_what_was_said_before_it() {
    let sessions = play(workload().as_mut(), &[]);
    assert_eq!(lengths(&sessions), [vec![1100, 1240, 1330], vec![1100, 1712]]);
    let [a, b] = &sessions[..] else { panic!("two sessions") };
    assert_eq!(shared(&a[0], &b[0]), 1100 / 16, "first prompts are shared as their ids are");
    assert_eq!(shared(&a[1], &b[1]), 1100 / 16, "and nothing else is");
    for pair in a.windows(2).chain(b.windows(2)) {
        let known = pair[0].prompt.tokens() + pair[0].output_tokens;
        let kept = pair[0].prompt.content_keys(9, known, 0, 16);
        assert!(kept.eq(pair[1].prompt.keys_from(0, 16).take((known / 16) as usize)));
    }
}

/// Broken by: an answer that was never given standing in a later prompt, in the trace or on a tape.
#[test]
fn a_turn_that_was_given_up_has_no_answer() {
    for rejected in [&[(0, 0)][..], &[(0, 1)], &[(0, 0), (0, 1)]] {
        let sessions = play(workload().as_mut(), rejected);
        let missing = |turn| rejected.contains(&(0, turn));
        let second = 1140 + if missing(0) { 0 } else { 100 };
        let third = second + 30 + if missing(1) { 0 } else { 60 };
        assert_eq!(lengths(&sessions), [vec![1100, second, third], vec![1100, 1712]]);
        let (tape, told) = (Tape::of(workload().as_mut()).unwrap(), format!("{sessions:?}"));
        assert_eq!(format!("{:?}", play(&mut tape.workload(), rejected)), told);
        assert_eq!(lengths(&play(&mut tape.workload(), &[]))[0], [1100, 1240, 1330], "in one run only");
    }
    let (told, given_up) = (play(workload().as_mut(), &[]), play(workload().as_mut(), &[(0, 1)]));
    assert_eq!(shared(&told[0][2], &given_up[0][2]), 1240 / 16, "what is said instead is not the answer");
}

#[test]
fn a_session_of_more_than_can_be_counted_is_refused() {
    let row = |length: u32| {
        format!(
            r#"{{"session_id":"a","timestamp":1,"input_length":1,"output_length":{length},"hash_ids":[1]}}"#
        )
    };
    let text = [row(u32::MAX - 1), row(1)].join("\n");
    let source = Source::with("mooncake_delta", vec![Input::Bytes(text.as_bytes().into())]).unwrap();
    let error = crate::open(&source, &Options::of(Starts::Ignored)).err().unwrap().to_string();
    assert!(error.contains(":2: what was said in its session is more than 2^32 tokens"), "{error}");
}
