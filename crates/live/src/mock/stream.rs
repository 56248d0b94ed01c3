//! An answer that is told token by token: a body that looks at what has come. Whoever reads slowly makes
//! nothing grow, since tokens are counted and not kept; whoever goes away drops it, and with it the request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use super::answer::{Answer, End};
use super::fault::Fault;
use super::job::{Choice, Study};
use super::reply::{Head, Step, Usage, escaped};
use super::wanted::{Kind, Telling};

/// A frame that has so many bytes takes no more tokens.
const MOST_FRAME: usize = 32 << 10;
const DONE: &str = "data: [DONE]\n\n";

/// The body of a streamed answer.
#[derive(Debug)]
pub(super) struct Stream {
    teller: Teller,
    lines: Vec<Line>,
    /// Tokens of all prompts.
    prompt_tokens: u64,
    is_over: bool,
}

/// How the choices of a stream are told.
#[derive(Debug)]
pub(super) struct Teller {
    pub(super) study: Arc<Study>,
    pub(super) head: Head,
    pub(super) kind: Kind,
    pub(super) telling: Telling,
    /// Whether it is told what of a prompt was in a cache.
    pub(super) shows_cached: bool,
}

/// One choice while it is told.
#[derive(Debug)]
struct Line {
    index: usize,
    answer: Answer,
    choice: Choice,
    /// Tokens that have come.
    came: u32,
    /// Tokens that were told, and bytes of their text.
    told: u32,
    bytes: usize,
    end: Option<End>,
}

impl Stream {
    /// Tells `choices` as their answers come.
    pub(super) fn new(teller: Teller, choices: Vec<(Choice, Answer)>, prompt_tokens: u64) -> Self {
        let line =
            |(index, (choice, answer))| Line { index, answer, choice, came: 0, told: 0, bytes: 0, end: None };
        let lines = choices.into_iter().enumerate().map(line).collect();
        Self { teller, lines, prompt_tokens, is_over: false }
    }

    /// All that can be told now.
    fn tell(&mut self, context: &mut Context<'_>) -> String {
        let mut frame = String::new();
        for line in &mut self.lines {
            line.hear(context);
            while line.told < line.came && frame.len() < MOST_FRAME {
                line.tell(&self.teller, &mut frame);
            }
            if let Some(fault) = line.end.and_then(Fault::of_end) {
                frame.push_str("data: ");
                frame.push_str(&fault.json());
                frame.push_str("\n\n");
                return self.end(frame);
            }
        }
        if !self.lines.iter().all(Line::is_over) {
            return frame;
        }
        if self.teller.telling.usage {
            self.teller.head.usage(&mut frame, self.usage());
        }
        self.end(frame)
    }

    fn end(&mut self, mut frame: String) -> String {
        frame.push_str(DONE);
        self.is_over = true;
        // Whatever is left is not wanted any more.
        self.lines.clear();
        frame
    }

    fn usage(&self) -> Usage {
        let cached = || self.lines.iter().map(|line| u64::from(line.answer.reused_tokens())).sum();
        Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.lines.iter().map(|line| u64::from(line.told)).sum(),
            cached_tokens: self.teller.shows_cached.then(cached),
        }
    }
}

impl Line {
    /// Looks at what has come, and is woken when more does.
    fn hear(&mut self, context: &mut Context<'_>) {
        while self.end.is_none() && self.told == self.came {
            let Poll::Ready(more) = self.answer.poll_more(context) else { return };
            (self.came, self.end) = (self.came + more.tokens, more.end);
        }
    }

    fn is_over(&self) -> bool {
        self.end == Some(End::Completed) && self.told == self.came
    }

    /// Tells the next token.
    fn tell(&mut self, teller: &Teller, frame: &mut String) {
        let Self { index, ref choice, told, bytes, .. } = *self;
        let text = choice.script.piece(&teller.study.words, told, bytes);
        let prompt_tokens = choice.prompt_tokens as usize;
        let ids = teller.telling.token_ids;
        let is_first = told == 0;
        let echo = if is_first { escaped(&choice.echo) } else { String::new() };
        let used = |tokens: u32| Usage {
            prompt_tokens: prompt_tokens as u64,
            completion_tokens: u64::from(tokens),
            cached_tokens: None,
        };
        let throughout = teller.telling.usage_throughout;
        let step = Step {
            index,
            text,
            echo: &echo,
            token: ids.then(|| choice.ask.tokens[prompt_tokens + told as usize]),
            prompt: (is_first && ids).then(|| &choice.ask.tokens[..prompt_tokens]),
            ending: (told + 1 == choice.script.tokens()).then_some(&choice.script.ending),
            usage: throughout.then(|| used(told + 1)),
        };
        if is_first && teller.kind == Kind::Chat {
            let role =
                Step { index, prompt: step.prompt, usage: throughout.then(|| used(0)), ..Step::default() };
            teller.head.role(frame, &role);
        }
        teller.head.step(frame, &step);
        self.bytes += text.len();
        self.told += 1;
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let frame = self.tell(context);
        match frame.is_empty() {
            true => Poll::Pending,
            false => Poll::Ready(Some(Ok(Frame::data(frame.into())))),
        }
    }
}
