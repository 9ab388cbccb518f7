"""The vectors of the store's items: what is embedded, in which calls, and what becomes of
failures."""

import array
import asyncio
import base64
import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base.embed import ensure_embeddings, get_text_at_path

from harness import Agent
from slipway_runtime.index import Index

GRAPH = """
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    text: str

graph = StateGraph(State).add_node("a", lambda state: {}).add_edge(START, "a")
"""

EMBED = """
import asyncio

def vector(text):
    if "broken" in text:
        raise ValueError("no such model")
    if "short" in text:
        return [1.0]
    return [float(len(text)), float(text.count("a"))]

def embed(texts):
    return [vector(text) for text in texts]

async def aembed(texts):
    await asyncio.sleep(0)
    return embed(texts)
"""

OBJECT = """
from langchain_core.embeddings import Embeddings

class Own(Embeddings):
    def embed_documents(self, texts):
        return [[1.0, 0.0] for _ in texts]

    def embed_query(self, text):
        return [0.0, 1.0]

class Alike:
    async def aembed_documents(self, texts):
        return [[1.0, 0.0] for _ in texts]

own = Own()
alike = Alike()
number = 7
"""


def write(directory: Path, **index: Any) -> None:
    (directory / "agent.py").write_text(GRAPH)
    (directory / "embed.py").write_text(EMBED)
    (directory / "own.py").write_text(OBJECT)
    (directory / "framework.json").write_text(json.dumps({"graphs": {"agent": "./agent.py:graph"}, "store": {"index": {"dims": 2, **index}}}))


@contextlib.contextmanager
def indexed(directory: Path, **index: Any) -> Iterator[Agent]:
    write(directory, **index)
    with Agent(directory, SLIPWAY_KEYS="store") as agent:
        yield agent


def ask(agent: Agent, **texts: Any) -> tuple[int, Any]:
    response = agent.post({"operation": "embed", "embed": texts})
    return response.status, json.loads(response.read())


def vectors(agent: Agent, *items: dict[str, Any], queries: list[str] | None = None) -> list[list[float]]:
    status, answer = ask(agent, items=list(items), queries=queries or [])
    assert status == 200 and "error" not in answer, answer
    return [array.array("f", base64.b64decode(data)).tolist() for data in answer["items"] + answer["queries"]]


@pytest.mark.parametrize("function", ["embed", "aembed"])
def test_texts_are_taken_as_the_framework_takes_them(tmp_path: Path, function: str) -> None:
    value = {"text": "aab", "of": {"name": "a"}, "parts": [{"text": "x"}, {"text": "ya"}], "n": 12}
    with indexed(tmp_path, embed=f"./embed.py:{function}", fields=["text", "of.name"]) as agent:
        assert vectors(agent, {"value": value}, {"value": value, "fields": ["parts[*].text", "n"]}, {"value": {}}, queries=["a", ""]) == [
            [3, 2, 1, 1], [1, 0, 2, 1, 2, 0], [], [1, 1], [0, 0],
        ]


def test_a_whole_value_is_one_text(tmp_path: Path) -> None:
    with indexed(tmp_path, embed="./embed.py:embed") as agent:
        text = json.dumps({"a": 1, "b": "é"}, ensure_ascii=False)
        assert vectors(agent, {"value": {"b": "é", "a": 1}}) == [[len(text), text.count("a")]]


def test_an_object_embeds_queries_in_its_own_way(tmp_path: Path) -> None:
    with indexed(tmp_path, embed="./own.py:own") as agent:
        assert vectors(agent, {"value": {"a": 1}}, queries=["q"]) == [[1, 0], [0, 1]]


def test_items_that_come_together_are_embedded_together(caplog: pytest.LogCaptureFixture) -> None:
    """One of them fails, which the others do not notice. There is only one call at a time."""
    calls: list[list[str]] = []
    began, go, busy = threading.Event(), threading.Event(), threading.Lock()

    def embed(texts: list[str]) -> list[list[float]]:
        if texts == ["q"]:
            return [[1, 1]]
        assert busy.acquire(blocking=False)
        try:
            return called(texts)
        finally:
            busy.release()

    def called(texts: list[str]) -> list[list[float]]:
        calls.append(list(texts))
        if "slow" in texts:
            began.set()
            go.wait(30)
        if "broken" in texts:
            raise ValueError("no such model")
        return [[float(len(text)), 0] for text in texts]

    index = Index(ensure_embeddings(embed), get_text_at_path, 2, ["text"])

    async def put(text: str) -> Any:
        return await index.embed({"items": [{"value": {"text": text}}]})

    async def put_all() -> list[Any]:
        putting = [asyncio.ensure_future(put("slow"))]
        await asyncio.to_thread(began.wait, 30)
        putting += [asyncio.ensure_future(put(text)) for text in ["a", "bb", "a", "broken"]]
        await index.embed({"queries": ["q"]})  # it is taken after all of them
        go.set()
        return await asyncio.gather(*putting)

    made = asyncio.run(put_all())
    assert [answer.get("error") or array.array("f", base64.b64decode(answer["items"][0])).tolist() for answer in made] == [
        [4, 0], [1, 0], [2, 0], [1, 0], "ValueError",
    ]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["no such model"]
    assert calls == [["slow"], ["a", "bb", "broken"], ["a", "bb"], ["a", "broken"], ["a"], ["broken"]]


def test_a_call_that_takes_too_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slipway_runtime.index.LIMIT", 2.0)
    calls: list[list[str]] = []
    began, go = threading.Event(), threading.Event()

    async def embed(texts: list[str]) -> list[list[float]]:
        if texts == ["q"]:
            return [[1, 1]]
        calls.append(list(texts))
        if "first" in texts:
            began.set()
            await asyncio.to_thread(go.wait, 30)
        if "stuck" in texts:
            await asyncio.Event().wait()
        return [[1, 1] for _ in texts]

    index = Index(ensure_embeddings(embed), get_text_at_path, 2, ["text"])

    async def put(text: str) -> Any:
        return (await index.embed({"items": [{"value": {"text": text}}]})).get("error")

    async def put_all() -> list[Any]:
        putting = [asyncio.ensure_future(put("first"))]
        await asyncio.to_thread(began.wait, 30)
        putting += [asyncio.ensure_future(put(text)) for text in ["stuck", "other"]]
        await index.embed({"queries": ["q"]})  # it is taken after all of them
        go.set()
        answers = await asyncio.gather(*putting)
        return [*answers, await put("next")]

    late = "the embedding function has not answered within 2 s"
    assert asyncio.run(put_all()) == [None, late, late, None]
    assert calls == [["first"], ["stuck", "other"], ["next"]]


@pytest.mark.parametrize(("texts", "error"), [
    ({"items": [{"value": {"text": "broken"}}]}, "ValueError"),
    ({"queries": ["broken"]}, "ValueError"),
    ({"items": [{"value": {"text": "short"}}]}, "a vector has 1 dimensions, and store.index.dims is 2"),
    ({"queries": ["short"]}, "a vector has 1 dimensions, and store.index.dims is 2"),
    ({"items": [{"value": {"of": ["x"] * 1001}, "fields": ["of[*]"]}]}, "the item has 1001 texts, and may have 1000"),
])
def test_a_failure_is_an_answer(tmp_path: Path, texts: dict[str, Any], error: str) -> None:
    with indexed(tmp_path, embed="./embed.py:embed", fields=["text"]) as agent:
        assert ask(agent, **texts) == (200, {"error": error})
        assert vectors(agent, queries=["a"]) == [[1, 1]]


def test_an_item_that_is_nested_too_deeply(tmp_path: Path) -> None:
    deep, path = '{"a":' * 1015 + "1" + "}" * 1015, ".".join("a" * 1015)
    body = f'{{"operation": "embed", "embed": {{"items": [{{"value": {deep}, "fields": ["{path}"]}}]}}}}'
    with indexed(tmp_path, embed="./embed.py:embed") as agent:
        response = agent.post(body.encode())
        assert (response.status, json.loads(response.read())) == (200, {"error": "the item is nested too deeply"})


@pytest.mark.parametrize("texts", [{"items": 1}, {"items": [1]}, {"items": [{"value": 1}]}, {"items": [{"value": {}, "fields": [1]}]}, {"queries": [1]}])
def test_a_malformed_question_is_refused(tmp_path: Path, texts: dict[str, Any]) -> None:
    with indexed(tmp_path, embed="./embed.py:embed") as agent:
        assert ask(agent, **texts)[0] == 400
        assert agent.post({"operation": "embed"}).status == 400


def test_only_a_repository_with_an_index_embeds(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "framework.json").write_text(json.dumps({"graphs": {"agent": "./agent.py:graph"}}))
    with Agent(tmp_path) as agent:
        assert ask(agent, queries=["a"])[0] == 404


@pytest.mark.parametrize(("index", "error"), [
    ({"embed": "./embed.py:nothing"}, "store.index.embed: ./embed.py has no variable 'nothing'; it has 'vector', 'embed', 'aembed'"),
    ({"embed": "./none.py:embed"}, "store.index.embed: there is no file './none.py'"),
    ({"embed": "nobody:model"}, "store.index.embed: nobody:model cannot be used: "),
    ({"embed": "./own.py:number"}, "store.index.embed: ./own.py:number must be a function or an Embeddings object, and is of type int"),
    ({"embed": "./own.py:alike"}, "store.index.embed: ./own.py:alike must be a function or an Embeddings object, and is of type Alike"),
    ({"embed": "./embed.py:embed", "dims": 0}, "store.index: must be as "),
])
def test_an_index_that_cannot_be_had_ends_the_start(tmp_path: Path, index: dict[str, Any], error: str) -> None:
    write(tmp_path, **index)
    command = [sys.executable, "-m", "slipway_runtime"]
    ended = subprocess.run(command, cwd=tmp_path, env={"PATH": "", "SLIPWAY_KEYS": "store", "PORT": "0"}, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and error in ended.stderr
    refused = subprocess.run(command, cwd=tmp_path, env={"PATH": "", "PORT": "0"}, capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode == 1 and "store: is not served" in refused.stderr
