"""Transforms template.yaml as CloudFormation will, and checks what only shows then: whether
streaming routes stream, whether every method asks its authorizer, whether the API has one stage
only, whether everything calls functions by their aliases, and, for each environment of
samconfig.toml, whether the result is within AWS's quotas (quotas.py, concurrency.py) and, for the
longest name of a stack and long values of all parameters, within the bounds of this project.
Nothing is sent anywhere.

Usage: check.py template.yaml
"""

import functools
import json
import sys
import tomllib
from pathlib import Path

import yaml

import aliases
import concurrency
import policies
import quotas
import roles
from transform import transform

# Parameters by which SAM, or a condition, makes more.
EVERYTHING = {"TrafficShift": "Canary10Percent15Minutes"}
COMPUTE = ("lambda", "managed")
OWN = {"/d/{deployment_id}", "/d/{deployment_id}/{proxy+}"}
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "x-amazon-apigateway-any-method"}


@functools.cache
def document(name):
    """Returns an interface document. It is large, and the parser in C reads it in a tenth of the
    time."""
    text = (Path(__file__).parent.parent / "openapi" / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.cache
def open_operations():
    """Returns the (path, method) of each operation that the interface documents declare open to
    everybody, and of the documents themselves."""
    found = set()
    for name, bases in (("controlplane", ["", "/api-host"]), ("agentserver", ["/d/{deployment_id}"])):
        paths = document(name)["paths"]
        operations = [(path, m) for path, item in paths.items() for m in METHODS if item.get(m, {}).get("security") == []]
        operations += [("/openapi.json", "get"), ("/docs", "get")]
        for path, method in operations:
            found.update((base + path, m) for base in bases for m in (method, "x-amazon-apigateway-any-method"))
        # A path with other operations beside an open one has a route of its own for the open one.
        for path, item in paths.items():
            if any(m in METHODS and o.get("security") != [] for m, o in item.items()):
                found.difference_update((base + path, "x-amazon-apigateway-any-method") for base in bases)
    return found


@functools.cache
def streaming_operations():
    """Returns the (path, method) of each operation that streams or waits: its answer is a stream,
    or says where it can be taken up again."""
    found = set()
    for name, bases in (("controlplane", ["", "/api-host"]), ("agentserver", ["/d/{deployment_id}"])):
        for path, item in document(name)["paths"].items():
            for method, operation in ((m, item[m]) for m in METHODS if m in item):
                good = operation.get("responses", {}).get("200", {})
                if "$ref" in good:
                    good = document(name)["components"]["responses"][good["$ref"].rpartition("/")[2]]
                calls = "Tools" in operation["tags"]  # the call of a tool takes as long as its run
                if calls or "Location" in good.get("headers", {}) or "text/event-stream" in good.get("content", {}):
                    found.update((base + path, method) for base in bases)
    return found


def environments():
    with open(Path(__file__).parent.parent.parent / "samconfig.toml", "rb") as file:
        return {name: settings for name, settings in tomllib.load(file).items() if isinstance(settings, dict)}


def api_of(translated, compute):
    """Returns the API as CloudFormation makes it for a value of RunnerCompute, without the methods
    that a condition leaves out."""
    names = policies.names_of(translated, {"RunnerCompute": compute})
    body = next(r for r in translated["Resources"].values() if r["Type"] == "AWS::ApiGateway::RestApi")["Properties"]["Body"]
    api = policies.decide(body, translated, names)
    absent = {"Ref": "AWS::NoValue"}
    api["paths"] = {route: {m: o for m, o in methods.items() if o != absent} for route, methods in api["paths"].items() if methods != absent}
    return api


def check_api(api):
    """Returns what is wrong with an API, how many methods it has, how many of them stream, and its
    resources."""
    everybody, streams = open_operations(), streaming_operations()
    # Own applications of repositories have routes of their own, and their answers may be streams.
    streams_wanted = {route for route, _ in streams} | OWN
    problems, streaming, methods, nodes = [], 0, 0, set()
    for route, operations in api["paths"].items():
        parts = route.strip("/").split("/")
        nodes.update("/".join(parts[: i + 1]) for i in range(len(parts)))
        for method, operation in operations.items():
            if method not in METHODS:
                continue
            methods += 1
            integration = operation["x-amazon-apigateway-integration"]
            uri = json.dumps(integration["uri"])
            wanted = route in streams_wanted
            does = "/2021-11-15/" in uri and "/response-streaming-invocations" in uri
            streaming += does
            if does != wanted or (integration.get("responseTransferMode") == "STREAM") != wanted:
                problems.append(f"{route}: streams: {does}, wanted: {wanted}")
            if integration.get("timeoutInMillis", 29000) != (900000 if wanted else 29000):
                problems.append(f"{route}: timeout {integration.get('timeoutInMillis')}")
            security = [name for entry in operation.get("security", []) for name in entry]
            authorizer = ["NONE"] if (route, method) in everybody else ["Credentials"]
            if security != authorizer:
                problems.append(f"{route}: authorizer {security}, wanted {authorizer}")

    for name, definition in api["components"]["securitySchemes"].items():
        identity = definition["x-amazon-apigateway-authorizer"]
        source = identity.get("identitySource", "")
        ttl = identity["authorizerResultTtlInSeconds"]
        if (name, source, ttl) != ("Credentials", "", 0):
            problems.append(f"authorizer {name}: {source!r} for {ttl} s, wanted Credentials without sources")
    unserved = [(route, m) for route, m in sorted(streams) if not {m, "x-amazon-apigateway-any-method"} & api["paths"].get(route, {}).keys()]
    return problems + [f"{m} {route}: no function serves it" for route, m in unserved], methods, streaming, nodes


def check_stages(resources):
    """Returns a sentence for each deployment that makes a stage by itself. Such a stage answers to
    everybody, and has neither the web ACL nor the throttles and the log of the stack's own stage."""
    deployments = {name: r["Properties"] for name, r in resources.items() if r["Type"] == "AWS::ApiGateway::Deployment"}
    return [f"{name} makes a stage of its own, {deployment['StageName']}" for name, deployment in deployments.items() if "StageName" in deployment]


def main(path):
    translated = transform(path)
    resources = translated["Resources"]
    problems, nodes = [], set()
    for compute in COMPUTE:
        wrong, methods, streaming, found = check_api(api_of(translated, compute))
        problems += wrong
        nodes |= found
        print(f"methods with RunnerCompute={compute}: {methods}, of which {streaming} stream")
    problems += check_stages(resources) + roles.check(resources)
    for environment, settings in environments().items():
        if environment != "default":
            parameters = settings["global"]["parameters"]
            # With everything that a parameter can add.
            overrides = dict(setting.split("=", 1) for setting in settings["deploy"]["parameters"]["parameter_overrides"].split())
            deployed = transform(path, overrides | EVERYTHING)
            problems += aliases.check(deployed["Resources"])
            problems += concurrency.check(deployed, overrides)
            problems += quotas.check(deployed, nodes, parameters["stack_name"], parameters["region"], overrides)
    for template, paths in ((transform(path, EVERYTHING), nodes), (transform(Path(path).parent / "infra" / "network.yaml"), ())):
        problems += quotas.exceeded(template, paths, "s" * quotas.LONGEST_STACK, quotas.LONGEST_REGION)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
