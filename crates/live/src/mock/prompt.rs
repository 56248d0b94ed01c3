//! What is sent, as clients send it: messages of a chat, texts, or tokens.

use std::fmt;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

use super::fault::Fault;
use super::fields::Fields;
use super::tokens::Tokenizer;

type Result<T> = std::result::Result<T, Fault>;

/// Prompts of one request; vLLM takes no more.
const MOST_PROMPTS: usize = 1024;

/// A prompt in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) tokens: Vec<u32>,
    /// What an answer that echoes begins with.
    pub(super) echo: String,
}

/// One message of a chat.
#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Content,
    /// What an assistant wanted to have called.
    tool_calls: Option<Box<RawValue>>,
}

/// What is said in a message, in one piece.
#[derive(Debug, Default)]
struct Content(String);

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }

            fn visit_unit<E: de::Error>(self) -> std::result::Result<Content, E> {
                Ok(Content::default())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Content, E> {
                Ok(Content(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> std::result::Result<Content, E> {
                Ok(Content(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> std::result::Result<Content, A::Error> {
                let mut texts = Vec::new();
                while let Some(Part { kind, text }) = parts.next_element()? {
                    let is_text = matches!(kind.as_str(), "text" | "input_text" | "output_text" | "refusal");
                    texts.push(text.filter(|_| is_text).ok_or_else(|| {
                        A::Error::custom(format!("a part of type \"{kind}\": only text is taken"))
                    })?);
                }
                Ok(Content(texts.join("\n")))
            }
        }
        deserializer.deserialize_any(Parts)
    }
}

/// The prompt that the messages of a chat make. Each is put between marks, so that a chat that goes on begins
/// with all that was sent and answered before.
pub(super) fn of_chat(tokenizer: &Tokenizer, fields: &Fields<'_>) -> Result<Sent> {
    let messages: Vec<Message> = fields.required("messages")?;
    let Some(last) = messages.last() else {
        return Err(Fault::of_field("messages", "`messages` must not be empty"));
    };
    let continues = fields.flag("continue_final_message")?;
    let asks = fields.optional("add_generation_prompt")?.unwrap_or(true);
    if continues && asks && fields.raw("add_generation_prompt").is_some() {
        let wrong = "`continue_final_message` and `add_generation_prompt` cannot both be set";
        return Err(Fault::of_field("continue_final_message", wrong));
    }
    let echo = match fields.flag("echo")? {
        true if last.role == "assistant" => last.content.0.clone(),
        _ => String::new(),
    };
    let mut template = Template { tokenizer, tokens: Vec::new() };
    if let Some(tools) = fields.raw("tools") {
        template.message("tools", tools.get())?;
        template.end()?;
    }
    for (position, message) in messages.iter().enumerate() {
        template.message(&message.role, &message.content.0)?;
        if let Some(calls) = &message.tool_calls {
            template.text(calls.get())?;
        }
        if !(continues && position + 1 == messages.len()) {
            template.end()?;
        }
    }
    if asks && !continues {
        template.message("assistant", "")?;
    }
    Ok(Sent { tokens: template.tokens, echo })
}

/// Messages with marks around them.
struct Template<'t> {
    tokenizer: &'t Tokenizer,
    tokens: Vec<u32>,
}

impl Template<'_> {
    fn message(&mut self, role: &str, content: &str) -> Result<()> {
        self.tokens.push(self.tokenizer.marks().start);
        self.text(&format!("{role}\n"))?;
        self.text(content)
    }

    fn end(&mut self) -> Result<()> {
        self.tokens.push(self.tokenizer.marks().end);
        self.text("\n")
    }

    fn text(&mut self, text: &str) -> Result<()> {
        self.tokens.extend(encoded(self.tokenizer.encode(text), "messages")?);
        Ok(())
    }
}

fn encoded(tokens: Option<Vec<u32>>, field: &str) -> Result<Vec<u32>> {
    tokens.ok_or_else(|| Fault::of_field(field, format!("`{field}` is too much for the tokenizer")))
}

/// A prompt as it may be sent for completion.
#[derive(Debug, PartialEq, Eq)]
enum Raw {
    Text(String),
    Tokens(Vec<u32>),
}

/// All prompts of a request.
#[derive(Debug, PartialEq, Eq)]
struct Raws(Vec<Raw>);

/// One element of a list that is a prompt, or several.
enum Element {
    Token(u32),
    Prompt(Raw),
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Element;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a token or a list of tokens")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Element, E> {
                Ok(Element::Prompt(Raw::Text(text.to_owned())))
            }

            fn visit_u64<E: de::Error>(self, token: u64) -> std::result::Result<Element, E> {
                let token = u32::try_from(token).map_err(|_| E::custom(format!("{token} is no token")))?;
                Ok(Element::Token(token))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Element, A::Error> {
                let mut tokens = Vec::new();
                while let Some(token) = list.next_element()? {
                    tokens.push(token);
                }
                Ok(Element::Prompt(Raw::Tokens(tokens)))
            }
        }
        deserializer.deserialize_any(Elements)
    }
}

impl<'de> Deserialize<'de> for Raws {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Prompts;
        impl<'de> Visitor<'de> for Prompts {
            type Value = Raws;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of texts, a list of tokens or a list of those")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Raws, E> {
                Ok(Raws(vec![Raw::Text(text.to_owned())]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Raws, A::Error> {
                let (mut prompts, mut tokens) = (Vec::new(), Vec::new());
                while let Some(element) = list.next_element()? {
                    match element {
                        Element::Token(token) => tokens.push(token),
                        Element::Prompt(_) if prompts.len() == MOST_PROMPTS => {
                            return Err(A::Error::custom(format!("more than {MOST_PROMPTS} prompts")));
                        }
                        Element::Prompt(prompt) => prompts.push(prompt),
                    }
                }
                match (prompts.is_empty(), tokens.is_empty()) {
                    (_, true) => Ok(Raws(prompts)),
                    (true, false) => Ok(Raws(vec![Raw::Tokens(tokens)])),
                    (false, false) => Err(A::Error::custom("tokens and prompts in one list")),
                }
            }
        }
        deserializer.deserialize_any(Prompts)
    }
}

/// The one text that is to be made tokens of.
pub(super) fn of_text(tokenizer: &Tokenizer, fields: &Fields<'_>) -> Result<Sent> {
    let text: String = fields.required("prompt")?;
    let is_whole = fields.optional("add_special_tokens")?.unwrap_or(true);
    let tokens = if is_whole { tokenizer.encode_prompt(&text) } else { tokenizer.encode(&text) };
    Ok(Sent { tokens: encoded(tokens, "prompt")?, echo: String::new() })
}

/// The prompts of a completion.
pub(super) fn of_completion(tokenizer: &Tokenizer, fields: &Fields<'_>) -> Result<Vec<Sent>> {
    let Raws(prompts) = fields.required("prompt")?;
    if prompts.is_empty() {
        return Err(Fault::of_field("prompt", "`prompt` must not be empty"));
    }
    let echoes = fields.flag("echo")?;
    let is_whole = fields.optional("add_special_tokens")?.unwrap_or(true);
    let sent = prompts.into_iter().map(|prompt| {
        let sent = match prompt {
            Raw::Text(text) => {
                let tokens = if is_whole { tokenizer.encode_prompt(&text) } else { tokenizer.encode(&text) };
                Sent { tokens: encoded(tokens, "prompt")?, echo: if echoes { text } else { String::new() } }
            }
            Raw::Tokens(tokens) => {
                if let Some(token) = tokens.iter().find(|token| **token >= tokenizer.size()) {
                    let wrong = format!("`prompt`: token {token} is out of the vocabulary");
                    return Err(Fault::of_field("prompt", wrong));
                }
                let echo = if echoes { tokenizer.decode(&tokens) } else { String::new() };
                Sent { tokens, echo }
            }
        };
        match sent.tokens.is_empty() {
            true => Err(Fault::of_field("prompt", "`prompt` must not be empty")),
            false => Ok(sent),
        }
    });
    sent.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: &str) -> Result<Sent> {
        of_chat(&Tokenizer::embedded(), &Fields::of(body.as_bytes()).unwrap())
    }

    fn completion(body: &str) -> Result<Vec<Sent>> {
        of_completion(&Tokenizer::embedded(), &Fields::of(body.as_bytes()).unwrap())
    }

    /// Broken by: an answer that is not where it was generated, or marks that are not there.
    #[test]
    fn a_chat_that_goes_on_begins_with_what_was_answered() {
        let tokenizer = Tokenizer::embedded();
        let end = tokenizer.marks().end;
        let first = chat(r#"{"messages": [{"role": "user", "content": "Hi"}]}"#).unwrap().tokens;
        let answer = tokenizer.encode("about time again").unwrap();
        let next = chat(
            r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": "about time again"}, {"role": "user", "content": "So?"}]}"#,
        );
        let generated: Vec<u32> = first.iter().chain(&answer).copied().chain([end]).collect();
        assert!(next.unwrap().tokens.starts_with(&generated));
    }

    /// Broken by: an open message that is closed, or an echo of somebody else.
    #[test]
    fn the_last_message_may_be_open() {
        let open = chat(
            r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "about"}],
                "continue_final_message": true, "echo": true}"#,
        );
        let open = open.unwrap();
        assert_eq!(open.echo, "about");
        assert_eq!(open.tokens.last(), Tokenizer::embedded().encode("about").unwrap().last());
        let both = r#"{"messages": [{"role": "user", "content": "Hi"}],
            "continue_final_message": true, "add_generation_prompt": true}"#;
        assert!(chat(both).is_err());
    }

    /// Broken by: content that is dropped without a word.
    #[test]
    fn only_text_is_taken() {
        let image = r#"{"messages": [{"role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}"#;
        assert!(chat(image).unwrap_err().json().contains("only text"));
        assert!(chat(r#"{"messages": []}"#).is_err() && chat("{}").is_err());
        assert!(chat(r#"{"messages": [{"role": "user", "content": 3}]}"#).is_err());
        let with_tools =
            r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": [{"type": "function"}]}"#;
        let plain = chat(r#"{"messages": [{"role": "user", "content": "Hi"}]}"#).unwrap();
        assert!(chat(with_tools).unwrap().tokens.len() > plain.tokens.len());
    }

    /// Broken by: a form of prompt that is not taken, or a mixed one that is.
    #[test]
    fn prompts_come_in_four_forms() {
        let tokens = |body: &str| -> Vec<Vec<u32>> {
            completion(body).unwrap().into_iter().map(|sent| sent.tokens).collect()
        };
        assert_eq!(tokens(r#"{"prompt": "Hello"}"#), [[9906]]);
        assert_eq!(tokens(r#"{"prompt": ["Hello", "Hello"]}"#), [[9906], [9906]]);
        assert_eq!(tokens(r#"{"prompt": [9906]}"#), [[9906]]);
        assert_eq!(tokens(r#"{"prompt": [[9906], [1, 2]]}"#), [vec![9906], vec![1, 2]]);
        for wrong in ["[]", "\"\"", "[[]]", "[1, \"a\"]", "[-1]", "[200000]", "3", "{}", "[[\"a\"]]"] {
            assert!(completion(&format!(r#"{{"prompt": {wrong}}}"#)).is_err(), "{wrong}");
        }
        let echoed = completion(r#"{"prompt": [[9906], [9906, 11]], "echo": true}"#).unwrap();
        assert_eq!(echoed[1].echo, "Hello,");
    }
}
