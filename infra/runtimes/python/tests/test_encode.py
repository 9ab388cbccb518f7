import datetime
import json
from collections import deque, namedtuple
from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.types import Interrupt, Send
from pydantic import BaseModel
from pydantic.v1 import BaseModel as OldModel

from slipway_runtime.encode import encode


class Model(BaseModel):
    a: int = 1


class Old(OldModel):
    a: int = 1


@dataclass
class Data:
    model: Model


class Failing(BaseModel):
    """Has no form of its own."""

    def model_dump(self, **_: object) -> dict:
        raise RuntimeError("no form")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __hash__ = object.__hash__
    __repr__ = __str__


class FailingError(Exception):
    __str__ = __repr__ = Failing.__str__


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(("value", "wanted"), [
    (Model(), {"a": 1}),
    (Old(), {"a": 1}),
    (Data(Model()), {"model": {"a": 1}}),
    (Point(1, Model()), {"x": 1, "y": {"a": 1}}),
    ({1, }, [1]),
    (b"abc", "YWJj"),
    (ValueError("no"), {"error": "ValueError", "message": "no"}),
    (Send("node", {"m": Model()}), {"node": "node", "arg": {"m": {"a": 1}}}),
    (float("nan"), None),
    (2**70, 2**70),
    ("\ud800", "\ufffd"),
    ({("a", 1): {2**70: float("inf")}}, {"('a', 1)": {str(2**70): None}}),
    ([2**70, Model(), Data(Model()), Point(1, 2), {"x": b"abc"}], [2**70, {"a": 1}, {"model": {"a": 1}}, {"x": 1, "y": 2}, {"x": "YWJj"}]),
    (datetime.timedelta(seconds=1.5), 1.5),
])
def test_every_value_has_a_form(value: object, wanted: object) -> None:
    assert json.loads(encode(value)) == wanted


@pytest.mark.parametrize("value", [Failing(), [2**70, Failing()], {(Failing(),): 1}, {Failing(): 1}, FailingError(), {"a": Data(Failing())}])
def test_a_value_whose_own_methods_fail_is_text(value: object) -> None:
    assert " object at 0x" in encode(value).decode()


@pytest.mark.parametrize("value", [[], deque()])
def test_a_value_that_holds_itself_ends_there(value: object) -> None:
    value.append({"again": value, "other": 1})
    assert json.loads(encode([value, value])) == [[{"again": "[circular]", "other": 1}]] * 2


def test_messages_have_the_fields_that_clients_read() -> None:
    chunk = json.loads(encode(AIMessageChunk("a", id="1")))
    assert (chunk["type"], chunk["content"], chunk["id"]) == ("AIMessageChunk", "a", "1")


def test_an_interrupt_has_its_value_and_id() -> None:
    interrupt = json.loads(encode(Interrupt(value={"m": Model()}, id="1")))
    assert (interrupt["value"], interrupt["id"]) == ({"m": {"a": 1}}, "1")


def test_what_has_no_form_is_text() -> None:
    assert json.loads(encode({"f": len, "t": Model})) == {"f": "<built-in function len>", "t": str(Model)}
