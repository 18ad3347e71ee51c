"""`function_tool`: a Python function as a tool."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypedDict, Unpack, get_args, get_origin, overload

from pydantic import TypeAdapter

from antiphon.exceptions import AgentsException, ModelBehaviorError, UserError
from antiphon.run.awaiting import being_cancelled, settled
from antiphon.run.context import ToolContext
from antiphon.run.guardrails import ToolInputGuardrail, ToolOutputGuardrail
from antiphon.run.reading import is_dict, refuse_unknown

from .docstrings import DocstringStyle, name_of, said_by
from .schema import FuncSchema, Unfit, described, fitting, function_schema, signature_of
from .tool import (
    Enabled,
    ErrorText,
    FunctionTool,
    FunctionToolCustomDataExtractor,
    Invoke,
    NeedsApproval,
    ToolCaller,
    ToolErrorFunction,
    ToolTimeoutBehavior,
    default_tool_error_function,
    is_object_schema,
)

Function: TypeAlias = Callable[..., Any]
LAMBDA: Final = (lambda: None).__name__
OF_SCHEMA: Final = ("docstring_style", "name_override", "description_override", "use_docstring_info")
UNTYPED: Final[tuple[Any, ...]] = (inspect.Signature.empty, Any, None, type(None), str)


class FunctionToolOptions(TypedDict, total=False):
    """What `function_tool` takes beside the function."""

    name_override: str | None
    description_override: str | None
    docstring_style: DocstringStyle | None
    use_docstring_info: bool
    failure_error_function: ToolErrorFunction | None
    strict_mode: bool
    is_enabled: Enabled
    needs_approval: NeedsApproval
    tool_input_guardrails: list[ToolInputGuardrail[Any]] | None
    tool_output_guardrails: list[ToolOutputGuardrail[Any]] | None
    timeout: float | None
    timeout_behavior: ToolTimeoutBehavior
    timeout_error_function: ToolErrorFunction | None
    defer_loading: bool
    custom_data_extractor: FunctionToolCustomDataExtractor | None
    allowed_callers: list[ToolCaller] | None
    output_type: Any
    output_json_schema: dict[str, Any] | None


@overload
def function_tool(func: Function, **options: Unpack[FunctionToolOptions]) -> FunctionTool: ...
@overload
def function_tool(**options: Unpack[FunctionToolOptions]) -> Callable[[Function], FunctionTool]: ...
def function_tool(func: Function | None = None, **options: Unpack[FunctionToolOptions]) -> Any:
    """Return the function as a `FunctionTool`; used as a decorator, bare or called.

    Name, description and schema are the function's own unless they are given. A sync function runs in a worker thread.
    `failure_error_function` says what the model is told where the function raises; with None the run raises. With
    `output_type`, what the function returns is validated; a tool for programs has its return annotation for one.
    Raises TypeError for an option that is none.
    """
    refuse_unknown("function_tool", options, FunctionToolOptions.__optional_keys__)
    return partial(_made, **options) if func is None else _made(func, **options)


def _made(function: Function, **options: Any) -> FunctionTool:
    _refuse(function, options.get("name_override"))
    strict = options.pop("strict_mode", True)
    asked = {name: options.pop(name) for name in OF_SCHEMA if name in options}
    schema = function_schema(function, strict_json_schema=strict, **asked)
    returns = (options.pop("output_type", None), options.pop("output_json_schema", None))
    output_schema, adapter = _output(schema, options.get("allowed_callers"), *returns)
    told = options.pop("failure_error_function", default_tool_error_function)
    return FunctionTool(
        name=schema.name,
        description=schema.description or "",
        params_json_schema=schema.params_json_schema,
        on_invoke_tool=FunctionInvoker(function, schema, told, adapter),
        strict_json_schema=strict,
        timeout_seconds=options.pop("timeout", None),
        output_json_schema=output_schema,
        output_type_adapter=adapter,
        **options,
    )


@dataclass(frozen=True)
class FunctionInvoker:
    """Calls the function for one call of the model: reads the arguments, runs it, checks what it returns."""

    function: Function
    schema: FuncSchema
    failure_error_function: ToolErrorFunction | None = default_tool_error_function
    output_type: TypeAdapter[Any] | None = None

    async def __call__(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Return the function's output, or what the model is told of its failure."""
        return await told_of_failure(self._call, self.failure_error_function, ctx, arguments)

    @property
    def runs_in_thread(self) -> bool:
        """Return whether the function is a sync one."""
        return not is_async(self.function)

    async def _call(self, ctx: ToolContext[Any], arguments: str) -> Any:
        args, keywords = call_args(self.schema, ctx.tool_name, arguments)
        if self.schema.takes_context:
            args = [ctx, *args]
        if self.runs_in_thread:
            output = await settled(await asyncio.to_thread(_in_thread, self.function, args, keywords))
        else:
            output = await self.function(*args, **keywords)
        return output if self.output_type is None else _checked(ctx.tool_name, output, self.output_type)


def forgiving(invoke: Invoke, failure_error_function: ToolErrorFunction | None) -> Invoke:
    """Return `invoke` with its errors told to the model; with None they are raised."""
    return partial(told_of_failure, invoke, failure_error_function)


async def told_of_failure(
    invoke: Invoke, failure_error_function: ToolErrorFunction | None, ctx: ToolContext[Any], arguments: str
) -> Any:
    """Return what `invoke` returns; where it raises, the words of `failure_error_function` as an `ErrorText`.

    A tool that is cancelled from inside has failed; one whose run is cancelled, or whose time is over, is not told of.
    """
    if failure_error_function is None:
        return await invoke(ctx, arguments)
    try:
        return await invoke(ctx, arguments)
    except asyncio.CancelledError as cancelled:
        if being_cancelled():
            raise
        failed: Exception = AgentsException(str(cancelled) or "Tool execution cancelled.")
    except Exception as error:  # noqa: BLE001  # whatever a tool raises is told
        failed = error
    return ErrorText(await settled(failure_error_function(ctx, failed)))


def call_args(schema: FuncSchema, tool_name: str, arguments: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments that a call's JSON text stands for.

    Raises ModelBehaviorError where the text is no JSON object or does not fit. The error says where, and does not
    hold the text: a reader of logs learns nothing of what was passed.
    """
    read = arguments_of(tool_name, arguments)
    if isinstance(read, str):
        raise ModelBehaviorError(read)
    fit = fitting(schema.params_pydantic_model.model_validate, read)
    if isinstance(fit, Unfit):
        raise ModelBehaviorError(f"Invalid JSON input for tool {tool_name}: {fit.why}")
    return schema.to_call_args(fit)


def arguments_of(tool_name: str, arguments: str) -> dict[str, Any] | str:
    """Return the object in the JSON text, or what is wrong with it."""
    try:
        read: Any = json.loads(arguments) if arguments else {}
    except json.JSONDecodeError as error:
        return f"Invalid JSON input for tool {tool_name}: {error.msg} at character {error.pos}"
    except RecursionError:
        return f"Invalid JSON input for tool {tool_name}: too deep"
    except ValueError:  # what is JSON and cannot be read nevertheless
        return f"Invalid JSON input for tool {tool_name}: a number has too many digits"
    return read if is_dict(read) else f"Invalid JSON input for tool {tool_name}: expected a JSON object"


def _in_thread(function: Function, args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        return function(*args, **keywords)
    except StopIteration as error:  # a future cannot hold it: who awaits the thread would wait for ever
        raise RuntimeError("the function raised StopIteration") from error


def is_async(function: Function) -> bool:
    """Return whether calling the function gives a coroutine: also for a partial, or an object that is called."""
    return inspect.iscoroutinefunction(said_by(function))


def _refuse(function: Any, name: str | None) -> None:
    """Raise UserError where no call of a model can become a call of the function."""
    if not callable(function):
        raise UserError(
            f"function_tool was given {type(function).__name__}: a function, or what can be called, is expected"
        )
    told = name_of(function)
    if told == LAMBDA and not name:
        raise UserError("a lambda has no name that a model could call: give name_override")
    said = said_by(function)
    if inspect.isgeneratorfunction(said) or inspect.isasyncgenfunction(said):
        raise UserError(
            f"{told} is a generator, and a tool returns its output at once: return the values, and use ctx.report(…) "
            "for what is to be told meanwhile"
        )
    if _is_unbound(function):
        raise UserError(
            f"{function.__qualname__} is a method without its object: make the tool of a bound one, function_tool(thing.{told})"
        )


def _is_unbound(function: Any) -> bool:
    """Return whether a function is a method that still waits for its object, as inside of a class's body."""
    place, _, _ = str(getattr(function, "__qualname__", "")).rpartition(".")
    if not inspect.isfunction(function) or not place or place.endswith("<locals>"):
        return False
    first = next(iter(signature_of(function).parameters.values()), None)
    return first is not None and first.name in ("self", "cls") and first.annotation is first.empty


def _checked(tool_name: str, output: Any, adapter: TypeAdapter[Any]) -> Any:
    fit = fitting(adapter.validate_python, output, "output")
    if isinstance(fit, Unfit):
        raise UserError(f"Function tool {tool_name} returned an output that does not match its output type: {fit.why}")
    return fit


def _output(
    schema: FuncSchema, callers: list[ToolCaller] | None, output_type: Any, given: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, TypeAdapter[Any] | None]:
    """Return JSON schema and adapter of what a tool returns, where it has them."""
    if output_type is not None and given is not None:
        raise UserError(f"tool {schema.name!r} has output_type and output_json_schema: give one of them")
    if given is not None:
        return given, None
    kind = schema.return_annotation if output_type is None else output_type
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if output_type is None and ("programmatic" not in (callers or ()) or any(bare is one for one in UNTYPED)):
        return None, None
    adapter, returned = described(kind, f"what tool {schema.name!r} returns", mode="serialization")
    if not is_object_schema(returned):
        raise UserError(
            f"what tool {schema.name!r} returns must be a JSON object with a strict schema: a pydantic model, a "
            "TypedDict or a dataclass; str or Any is for a tool without one"
        )
    return returned, adapter
