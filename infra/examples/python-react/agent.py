"""A ReAct agent: the model asks for tools until it can answer. A scripted model stands in for a
real one, so that nothing but this file is needed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


class ScriptedModel(BaseChatModel):
    """Asks for the weather in each city that the question names, and then repeats what the tool has
    said, word by word."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        return self

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        results = []
        for message in reversed(messages):
            if not isinstance(message, ToolMessage):
                break
            results.insert(0, str(message.content))
        if results:
            return AIMessage(" ".join(results))
        question = str(messages[-1].content).lower()
        cities = [city for city in WEATHER if city in question]
        if not cities:
            return AIMessage("Which city do you mean?")
        calls = [{"name": "get_weather", "args": {"city": city}, "id": f"call_{len(messages)}_{city}"} for city in cities]
        return AIMessage("", tool_calls=calls)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, delay_ms: int = 0, **__: Any) -> ChatResult:
        result = self._generate(messages)
        await asyncio.sleep(delay_ms / 1000 * max(1, len(result.generations[0].text.split())))
        return result

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, delay_ms: int = 0, **_: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        if answer.tool_calls:
            await asyncio.sleep(delay_ms / 1000)
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_calls=answer.tool_calls))
            return
        for position, word in enumerate(str(answer.content).split()):
            await asyncio.sleep(delay_ms / 1000)
            chunk = ChatGenerationChunk(message=AIMessageChunk(word if position == 0 else " " + word))
            if run_manager:
                await run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk


WEATHER = {"paris": "sunny", "oslo": "snowing", "lima": "foggy"}


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"It is {WEATHER[city]} in {city.title()}."


tools = [get_weather]
model = ScriptedModel().bind_tools(tools)


async def call_model(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    """Each word takes `token_delay_ms` of the configuration."""
    return {"messages": [await model.ainvoke(state["messages"], delay_ms=config["configurable"].get("token_delay_ms", 0))]}


builder = StateGraph(MessagesState)
builder.add_node("agent", call_model)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
graph = builder.compile()
