//! What a request wants besides its prompt: names, limits and types are those of vLLM.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use wavetank_model::Priority;

use super::fault::Fault;
use super::fields::{Fields, Range};

type Result<T> = std::result::Result<T, Fault>;

/// Which of the two kinds of request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completion,
}

/// How an answer is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Telling {
    /// Token by token.
    pub(super) streams: bool,
    /// With what was used, at the end of a stream.
    pub(super) usage: bool,
    /// And with every token of it.
    pub(super) usage_throughout: bool,
    /// With the numbers of the tokens.
    pub(super) token_ids: bool,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) model: Option<String>,
    pub(super) request_id: Option<String>,
    /// Answers to each prompt.
    pub(super) n: u32,
    /// As it was said; what is left of the model's length if not.
    pub(super) max_tokens: Option<u32>,
    pub(super) min_tokens: u32,
    pub(super) ignore_eos: bool,
    pub(super) stop: Vec<String>,
    pub(super) stop_token_ids: Vec<u32>,
    pub(super) include_stop: bool,
    pub(super) seed: Option<i64>,
    pub(super) telling: Telling,
    pub(super) priority: Priority,
    pub(super) cache_salt: Option<String>,
    /// The last so many tokens of a prompt are taken; −1 is as many as there is room for.
    pub(super) truncate: Option<i64>,
    /// Whether nothing but the prompt is to come back.
    pub(super) only_echo: bool,
}

/// Tokens of a completion that does not say how many.
const COMPLETION_TOKENS: u32 = 16;
/// Every prompt of a request has its own copy of what ends its answer.
const MOST_STOPS: usize = 16;
const LONGEST_STOP: usize = 1024;
const MOST_STOP_TOKENS: usize = 1024;
const LONGEST_SALT: usize = 1024;
/// An id is in every chunk of an answer.
pub(super) const LONGEST_ID: usize = 256;

/// Numbers that shape what a model says; here they are checked.
const NUMBERS: [(&str, Range); 7] = [
    ("temperature", Range::from_to(0.0, f64::MAX)),
    ("top_p", Range::above_to(0.0, 1.0)),
    ("min_p", Range::from_to(0.0, 1.0)),
    ("presence_penalty", Range::from_to(-2.0, 2.0)),
    ("frequency_penalty", Range::from_to(-2.0, 2.0)),
    ("repetition_penalty", Range::above_to(0.0, f64::MAX)),
    ("length_penalty", Range::from_to(f64::MIN, f64::MAX)),
];
/// Fields that would shape the answer, which is words and nothing else.
const SHAPES: [&str; 8] = [
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "prompt_embeds",
    "suffix",
    "prompt_logprobs",
];

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

impl Wanted {
    /// Reads and checks what is wanted.
    pub(super) fn of(fields: &Fields<'_>, kind: Kind) -> Result<Self> {
        check_sampling(fields)?;
        refuse(fields, kind)?;
        let only_echo =
            kind == Kind::Completion && fields.flag("echo")? && fields.whole("max_tokens")? == Some(0);
        let max_tokens = if only_echo { Some(1) } else { max_tokens(fields, kind)? };
        let min_tokens = fields.count("min_tokens", 0)?.unwrap_or(0);
        if max_tokens.is_some_and(|most| min_tokens > most) {
            let wrong = format!("`min_tokens` is {min_tokens}, more than `max_tokens`");
            return Err(Fault::of_field("min_tokens", wrong));
        }
        Ok(Self {
            model: fields.optional("model")?,
            request_id: request_id(fields)?,
            n: n(fields)?,
            max_tokens,
            min_tokens,
            ignore_eos: fields.flag("ignore_eos")?,
            stop: stops(fields)?,
            stop_token_ids: stop_tokens(fields)?,
            include_stop: fields.flag("include_stop_str_in_output")?,
            seed: fields.whole("seed")?,
            telling: telling(fields)?,
            priority: priority(fields)?,
            cache_salt: cache_salt(fields)?,
            truncate: truncate(fields)?,
            only_echo,
        })
    }
}

fn check_sampling(fields: &Fields<'_>) -> Result<()> {
    NUMBERS.iter().try_for_each(|(name, range)| fields.check_number(name, *range))?;
    if fields.whole("top_k")?.is_some_and(|top| top < -1) {
        return Err(Fault::of_field("top_k", "`top_k` must be -1, 0 or more"));
    }
    fields.optional::<String>("user")?;
    fields.optional::<std::collections::BTreeMap<String, f64>>("logit_bias")?;
    fields.optional::<Vec<String>>("bad_words")?;
    fields.optional::<Vec<u32>>("allowed_token_ids")?;
    fields.flag("skip_special_tokens")?;
    fields.flag("spaces_between_special_tokens").map(drop)
}

/// What a model would do and words cannot.
fn refuse(fields: &Fields<'_>, kind: Kind) -> Result<()> {
    let refused = |name: &str| Err(Fault::of_field(name, format!("`{name}` is not supported by the mock")));
    if let Some(name) = SHAPES.iter().find(|name| fields.raw(name).is_some()) {
        return refused(name);
    }
    let scores = match kind {
        Kind::Chat => fields.flag("logprobs")? || fields.whole("top_logprobs")?.is_some_and(|top| top != 0),
        Kind::Completion => fields.whole("logprobs")?.is_some(),
    };
    if scores {
        return refused("logprobs");
    }
    if fields.flag("use_beam_search")? {
        return refused("use_beam_search");
    }
    let format: Option<Value> = fields.optional("response_format")?;
    if format.is_some_and(|format| format.get("type").and_then(Value::as_str) != Some("text")) {
        return refused("response_format");
    }
    let choice: Option<Value> = fields.optional("tool_choice")?;
    if choice.is_some_and(|choice| !matches!(choice.as_str(), Some("none" | "auto"))) {
        return refused("tool_choice");
    }
    fields.optional::<Vec<IgnoredAny>>("tools").map(drop)
}

fn max_tokens(fields: &Fields<'_>, kind: Kind) -> Result<Option<u32>> {
    let typed = fields.count("max_tokens", 1)?;
    match kind {
        Kind::Chat => Ok(fields.count("max_completion_tokens", 1)?.or(typed)),
        Kind::Completion => Ok(Some(typed.unwrap_or(COMPLETION_TOKENS))),
    }
}

fn n(fields: &Fields<'_>) -> Result<u32> {
    let n = fields.count("n", 1)?.unwrap_or(1);
    match n > 1 && fields.optional::<f64>("temperature")? == Some(0.0) {
        true => Err(Fault::of_field("n", "`n` must be 1 with a `temperature` of 0")),
        false => Ok(n),
    }
}

fn stops(fields: &Fields<'_>) -> Result<Vec<String>> {
    let stops = match fields.optional("stop")? {
        None => Vec::new(),
        Some(OneOrMore::One(stop)) => vec![stop],
        Some(OneOrMore::More(stops)) => stops,
    };
    if stops.len() > MOST_STOPS {
        return Err(Fault::of_field("stop", format!("`stop` may have at most {MOST_STOPS} texts")));
    }
    if stops.iter().any(|stop| stop.len() > LONGEST_STOP) {
        return Err(Fault::of_field(
            "stop",
            format!("a text of `stop` may have at most {LONGEST_STOP} bytes"),
        ));
    }
    match stops.iter().any(String::is_empty) {
        true => Err(Fault::of_field("stop", "`stop` must not have an empty text")),
        false => Ok(stops),
    }
}

fn stop_tokens(fields: &Fields<'_>) -> Result<Vec<u32>> {
    let tokens: Vec<u32> = fields.optional("stop_token_ids")?.unwrap_or_default();
    match tokens.len() > MOST_STOP_TOKENS {
        true => {
            let wrong = format!("`stop_token_ids` may have at most {MOST_STOP_TOKENS} tokens");
            Err(Fault::of_field("stop_token_ids", wrong))
        }
        false => Ok(tokens),
    }
}

fn request_id(fields: &Fields<'_>) -> Result<Option<String>> {
    let id: Option<String> = fields.optional("request_id")?;
    match id.as_ref().is_some_and(|id| id.len() > LONGEST_ID) {
        true => {
            let wrong = format!("`request_id` may have at most {LONGEST_ID} bytes");
            Err(Fault::of_field("request_id", wrong))
        }
        false => Ok(id),
    }
}

fn telling(fields: &Fields<'_>) -> Result<Telling> {
    let streams = fields.flag("stream")?;
    let options: Option<StreamOptions> = fields.optional("stream_options")?;
    if options.is_some() && !streams {
        return Err(Fault::of_field("stream_options", "`stream_options` belong to `stream`"));
    }
    let usage = options.as_ref().and_then(|options| options.include_usage).unwrap_or(false);
    let throughout = options.and_then(|options| options.continuous_usage_stats).unwrap_or(false);
    let token_ids = fields.flag("return_token_ids")?;
    Ok(Telling { streams, usage, usage_throughout: usage && throughout, token_ids })
}

/// vLLM serves lower numbers first, a router higher ones.
fn priority(fields: &Fields<'_>) -> Result<Priority> {
    let lower_first = fields.whole("priority")?.unwrap_or(0);
    let soft = lower_first.saturating_neg().clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
    Ok(Priority { soft, strict: 0 })
}

fn cache_salt(fields: &Fields<'_>) -> Result<Option<String>> {
    let salt: Option<String> = fields.optional("cache_salt")?;
    match salt.as_ref().is_some_and(|salt| salt.is_empty() || salt.len() > LONGEST_SALT) {
        true => Err(Fault::of_field("cache_salt", format!("`cache_salt` has 1 to {LONGEST_SALT} bytes"))),
        false => Ok(salt),
    }
}

fn truncate(fields: &Fields<'_>) -> Result<Option<i64>> {
    match fields.whole("truncate_prompt_tokens")? {
        Some(tokens) if tokens < 1 && tokens != -1 => {
            Err(Fault::of_field("truncate_prompt_tokens", "`truncate_prompt_tokens` must be -1, 1 or more"))
        }
        tokens => Ok(tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(kind: Kind, body: &str) -> Result<Wanted> {
        Wanted::of(&Fields::of(body.as_bytes()).unwrap(), kind)
    }

    /// Broken by: another default than vLLM's.
    #[test]
    fn nothing_said_is_the_default() {
        let chat = wanted(Kind::Chat, "{}").unwrap();
        assert_eq!((chat.max_tokens, chat.n, chat.min_tokens), (None, 1, 0));
        assert_eq!(chat.telling, Telling::default());
        assert_eq!(wanted(Kind::Completion, r#"{"max_tokens": null}"#).unwrap().max_tokens, Some(16));
        let newer = r#"{"max_tokens": 5, "max_completion_tokens": 7}"#;
        assert_eq!(wanted(Kind::Chat, newer).unwrap().max_tokens, Some(7));
        let echo = wanted(Kind::Completion, r#"{"echo": true, "max_tokens": 0}"#).unwrap();
        assert!(echo.only_echo && echo.max_tokens == Some(1));
    }

    /// Broken by: a wrong value or type that passes, or is blamed on another field.
    #[test]
    fn what_is_wrong_is_refused() {
        for (name, value) in [
            ("temperature", "-0.1"),
            ("temperature", "\"hot\""),
            ("top_p", "0"),
            ("top_p", "1.5"),
            ("min_p", "-1"),
            ("presence_penalty", "3"),
            ("repetition_penalty", "0"),
            ("top_k", "-2"),
            ("top_k", "1.5"),
            ("n", "0"),
            ("n", "\"2\""),
            ("max_tokens", "0"),
            ("max_tokens", "-1"),
            ("max_completion_tokens", "0"),
            ("min_tokens", "-1"),
            ("stop", "[\"\"]"),
            ("stop", "3"),
            ("stop_token_ids", "[\"a\"]"),
            ("seed", "\"x\""),
            ("stream", "\"yes\""),
            ("stream_options", "{\"include_usage\": true}"),
            ("logprobs", "true"),
            ("use_beam_search", "true"),
            ("response_format", "{\"type\": \"json_object\"}"),
            ("guided_json", "{}"),
            ("tool_choice", "\"required\""),
            ("ignore_eos", "1"),
            ("logit_bias", "[1]"),
            ("truncate_prompt_tokens", "0"),
            ("cache_salt", "\"\""),
            ("priority", "\"high\""),
            ("user", "3"),
        ] {
            let fault = wanted(Kind::Chat, &format!(r#"{{"{name}": {value}}}"#)).unwrap_err();
            assert!(fault.json().contains(&format!(r#""param":"{name}""#)), "{name}: {}", fault.json());
        }
        assert!(wanted(Kind::Chat, r#"{"min_tokens": 5, "max_tokens": 4}"#).is_err());
        assert!(wanted(Kind::Chat, r#"{"n": 2, "temperature": 0}"#).is_err());
        assert!(wanted(Kind::Completion, r#"{"logprobs": 1}"#).is_err());
    }

    /// Broken by: a client that is refused for what any server takes.
    #[test]
    fn what_shapes_a_model_is_taken() {
        let body = r#"{"temperature": 0, "top_p": 0.9, "top_k": -1, "seed": 7, "user": "u", "n": 1,
            "logprobs": false, "response_format": {"type": "text"}, "tools": [{}], "tool_choice": "auto",
            "stop": "END", "stream": true, "stream_options": {"include_usage": true}, "unheard_of": [1],
            "priority": 3, "logit_bias": {"5": 1.0}, "max_tokens": 1e3}"#;
        let wanted = wanted(Kind::Chat, body).unwrap();
        assert_eq!((wanted.seed, wanted.max_tokens, wanted.priority.soft), (Some(7), Some(1000), -3));
        assert_eq!(wanted.stop, ["END"]);
        assert!(wanted.telling.streams && wanted.telling.usage && !wanted.telling.usage_throughout);
    }
}
