"""Executes state machines with moto's interpreter. Reads cases from standard input and writes what
each showed, both as JSON.

Time is played too, so that a day takes none and a slow machine changes nothing. Functions are not
called but played: as a list of what they do call by call ("work"), or as what is answered to each
step ("answers", the last one again and again).
"""

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
from moto.stepfunctions.parser.asl.component.common.retry.retrier_decl import RetrierDecl
from moto.stepfunctions.parser.asl.component.common.timeouts.timeout import EvalTimeoutError
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state.exec.execute_state import ExecutionState
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import WaitFunction

PATIENCE = 60
AT_ONCE = 6
ACCOUNT = "123456789012"


class Clock:
    """The time of one execution, which does one thing after the other: it passes where the machine
    waits, and takes none."""

    def __init__(self):
        self.now = 0
        self.machine_deadline = self.task_deadline = math.inf
        self.late = threading.Event()

    def sleep(self, seconds):
        self.reach(self.now + max(seconds, 0))

    def hang(self):
        """What never answers lasts until the task's time is over, or the machine's."""
        self.reach(self.task_deadline)
        raise EvalTimeoutError()

    def reach(self, moment):
        if moment >= self.machine_deadline:
            self.late.set()
            threading.Event().wait()
        self.now = moment


# The clocks and the functions of the cases, by region: each case has a region of its own, because
# the factory of Lambda clients is told only the region.
clocks = {}
functions = {}


def clock_of(env):
    return clocks[env.states.context_object.context_object_data["StateMachine"]["Id"].split(":")[3]]


def play_time():
    """Replaces what the interpreter does with time."""
    current = threading.local()
    retry = RetrierDecl._eval_body

    def eval_retry(self, env):
        current.clock = clock_of(env)
        retry(self, env)

    RetrierDecl._eval_body = eval_retry
    retrier_decl.time = types.SimpleNamespace(sleep=lambda seconds: current.clock.sleep(seconds))
    WaitFunction._wait_interval = lambda self, env, wait_seconds: clock_of(env).sleep(wait_seconds)

    evaluate = ExecutionState._evaluate_with_timeout

    def evaluate_with_timeout(self, env):
        clock = clock_of(env)
        self.timeout.eval(env=env)
        clock.task_deadline = clock.now + env.stack.pop()
        evaluate(self, env)

    ExecutionState._evaluate_with_timeout = evaluate_with_timeout

    def evaluate_program(self, env):
        clock = clock_of(env)
        if self.timeout_seconds:
            clock.machine_deadline = self.timeout_seconds.timeout_seconds
        env.next_state_name = self.start_at.start_at_name

        def work():
            EvalComponent.eval(self, env)
            clock.late.set()

        threading.Thread(target=work, daemon=True).start()
        clock.late.wait()
        if env.is_running():
            env.set_timed_out()

    Program.eval = evaluate_program


class Function:
    """What a case's functions do."""

    def __init__(self, case, clock):
        self.clock = clock
        self.work = list(case.get("work") or [])
        self.answers = {step: list(answers) for step, answers in (case.get("answers") or {}).items()}
        self.calls = []

    def next(self, payload):
        self.calls.append(payload)
        if self.work:
            return self.work.pop(0)
        left = self.answers.get(payload.get("step")) if isinstance(payload, dict) else None
        if not left:
            return {"return": {"next": "Done", "due": "2000-01-15T12:00:00.000001Z"}}
        return left.pop(0) if len(left) > 1 else left[0]

    def invoke(self, Payload, **_):
        does = self.next(json.loads(Payload))
        if does.get("hang"):
            self.clock.hang()
        answer = {"StatusCode": 200, "ExecutedVersion": "$LATEST"}
        result = does.get("return")
        if does.get("error"):
            answer["FunctionError"] = "Unhandled"
            result = {"errorMessage": does.get("cause", ""), "errorType": does["error"]}
        answer["Payload"] = io.BytesIO(json.dumps(result).encode())
        return answer


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
    clocks[region] = clock = Clock()
    functions[region] = function = Function(case, clock)
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


def main():
    logging.disable(logging.CRITICAL)
    default_user_config["stepfunctions"] = {"execute_state_machine": True}
    # A machine holds its executions, which cannot be copied deeply.
    models.copy = types.SimpleNamespace(deepcopy=lambda value: value)
    lambda_eval_utils.boto_client_for = lambda region, service, state_credentials=None: functions[region]
    # A function's error without a name is named States.TaskFailed here, which this interpreter
    # keeps for itself.
    CustomErrorName.__init__ = lambda self, error_name: ErrorName.__init__(self, error_name=error_name)
    play_time()
    cases = json.load(sys.stdin)
    results = [None] * len(cases)
    free = threading.Semaphore(AT_ONCE)

    def work(number):
        with free:
            results[number] = execute(cases[number], f"case-{number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    json.dump(results, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # executions that timed out have threads of their own


if __name__ == "__main__":
    main()
