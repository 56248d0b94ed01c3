//! From the body of a request to what is asked of the workers, and what is said while they work.

use std::sync::Arc;

use hyper::StatusCode;
use wavetank_model::Prompt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::control::Ask;
use super::fault::Fault;
use super::fields::Fields;
use super::prompt::{self, Sent};
use super::script::{Bounds, OutputLengths, Script};
use super::tokens::Tokenizer;
use super::wanted::{Kind, Telling, Wanted};
use super::words::Words;

type Result<T> = std::result::Result<T, Fault>;

/// Answers of one request.
const MOST_CHOICES: usize = 1024;
/// Tokens of all its prompts and answers, each counted as often as it is kept.
const MOST_TOKENS: u64 = 1 << 22;
/// Answers of so many tokens take a while to write.
const LONG: u64 = 1 << 14;

/// What answers are made with.
#[derive(Debug)]
pub(super) struct Study {
    pub(super) tokenizer: Tokenizer,
    pub(super) words: Words,
    pub(super) lengths: OutputLengths,
    /// The model that is played, and what it is called, its first name first.
    pub(super) root: String,
    pub(super) models: Vec<String>,
    pub(super) max_model_len: u32,
    pub(super) block_size: u32,
}

/// A request that was read and is sound.
#[derive(Debug)]
pub(super) struct Reading {
    kind: Kind,
    wanted: Wanted,
    /// Each prompt, and what its answers may be.
    prompts: Vec<(Sent, Bounds)>,
}

/// A request that can be served.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) kind: Kind,
    pub(super) telling: Telling,
    /// Its id, as it was sent with it.
    pub(super) id: Option<String>,
    pub(super) choices: Vec<Choice>,
    /// Tokens of all its prompts.
    pub(super) prompt_tokens: u64,
}

/// One answer.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) ask: Ask,
    pub(super) script: Script,
    pub(super) prompt_tokens: u32,
    /// What stands before it.
    pub(super) echo: Arc<str>,
}

impl Study {
    /// Reads the body of a request.
    pub(super) fn read(&self, kind: Kind, body: &[u8]) -> Result<Reading> {
        let fields = Fields::of(body)?;
        let wanted = Wanted::of(&fields, kind)?;
        self.check_model(wanted.model.as_deref())?;
        let sent = match kind {
            Kind::Chat => vec![prompt::of_chat(&self.tokenizer, &fields)?],
            Kind::Completion => prompt::of_completion(&self.tokenizer, &fields)?,
        };
        if sent.len().saturating_mul(wanted.n as usize) > MOST_CHOICES {
            return Err(Fault::of_field("n", format!("more than {MOST_CHOICES} answers in one request")));
        }
        let bounded = sent.into_iter().map(|mut sent| {
            let bounds = self.bounds(&wanted, &mut sent.tokens)?;
            Ok((sent, bounds))
        });
        let prompts: Vec<(Sent, Bounds)> = bounded.collect::<Result<_>>()?;
        let reading = Reading { kind, wanted, prompts };
        match self.tokens_of(&reading) > MOST_TOKENS {
            true => Err(Fault::bad(format!("more than {MOST_TOKENS} tokens in one request"))),
            false => Ok(reading),
        }
    }

    /// How many answers it wants.
    pub(super) fn answers_of(&self, reading: &Reading) -> usize {
        reading.prompts.len() * reading.wanted.n as usize
    }

    /// Tokens of its prompts and, about, of their answers: each answer has a prompt of its own.
    pub(super) fn tokens_of(&self, reading: &Reading) -> u64 {
        let mean = self.lengths.mean as u64;
        let usual = |bounds: &Bounds| bounds.sure_tokens().max(mean.min(bounds.max_tokens.into()));
        let kept = |(sent, bounds): &(Sent, Bounds)| sent.tokens.len() as u64 + usual(bounds);
        reading.prompts.iter().map(kept).sum::<u64>() * u64::from(reading.wanted.n)
    }

    /// Whether it takes a while to write its answers.
    pub(super) fn is_long(&self, reading: &Reading) -> bool {
        self.tokens_of(reading) > LONG
    }

    /// Writes the answers to a request.
    pub(super) fn write(&self, reading: Reading) -> Job {
        let Reading { kind, wanted, prompts } = reading;
        let (mut choices, mut prompt_tokens) = (Vec::new(), 0);
        for (Sent { tokens, echo }, bounds) in prompts {
            prompt_tokens += tokens.len() as u64;
            let echo: Arc<str> = echo.into();
            let answers = (0..wanted.n).map(|index| self.choice(&wanted, &tokens, &bounds, index));
            choices.extend(answers.map(|choice| Choice { echo: Arc::clone(&echo), ..choice }));
        }
        Job { kind, telling: wanted.telling, id: wanted.request_id, choices, prompt_tokens }
    }

    /// Refuses a model that is not served.
    pub(super) fn check_model(&self, model: Option<&str>) -> Result<()> {
        match model {
            Some(model) if !self.models.iter().any(|known| known == model) => {
                Err(Fault::new(StatusCode::NOT_FOUND, format!("the model `{model}` is not served"))
                    .about("model"))
            }
            _ => Ok(()),
        }
    }

    /// Cuts a prompt if that is wanted, and says what its answer may be.
    fn bounds(&self, wanted: &Wanted, tokens: &mut Vec<u32>) -> Result<Bounds> {
        let room = self.max_model_len.saturating_sub(wanted.max_tokens.unwrap_or(1)) as usize;
        if let Some(most) = wanted.truncate {
            let most = usize::try_from(most).unwrap_or(room);
            tokens.drain(..tokens.len().saturating_sub(most));
        }
        let length = tokens.len();
        if length == 0 || length > room {
            let (most, output) = (self.max_model_len, wanted.max_tokens.unwrap_or(1));
            let wrong = format!(
                "a prompt of {length} tokens and an answer of {output} go beyond the model's maximum context \
                 length of {most} tokens"
            );
            return Err(Fault::bad(wrong));
        }
        Ok(Bounds {
            max_tokens: wanted.max_tokens.unwrap_or(self.max_model_len - length as u32),
            min_tokens: wanted.min_tokens,
            ignores_end: wanted.ignore_eos,
            stop: wanted.stop.clone(),
            stop_tokens: wanted.stop_token_ids.clone(),
            keeps_stop: wanted.include_stop,
        })
    }

    /// The answer `index` to `tokens`.
    fn choice(&self, wanted: &Wanted, tokens: &[u32], bounds: &Bounds, index: u32) -> Choice {
        let seed = seed(tokens, wanted.seed, index);
        let script = match Script::write(&self.words, seed, self.lengths, bounds) {
            script if wanted.only_echo => script.silent(),
            script => script,
        };
        let answer = script.ids(&self.words, self.tokenizer.marks().end);
        let all: Arc<[u32]> = tokens.iter().copied().chain(answer).collect();
        let prompt_tokens = tokens.len() as u32;
        let salt = wanted.cache_salt.as_ref().map_or(0, |salt| xxh3_64(salt.as_bytes()));
        let ids = block_ids(&all, self.block_size, salt);
        let prompt = Prompt::from_ids(ids, all.len() as u32, self.block_size).answered_after(prompt_tokens);
        let (output_tokens, finish) = (script.tokens(), script.finish());
        let ask = Ask { prompt, tokens: all, output_tokens, finish, priority: wanted.priority };
        Choice { ask, script, prompt_tokens, echo: "".into() }
    }
}

/// What an answer follows from.
fn seed(tokens: &[u32], wanted: Option<i64>, index: u32) -> u64 {
    let mut bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    bytes.extend(wanted.unwrap_or(0).to_le_bytes());
    bytes.extend(index.to_le_bytes());
    xxh3_64(&bytes)
}

/// What names each block of `tokens`; a prompt chains them. The first one is of `salt` too.
fn block_ids(tokens: &[u32], block_size: u32, salt: u64) -> impl Iterator<Item = u64> + '_ {
    let mut bytes = Vec::with_capacity(block_size as usize * 4);
    tokens.chunks(block_size as usize).enumerate().map(move |(block, tokens)| {
        bytes.clear();
        bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
        xxh3_64_with_seed(&bytes, if block == 0 { salt } else { 0 })
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const NAMES: &[&str] = &[
        "prompt",
        "messages",
        "n",
        "max_tokens",
        "min_tokens",
        "stop",
        "stop_token_ids",
        "stream",
        "stream_options",
        "seed",
        "echo",
        "truncate_prompt_tokens",
        "cache_salt",
        "priority",
        "logit_bias",
        "tools",
        "ignore_eos",
        "top_k",
        "model",
        "response_format",
    ];
    const VALUES: &[&str] = &[
        "null",
        "true",
        "-1",
        "0",
        "3",
        "1e308",
        "9223372036854775808",
        "\"sea\"",
        "\"\\ud800\"",
        "\"\"",
        "[]",
        "[1,2]",
        "[\"e\",\"\"]",
        "{}",
        "[[5],\"a\"]",
        "[{\"role\":\"user\",\"content\":\"é\"}]",
        "{\"include_usage\":1}",
        "[",
    ];

    pub(in crate::mock) fn study() -> Study {
        let tokenizer = Tokenizer::embedded();
        let words = Words::of(&tokenizer).unwrap();
        let lengths = OutputLengths { mean: 20.0, cv: 0.0 };
        let models = vec!["mock".to_owned(), "alias".to_owned()];
        let root = "mock".to_owned();
        Study { tokenizer, words, lengths, root, models, max_model_len: 100, block_size: 4 }
    }

    fn job(study: &Study, kind: Kind, body: &str) -> Result<Job> {
        study.read(kind, body.as_bytes()).map(|reading| study.write(reading))
    }

    fn completion(study: &Study, body: &str) -> Result<Job> {
        job(study, Kind::Completion, body)
    }

    fn keys(ask: &Ask) -> Vec<wavetank_model::BlockKey> {
        ask.prompt.content_keys(0, ask.tokens.len() as u32, 0, 4).collect()
    }

    /// Broken by: a limit that is off by one, or no limit.
    #[test]
    fn prompt_and_answer_fit_the_model() {
        let study = study();
        let prompt = |tokens: usize| format!("[{}]", vec!["5"; tokens].join(","));
        let ask =
            |tokens, rest: &str| completion(&study, &format!(r#"{{"prompt": {}{rest}}}"#, prompt(tokens)));
        assert!(ask(84, "").is_ok() && ask(85, "").is_err());
        assert!(ask(99, r#", "max_tokens": 1"#).is_ok() && ask(100, r#", "max_tokens": 1"#).is_err());
        let cut = ask(500, r#", "truncate_prompt_tokens": -1, "max_tokens": 10"#).unwrap();
        assert_eq!(cut.choices[0].prompt_tokens, 90);
        assert_eq!(ask(50, r#", "truncate_prompt_tokens": 7"#).unwrap().prompt_tokens, 7);
        let chat = r#"{"messages": [{"role": "user", "content": "Hi"}], "ignore_eos": true}"#;
        let chat = job(&study, Kind::Chat, chat).unwrap();
        assert_eq!(chat.choices[0].ask.tokens.len(), 100, "all that is left");
    }

    /// Broken by: answers that are not the same for the same, or the same for others.
    #[test]
    fn answers_follow_from_what_is_asked() {
        let study = study();
        let text = |body: &str| -> Vec<String> {
            let job = completion(&study, body).unwrap();
            job.choices.iter().map(|choice| choice.script.text(&study.words)).collect()
        };
        let plain = text(r#"{"prompt": "Hello", "n": 2}"#);
        assert_eq!(plain, text(r#"{"prompt": ["Hello"], "n": 2}"#));
        assert_ne!(plain[0], plain[1]);
        assert_ne!(plain[0], text(r#"{"prompt": "Hello", "seed": 1}"#)[0]);
        assert_ne!(plain[0], text(r#"{"prompt": "Hello!"}"#)[0]);
        assert_eq!(text(r#"{"prompt": ["a", "b"], "n": 3}"#).len(), 6);
        assert!(completion(&study, r#"{"prompt": "a", "n": 1025}"#).is_err());
        let silent = r#"{"prompt": "Hello", "echo": true, "max_tokens": 0}"#;
        assert_eq!(text(silent), [""]);
        assert_eq!(&*completion(&study, silent).unwrap().choices[0].echo, "Hello");
    }

    /// Broken by: a salt that does not matter, or one that only keeps the first block apart.
    #[test]
    fn salts_keep_prompts_apart() {
        let study = study();
        let of = |salt: &str| {
            let body = format!(r#"{{"prompt": [1,2,3,4,5,6,7,8,9]{salt}}}"#);
            keys(&completion(&study, &body).unwrap().choices[0].ask)
        };
        let (plain, salted) = (of(""), of(r#", "cache_salt": "s""#));
        assert!(plain.iter().zip(&salted).all(|(plain, salted)| plain != salted));
        assert_eq!(salted, of(r#", "cache_salt": "s""#));
    }

    /// Broken by: a short request that takes all memory, or that others have to wait for.
    #[test]
    fn a_request_has_so_many_tokens() {
        let study = Study { max_model_len: 100_000, ..study() };
        let body = |n: u32, rest: &str| format!(r#"{{"prompt": "a", "max_tokens": 90000, "n": {n}{rest}}}"#);
        let read = |body: &str| study.read(Kind::Completion, body.as_bytes());
        assert!(read(&body(50, r#", "ignore_eos": true"#)).is_err());
        assert!(read(&body(50, r#", "min_tokens": 90000"#)).is_err());
        assert!(!study.is_long(&read(&body(50, "")).unwrap()), "it ends before");
        assert!(study.is_long(&read(&body(1, r#", "ignore_eos": true"#)).unwrap()));
    }

    /// Broken by: another name that is served, or any.
    #[test]
    fn only_its_models_are_served() {
        let study = study();
        assert!(completion(&study, r#"{"prompt": "a", "model": "alias"}"#).is_ok());
        let fault = completion(&study, r#"{"prompt": "a", "model": "other"}"#).unwrap_err();
        assert_eq!(fault.status, StatusCode::NOT_FOUND);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Broken by: a request that ends the server instead of being refused.
        #[test]
        fn whatever_is_sent_is_answered_or_refused(
            fields in proptest::collection::vec((select(NAMES), select(VALUES)), 0..8),
        ) {
            let study = study();
            let fields: Vec<String> =
                fields.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            for kind in [Kind::Chat, Kind::Completion] {
                let _ = job(&study, kind, &format!("{{{}}}", fields.join(",")));
            }
        }

        /// Broken by: an answer whose blocks a next turn that holds it does not find.
        #[test]
        fn a_next_turn_finds_the_answer(said in "[a-z ]{1,40}", next in "[a-z ]{1,20}") {
            let study = Study { max_model_len: 1000, ..study() };
            let user = |text: &str| serde_json::json!({ "role": "user", "content": text });
            let body = serde_json::json!({ "messages": [user(&said)] }).to_string();
            let first = job(&study, Kind::Chat, &body).unwrap();
            let answer = first.choices[0].script.text(&study.words);
            let answered = serde_json::json!({ "role": "assistant", "content": answer });
            let turns = [user(&said), answered, user(&next)];
            let body = serde_json::json!({ "messages": turns }).to_string();
            let second = job(&study, Kind::Chat, &body).unwrap();
            let (first, second) = (&first.choices[0].ask, &second.choices[0].ask);
            prop_assert!(second.tokens.starts_with(&first.tokens));
            prop_assert!(keys(second).starts_with(&keys(first)));
        }
    }
}
