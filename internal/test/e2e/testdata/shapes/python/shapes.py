"""Graphs in the shapes that repositories have, with a model that records what it is given.
internal/test/e2e/shapes_test.go says what is wanted of each."""

import asyncio
import json
import os
import re
import urllib.request
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from typing_extensions import TypedDict

SLOW = 100_000


class Recorder(BaseChatModel):
    """Answers in words. A question with "slow-ROLE" makes it go on for long, "fail-ROLE" fail after
    some, "tool-ROLE" call a tool."""

    role: str

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self.bind(**options)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        message = None
        async for chunk in self._astream(messages, stop, run_manager, **options):
            message = chunk.message if message is None else message + chunk.message
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=message.content, tool_calls=message.tool_calls))])

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        given = [[m.type, m.text if isinstance(m.text, str) else m.text()] for m in messages]
        line = json.dumps({"role": self.role, "given": given}) + "\n"
        await asyncio.to_thread(lambda: urllib.request.urlopen(os.environ["RECORD"], line.encode()).close())
        asked = str([m for m in messages if m.type == "human"][-1].content)
        wanted = re.findall(rf"(slow|fail|tool)-{self.role}\b", asked)
        if "tool" in wanted and messages[-1].type == "human":
            call = {"name": "look", "args": "{}", "id": "call", "index": 0, "type": "tool_call_chunk"}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
            return
        for i in range(SLOW if "slow" in wanted else 3):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{self.role}{i} "))
            if "slow" in wanted:
                await asyncio.sleep(0.02)
        if "fail" in wanted:
            raise RuntimeError(f"{self.role} fails")


async def talk(state: MessagesState) -> dict:
    return {"messages": [await Recorder(role="talk").ainvoke(state["messages"])]}


def alone(node: Any = talk, name: str = "talk") -> StateGraph:
    return StateGraph(MessagesState).add_node(name, node).add_edge(START, name)


compiled = alone().compile()
builder = alone()


def factory(config: RunnableConfig) -> Any:
    return alone().compile()


def bound(config: RunnableConfig) -> Any:
    return alone().compile().with_config(config)


async def bound_async(config: RunnableConfig) -> Any:
    return alone().compile().with_config(config)


@entrypoint()
async def functional(inputs: dict, *, previous: Any = None) -> Any:
    messages = add_messages((previous or {}).get("messages", []), inputs["messages"])
    return {"messages": add_messages(messages, [await Recorder(role="talk").ainvoke(messages)])}


same = alone(compiled, "inner").compile()
nested = alone(same, "outer").compile()


async def call(state: MessagesState) -> dict:
    return {"messages": [(await compiled.ainvoke({"messages": state["messages"]}))["messages"][-1]]}


called = alone(call, "call").compile()


class Notes(TypedDict):
    notes: Annotated[list, add_messages]


class WithNotes(MessagesState):
    notes: Annotated[list, add_messages]


async def think(state: Notes) -> dict:
    return {"notes": [await Recorder(role="think").ainvoke(state["notes"])]}


def brief(state: WithNotes) -> dict:
    return {"notes": [SystemMessage("Think."), HumanMessage("About: " + state["messages"][-1].content)]}


thinking = StateGraph(Notes).add_node("think", think).add_edge(START, "think").compile()
other = StateGraph(WithNotes).add_node("brief", brief).add_node("research", thinking).add_node("talk", talk)
other = other.add_edge(START, "brief").add_edge("brief", "research").add_edge("research", "talk").compile()


class WithPlan(MessagesState):
    plan: str
    title: str


async def plan(state: WithPlan) -> dict:
    model = Recorder(role="plan").bind(ls_structured_output_format={"kwargs": {"method": "json_schema"}, "schema": {"title": "Plan", "type": "object"}})
    return {"plan": (await model.ainvoke(state["messages"])).content}


planner = StateGraph(WithPlan).add_node("make_plan", plan).add_node("talk", talk).add_edge(START, "make_plan").add_edge("make_plan", "talk").compile()


async def greet(state: WithPlan) -> dict:
    return {"messages": [AIMessage("Hello!")]}


async def entitle(state: WithPlan) -> dict:
    return {"title": (await Recorder(role="title").ainvoke(state["messages"])).content}


async def talk_late(state: WithPlan) -> dict:
    await asyncio.sleep(0.3)  # the neighbours have finished
    return await talk(state)


parallel = StateGraph(WithPlan).add_node("greet", greet).add_node("entitle", entitle).add_node("talk", talk_late)
parallel = parallel.add_edge(START, "greet").add_edge(START, "entitle").add_edge(START, "talk").compile()


class Topic(TypedDict, total=False):
    topic: str
    answer: str


async def write(state: Topic) -> dict:
    return {"answer": (await Recorder(role="talk").ainvoke([HumanMessage(state["topic"])])).content}


topic = StateGraph(Topic).add_node("write", write).add_edge(START, "write").compile()


class Replaced(TypedDict):
    messages: list


async def replace(state: Replaced) -> dict:
    return {"messages": [*state["messages"], await Recorder(role="talk").ainvoke(state["messages"])]}


replaced = StateGraph(Replaced).add_node("replace", replace).add_edge(START, "replace").compile()


@tool
async def look() -> str:
    """Looks."""
    return "It is there."


def prebuilt() -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError:
        from langgraph.prebuilt import create_react_agent as create_agent
    return create_agent(Recorder(role="talk"), [look])


def deep() -> Any:
    from deepagents import create_deep_agent

    return create_deep_agent(model=Recorder(role="talk"), tools=[look])
