"""Earlier reasoning: what goes back, in which field, and to whom."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from antiphon import Profile
from antiphon.request import BadRequest

from .backend import answered
from .build import Json, asked, assistant, call, converted, noted, output, result, said, thought, tool, user
from .validator import faults

Q = user("q")
DEEP = Profile("deep", reasoning_replay="reasoning_content", reasoning_replay_always=True)
BARE = Profile("bare", reasoning_replay="reasoning", reasoning_replay_always=True)
ROUTER = Profile("router", reasoning_replay="reasoning_details", reasoning_replay_always=True)
BLOCKS = Profile("blocks", reasoning_replay="thinking_blocks", reasoning_replay_always=True)
TYPED = Profile("typed", reasoning_replay="typed_content", reasoning_replay_always=True)
SIGNING = Profile("signing", thought_signatures=True)

SIGNED_TEXT = {"type": "reasoning.text", "text": "hm", "signature": "SIG1", "format": "anthropic-claude-v1", "index": 0}
ENCRYPTED = {"type": "reasoning.encrypted", "data": "ENC1", "format": "google-gemini-v1", "id": "1", "index": 0}
BLOCK = {"type": "thinking", "thinking": "hm", "signature": "SIG2"}
REDACTED = {"type": "redacted_thinking", "data": "RED3"}
MISTRAL = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "signature": "SIG4"}
UNSIGNED = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
SECRETS = ("SIG1", "ENC1", "SIG2", "RED3", "SIG4", "FOREIGN")


def kept(*pieces: Json, **more: Any) -> Json:
    """Return a reasoning item with pieces for replay, as the engine makes it."""
    return thought("hm", provider_data={"reasoning_details": list(pieces), **more})


ITEMS: dict[str, Json] = {
    "text": thought("hm"),
    "raw text": {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "hm"}],
    },
    "raw text and a summary": thought("short", content=[{"type": "reasoning_text", "text": "hm"}]),
    "signed details": kept(SIGNED_TEXT),
    "encrypted details": kept(ENCRYPTED),
    "blocks": kept(BLOCK, REDACTED),
    "blocks by their name": thought(
        "hm", encrypted_content="SIG2", provider_data={"thinking_blocks": [BLOCK, REDACTED]}
    ),
    "typed": kept(MISTRAL),
    "foreign": thought("hm", encrypted_content="FOREIGN"),
    "nothing": thought(),
    "of another family": kept(SIGNED_TEXT, BLOCK, MISTRAL, family="somebody"),
    "text of another family": thought("hm", provider_data={"family": "somebody"}),
}
TEXT_ALONE = {"text", "raw text", "raw text and a summary"}
# profile -> item -> the fields of the assistant message; all other items give none
WANTED: dict[Profile, dict[str, Json]] = {
    Profile("none"): {},
    DEEP: {item: {"reasoning_content": "hm"} for item in TEXT_ALONE},
    BARE: {item: {"reasoning": "hm"} for item in TEXT_ALONE},
    ROUTER: {
        **{item: {"reasoning": "hm"} for item in TEXT_ALONE},
        "signed details": {"reasoning_details": [SIGNED_TEXT]},
        "encrypted details": {"reasoning_details": [ENCRYPTED]},
    },
    BLOCKS: {
        "blocks": {"thinking_blocks": [BLOCK, REDACTED]},
        "blocks by their name": {"thinking_blocks": [BLOCK, REDACTED]},
    },
    TYPED: {
        **{item: {"content": [UNSIGNED]} for item in TEXT_ALONE},
        "typed": {"content": [MISTRAL]},
    },
}


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("profile", WANTED, ids=lambda one: one.name)
def test_reasoning_goes_back_to_the_family_it_came_from(profile: Profile, item: str) -> None:
    fields = WANTED[profile].get(item)
    chat = converted(Q, json.loads(json.dumps(ITEMS[item])), call("1"), output("1"), profile=profile)
    assert chat.body["messages"] == [Q, assistant(None, asked("1")) | (fields or {}), result("1")]
    assert faults(chat.body) == []
    assert noted(chat) == ([] if fields else [("ignored", "input[1]")])
    if not fields:
        assert not any(secret in json.dumps(chat.body) for secret in SECRETS)


@pytest.mark.parametrize("profile", WANTED, ids=lambda one: one.name)
def test_foreign_encrypted_content_never_leaves(profile: Profile) -> None:
    for item in ({"encrypted_content": "FOREIGN"}, {"encrypted_content": "FOREIGN", "provider_data": {}}):
        chat = converted(Q, thought("hm", **item), said("a"), user("r"), profile=profile)
        assert "FOREIGN" not in json.dumps(chat.body)
        assert "hm" not in json.dumps(chat.body)


def test_the_text_is_first_in_typed_content() -> None:
    chat = converted(Q, thought("hm"), said("a"), call("1"), output("1"), profile=TYPED)
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    assert chat.body["messages"][1] == assistant([thinking, {"type": "text", "text": "a"}], asked("1"))


@pytest.mark.parametrize("last", [said("a"), call("1")], ids=["before text", "before a call"])
def test_several_thoughts_of_a_turn_go_together(last: Json) -> None:
    items = (Q, thought("one"), said("x"), thought("two"), last, *([output("1")] if "call_id" in last else []))
    assert converted(*items, profile=DEEP).body["messages"][1]["reasoning_content"] == "one\ntwo"


def test_each_step_has_its_own() -> None:
    items = (
        Q,
        thought("one"),
        call("1"),
        output("1"),
        thought("two"),
        call("2"),
        output("2"),
        thought("three"),
        said("a"),
    )
    messages = converted(*items, profile=DEEP).body["messages"]
    assert [one.get("reasoning_content") for one in messages if one["role"] == "assistant"] == ["one", "two", "three"]


def test_a_thought_between_the_outputs_goes_with_what_it_leads_to() -> None:
    items = (Q, thought("one"), call("1"), call("2"), output("1"), thought("two"), call("3"), output("2"), output("3"))
    messages = converted(*items, profile=DEEP).body["messages"]
    assert [one.get("reasoning_content") for one in messages if one["role"] == "assistant"] == ["one", "two"]
    folded = (Q, thought("one"), call("1"), call("2"), output("1"), thought("two"), said("a"), output("2"))
    assert converted(*folded, profile=DEEP).body["messages"][1]["reasoning_content"] == "one\ntwo"


EARLIER = (Q, thought("old"), call("1"), output("1"), thought("older"), said("a"))
CURRENT = replace(DEEP, reasoning_replay_always=False)
LATER: list[tuple[str, tuple[Json, ...], list[str | None]]] = [
    ("a new question", (user("r"),), [None, None]),
    ("no tools since", (user("r"), thought("new"), said("b")), [None, None, None]),
    ("tools at work", (user("r"), thought("new"), call("2"), output("2")), [None, None, "new"]),
    ("the first question", (), ["old", "older"]),
]


@pytest.mark.parametrize(("later", "texts"), [one[1:] for one in LATER], ids=[one[0] for one in LATER])
def test_some_want_the_reasoning_of_the_current_calls_alone(later: tuple[Json, ...], texts: list[str | None]) -> None:
    chat = converted(*EARLIER, *later, profile=CURRENT)
    assert [one.get("reasoning_content") for one in chat.body["messages"] if one["role"] == "assistant"] == texts
    left = [path for kind, path in noted(chat) if kind == "ignored"]
    thoughts = sum(item.get("type") == "reasoning" for item in (*EARLIER, *later))
    assert len(left) == thoughts - sum(text is not None for text in texts)


def test_an_answer_without_reasoning_gets_an_empty_one_where_tools_are_offered() -> None:
    items = (Q, said("a"), user("r"), call("1"), output("1"))
    chat = converted(*items, profile=DEEP, tools=[tool()])
    assert [one.get("reasoning_content") for one in chat.body["messages"] if one["role"] == "assistant"] == [" ", " "]
    assert noted(chat) == [("made", "input[1]"), ("made", "input[3]")]
    assert not noted(converted(*items, profile=DEEP))
    assert not noted(converted(*items, profile=CURRENT, tools=[tool()]))


# --- what rides on calls -------------------------------------------------------------------------------------------

GOOGLE = {"google": {"thought_signature": "SIG5"}}
SKIP = {"google": {"thought_signature": "skip_thought_signature_validator"}}
RIDING: list[tuple[str, Json, Json, list[tuple[str, str]]]] = [
    ("as it came", {"extra_content": GOOGLE}, {"extra_content": GOOGLE}, []),
    ("by itself", {"thought_signature": "SIG5"}, {"extra_content": GOOGLE}, []),
    (
        "in LiteLLM's field",
        {"provider_specific_fields": {"thought_signature": "SIG5"}},
        {"provider_specific_fields": {"thought_signature": "SIG5"}},
        [],
    ),
    ("none", {}, {"extra_content": SKIP}, [("made", "input[1]")]),
    (
        "of another family",
        {"extra_content": GOOGLE, "family": "somebody"},
        {"extra_content": SKIP},
        [("made", "input[1]")],
    ),
    ("of this family", {"extra_content": GOOGLE, "family": "signing"}, {"extra_content": GOOGLE}, []),
]


@pytest.mark.parametrize(("data", "fields", "report"), [one[1:] for one in RIDING], ids=[one[0] for one in RIDING])
def test_a_thought_signature_goes_back_on_its_call(data: Json, fields: Json, report: list[tuple[str, str]]) -> None:
    items = (Q, call("1", provider_data=data), call("2"), output("1"), output("2"))
    chat = converted(*items, profile=SIGNING)
    first, second = chat.body["messages"][1]["tool_calls"]
    assert first == asked("1", **fields)
    assert second == asked("2")
    assert noted(chat) == report
    assert "SIG5" not in json.dumps(converted(*items).body)


def test_a_piece_on_a_reasoning_item_and_on_a_call_is_sent_once() -> None:
    other = {**ENCRYPTED, "data": "ENC9"}
    riding = {"reasoning_details": [ENCRYPTED, other]}
    chat = converted(Q, kept(ENCRYPTED), call("1", provider_data=riding), output("1"), profile=ROUTER)
    assert chat.body["messages"][1]["reasoning_details"] == [ENCRYPTED, other]


def test_what_rides_on_a_call_may_be_anything() -> None:
    riding = {"reasoning_details": ["x", 5, None, ENCRYPTED]}
    chat = converted(Q, call("1", provider_data=riding), output("1"), profile=ROUTER)
    assert chat.body["messages"][1]["reasoning_details"] == [ENCRYPTED]
    for data in (5, "x", ["x"], {"extra_content": 5, "family": 7}):
        assert converted(Q, call("1", provider_data=data), output("1"), profile=SIGNING).body["messages"][1][
            "tool_calls"
        ]


# --- clients that drop provider_data -------------------------------------------------------------------------------


def strict_client(items: list[Json]) -> list[Json]:
    """Return items as a client keeps them that knows the published fields alone."""
    return json.loads(json.dumps([{key: item[key] for key in item if key != "provider_data"} for item in items]))


@pytest.mark.parametrize(
    ("profile", "message", "field"),
    [
        (BLOCKS, assistant("a", asked("1"), reasoning_content="hm", thinking_blocks=[BLOCK]), "thinking_blocks"),
        (ROUTER, assistant("a", asked("1"), reasoning="hm", reasoning_details=[SIGNED_TEXT]), "reasoning_details"),
        (ROUTER, assistant("a", asked("x"), reasoning="hm", reasoning_details=[ENCRYPTED]), "reasoning_details"),
        (BLOCKS, assistant("a", asked("1"), thinking_blocks=[BLOCK, REDACTED]), "thinking_blocks"),
        (DEEP, assistant("a", asked("1"), reasoning_content="hm"), "reasoning_content"),
    ],
    ids=lambda one: one.name if isinstance(one, Profile) else "",
)
def test_what_is_signed_survives_in_encrypted_content(profile: Profile, message: Json, field: str) -> None:
    first = converted(Q, profile=profile, tools=[tool()])
    items = strict_client(answered(first, message, streamed=False))
    chat = converted(Q, *items, output(items[-1]["call_id"]), profile=profile, tools=[tool()])
    assert chat.body["messages"][1][field] == message[field]
    assert faults(chat.body) == []
    for other in (Profile("none"), replace(profile, name="other")):
        body = json.dumps(converted(Q, *items, output("1"), profile=other).body)
        assert not any(secret in body for secret in SECRETS)


def test_a_damaged_seal_is_reported() -> None:
    item = thought("hm", encrypted_content="antiphon1.!!!")
    chat = converted(Q, item, said("a"), user("r"), profile=ROUTER)
    assert chat.body["messages"][1] == assistant("a")
    assert noted(chat) == [("dropped", "input[1].encrypted_content"), ("ignored", "input[1]")]
    with pytest.raises(BadRequest) as raised:
        converted(Q, item, said("a"), user("r"), profile=ROUTER, strict=True)
    assert raised.value.param == "input[1].encrypted_content"


def test_what_one_family_thought_is_not_told_to_another() -> None:
    message = assistant("a", asked("1"), reasoning_content="private thought")
    items = answered(converted(Q, profile=DEEP), message, streamed=True)
    kimi = replace(DEEP, name="other", family="other")
    for profile, told in ((DEEP, True), (replace(DEEP, name="alias", family="deep"), True), (kimi, False)):
        chat = converted(Q, *items, output("1"), profile=profile)
        assert ("private thought" in json.dumps(chat.body)) is told


# --- several families in one history -------------------------------------------------------------------------------


def spoke(profile: Profile, mark: str) -> Json:
    """Return an answer of a backend of that profile, with the reasoning that it makes; all of that has `mark` in it."""
    made: dict[str, Json] = {
        "none": {"content": "a", "reasoning_content": mark},
        "reasoning_content": {"content": "a", "reasoning_content": mark},
        "reasoning": {"content": "a", "reasoning": mark},
        "reasoning_details": {
            "content": "a",
            "reasoning": mark,
            "reasoning_details": [{**SIGNED_TEXT, "text": mark, "signature": mark}, {**ENCRYPTED, "data": mark}],
        },
        "thinking_blocks": {
            "content": "a",
            "reasoning_content": mark,
            "thinking_blocks": [{**BLOCK, "thinking": mark, "signature": mark}],
        },
        "typed_content": {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": mark}]},
                {"type": "text", "text": "a"},
            ]
        },
    }
    signature = {"extra_content": {"google": {"thought_signature": mark}}} if profile.thought_signatures else {}
    return {"role": "assistant", **made[profile.reasoning_replay], "tool_calls": [asked(f"c-{mark}", **signature)]}


SPEAKERS = [DEEP, BARE, ROUTER, BLOCKS, TYPED, SIGNING, Profile("none"), replace(ROUTER, name="other router")]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("guest", SPEAKERS, ids=lambda one: one.name)
@pytest.mark.parametrize("host", SPEAKERS, ids=lambda one: one.name)
def test_families_that_take_turns_hear_of_their_own_reasoning_alone(
    host: Profile, guest: Profile, streamed: bool
) -> None:
    history = [Q]
    for turn, profile in enumerate((host, guest, host)):
        chat = converted(*history, profile=profile, tools=[tool()])
        body = json.dumps([{**one, "tool_call_id": ""} for one in chat.body["messages"]]).replace("c-THOUGHT", "")
        for earlier, other in enumerate((host, guest, host)[:turn]):
            takes = profile.reasoning_replay != "none" or profile.thought_signatures
            assert (f"THOUGHT{earlier} " in body) is (other == profile and takes)
        items = json.loads(json.dumps(answered(chat, spoke(profile, f"THOUGHT{turn} "), streamed=streamed)))
        history = [*history, *items, *(output(item["call_id"]) for item in items if "call_id" in item)]
