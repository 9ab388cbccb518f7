"""Runs LocalStack on this machine, with two things that its free edition lacks: functions run as
processes, and API Gateway asks authorizers.

A process asks for events as Lambda's runtime API prescribes
(https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html). An authorizer gets and answers
what
https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-lambda-authorizer-input.html
describes.
"""

import json
import queue
import subprocess
import threading
from concurrent.futures import Future

from localstack.runtime.main import main
from localstack.aws.connect import connect_to
from localstack.services.apigateway.next_gen.execute_api import handlers
from localstack.services.apigateway.next_gen.execute_api.gateway_response import AccessDeniedError, AuthorizerConfigurationError, UnauthorizedError
from localstack.services.apigateway.next_gen.execute_api.integrations.aws import RestApiAwsProxyIntegration
from localstack.services.cloudformation.engine import template_deployer
from localstack.services.lambda_.invocation.docker_runtime_executor import DockerRuntimeExecutor
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.services.lambda_.invocation.plugins import DockerRuntimeExecutorPlugin
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

VERSION = "/2018-06-01/runtime/"
STOPPED = object()  # an event that ends the wait of a process


class Silent(WSGIRequestHandler):
    """Logs no requests."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


class ProcessExecutor(DockerRuntimeExecutor):
    """Runs one environment of a function: a process of its `bootstrap`, and the runtime API that it
    asks."""

    def __init__(self, id, function_version):
        super().__init__(id, function_version)
        self.events, self.ready, self.answers = queue.Queue(), Future(), {}
        self.server = make_server("127.0.0.1", 0, self.answer, threaded=True, request_handler=Silent)
        self.process = None

    @classmethod
    def prepare_version(cls, function_version):
        function_version.config.code.prepare_for_execution()

    def start(self, env_vars):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        bootstrap = self.function_version.config.code.get_unzipped_code_location() / "bootstrap"
        environment = {name: str(value) for name, value in env_vars.items()} | {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.server.server_port}"}
        self.process = subprocess.Popen([bootstrap], env=environment, cwd=bootstrap.parent)
        threading.Thread(target=self.watch, daemon=True).start()
        self.ready.result()

    def watch(self):
        """Ends what waits for a process that has ended."""
        code = self.process.wait()
        for waiting in (self.ready, *self.answers.values()):
            if not waiting.done():
                waiting.set_exception(RuntimeError(f"{self.function_version.id.function_name} ended with exit code {code}"))

    def invoke(self, payload):
        answer = self.answers[payload["invoke-id"]] = Future()
        self.events.put(payload)
        return answer.result()

    def stop(self):
        if self.process:
            self.process.terminate()
        self.events.put(STOPPED)
        self.server.shutdown()

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return "unused"

    def get_logs(self):
        return ""

    @Request.application
    def answer(self, request):
        """Answers one request of the runtime API."""
        match request.path.removeprefix(VERSION).split("/"):
            case ["invocation", "next"]:
                return self.next()
            case ["invocation", invocation, "response" | "error" as kind]:
                self.answers.pop(invocation).set_result(InvocationResult(invocation, request.get_data(), is_error=kind == "error", logs=""))
            case ["init", "error"]:
                self.ready.set_exception(RuntimeError(request.get_data(as_text=True)))
            case _:
                return Response(status=404)
        return Response(status=202)

    def next(self):
        if not self.ready.done():
            self.ready.set_result(True)
        event = self.events.get()
        if event is STOPPED:
            return Response(status=410)
        return Response(event["payload"], headers={
            "Lambda-Runtime-Aws-Request-Id": event["invoke-id"],
            "Lambda-Runtime-Deadline-Ms": "99999999999999",
            "Lambda-Runtime-Invoked-Function-Arn": event["invoked-function-arn"],
            "Lambda-Runtime-Trace-Id": event["trace-id"],
        })


def authorize(_, context, __):
    """Asks the authorizer of a method, and gives its context to the integration. It caches no
    answer."""
    authorizer = context.deployment.rest_api.authorizers.get(context.resource_method.get("authorizerId"))
    if not authorizer:
        return
    request = context.invocation_request
    if any(not request["headers"].get(source.split(".")[-1]) for source in filter(None, authorizer.get("identitySource", "").split(","))):
        raise UnauthorizedError()
    method = f"arn:aws:execute-api:{context.region}:{context.account_id}:{context.api_id}/{context.stage}/{request['http_method']}{request['path']}"
    context.integration_request = {"headers": request["headers"], "body": b""}
    event = RestApiAwsProxyIntegration().create_lambda_input_event(context) | {"type": "REQUEST", "methodArn": method}
    function = authorizer["authorizerUri"].split("/functions/")[1].removesuffix("/invocations")
    answer = connect_to(region_name=context.region).lambda_.invoke(FunctionName=function, Payload=json.dumps(event).encode())
    decision = json.load(answer["Payload"])
    if answer.get("FunctionError"):
        raise UnauthorizedError() if decision.get("errorMessage") == "Unauthorized" else AuthorizerConfigurationError()
    if any(statement["Effect"] != "Allow" for statement in decision["policyDocument"]["Statement"]):
        raise AccessDeniedError()
    context.context_variables["authorizer"] = decision.get("context", {}) | {"principalId": decision["principalId"]}


handlers.preprocess_request.append(authorize)
DockerRuntimeExecutorPlugin.load = lambda *_: ProcessExecutor
# These two call each other for each value of the template, and both look at the whole stack of
# calls, source lines included: most of what a stack costs. Python ends an endless recursion itself.
for name in ("resolve_refs_recursively", "_resolve_refs_recursively"):
    setattr(template_deployer, name, getattr(template_deployer, name).__wrapped__)
main()
