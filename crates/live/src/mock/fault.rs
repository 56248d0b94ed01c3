//! Why a request is not answered, as OpenAI's clients read it.

use hyper::StatusCode;
use serde_json::json;
use wavetank_model::RejectReason;

use super::answer::End;

/// A status and an error object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    message: String,
    /// The field that is wrong.
    param: Option<String>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None }
    }

    /// What is asked for cannot be.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The same because of a field.
    pub(super) fn of_field(param: &str, message: impl Into<String>) -> Self {
        Self::bad(message).about(param)
    }

    /// The same about a field.
    pub(super) fn about(self, param: &str) -> Self {
        Self { param: Some(param.to_owned()), ..self }
    }

    /// What did not end as it should; nothing is wrong with a completed answer.
    pub(super) fn of_end(end: End) -> Option<Self> {
        match end {
            End::Completed => None,
            End::Rejected(reason) => Some(Self::bad(rejected(reason))),
            End::Stopped => Some(Self::stopping()),
        }
    }

    /// Nobody serves any more.
    pub(super) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down")
    }

    /// The name of the error.
    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "BadRequestError",
            StatusCode::UNAUTHORIZED => "AuthenticationError",
            StatusCode::FORBIDDEN => "PermissionDeniedError",
            StatusCode::NOT_FOUND => "NotFoundError",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowedError",
            StatusCode::REQUEST_TIMEOUT => "RequestTimeoutError",
            StatusCode::PAYLOAD_TOO_LARGE => "RequestTooLargeError",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaTypeError",
            _ => "ServiceUnavailableError",
        }
    }

    /// As JSON.
    pub(super) fn json(&self) -> String {
        let (message, code) = (&self.message, self.status.as_u16());
        json!({ "error": { "message": message, "type": self.kind(), "param": self.param, "code": code } })
            .to_string()
    }
}

fn rejected(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::PromptReachesModelLimit => "the prompt reaches the model's maximum context length",
        RejectReason::PromptExceedsCache => "the prompt needs more KV cache than the engine has",
        RejectReason::PromptExceedsPass => {
            "the prompt is longer than a batch of the engine, which does not prefill in chunks"
        }
        RejectReason::OutgrewCache => "prompt and output need more KV cache than the engine has",
        RejectReason::ReserveExceedsCache => {
            "the prompt and the room for its output need more KV cache than the engine has"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken by: an error object that clients do not read.
    #[test]
    fn errors_are_objects() {
        let fault = Fault::of_field("n", "must be \"1\" or more");
        assert_eq!(
            fault.json(),
            r#"{"error":{"code":400,"message":"must be \"1\" or more","param":"n","type":"BadRequestError"}}"#
        );
        assert_eq!(Fault::of_end(End::Completed), None);
        assert_eq!(Fault::of_end(End::Stopped).map(|fault| fault.status.as_u16()), Some(503));
        let rejected = Fault::of_end(End::Rejected(RejectReason::OutgrewCache)).unwrap();
        assert!(rejected.json().contains("KV cache"));
    }
}
