"""Executes state machines with moto's interpreter. Reads cases from standard input and writes what each showed, both as JSON.

Time is compressed, so that a day takes seconds: what is shorter stays shorter. Functions are not called but played: as a list of what
they do call by call ("work"), or as what is answered to each step ("answers", the last one again and again).
"""

import contextlib
import io
import json
import logging
import math
import os
import sys
import threading
import time
import types

import moto.stepfunctions.parser.models as models
from moto.core.config import default_user_config
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import CustomErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.common.timeouts.timeout import TimeoutSeconds
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction

PATIENCE = 60
AT_ONCE = 6
ACCOUNT = "123456789012"


def compressed(seconds):
    """How long an interval really takes: proportional up to a minute, logarithmic beyond."""
    if seconds <= 60:
        return seconds * 0.03
    return 1.8 + 1.5 * math.log2(seconds / 60)


def compress_time():
    retrier_decl.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(compressed(seconds)))

    def wait(self, env, wait_seconds):
        if wait_seconds > 0:
            env.program_state_event.wait(compressed(wait_seconds))

    WaitFunction._wait_interval = wait
    init = TimeoutSeconds.__init__

    def init_compressed(self, timeout_seconds, is_default=None):
        init(self, timeout_seconds, is_default)
        if not self.is_default_value():
            self.is_default, self.timeout_seconds = False, compressed(timeout_seconds)

    TimeoutSeconds.__init__ = init_compressed


class Function:
    """What a case's functions do."""

    def __init__(self, case):
        self.work = list(case.get("work") or [])
        self.answers = {step: list(answers) for step, answers in (case.get("answers") or {}).items()}
        self.calls = []

    def next(self, payload):
        self.calls.append(payload)
        if self.work:
            return self.work.pop(0)
        left = self.answers.get(payload.get("step")) if isinstance(payload, dict) else None
        if not left:
            return {"return": {"next": "Done", "due": "2026-03-01T12:00:00.000001Z"}}
        return left.pop(0) if len(left) > 1 else left[0]

    def invoke(self, Payload, **_):
        does = self.next(json.loads(Payload))
        if does.get("hang"):
            threading.Event().wait()
        answer = {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
        result = does.get("return")
        if does.get("error"):
            answer["FunctionError"] = "Unhandled"
            result = {"errorMessage": does.get("cause", ""), "errorType": does["error"]}
        answer["Payload"] = io.BytesIO(json.dumps(result).encode())
        return answer


# The functions of the cases, by region: each case has one of its own, as that is all that the factory of Lambda clients is told.
functions = {}


def shown_event(event):
    """An event as its type, the state concerned, the error and the data."""
    details = next((value for name, value in event.items() if name.endswith("EventDetails")), {})
    shown = {"type": event["type"], "state": details.get("name", ""), "error": details.get("error", "")}
    for name in ("input", "output", "parameters"):
        if details.get(name) is not None:
            value = details[name]
            shown["data"] = json.loads(value) if isinstance(value, str) else value
    return shown


def execute(case, region):
    shown = {}
    functions[region] = function = Function(case)
    backend = models.StepFunctionsParserBackend(region, ACCOUNT)
    try:
        machine = backend.create_state_machine("m", json.dumps(case["definition"]), f"arn:aws:iam::{ACCOUNT}:role/r")
        execution = backend.start_execution(machine.arn, "e1", json.dumps(case["input"]))
        late = time.time() + PATIENCE
        while execution.exec_status == "RUNNING" and time.time() < late:
            time.sleep(0.02)
        shown["status"] = str(getattr(execution.exec_status, "value", execution.exec_status))
        shown["output"] = execution.output
        shown["error"] = execution.error or ""
        shown["events"] = [shown_event(event) for event in execution.to_history_output()["events"]]
    except Exception as problem:
        shown["status"], shown["error"] = "REFUSED", f"{type(problem).__name__}: {getattr(problem, 'message', problem)}"
    shown["calls"] = function.calls
    return shown


def case_hangs(case):
    answers = list(case.get("work") or []) + sum((case.get("answers") or {}).values(), [])
    return any(does.get("hang") for does in answers)


def main():
    logging.disable(logging.CRITICAL)
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    # A machine holds its executions, which cannot be copied deeply.
    models.copy = types.SimpleNamespace(deepcopy=lambda value: value)
    lambda_eval_utils.boto_client_for = lambda region, service, state_credentials=None: functions[region]
    # A function's error without a name is named States.TaskFailed here, which this interpreter keeps for itself.
    CustomErrorName.__init__ = lambda self, error_name: ErrorName.__init__(self, error_name=error_name)
    compress_time()
    cases = json.load(sys.stdin)
    results = [None] * len(cases)
    free = threading.Semaphore(AT_ONCE)

    def work(number):
        # What waits for a function that never answers costs nothing but time.
        with free if not case_hangs(cases[number]) else contextlib.nullcontext():
            results[number] = execute(cases[number], f"case-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump(results, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # functions that hang have threads of their own


if __name__ == "__main__":
    main()
