"""Structured output: the final output is an object of your type, checked.

Run it with `python docs/examples/structured.py`.
"""

import asyncio
from typing import Literal

from pydantic import BaseModel, Field

from antiphon import Agent, ChatCompletionsModel, ModelBehaviorError, Runner


class Piece(BaseModel):
    """A piece of music."""

    title: str = Field(examples=["Gaudete"])
    century: int = Field(ge=9, le=21, examples=[16])
    voices: list[Literal["soprano", "alto", "tenor", "bass"]]


# A model that makes up an answer that fits the schema that it is sent
maker = ChatCompletionsModel("echo", backend="replay")


async def main() -> None:
    """Run once with a model that keeps to the schema, and once with one that does not."""
    agent = Agent(name="Librarian", model=maker, output_type=Piece)
    piece = (await Runner.run(agent, "Find us something for Advent.")).final_output_as(Piece)
    print(f"{piece.title}, {piece.century}th century, for {', '.join(piece.voices)}")

    titles = await Runner.run(agent.clone(output_type=list[str]), "And the titles of all pieces?")
    print(titles.final_output)  # a type that is no object is wrapped on the way, and unwrapped again

    try:
        await Runner.run(agent.clone(model="replay/text"), "Find us something else.")
    except ModelBehaviorError as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    asyncio.run(main())
