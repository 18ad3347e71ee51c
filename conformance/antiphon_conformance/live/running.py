"""`check_live`: a whole run, live or from a recording."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

from antiphon import __version__
from antiphon.errors import BadInput
from antiphon.profile import DEFAULT, Profile, find_profile, load_profile
from antiphon_conformance import SUITE_VERSION
from antiphon_conformance.exchange import Api, Exchange
from antiphon_conformance.read import Json, listed, mapping, number, text
from antiphon_conformance.results import Layer, Outcome, Run, Subject, SuiteReport
from antiphon_providers.backends.shared import without_credentials

from . import recording
from .asking import Server
from .fitting import Fit, fit
from .hopeless import fatal, first_model, lacks_model, models_of, told, worthless
from .judging import judge, judge_alone
from .notes import notes_of
from .options import LiveOptions, Progress, Step
from .probe import Probe, Shape
from .probes import FACTS, PROBES, chosen, probes_hash
from .spending import Spending
from .taking import Asked, Taken, take

SECOND = ".2"  # what the name of the second turn's exchange ends with
FITTED = "fitted"
INTERRUPTED = "the run was interrupted"
IN_A_ROW = 3  # probes that are answered in a way which says that no other will be answered better


def describe(options: LiveOptions) -> str:
    """Return what a run will send, in a few lines, to be shown beforehand. Raises BadInput for a probe or folder that
    is not there."""
    probes = chosen(options.probes)
    if options.replay is not None:
        recording.read_run(options.replay)
        return f"judges the recording in {options.replay}; nothing is sent"
    asked = [probe for probe in probes if options.api == "chat" or not probe.chat_only]
    budget = options.budget
    most = (
        f"{'no limit of' if limit is None else f'at most {limit:g}'} {unit}"
        for limit, unit in ((budget.requests, "requests"), (budget.tokens, "tokens"), (budget.seconds, "seconds"))
    )
    lines = [
        f"{'1 probe goes' if len(asked) == 1 else f'{len(asked)} probes go'} to {without_credentials(options.url)}, the {options.api} API, "
        f"model {options.model or 'the first that is listed'}: "
        f"{_many(sum(probe.requests for probe in asked), 'request')}, some {sum(probe.tokens for probe in asked)} tokens",
        f"budget: {', '.join(most)}; {options.concurrency} at a time",
    ]
    if options.record is not None:
        lines.append(f"requests and raw answers are written to {options.record}, without keys")
    return "\n".join(lines)


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def check_live(options: LiveOptions, progress: Progress | None = None) -> SuiteReport:
    """Return what the probes found, in both layers, and the profile that fits.

    Runs an event loop of its own, so it is called from outside of one. Ctrl-C ends the run, and what was found so far
    is reported. Raises BadInput for options that are none, and ProviderError where the server can answer no probe: it
    cannot be reached, refuses the key, has no such path or model; or where no model is named and it lists none.
    """
    logger, muted = logging.getLogger("antiphon"), logging.NullHandler()
    logger.addHandler(muted)  # what conversions warn of is in the chunks, and their findings tell it
    try:
        return _checked(options, progress or _silent)
    finally:
        logger.removeHandler(muted)


def _checked(options: LiveOptions, progress: Progress) -> SuiteReport:
    if options.replay is not None:
        return _replayed(options, options.replay)
    if not options.url:
        raise BadInput("url is empty: give the base URL of a server, or a folder to replay")
    probes = chosen(options.probes)
    run = asyncio.run(_live(options, probes, progress))
    if run.fatal is not None:
        raise told(run.fatal, run.url, run.model, options.has_key, run.listed)
    return _report(run, options)


@dataclass(slots=True)
class Collected:
    """What a run gave so far."""

    url: str
    model: str
    api: Api
    base: Profile
    probes: tuple[Probe, ...]
    results: dict[str, Taken] = field(default_factory=dict[str, Taken])
    others: list[str] = field(default_factory=list[str])  # names of recordings that belong to no probe
    interrupted: bool = False
    listed: tuple[str, ...] = ()  # models of a server that has not the one that is asked for
    judged: dict[str, tuple[Asked, tuple[Run, ...]]] = field(default_factory=dict[str, "tuple[Asked, tuple[Run, ...]]"])

    @property
    def ordered(self) -> dict[str, Taken]:
        """The results in the order of the table."""
        return {probe.id: self.results[probe.id] for probe in self.probes if probe.id in self.results}

    def fitted(self) -> Fit:
        """Return the profile that fits what is known so far."""
        return fit(self.ordered, self.base)

    def asked(self) -> Asked:
        """Return how requests are built by what is known so far."""
        return Asked(self.api, self.model, self.fitted().profile)

    def runs(self, taken: Taken, asked: Asked, strict: bool) -> tuple[Run, ...]:
        """Return the runs of a probe; what was judged so before is not judged again."""
        known = self.judged.get(taken.probe.id)
        if known is None or known[0] != asked:
            known = self.judged[taken.probe.id] = asked, tuple(judge(taken, asked, strict))
        return known[1]

    @property
    def fatal(self) -> Exchange | None:
        """The first answer, where it says that no probe can be answered."""
        return fatal(list(self.results.values()))


# --- live ---------------------------------------------------------------------------------------------------------


async def _live(options: LiveOptions, probes: tuple[Probe, ...], progress: Progress) -> Collected:
    server = Server(options.url, options.api, options.timeouts, options.api_key, options.headers)
    run = Collected(without_credentials(options.url) or "", options.model, options.api, _base(options), probes)
    try:
        run.model = options.model or await first_model(server, run.url, options.has_key)
        if options.record is not None:
            recording.write_run(options.record, _facts(run))
        await _Runner(options, server, run, progress).run()
        if run.fatal is not None and lacks_model(run.fatal, run.model):
            run.listed = await models_of(server)
    except asyncio.CancelledError:
        run.interrupted = True
    for probe in probes:
        run.results.setdefault(probe.id, Taken(probe, left_out=INTERRUPTED))
    if options.record is not None:
        recording.write_run(options.record, _facts(run))
    return run


def _base(options: LiveOptions) -> Profile:
    """Return the profile to begin with: the given one, else the one that is known for the URL, else the default's."""
    if isinstance(options.profile, Profile):
        return options.profile
    if options.profile is not None:
        return load_profile(options.profile)
    return find_profile(base_url=options.url) or replace(DEFAULT, name=FITTED)


@dataclass(slots=True)
class _Runner:
    """Runs the probes: those that say how to ask first, one by one; those that need the server alone last."""

    options: LiveOptions
    server: Server
    collected: Collected
    progress: Progress
    spending: Spending = field(init=False)
    numbers: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.options.budget)
        self.numbers = {probe.id: number for number, probe in enumerate(self.collected.probes, 1)}

    async def run(self) -> None:
        """Run all probes."""
        facts = {probe.id for probe in PROBES[:FACTS]}
        first = [probe for probe in self.collected.probes if probe.id in facts]
        alone = [probe for probe in self.collected.probes if probe.shape in (Shape.BESIDE, Shape.LEAVE)]
        rest = [probe for probe in self.collected.probes if probe not in first and probe not in alone]
        for probe in first:
            await self._one(probe, self.collected.asked())
        asked, slots = self.collected.asked(), asyncio.Semaphore(max(1, self.options.concurrency))

        async def in_turn(probe: Probe) -> None:
            async with slots:
                await self._one(probe, asked)

        async with asyncio.TaskGroup() as group:
            for probe in rest:
                group.create_task(in_turn(probe))
        for probe in alone:
            await self._one(probe, asked)

    async def _one(self, probe: Probe, asked: Asked) -> None:
        step = Step(self.numbers[probe.id], len(self.numbers), probe.id, probe.title)
        self.progress(step)
        taken = await self._taken(probe, asked)
        self.collected.results[probe.id] = taken
        if self.options.record is not None:
            for name, exchange in zip((probe.id, probe.id + SECOND), taken.exchanges, strict=False):
                recording.write(self.options.record, name, exchange)
        runs = self.collected.runs(taken, asked, self.options.strict)
        self.progress(step._replace(outcome=_worst(runs)))

    async def _taken(self, probe: Probe, asked: Asked) -> Taken:
        """Return what a probe gives, or why it is not put."""
        reason = (
            ""
            if probe.chat_only and self.options.api != "chat"
            else self._unreachable() or self.spending.refuses(probe)
        )
        if reason:
            return Taken(probe, left_out=reason)
        try:
            async with asyncio.timeout(self.spending.seconds_left):
                taken = await take(probe, self.server, asked)
        except TimeoutError:
            return Taken(
                probe, left_out=f"the budget of {self.options.budget.seconds:g} s ran out before it was answered"
            )
        self.spending.settle(probe, taken.exchanges)
        return taken

    def _unreachable(self) -> str:
        """Return why nothing more is asked: the first answers were none."""
        results = list(self.collected.results.values())
        tried = [taken for taken in results if taken.first is not None]
        dead = [taken for taken in tried if taken.first is not None and not taken.first.pieces and taken.first.failure]
        if self.collected.fatal is not None:
            return "no request to this server can be answered, as its first answer says"
        alike = worthless(results, IN_A_ROW)
        if alike:
            return f"the first {IN_A_ROW} probes were all answered with {alike}"
        if tried and tried[0] in dead:
            return f"the server did not answer the first probe: {tried[0].first.message if tried[0].first else ''}"
        last = tried[-IN_A_ROW:]
        if len(last) == IN_A_ROW and all(taken in dead for taken in last):
            return f"the server answered none of the last {IN_A_ROW} probes"
        if len(last) == IN_A_ROW and all(
            taken.first is not None and taken.first.failure == "too_long" for taken in last
        ):
            return f"the last {IN_A_ROW} answers had no end"
        return ""


def _worst(runs: tuple[Run, ...]) -> Outcome:
    """Return the outcome that counts of several."""
    outcomes = {run.outcome for run in runs}
    return next((one for one in (Outcome.FAIL, Outcome.PASS) if one in outcomes), Outcome.NOT_APPLICABLE)


# --- from a recording -----------------------------------------------------------------------------------------------


def _facts(run: Collected) -> Json:
    """Return what a recording keeps of the run as a whole."""
    left_out = {name: taken.left_out for name, taken in run.ordered.items() if taken.left_out}
    return {
        "url": run.url,
        "model": run.model,
        "api": run.api,
        "base": run.base.name,
        "probes": [probe.id for probe in run.probes],
        "probes_hash": probes_hash(),
        "turns": {name: len(taken.exchanges) for name, taken in run.ordered.items() if taken.exchanges},
        "left_out": left_out,
        "interrupted": run.interrupted,
    }


def _replayed(options: LiveOptions, folder: Path) -> SuiteReport:
    facts = recording.read_run(folder)
    if not facts:
        return _report(_of_others(folder, options), options, folder)
    recorded = [probe for probe in PROBES if probe.id in listed(facts.get("probes"))]
    asked = {probe.id for probe in chosen(options.probes)}
    probes = tuple(probe for probe in recorded if probe.id in asked)
    api: Api = "responses" if facts.get("api") == "responses" else "chat"
    run = Collected(text(facts.get("url")), text(facts.get("model")), api, _recorded_base(options, facts), probes)
    left_out, turns = mapping(facts.get("left_out")), mapping(facts.get("turns"))
    for probe in probes:
        names = (probe.id, probe.id + SECOND)[: number(turns.get(probe.id, 1))]
        exchanges = tuple(one for name in names if (one := recording.read(folder, name)) is not None)
        why = text(left_out.get(probe.id)) or ("" if exchanges else "it is not in the recording")
        run.results[probe.id] = Taken(probe, () if why else exchanges, why)
    run.interrupted = facts.get("interrupted") is True
    return _report(run, options)


def _recorded_base(options: LiveOptions, facts: Json) -> Profile:
    """Return the profile that the recorded run began with, unless another is given."""
    if options.profile is not None or facts.get("base") in (None, FITTED):
        return _base(replace(options, url=""))
    try:
        return load_profile(text(facts["base"]))
    except BadInput:
        return replace(DEFAULT, name=FITTED)


def _of_others(folder: Path, options: LiveOptions) -> Collected:
    """Return a folder of recordings that no run of ours made: all its exchanges stand alone."""
    names = recording.names(folder)
    apis = {exchange.api for name in names if (exchange := recording.read(folder, name)) is not None}
    api: Api = "responses" if apis == {"responses"} else "chat"
    return Collected(str(folder), options.model, api, _base(replace(options, url="")), (), others=names)


# --- the report -----------------------------------------------------------------------------------------------------


def _report(run: Collected, options: LiveOptions, folder: Path | None = None) -> SuiteReport:
    fitted = run.fitted()
    asked = Asked(run.api, run.model, fitted.profile)
    runs = [one for taken in run.ordered.values() for one in run.runs(taken, asked, options.strict)]
    for name in run.others if folder is not None else ():
        exchange = recording.read(folder, name) if folder is not None else None
        if exchange is not None:
            runs += judge_alone(name, exchange, asked, options.strict)
    chat = run.api == "chat"
    return SuiteReport(
        Subject(f"{run.url} {run.model}".strip(), "recording" if folder is not None else "server", _version(run)),
        tuple(runs),
        SUITE_VERSION,
        __version__,
        probes_hash(),
        notes=tuple(notes_of(tuple(runs), fitted, run.api, run.interrupted)),
        profile=fitted.source() if chat and any(run.layer is Layer.EVENTS and run.ran for run in runs) else "",
        strict=options.strict,
        interrupted=run.interrupted,
    )


def _version(run: Collected) -> str:
    """Return what the server says that it is, "" where it says nothing."""
    named = (taken.first.headers.get("server", "") for taken in run.results.values() if taken.first is not None)
    return next((name for name in named if name), "")


def _silent(step: Step) -> None:
    """Show nothing."""
