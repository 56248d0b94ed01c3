//! Who answers HTTP: it lets in, reads bodies, asks at the desk and says what comes.

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use wavetank_http::{Fault as BodyFault, Foreign, Inflow, Login, Pace, Room, check_origin, give_back};
use xxhash_rust::xxh3::xxh3_128;

use super::answer::{Answer, End, More};
use super::body::Reply;
use super::control::Desk;
use super::counts::Counts;
use super::fault::Fault;
use super::fields::Fields;
use super::job::{Choice, Job, Reading, Study};
use super::prompt;
use super::reply::{Head, Usage};
use super::route::Route;
use super::stream::{Stream, Teller};
use super::wanted::{Kind, LONGEST_ID};
use crate::gauges::{self, Gauges};

type Result<T, E = Fault> = std::result::Result<T, E>;

/// Bodies of so many bytes are read beside those who answer, who would stand still meanwhile.
const LARGE_BODY: usize = 16 << 10;
/// What room for bodies is counted in.
const PAGE: u64 = 1 << 10;

/// All that answering takes.
pub(super) struct Front {
    pub(super) study: Arc<Study>,
    pub(super) desk: Desk,
    pub(super) counts: Arc<Counts>,
    pub(super) gauges: Gauges,
    pub(super) rules: Rules,
    /// Pages for bodies.
    pub(super) room: Arc<Semaphore>,
    /// Answers that may be under way.
    pub(super) answers: Arc<Semaphore>,
    /// Tokens of requests under way.
    pub(super) tokens: Arc<Semaphore>,
    /// What ids are made of.
    pub(super) started: SystemTime,
    pub(super) asked: AtomicU64,
}

/// What clients may do.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Who may ask; everybody when absent.
    pub(super) login: Option<Login>,
    /// Where the server is.
    pub(super) host: IpAddr,
    pub(super) body_bytes: usize,
    pub(super) client_timeout: Duration,
    /// Whether answers say what of a prompt was in a cache.
    pub(super) shows_cached: bool,
}

impl Front {
    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let (name, route) = Route::of(&parts.method, parts.uri.path());
        let answered = match route.and_then(|route| self.admit(route, &parts).map(|()| route)) {
            Ok(route) => self.serve(route, &parts, body).await,
            Err(fault) => Err(fault),
        };
        let mut response = answered.unwrap_or_else(|fault| self.refusal(&fault));
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().extend(Route::method_of(name).map(|method| (ALLOW, method)));
        }
        self.counts.answered(name, response.status().as_u16());
        response
    }

    /// Who may ask for it.
    fn admit(&self, route: Route, parts: &Parts) -> Result<()> {
        let login = self.rules.login.as_ref();
        let served = login.is_none().then_some(self.rules.host);
        check_origin(parts, served).map_err(|foreign| {
            let wrong = match foreign {
                Foreign::Page => "a page of another site asks".to_owned(),
                Foreign::Host(host) => format!("this is not {host}"),
            };
            Fault::new(StatusCode::FORBIDDEN, wrong)
        })?;
        match login {
            Some(login) if !route.is_open() && !login.allows(&parts.headers) => {
                Err(Fault::new(StatusCode::UNAUTHORIZED, "the API key is missing or wrong"))
            }
            _ => Ok(()),
        }
    }

    async fn serve(&self, route: Route, parts: &Parts, body: Incoming) -> Result<Response<Reply>> {
        match route {
            Route::Generate(kind) => self.generate(kind, &parts.headers, body).await,
            Route::Models => self.models(parts.uri.path()),
            Route::Tokenize => self.tokenize(&parts.headers, body).await,
            Route::Detokenize => self.detokenize(&parts.headers, body).await,
            Route::Health => Ok(self.reply("text/plain", String::new())),
            Route::Version => Ok(self.json(json!({ "version": env!("CARGO_PKG_VERSION") }).to_string())),
            Route::Metrics => {
                let mut text = String::new();
                self.counts.write(&mut text);
                text.push_str(&self.gauges.metrics(&self.study.models[0]));
                Ok(self.reply(gauges::CONTENT_TYPE, text))
            }
        }
    }

    /// Asks for what a request wants, and tells it.
    async fn generate(&self, kind: Kind, headers: &HeaderMap, body: Incoming) -> Result<Response<Reply>> {
        let given = given_id(headers)?;
        let body = self.body(headers, body).await?;
        let reading = self.study_of(body, move |study, body| study.read(kind, body)).await?;
        let places = self.places(&reading)?;
        let job = self.write(reading).await?;
        let head = self.head(&job, given);
        let Job { telling, choices, prompt_tokens, .. } = job;
        let ask = |choice: Choice| {
            let answer = self.desk.ask(choice.ask.clone());
            (choice, answer)
        };
        let asked: Vec<(Choice, Answer)> = choices.into_iter().map(ask).collect();
        let (study, shows_cached) = (Arc::clone(&self.study), self.rules.shows_cached);
        if telling.streams {
            let teller = Teller { study, head, kind, telling, shows_cached };
            let stream = Stream::new(teller, asked, prompt_tokens);
            return Ok(self.streamed(stream, places));
        }
        let (choices, cached) = completed(asked).await?;
        let completion_tokens = choices.iter().map(|choice| u64::from(choice.script.tokens())).sum();
        let cached_tokens = shows_cached.then_some(cached);
        let usage = Usage { prompt_tokens, completion_tokens, cached_tokens };
        Ok(self.json(head.whole(&study, telling, &choices, usage)))
    }

    /// Places for its answers and their tokens, if there are any.
    fn places(&self, reading: &Reading) -> Result<Places> {
        let take = |of: &Arc<Semaphore>, count: u64| {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let full = |_| Fault::new(StatusCode::SERVICE_UNAVAILABLE, "too many requests are under way");
            Arc::clone(of).try_acquire_many_owned(count).map_err(full)
        };
        Ok(Places {
            _answers: take(&self.answers, self.study.answers_of(reading) as u64)?,
            _tokens: take(&self.tokens, self.study.tokens_of(reading))?,
        })
    }

    /// The answers to a request; what takes long is done beside those who answer.
    async fn write(&self, reading: Reading) -> Result<Job> {
        if !self.study.is_long(&reading) {
            return Ok(self.study.write(reading));
        }
        let study = Arc::clone(&self.study);
        spawn_blocking(move || study.write(reading)).await.map_err(|_| Fault::stopping())
    }

    fn head(&self, job: &Job, given: Option<String>) -> Head {
        let id = given.or_else(|| job.id.clone()).unwrap_or_else(|| self.fresh_id());
        let id = match job.kind {
            Kind::Chat => format!("chatcmpl-{id}"),
            Kind::Completion => format!("cmpl-{id}"),
        };
        Head::new(job.kind, id, seconds(SystemTime::now()), self.study.models[0].clone())
    }

    /// An id that no other request has.
    fn fresh_id(&self) -> String {
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        format!("{:032x}", xxh3_128(format!("{started} {number} {}", std::process::id()).as_bytes()))
    }

    fn models(&self, path: &str) -> Result<Response<Reply>> {
        let study = &self.study;
        let card = |name: &str| {
            json!({
                "id": name, "object": "model", "created": seconds(self.started), "owned_by": "wavetank",
                "root": study.root, "parent": null, "max_model_len": study.max_model_len,
                "permission": [],
            })
        };
        let one = path.strip_prefix("/v1/models/").filter(|name| !name.is_empty());
        if let Some(name) = one {
            study.check_model(Some(name))?;
            return Ok(self.json(card(name).to_string()));
        }
        let cards: Vec<_> = study.models.iter().map(|name| card(name)).collect();
        Ok(self.json(json!({ "object": "list", "data": cards }).to_string()))
    }

    async fn tokenize(&self, headers: &HeaderMap, body: Incoming) -> Result<Response<Reply>> {
        let body = self.body(headers, body).await?;
        let told = self.study_of(body, |study, body| {
            let fields = Fields::of(body)?;
            let sent = match fields.raw("messages") {
                Some(_) => prompt::of_chat(&study.tokenizer, &fields)?,
                None => prompt::of_text(&study.tokenizer, &fields)?,
            };
            let (count, most) = (sent.tokens.len(), study.max_model_len);
            check_count(count, most)?;
            let told =
                json!({ "count": count, "max_model_len": most, "tokens": sent.tokens, "token_strs": null });
            Ok(told.to_string())
        });
        Ok(self.json(told.await?))
    }

    async fn detokenize(&self, headers: &HeaderMap, body: Incoming) -> Result<Response<Reply>> {
        let body = self.body(headers, body).await?;
        let told = self.study_of(body, |study, body| {
            let tokens: Vec<u32> = Fields::of(body)?.required("tokens")?;
            check_count(tokens.len(), study.max_model_len)?;
            Ok(json!({ "prompt": study.tokenizer.decode(&tokens) }).to_string())
        });
        Ok(self.json(told.await?))
    }

    /// The body of a request, and the room it takes.
    async fn body(&self, headers: &HeaderMap, body: Incoming) -> Result<Held> {
        let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if !kind.eq_ignore_ascii_case(b"application/json") {
            let wrong = "only bodies of application/json are taken";
            return Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, wrong));
        }
        let mut inflow = Inflow::of(body, self.rules.client_timeout);
        let mut pages = Pages { room: &self.room, held: None };
        let bytes = inflow.whole_in(self.rules.body_bytes, &mut pages).await;
        Ok(Held { bytes: bytes.map_err(|Refusal(fault)| fault)?, _pages: pages.held })
    }

    /// What `work` makes of a body, beside those who answer if that takes long.
    async fn study_of<T: Send + 'static>(
        &self,
        body: Held,
        work: impl FnOnce(&Study, &[u8]) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if body.bytes.len() < LARGE_BODY {
            return work(&self.study, &body.bytes);
        }
        let study = Arc::clone(&self.study);
        let done = spawn_blocking(move || work(&study, &body.bytes)).await;
        done.unwrap_or_else(|_| Err(Fault::stopping()))
    }

    fn json(&self, text: String) -> Response<Reply> {
        self.reply("application/json", text)
    }

    fn reply(&self, kind: &'static str, text: impl Into<Bytes>) -> Response<Reply> {
        let mut response = Response::new(Reply::whole(&self.counts, text));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }

    fn streamed(&self, stream: Stream, places: Places) -> Response<Reply> {
        let mut response = Response::new(Reply::stream(&self.counts, stream, places));
        let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.extensions_mut().insert(Pace::Server);
        response
    }

    fn refusal(&self, fault: &Fault) -> Response<Reply> {
        let mut response = self.json(fault.json());
        *response.status_mut() = fault.status;
        response
    }
}

/// What a request keeps from others until it is answered.
#[derive(Debug)]
pub(super) struct Places {
    _answers: OwnedSemaphorePermit,
    _tokens: OwnedSemaphorePermit,
}

/// The id that a client gives its request, which is in every chunk of its answer.
fn given_id(headers: &HeaderMap) -> Result<Option<String>> {
    match headers.get("x-request-id").and_then(|id| id.to_str().ok()) {
        Some(id) if id.len() > LONGEST_ID => {
            Err(Fault::bad(format!("`X-Request-Id` may have at most {LONGEST_ID} bytes")))
        }
        id => Ok(id.map(str::to_owned)),
    }
}

/// Refuses to turn more into text, or into tokens, than a model could read.
fn check_count(tokens: usize, most: u32) -> Result<()> {
    match tokens > most as usize {
        true => Err(Fault::bad(format!("{tokens} tokens are more than the {most} of `max_model_len`"))),
        false => Ok(()),
    }
}

/// Waits for all answers; what was in a cache comes with them. Who does not wait to the end gives them up.
async fn completed(asked: Vec<(Choice, Answer)>) -> Result<(Vec<Choice>, u64)> {
    let (mut choices, mut cached) = (Vec::with_capacity(asked.len()), 0);
    for (choice, mut answer) in asked {
        let end = end_of(&mut answer).await;
        Fault::of_end(end).map_or(Ok(()), Err)?;
        cached += u64::from(answer.reused_tokens());
        choices.push(choice);
    }
    Ok((choices, cached))
}

async fn end_of(answer: &mut Answer) -> End {
    loop {
        if let More { end: Some(end), .. } = poll_fn(|context| answer.poll_more(context)).await {
            return end;
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A body while it is looked at.
struct Held {
    bytes: Vec<u8>,
    _pages: Option<OwnedSemaphorePermit>,
}

/// Room for one body.
struct Pages<'f> {
    room: &'f Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

/// Why a body is not taken.
struct Refusal(Fault);

impl From<BodyFault> for Refusal {
    fn from(fault: BodyFault) -> Self {
        Self(match fault {
            BodyFault::Slow => Fault::new(StatusCode::REQUEST_TIMEOUT, "the body takes too long"),
            BodyFault::Broken(error) => Fault::bad(format!("the body is broken: {error}")),
            BodyFault::Long(most) => {
                Fault::new(StatusCode::PAYLOAD_TOO_LARGE, format!("bodies have at most {most} bytes"))
            }
        })
    }
}

impl Room for Pages<'_> {
    type Refusal = Refusal;

    async fn take(&mut self, bytes: u64) -> Result<(), Refusal> {
        let pages = u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX);
        let taken = Arc::clone(self.room).try_acquire_many_owned(pages).map_err(|_| {
            Refusal(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "too many bodies are under way"))
        })?;
        self.held = Some(taken);
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        self.held.iter_mut().for_each(|held| give_back(held, bytes.div_ceil(PAGE) as usize));
    }
}

/// Pages that `bytes` take.
pub(super) fn pages(bytes: usize) -> usize {
    bytes.div_ceil(PAGE as usize)
}
