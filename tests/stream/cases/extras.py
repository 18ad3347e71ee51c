"""Annotations, logprobs, sounds and images; what the chunks say of themselves; usage."""

from typing import Any

from .build import (
    Case,
    Json,
    bare,
    call,
    called,
    chunk,
    counted,
    cut,
    end,
    failed,
    limited,
    parts,
    refuse,
    role,
    said,
    text,
    think,
    thought,
    tokens,
)

A1 = '{"a":1}'


def cited(url: str, **more: Any) -> Json:
    return {"type": "url_citation", "url_citation": {"url": url, "title": "", "start_index": 0, "end_index": 0, **more}}


def note(*annotations: Json, **delta: Any) -> Json:
    return chunk({"annotations": list(annotations), **delta})


ONE = "https://example.org/one"
TWO = "https://example.org/two"
FLAT_ONE = {"type": "url_citation", "url": ONE, "title": "One", "start_index": 5, "end_index": 8}

ANNOTATIONS = [
    Case("none", [text("Hi"), end()], [said("Hi", annotations=[])]),
    Case("null", [text("Hi"), chunk({"annotations": None}), end()], [said("Hi", annotations=[])]),
    Case(
        "nested become flat",
        [text("Rain [1]"), note(cited(ONE, title="One", start_index=5, end_index=8)), end()],
        [said("Rain [1]", annotations=[FLAT_ONE])],
    ),
    Case("flat stay flat", [text("Rain [1]"), note(FLAT_ONE), end()], [said("Rain [1]", annotations=[FLAT_ONE])]),
    Case(
        "equal ones once",
        [text("Rain"), note(cited(ONE)), note(cited(ONE)), note(cited(ONE), cited(TWO)), end()],
        [said("Rain", annotations=[{"url": ONE}, {"url": TWO}])],
    ),
    Case(
        "beside text",
        [text("Rain"), note(cited(ONE), content=" today"), text("."), end()],
        [said("Rain today.", annotations=[{"url": ONE}])],
    ),
    Case(
        "citations on every chunk",
        [text("Rain", citations=[ONE, TWO]), text(" today", citations=[ONE, TWO]), end(citations=[ONE, TWO])],
        [said("Rain today", annotations=[{"type": "url_citation", "url": ONE}, {"type": "url_citation", "url": TWO}])],
    ),
    Case(
        "citations that grow",
        [text("Rain", citations=[ONE]), text(" today", citations=[ONE, TWO]), end()],
        [said("Rain today", annotations=[{"url": ONE}, {"url": TWO}])],
    ),
    Case(
        "before any text they wait",
        [note(cited(ONE)), text("Rain"), end()],
        [said("Rain", annotations=[{"url": ONE}])],
    ),
    Case(
        "before any text they wait through reasoning",
        [note(cited(ONE)), think("hm"), text("Rain"), end()],
        [thought("hm"), said("Rain", annotations=[{"url": ONE}])],
    ),
    Case("without any text they are kept", [note(cited(ONE)), end()], [], keeps=(ONE,)),
    Case(
        "without any text, beside a call",
        [note(cited(ONE)), call(0, "call_x", "f", A1), end("tool_calls")],
        [called("f", A1, "call_x")],
        keeps=(ONE,),
    ),
    Case(
        "after the finish",
        [text("Rain"), end(), note(cited(ONE))],
        [said("Rain", annotations=[{"url": ONE}])],
    ),
    Case(
        "after their message is closed they are kept",
        [text("Rain"), call(0, "call_x", "f", A1), note(cited(ONE)), end("tool_calls")],
        [said("Rain", annotations=[]), called("f", A1, "call_x")],
        keeps=(ONE,),
    ),
    limited(
        "in a message that is cut",
        [text("Rain"), note(cited(ONE)), end("length")],
        [cut(said("Rain", annotations=[{"url": ONE}]))],
    ),
]


def prob(token: str, **more: Any) -> Json:
    return {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": [], **more}


def with_probs(*probs: Json, kind: str = "content") -> Json:
    return {"logprobs": {kind: list(probs)}}


NO_ENTRIES: tuple[Json, ...] = (
    {"content": {}},
    {"content": [{}]},
    {"content": [None]},
    {"content": None, "refusal": {}},
)
LOGPROBS = [
    Case("none", [text("Hi"), end()], [said("Hi", logprobs=[])]),
    *(
        Case(
            f"an entry without fields: {kept}",
            [text("Hi", choice={"logprobs": kept}), text("!", choice=with_probs(prob("!"))), end()],
            [said("Hi!", logprobs=[prob("!")])],
        )
        for kept in NO_ENTRIES
    ),
    Case(
        "null", [text("Hi", choice={"logprobs": {"content": None, "refusal": None}}), end()], [said("Hi", logprobs=[])]
    ),
    Case(
        "with their text",
        [text("Hi", choice=with_probs(prob("Hi"))), text("!", choice=with_probs(prob("!"))), end()],
        [said("Hi!", logprobs=[prob("Hi"), prob("!")])],
    ),
    Case(
        "several a chunk",
        [text("Hi!", choice=with_probs(prob("Hi"), prob("!"))), end()],
        [said("Hi!", logprobs=[prob("Hi"), prob("!")])],
    ),
    Case(
        "alternatives",
        [
            text(
                "Hi", choice=with_probs(prob("Hi", top_logprobs=[{"token": "Ho", "logprob": -2.0, "bytes": [72, 111]}]))
            ),
            end(),
        ],
        [
            said(
                "Hi", logprobs=[{"token": "Hi", "top_logprobs": [{"token": "Ho", "logprob": -2.0, "bytes": [72, 111]}]}]
            )
        ],
    ),
    Case(
        "null bytes are the token's",
        [
            text(
                "\u00e9",
                choice=with_probs(
                    prob("\u00e9", bytes=None, top_logprobs=[{"token": "e", "logprob": -1.0, "bytes": None}])
                ),
            ),
            end(),
        ],
        [said("\u00e9", logprobs=[{"bytes": [195, 169], "top_logprobs": [{"token": "e", "bytes": [101]}]}])],
    ),
    Case(
        "without text they wait for the next",
        [text("Hi"), chunk({}, choice=with_probs(prob("?"))), text("!", choice=with_probs(prob("!"))), end()],
        [said("Hi!", logprobs=[prob("?"), prob("!")])],
    ),
    Case(
        "before any text they wait for the first",
        [text("", choice=with_probs(prob("?"))), text("Hi", choice=with_probs(prob("Hi"))), end()],
        [said("Hi", logprobs=[prob("?"), prob("Hi")])],
    ),
    Case(
        "without text to come they are dropped",
        [text("Hi", choice=with_probs(prob("Hi"))), end(choice=with_probs(prob("?")))],
        [said("Hi", logprobs=[prob("Hi")])],
        warned=True,
    ),
    Case(
        "without text to come in their part they are dropped",
        [text("Hi"), chunk({}, choice=with_probs(prob("?"))), call(0, "call_x", "f", A1), text("!"), end()],
        [said("Hi", logprobs=[]), called("f", A1, "call_x"), said("!", logprobs=[])],
        warned=True,
    ),
    Case(
        "of a refusal are kept",
        [refuse("No", choice=with_probs(prob("unlikely"), kind="refusal")), end()],
        [parts(("refusal", "No"))],
        keeps=("unlikely",),
    ),
    Case(
        "of reasoning are kept",
        [think("hm", choice=with_probs(prob("musing"), kind="reasoning_content")), text("Hi"), end()],
        [thought("hm"), said("Hi", logprobs=[])],
        keeps=("musing",),
    ),
]

MEDIA = [
    Case(
        "a sound is kept, with one warning",
        [
            chunk({"audio": {"id": "audio_1", "data": "UklGRg=="}}),
            chunk({"audio": {"data": "V0FWRQ=="}}),
            text("Hi"),
            end(),
        ],
        [said("Hi")],
        keeps=("UklGRg==", "V0FWRQ=="),
        warned=1,
    ),
    Case(
        "an image is kept, with one warning",
        [
            text("Look: "),
            chunk({"images": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}}]}),
            text("there."),
            end(),
        ],
        [said("Look: there.")],
        keeps=("base64,iVBOR",),
        warned=1,
    ),
    Case("a sound alone", [chunk({"audio": {"data": "UklGRg=="}}), end()], [], keeps=("UklGRg==",), warned=1),
    Case(
        "null sounds and images are none",
        [chunk({"audio": None, "images": None, "content": "Hi"}), end()],
        [said("Hi")],
        warned=False,
    ),
    Case("no images in a list", [chunk({"images": [], "content": "Hi"}), end()], [said("Hi")], warned=False),
    failed(
        "strict: a sound",
        [text("Hi"), chunk({"audio": {"data": "UklGRg=="}}), end()],
        [cut(said("Hi"))],
        options={"strict": True},
    ),
    failed(
        "strict: an image",
        [text("Hi"), chunk({"images": [{"type": "image_url", "image_url": {"url": "data:,x"}}]}), end()],
        [cut(said("Hi"))],
        options={"strict": True},
    ),
]

MODEL = [
    Case("the chunk's", [role(), text("Hi"), end()], [said("Hi")], response={"model": "m"}),
    Case(
        "the request's goes first",
        [text("Hi"), end()],
        [said("Hi")],
        options={"request": {"model": "asked"}},
        response={"model": "asked"},
    ),
    Case(
        "the first that is not empty",
        [bare([], model=""), role() | {"model": ""}, text("Hi", model="real"), end(model="other")],
        [said("Hi")],
        response={"model": "real"},
    ),
    Case(
        "none at all",
        [
            {"choices": [{"index": 0, "delta": {"content": "Hi"}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        ],
        [said("Hi")],
        response={"model": ""},
    ),
    Case("one that comes after the head", [text("Hi", model=""), end(model="m")], [said("Hi")]),
    Case("a null one", [text("Hi", model=None), end(model=None)], [said("Hi")], response={"model": ""}),
    failed(
        "of an empty stream: the request's",
        [],
        [],
        "server_error",
        options={"request": {"model": "asked"}},
        response={"model": "asked"},
    ),
    failed("of an empty stream: none", [], [], "server_error", response={"model": ""}),
]

ABOUT = [
    Case(
        "the provider's id",
        [text("Hi", id="gen-of-theirs"), end(id="gen-of-theirs")],
        [said("Hi")],
        keeps=("gen-of-theirs",),
    ),
    Case("ids that change", [text("Hi", id="gen-one"), text("!", id="gen-two"), end(id="stub")], [said("Hi!")]),
    Case("empty ids", [text("Hi", id=""), end(id="")], [said("Hi")]),
    Case("the fingerprint", [text("Hi", system_fingerprint="fp_ours"), end()], [said("Hi")], keeps=("fp_ours",)),
    Case("the raw finish reason", [text("Hi"), end("end_turn")], [said("Hi")], keeps=("end_turn",)),
    Case(
        "the native finish reason",
        [text("Hi"), end("stop", choice={"native_finish_reason": "STOP_SEQ"})],
        [said("Hi")],
        keeps=("STOP_SEQ",),
    ),
    *(
        Case(
            f"service tier {tier}",
            [text("Hi", service_tier=tier), end()],
            [said("Hi")],
            response={"service_tier": tier},
        )
        for tier in ("auto", "default", "flex", "scale", "priority")
    ),
    Case(
        "a service tier of theirs",
        [text("Hi", service_tier="on_demand"), end()],
        [said("Hi")],
        keeps=("on_demand",),
        response={"service_tier": "default"},
    ),
    Case("no service tier", [text("Hi", service_tier=None), end()], [said("Hi")], response={"service_tier": "default"}),
    Case("created_at is not the chunk's", [text("Hi", created=1234), end()], [said("Hi")], response={"created_at": 0}),
    Case(
        "what nobody asked for is no oddity",
        [text("Hi", obfuscation="xyz", p="abc", provider="p", time_info={}), end()],
        [said("Hi")],
        warned=False,
    ),
]

SEVEN = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
NO_DETAILS = {"cached_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0}

USAGE = [
    Case("never", [text("Hi"), end()], [said("Hi")], usage=None),
    Case("null", [text("Hi", usage=None), end(usage=None)], [said("Hi")], usage=None),
    Case(
        "alone, after the finish",
        [text("Hi"), end(), counted(tokens(5, 2))],
        [said("Hi")],
        usage={**SEVEN, **NO_DETAILS},
    ),
    Case("alone, before the finish", [text("Hi"), counted(tokens(5, 2)), end()], [said("Hi")], usage=SEVEN),
    Case("first", [counted(tokens(5, 2)), text("Hi"), end()], [said("Hi")], usage=SEVEN),
    Case("on the finish chunk", [text("Hi"), end(usage=tokens(5, 2))], [said("Hi")], usage=SEVEN),
    Case(
        "on every chunk: the last",
        [text("Hi", usage=tokens(5, 1)), text("!", usage=tokens(5, 2)), end(usage=tokens(5, 2))],
        [said("Hi!")],
        usage=SEVEN,
    ),
    Case("the last that is not null", [text("Hi", usage=tokens(5, 2)), end(usage=None)], [said("Hi")], usage=SEVEN),
    Case(
        "with a choice, after the finish",
        [text("Hi"), end(), chunk({"content": ""}, None, usage=tokens(5, 2))],
        [said("Hi")],
        usage=SEVEN,
    ),
    Case("with a choice that finishes again", [text("Hi"), end(), end(usage=tokens(5, 2))], [said("Hi")], usage=SEVEN),
    Case("under x_groq", [text("Hi"), end(x_groq={"id": "req", "usage": tokens(5, 2)})], [said("Hi")], usage=SEVEN),
    Case(
        "counts null until the last",
        [text("Hi", usage=tokens(None, None, None)), end(usage=tokens(5, 2))],
        [said("Hi")],
        usage=SEVEN,
    ),
    Case(
        "counts of nothing",
        [end(usage=tokens(5, 0))],
        [],
        usage={"input_tokens": 5, "output_tokens": 0, "total_tokens": 5},
    ),
    Case(
        "details",
        [
            text("Hi"),
            end(
                usage=tokens(
                    5,
                    2,
                    prompt_tokens_details={"cached_tokens": 3, "audio_tokens": 0},
                    completion_tokens_details={"reasoning_tokens": 1, "audio_tokens": 0},
                )
            ),
        ],
        [said("Hi")],
        usage={**SEVEN, "cached_tokens": 3, "reasoning_tokens": 1},
    ),
    Case(
        "details null",
        [text("Hi"), end(usage=tokens(5, 2, prompt_tokens_details=None, completion_tokens_details=None))],
        [said("Hi")],
        usage={**SEVEN, **NO_DETAILS},
    ),
    Case(
        "details of nulls",
        [
            text("Hi"),
            end(
                usage=tokens(
                    5,
                    2,
                    prompt_tokens_details={"cached_tokens": None},
                    completion_tokens_details={"reasoning_tokens": None},
                )
            ),
        ],
        [said("Hi")],
        usage={**SEVEN, **NO_DETAILS},
    ),
    Case("a wrong total", [text("Hi"), end(usage=tokens(5, 2, 99))], [said("Hi")], usage=SEVEN),
    Case("a total of zero", [text("Hi"), end(usage=tokens(5, 2, 0))], [said("Hi")], usage=SEVEN),
    Case("no total", [text("Hi"), end(usage=tokens(5, 2, None))], [said("Hi")], usage=SEVEN),
    Case("a null total", [text("Hi"), end(usage={**tokens(5, 2), "total_tokens": None})], [said("Hi")], usage=SEVEN),
    Case(
        "a total with the reasoning apart",
        [text("Hi"), end(usage=tokens(10, 2, 112, completion_tokens_details={"reasoning_tokens": 100}))],
        [said("Hi")],
        usage={"input_tokens": 10, "output_tokens": 102, "total_tokens": 112, "reasoning_tokens": 100},
    ),
    Case(
        "a total with the reasoning in it",
        [text("Hi"), end(usage=tokens(10, 102, 112, completion_tokens_details={"reasoning_tokens": 100}))],
        [said("Hi")],
        usage={"input_tokens": 10, "output_tokens": 102, "total_tokens": 112, "reasoning_tokens": 100},
    ),
    limited(
        "of an incomplete response", [text("Hi"), end("length"), counted(tokens(5, 2))], [cut(said("Hi"))], usage=SEVEN
    ),
    failed(
        "of a failed response, if known",
        [text("Hi", usage=tokens(5, 2)), text("!")],
        [cut(said("Hi!"))],
        "server_error",
        usage=SEVEN,
    ),
    failed("of a failed response, not known", [text("Hi")], [cut(said("Hi"))], "server_error", usage=None),
]

GROUPS = {
    "annotations": ANNOTATIONS,
    "logprobs": LOGPROBS,
    "media": MEDIA,
    "model": MODEL,
    "about": ABOUT,
    "usage": USAGE,
}
