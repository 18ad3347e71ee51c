"""The ledger of a run: what was decided about its calls, and which of them were made.

A decision is bound to the exact invocation (kind, name, arguments, id): another call with the same id is another call.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from antiphon.exceptions import ModelBehaviorError
from antiphon.stream.chunk import plain

from .reading import Json

# type of a call -> the name of its tool, where the call itself has none
NAMELESS: dict[str, str] = {
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "local_shell_call": "local_shell",
    "shell_call": "shell",
}
# what of a call is what it asks for; the rest is its ids, its status and who made it
ASKED = ("arguments", "input", "action", "actions", "operation", "server_label")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One exact call. `tool`: the qualified name. `asked`: its kind, name and arguments."""

    call_id: str
    tool: str
    asked: list[Any]

    @classmethod
    def of(cls, call: Any, nameless: str | None = None) -> Invocation:
        """Return the invocation that a call item is, an openai object or a mapping.

        `nameless`: the name of the tool, for a kind of call that has none itself.
        """
        held: Json = plain(call)
        own = held.get("name")
        space = held.get("server_label") or held.get("namespace")
        tool = qualified(own or nameless or NAMELESS.get(str(held.get("type")), ""), space)
        asked = [held.get("type"), own, space, *(held.get(name) for name in ASKED)]
        return cls(str(held.get("call_id") or held.get("id") or ""), tool, asked)

    @property
    def digest(self) -> str:
        """Return what stands for all that is asked."""
        kind, name, space, arguments, *rest = self.asked
        asked = [kind, name, space, _canonical(arguments), *rest]
        return sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _canonical(arguments: Any) -> Any:
    """Return arguments without the spaces of their JSON text, which make no other call."""
    try:
        return json.dumps(json.loads(arguments)) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def qualified(name: str, namespace: Any) -> str:
    """Return the name under which a tool is decided about: with its namespace, where that is not the name itself."""
    return f"{namespace}.{name}" if namespace and namespace != name else name


@dataclass
class Decision:
    """What was decided about one tool: for all its calls (True), or for the calls with these ids.

    `rejection_messages`: what the model is told of a rejected call; `sticky_rejection_message`: of any other of the tool.
    """

    approved: bool | list[str] = field(default_factory=list[str])
    rejected: bool | list[str] = field(default_factory=list[str])
    rejection_messages: dict[str, str] = field(default_factory=dict[str, str])
    sticky_rejection_message: str | None = None

    def __post_init__(self) -> None:
        self.approved, self.rejected = self.approved or [], self.rejected or []

    def status(self, call_id: str) -> bool | None:
        """Return True for approved, False for rejected, None for undecided. A call's own decision comes first."""
        for one, verdict in ((self.rejected, False), (self.approved, True)):
            if isinstance(one, list) and call_id in one:
                return verdict
        if self.rejected is True:
            return False
        return True if self.approved is True else None

    def decide(self, call_id: str, verdict: bool, *, always: bool, message: str | None) -> None:
        """Take a decision. The last one about a call counts."""
        self._forget(call_id)
        if verdict:
            self.approved = True if always else _with(self.approved, call_id)
            self.rejected = [] if always and self.rejected is True else self.rejected
        else:
            self.rejected = True if always else _with(self.rejected, call_id)
            self.approved = [] if always and self.approved is True else self.approved
        if message is not None and not verdict:
            self.rejection_messages[call_id] = message
            self.sticky_rejection_message = message if always else self.sticky_rejection_message

    def message_for(self, call_id: str) -> str | None:
        """Return what the reviewer said of a rejected call."""
        return self.rejection_messages.get(call_id, self.sticky_rejection_message if self.rejected is True else None)

    def always(self) -> Decision | None:
        """Return what of this holds for all calls of the tool; None where nothing does."""
        if self.approved is not True and self.rejected is not True:
            return None
        return Decision(
            self.approved is True, self.rejected is True, sticky_rejection_message=self.sticky_rejection_message
        )

    def _forget(self, call_id: str) -> None:
        for ids in (self.approved, self.rejected):
            if isinstance(ids, list) and call_id in ids:
                ids.remove(call_id)
        self.rejection_messages.pop(call_id, None)


@dataclass
class Made:
    """A call that was seen: the digest of its invocation, and its tool. `completed`: its output is there.

    `failed`: the tool raised out of the run; it may have done something all the same.
    """

    fingerprint: str
    tool_name: str
    completed: bool = False
    failed: bool = False


@dataclass
class Ledger:
    """The decisions by tool, those for all its calls by agent and tool, and the invocations by call id.

    `agent_tool_approvals`: what was decided for all calls inside the runs of an agent tool, by its name; of one inside
    it, by both names, a line each. `nested`: where the unfinished runs inside agent tools stand, by the call id of the tool.
    """

    approvals: dict[str, Decision] = field(default_factory=dict[str, Decision])
    tool_invocations: dict[str, Made] = field(default_factory=dict[str, Made])
    agent_tool_approvals: dict[str, dict[str, Decision]] = field(default_factory=dict[str, dict[str, Decision]])
    nested: dict[str, Any] = field(default_factory=dict[str, Any])

    def decide(
        self,
        call: Any,
        verdict: bool,
        *,
        always: str | None,
        message: str | None = None,
        nameless: str | None = None,
    ) -> None:
        """Take a decision about a call; with `always`, the name of an agent, about all calls of its tool.

        Raises ModelBehaviorError where its id is another call's.
        """
        one = Invocation.of(call, nameless)
        self.register(call)
        for key, of_all in ((one.tool, False), *([] if always is None else [(owned(one.tool, always), True)])):
            self.approvals.setdefault(key, Decision()).decide(one.call_id, verdict, always=of_all, message=message)

    def register(self, call: Any) -> Made:
        """Return the record of a call, a new one for a new id.

        Raises ModelBehaviorError where the id is taken by another invocation.
        """
        one = Invocation.of(call)
        digest = one.digest
        made = self.tool_invocations.setdefault(one.call_id, Made(digest, one.tool))
        if made.fingerprint != digest:
            raise ModelBehaviorError(
                f"the call id {one.call_id!r} of tool {one.tool!r} was that of another call of tool "
                f"{made.tool_name!r}: each call has an id of its own, and what was approved or run is bound to it"
            )
        return made

    @contextmanager
    def once(self, call_id: str) -> Generator[None, None, None]:
        """Note that a call failed where what is done inside raises; where it is cancelled, it may be made again."""
        try:
            yield
        except Exception:
            self.tool_invocations[call_id].failed = True
            raise

    def is_due(self, call: Any) -> bool:
        """Return whether a call is to be made: it has no output.

        Raises ModelBehaviorError where an earlier run has tried, and the tool raised: nobody knows what it did.
        """
        made = self.register(call)
        if not made.failed or made.completed:
            return not made.completed
        one = Invocation.of(call)
        if one.call_id not in self.nested:
            raise ModelBehaviorError(
                f"the call {one.call_id!r} of tool {one.tool!r} was made before, and failed without an output: it is "
                "not made twice. Start a new run"
            )
        return True

    def complete(self, call_id: str) -> None:
        """Note that a call has its output: a run inside it, if there was one, waits no more."""
        self.nested.pop(call_id, None)
        if call_id in self.tool_invocations:
            self.tool_invocations[call_id].completed = True

    def forget(self, call_id: str) -> None:
        """Forget a call of a turn that was broken off, and the run inside it: its id may become another call's."""
        self.nested.pop(call_id, None)
        self.tool_invocations.pop(call_id, None)

    def status(self, tool: str, call_id: str, agent: str | None = None) -> bool | None:
        """Return True for approved, False for rejected, None for undecided.

        `agent`: who calls; without it, what was decided for all calls counts where one agent alone has such a tool.
        """
        found = (one.status(call_id) for one in self._about(tool, agent))
        return next((verdict for verdict in found if verdict is not None), None)

    def message(self, tool: str, call_id: str, agent: str | None = None) -> str | None:
        """Return what the reviewer said of a rejected call."""
        if self.status(tool, call_id, agent) is not False:
            return None
        found = (one.message_for(call_id) for one in self._about(tool, agent))
        return next((message for message in found if message is not None), None)

    def _about(self, tool: str, agent: str | None) -> list[Decision]:
        keys = [owned(tool, agent)] if agent is not None else [key for key in self.approvals if _is_owned(key, tool)]
        every = [self.approvals.get(key) for key in (tool, *(keys if len(keys) == 1 else ()))]
        return [one for one in every if one is not None]

    def inner(self, tool: str) -> Ledger:
        """Return the ledger of a new run inside an agent tool: with what was decided for all its calls."""
        held, within = deepcopy(self.agent_tool_approvals), f"{tool}\n"
        deeper = {name.removeprefix(within): kept for name, kept in held.items() if name.startswith(within)}
        return Ledger(held.get(tool, {}), agent_tool_approvals=deeper)

    def keep(self, tool: str, inner: Ledger) -> None:
        """Keep what was decided for all calls inside an agent tool, and inside the agent tools of that."""
        deeper = {f"{tool}\n{name}": decided for name, decided in inner.agent_tool_approvals.items()}
        for name, decided in {tool: inner.approvals, **deeper}.items():
            always = {key: one.always() for key, one in decided.items()}
            kept = self.agent_tool_approvals.setdefault(name, {})
            kept.update({key: one for key, one in always.items() if one is not None})

    def copy(self) -> Ledger:
        """Return a ledger of its own: later decisions in the one are not in the other."""
        return Ledger(
            *deepcopy((self.approvals, self.tool_invocations, self.agent_tool_approvals)),
            {call_id: state.settled() for call_id, state in self.nested.items()},
        )

    def to_json(self) -> Json:
        """Return decisions and invocations as JSON data; the runs inside are left out."""
        data = asdict(replace(self, nested={}))
        del data["nested"]
        return data


def owned(tool: str, agent: str) -> str:
    """Return the name under which it is decided about all calls of an agent's tool; another agent's may be another."""
    return json.dumps([agent, tool])


def _is_owned(key: str, tool: str) -> bool:
    return key.startswith("[") and key.endswith(f", {json.dumps(tool)}]")


def _with(ids: bool | list[str], call_id: str) -> bool | list[str]:
    return [*ids, call_id] if isinstance(ids, list) else ids
