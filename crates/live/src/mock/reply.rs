//! Answers as JSON: whole ones, and the chunks of a stream, whose beginnings are all the same.

use std::fmt::Write;

use serde_json::{Value, json};

use super::job::{Choice, Study};
use super::script::Ending;
use super::wanted::{Kind, Telling};

/// What all chunks of an answer say.
#[derive(Debug)]
pub(super) struct Head {
    kind: Kind,
    id: String,
    created: u64,
    model: String,
    /// How every chunk begins.
    start: String,
}

/// What was used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    /// Of the prompt, what was in a cache; only told where that is wanted.
    pub(super) cached_tokens: Option<u64>,
}

impl Usage {
    fn json(self) -> Value {
        let details = self.cached_tokens.map(|tokens| json!({ "cached_tokens": tokens }));
        json!({
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
            "prompt_tokens_details": details,
        })
    }

    fn write(self, chunk: &mut String) {
        let Self { prompt_tokens: prompt, completion_tokens: completion, cached_tokens } = self;
        let total = prompt + completion;
        let _ = write!(chunk, r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total}"#);
        let _ = write!(chunk, r#","completion_tokens":{completion}"#);
        if let Some(cached) = cached_tokens {
            let _ = write!(chunk, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
        }
        chunk.push('}');
    }
}

/// One token of a choice, or what stands before it.
#[derive(Debug, Default)]
pub(super) struct Step<'s> {
    pub(super) index: usize,
    /// Letters that JSON takes as they are.
    pub(super) text: &'s str,
    /// What stands before it, in JSON without quotation marks.
    pub(super) echo: &'s str,
    /// Its number, if that is wanted.
    pub(super) token: Option<u32>,
    /// Those of the prompt, if they are wanted.
    pub(super) prompt: Option<&'s [u32]>,
    /// Whether it is the last one, and why.
    pub(super) ending: Option<&'s Ending>,
    /// What was used with it, if that is wanted.
    pub(super) usage: Option<Usage>,
}

impl Head {
    pub(super) fn new(kind: Kind, id: String, created: u64, model: String) -> Self {
        let object = match kind {
            Kind::Chat => "chat.completion.chunk",
            Kind::Completion => "text_completion",
        };
        let (quoted, name) = (Value::from(id.as_str()), Value::from(model.as_str()));
        let start = format!(
            r#"data: {{"id":{quoted},"object":"{object}","created":{created},"model":{name},"choices":["#
        );
        Self { kind, id, created, model, start }
    }

    /// Before the first token of a choice of a chat: who speaks.
    pub(super) fn role(&self, chunk: &mut String, step: &Step<'_>) {
        chunk.push_str(&self.start);
        let _ = write!(chunk, r#"{{"index":{},"delta":{{"role":"assistant","content":""}},"#, step.index);
        chunk.push_str(r#""logprobs":null,"finish_reason":null}]"#);
        if let Some(prompt) = step.prompt {
            let _ = write!(chunk, r#","prompt_token_ids":{}"#, json!(prompt));
        }
        self.close(chunk, step.usage);
    }

    /// One token.
    pub(super) fn step(&self, chunk: &mut String, step: &Step<'_>) {
        chunk.push_str(&self.start);
        let (index, echo, text) = (step.index, step.echo, step.text);
        let _ = match self.kind {
            Kind::Chat => write!(chunk, r#"{{"index":{index},"delta":{{"content":"{echo}{text}"}}"#),
            Kind::Completion => write!(chunk, r#"{{"index":{index},"text":"{echo}{text}""#),
        };
        chunk.push_str(r#","logprobs":null,"finish_reason":"#);
        match step.ending {
            None => chunk.push_str("null"),
            Some(ending) => {
                let _ = write!(chunk, r#""{}","stop_reason":{}"#, finish_reason(ending), stop_reason(ending));
            }
        }
        if let (Kind::Completion, None) = (self.kind, step.ending) {
            chunk.push_str(r#","stop_reason":null"#);
        }
        if let (Kind::Completion, Some(prompt)) = (self.kind, step.prompt) {
            let _ = write!(chunk, r#","prompt_token_ids":{}"#, json!(prompt));
        }
        if let Some(token) = step.token {
            let _ = write!(chunk, r#","token_ids":[{token}]"#);
        }
        chunk.push_str("}]");
        self.close(chunk, step.usage);
    }

    /// After the last token, what was used in all.
    pub(super) fn usage(&self, chunk: &mut String, usage: Usage) {
        chunk.push_str(&self.start);
        chunk.push(']');
        self.close(chunk, Some(usage));
    }

    fn close(&self, chunk: &mut String, usage: Option<Usage>) {
        if let Some(usage) = usage {
            usage.write(chunk);
        }
        chunk.push_str("}\n\n");
    }

    /// A whole answer.
    pub(super) fn whole(&self, study: &Study, telling: Telling, choices: &[Choice], usage: Usage) -> String {
        let object = match self.kind {
            Kind::Chat => "chat.completion",
            Kind::Completion => "text_completion",
        };
        let told = choices.iter().enumerate().map(|(index, choice)| {
            let mut told = self.choice(study, index, choice);
            let prompt = &choice.ask.tokens[..choice.prompt_tokens as usize];
            let answer = &choice.ask.tokens[choice.prompt_tokens as usize..];
            told["token_ids"] = telling.token_ids.then_some(answer).into_json();
            if self.kind == Kind::Completion {
                told["prompt_token_ids"] = telling.token_ids.then_some(prompt).into_json();
            }
            told
        });
        let mut whole = json!({
            "id": self.id, "object": object, "created": self.created, "model": self.model,
            "choices": told.collect::<Vec<_>>(),
            "service_tier": null, "system_fingerprint": null, "usage": usage.json(),
            "kv_transfer_params": null,
        });
        if self.kind == Kind::Chat {
            let first = choices.first().filter(|_| telling.token_ids);
            let prompt = first.map(|choice| &choice.ask.tokens[..choice.prompt_tokens as usize]);
            whole["prompt_logprobs"] = Value::Null;
            whole["prompt_token_ids"] = prompt.into_json();
        }
        whole.to_string()
    }

    fn choice(&self, study: &Study, index: usize, choice: &Choice) -> Value {
        let Choice { script, echo, .. } = choice;
        let text = format!("{echo}{}", script.text(&study.words));
        let (finish, stop) = (finish_reason(&script.ending), stop_reason(&script.ending));
        match self.kind {
            Kind::Chat => json!({
                "index": index,
                "message": {
                    "role": "assistant", "content": text, "refusal": null, "annotations": null,
                    "audio": null, "function_call": null, "tool_calls": [], "reasoning": null,
                },
                "logprobs": null, "finish_reason": finish, "stop_reason": stop,
            }),
            Kind::Completion => json!({
                "index": index, "text": text, "logprobs": null, "finish_reason": finish,
                "stop_reason": stop, "prompt_logprobs": null,
            }),
        }
    }
}

/// A list of tokens or null.
trait IntoJson {
    fn into_json(self) -> Value;
}

impl IntoJson for Option<&[u32]> {
    fn into_json(self) -> Value {
        self.map_or(Value::Null, |tokens| json!(tokens))
    }
}

fn finish_reason(ending: &Ending) -> &'static str {
    match ending {
        Ending::Cut => "length",
        Ending::Said | Ending::Text(_) | Ending::Token(_) => "stop",
    }
}

/// What of the request's own ended it.
fn stop_reason(ending: &Ending) -> Value {
    match ending {
        Ending::Cut | Ending::Said => Value::Null,
        Ending::Text(stop) => stop.as_str().into(),
        Ending::Token(token) => (*token).into(),
    }
}

/// A text inside a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(chunk: &str) -> Value {
        serde_json::from_str(chunk.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap()).unwrap()
    }

    /// Broken by: a chunk that is no JSON, or one that clients of vLLM do not know.
    #[test]
    fn chunks_are_those_of_vllm() {
        let chat = Head::new(Kind::Chat, "chatcmpl-\"1".to_owned(), 7, "m".to_owned());
        let mut chunk = String::new();
        chat.role(&mut chunk, &Step { index: 1, ..Step::default() });
        assert_eq!(
            data(&chunk),
            json!({
                "id": "chatcmpl-\"1", "object": "chat.completion.chunk", "created": 7, "model": "m",
                "choices": [{
                    "index": 1, "delta": { "role": "assistant", "content": "" },
                    "logprobs": null, "finish_reason": null,
                }],
            })
        );
        chunk.clear();
        let usage = Usage { prompt_tokens: 3, completion_tokens: 2, cached_tokens: None };
        let echo = escaped("a\n\"b\" ");
        let step = Step { text: "sea", echo: &echo, token: Some(5), usage: Some(usage), ..Step::default() };
        chat.step(&mut chunk, &step);
        let told = data(&chunk);
        assert_eq!(told["choices"][0]["delta"], json!({ "content": "a\n\"b\" sea" }));
        assert_eq!(told["choices"][0]["token_ids"], json!([5]));
        assert_eq!(told["usage"]["total_tokens"], 5);
        let completion = Head::new(Kind::Completion, "cmpl-1".to_owned(), 7, "m".to_owned());
        for (ending, finish, stop) in [
            (Ending::Cut, "length", Value::Null),
            (Ending::Said, "stop", Value::Null),
            (Ending::Text("\"".to_owned()), "stop", json!("\"")),
            (Ending::Token(9), "stop", json!(9)),
        ] {
            chunk.clear();
            completion.step(&mut chunk, &Step { text: " x", ending: Some(&ending), ..Step::default() });
            let choice = data(&chunk)["choices"][0].take();
            let wanted = json!({
                "index": 0, "text": " x", "logprobs": null, "finish_reason": finish, "stop_reason": stop,
            });
            assert_eq!(choice, wanted);
        }
        chunk.clear();
        completion.usage(&mut chunk, Usage { cached_tokens: Some(2), ..usage });
        let told = data(&chunk);
        assert_eq!(told["choices"], json!([]));
        assert_eq!(told["usage"]["prompt_tokens_details"], json!({ "cached_tokens": 2 }));
    }
}
