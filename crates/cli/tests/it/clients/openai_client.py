"""What the `openai` package sees of `wavetank mock`: python openai_client.py BASE_URL KEY."""

import sys

import openai

base, key = sys.argv[1], sys.argv[2]
client = openai.OpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0)
MODEL = client.models.list().data[0].id
assert MODEL == "tank", MODEL
TALK = [
    {"role": "system", "content": "You are a wave tank. " * 40},
    {"role": "user", "content": "How high do waves get?"},
]


def chat(messages, **more):
    return client.chat.completions.create(model=MODEL, messages=messages, **more)


def streamed(messages, **more):
    text, finish, usage, chunks = "", None, None, 0
    for chunk in chat(messages, stream=True, stream_options={"include_usage": True}, **more):
        if chunk.usage is not None:
            assert not chunk.choices, "usage comes alone, at the end"
            usage = chunk.usage
            continue
        assert usage is None, "nothing comes after usage"
        (choice,) = chunk.choices
        if choice.delta.content:
            text += choice.delta.content
            chunks += 1
        finish = choice.finish_reason or finish
    return text, finish, usage, chunks


# A chat that is streamed is the same as one that is not.
forced = {"ignore_eos": True}
text, finish, usage, chunks = streamed(TALK, max_tokens=20, extra_body=forced)
assert (finish, usage.completion_tokens) == ("length", 20), (finish, usage)
assert chunks == 20, f"{chunks} chunks instead of one for each token"
assert usage.total_tokens == usage.prompt_tokens + 20
whole = chat(TALK, max_tokens=20, extra_body=forced)
assert whole.choices[0].message.content == text
assert whole.usage.prompt_tokens == usage.prompt_tokens
assert whole.object == "chat.completion" and whole.choices[0].message.role == "assistant"

# An answer ends by itself, but not before `min_tokens`; and where a stop string is, which is not said.
short = chat(TALK, max_tokens=4000, extra_body={"min_tokens": 5})
assert short.choices[0].finish_reason == "stop", short.choices[0]
assert 5 <= short.usage.completion_tokens < 4000
word = text.split()[3]
stopped = chat(TALK, max_tokens=20, stop=[word], extra_body=forced)
assert stopped.choices[0].finish_reason == "stop"
assert stopped.choices[0].stop_reason == word, stopped.choices[0]
assert text.startswith(stopped.choices[0].message.content) and word not in stopped.choices[0].message.content

# The next turn holds the last answer.
longer = [*TALK, {"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]
assert chat(longer, max_tokens=5).usage.prompt_tokens > usage.total_tokens

# Completions, of text and of tokens.
completion = client.completions.create(model=MODEL, prompt="once upon a time", max_tokens=7, extra_body=forced)
assert completion.usage.completion_tokens == 7 and completion.choices[0].text
assert client.completions.create(model=MODEL, prompt="a").usage.completion_tokens <= 16
tokens = client.completions.create(model=MODEL, prompt=[1, 2, 3, 4], max_tokens=1, extra_body=forced)
assert tokens.usage.prompt_tokens == 4

# What is wrong is said in a way that the package understands.
def refused(kind, ask):
    try:
        ask()
    except kind as error:
        assert error.body["message"], error.body
    else:
        raise AssertionError(f"not refused with {kind.__name__}")


refused(openai.NotFoundError, lambda: client.chat.completions.create(model="other", messages=TALK))
refused(openai.BadRequestError, lambda: chat(TALK, max_tokens=-1))
refused(openai.BadRequestError, lambda: chat([]))
refused(openai.BadRequestError, lambda: chat([{"role": "user", "content": "long " * 20000}]))
stranger = openai.OpenAI(base_url=f"{base}/v1", api_key="wrong", max_retries=0)
refused(openai.AuthenticationError, lambda: stranger.models.list())
print("all as expected")
