"""Creates, uses, updates and deletes the translated template on LocalStack, an emulation of AWS
that is not ours, and the network. Nothing is sent anywhere else.

Usage: rehearse.py translated.json network.json
"""

import contextlib
import copy
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

import account
from api import ROOT, Api, Failed, await_answer, check_callers, clear, make_key, prove

BUCKET, STACK = "bucket", "slipway"  # the bucket is that of infra/sam/transform.py
# The functions that are called. The other functions get an empty program: LocalStack takes most of
# a stack's time for copies of programs.
CALLED = {"authorizer", "deployments", "rollout"}
PATIENCE = 600  # seconds; on a machine that does nothing else a stack takes one

# LocalStack lacks these types: their resources are left out, so nothing is proven about them.
LACKS = {
    "AWS::CloudWatch::Dashboard": "no dashboards",
    "AWS::CodeBuild::Project": "no builds",
    "AWS::ECS::Cluster": "no containers",
    "AWS::ECS::ClusterCapacityProviderAssociations": "no containers",
    "AWS::EC2::EIP": "no public addresses",
    "AWS::EC2::NatGateway": "no public address to give it",
    "AWS::EC2::Route": "no gateway to name",
    "AWS::EC2::SecurityGroupIngress": "no rules apart from their groups",
    "AWS::ElasticLoadBalancingV2::Listener": "no load balancers",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "no load balancers",
    "AWS::Lambda::EventInvokeConfig": "no destinations of failed calls",
    "AWS::Logs::MetricFilter": "no metrics of log lines",
    "AWS::WAFv2::IPSet": "no firewall",
    "AWS::WAFv2::WebACL": "no firewall",
    "AWS::WAFv2::WebACLAssociation": "no firewall",
}
# Besides, LocalStack moves no alias to another version (Rehearsal.update does), streams no answers
# of functions, deletes what DeletionPolicy retains, and checks neither quotas nor permissions.
# Types that exist only if a parameter asks for them, which the rehearsal does not set: nothing is
# proven of them, either.
UNMADE = {
    "AWS::ApiGateway::BasePathMapping": "DomainName",
    "AWS::ApiGateway::DomainName": "DomainName",
    "AWS::Budgets::Budget": "MonthlyBudget",
    "AWS::CodeDeploy::Application": "TrafficShift",
    "AWS::CodeDeploy::DeploymentGroup": "TrafficShift",
    "AWS::IAM::Policy": "PermissionsBoundary",
    "AWS::Lambda::CapacityProvider": "RunnerCompute",
    "AWS::Route53::RecordSetGroup": "HostedZoneId",
}


class Clients:
    """Makes clients of a LocalStack, and reads its log."""

    def __init__(self, address, log):
        self.address, self.log = address, log
        self.environment = {"AWS_ENDPOINT_URL": f"http://{address}", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}

    def __call__(self, service):
        return boto3.client(
            service, endpoint_url=f"http://{self.address}", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test",
            config=Config(read_timeout=PATIENCE, retries={"total_max_attempts": 1}))

    def lacking(self):
        """Returns the types of which LocalStack says that it does not know them."""
        return set(re.findall(r'No resource provider found for "([^"]+)"', self.log.read_text(encoding="utf-8")))


@contextlib.contextmanager
def localstack():
    """Runs LocalStack in host mode and yields its Clients."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as home:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % free.getsockname()[1]
        free.close()
        programs = Path(sys.executable).parent
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": home, "TMPDIR": home, "LOCALSTACK_VOLUME_DIR": home + "/volume", "FILESYSTEM_ROOT": home + "/files",
            # The newer engine takes references between resources that a condition leaves out for
            # references to nothing.
            "PROVIDER_OVERRIDE_CLOUDFORMATION": "engine-legacy", "GATEWAY_LISTEN": address, "DISABLE_EVENTS": "1", "OVERRIDE_IN_DOCKER": "0", "SKIP_SSL_CERT_DOWNLOAD": "1", "DNS_ADDRESS": "0",
        }
        offer_packages(Path(home) / "files/var/lib/localstack/lib")
        with open(home + "/log", "w+", encoding="utf-8") as log:
            process = subprocess.Popen([sys.executable, Path(__file__).parent / "serve.py"], env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=home)
            try:
                await_ready(process, address)
                yield Clients(address, Path(home) / "log")
            except BaseException:
                log.seek(0)
                print("".join(log.readlines()[-40:]), file=sys.stderr)
                raise
            finally:
                process.terminate()
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def offer_packages(files):
    """Makes LocalStack use installed programs in place of downloads: DynamoDB Local, a Java for it,
    and the server of the tables' streams."""
    libraries = next((ROOT / ".tools" / "dynamodb-local").glob("*/DynamoDBLocal-*.jar")).parent
    java, jar = files / "java/21/bin/java", files / "dynamodb-local/2/DynamoDBLocal.jar"
    for file in (java, jar):
        file.parent.mkdir(parents=True)
    jar.touch()
    streams = files / "kinesis-local/0.4.13"
    streams.parent.mkdir()
    streams.symlink_to(ROOT / ".tools/localstack/kinesis")
    java.write_text(f"""#!/bin/sh
while [ "$1" != -jar ]; do shift; done
shift 2
exec {shutil.which("java")} -Djava.library.path={libraries} -cp '{libraries}/*' software.amazon.dynamodb.services.local.main.ServerRunner "$@"
""")
    java.chmod(0o755)


def await_ready(process, address):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, urllib.error.URLError):
            with urllib.request.urlopen(f"http://{address}/_localstack/health", timeout=5):
                return
        time.sleep(0.2)
    raise Failed(f"LocalStack does not become ready; its exit code is {process.poll()}")


def upload(s3, template):
    """Puts the files that the template names into the bucket, as `sam package` does: definitions of
    state machines, and archives of programs."""
    s3.create_bucket(Bucket=BUCKET)
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        for where in (properties.get("Code"), properties.get("Content")):
            if where and "S3Key" in where:
                s3.put_object(Bucket=BUCKET, Key=where["S3Key"], Body=archive(where["S3Key"]))
        if "DefinitionS3Location" in properties:
            key = properties["DefinitionS3Location"]["Key"]
            s3.put_object(Bucket=BUCKET, Key=key, Body=(ROOT / "infra" / "statemachines" / key).read_bytes())


def archive(function):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        if function in CALLED:
            file.write(ROOT / "build" / function / "bootstrap", "bootstrap")
        else:
            file.writestr("bootstrap", "")
    return content.getvalue()


class Rehearsal:
    """One stack, from its creation to its deletion."""

    def __init__(self, clients, template, name):
        self.clients, self.template, self.name, self.formation = clients, template, name, clients("cloudformation")

    def _call(self, operation, **parameters):
        """Creates or updates the stack. The template is too long for a request."""
        self.clients("s3").put_object(Bucket=BUCKET, Key="template", Body=json.dumps(self.template).encode())
        operation(
            StackName=self.name, TemplateURL=f"{self.formation.meta.endpoint_url}/{BUCKET}/template", Capabilities=["CAPABILITY_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()])

    def _await(self, what):
        try:
            self.formation.get_waiter(what).wait(StackName=self.name, WaiterConfig={"Delay": 1, "MaxAttempts": PATIENCE})
        except WaiterError as error:
            events = self.formation.describe_stack_events(StackName=self.name)["StackEvents"]
            reasons = [f"{e['LogicalResourceId']}: {e['ResourceStatus']}: {e.get('ResourceStatusReason', '')}" for e in events if "FAILED" in e["ResourceStatus"]]
            raise Failed(f"{what}: {reasons or error}") from error

    def create(self, **parameters):
        self._call(self.formation.create_stack, **parameters)
        self._await("stack_create_complete")

    def update(self, **parameters):
        """Updates the stack. On AWS each function then has a new version, to which CloudFormation
        moves the alias; LocalStack does not move it."""
        self._call(self.formation.update_stack, **parameters)
        self._await("stack_update_complete")
        functions = self.clients("lambda")
        for name in self.functions():
            version = functions.publish_version(FunctionName=name)["Version"]
            functions.get_waiter("published_version_active").wait(FunctionName=name, Qualifier=version)
            functions.update_alias(FunctionName=name, Name="live", FunctionVersion=version)

    def delete(self):
        self.formation.delete_stack(StackName=self.name)
        self._await("stack_delete_complete")

    def outputs(self):
        return {o["OutputKey"]: o["OutputValue"] for o in self.formation.describe_stacks(StackName=self.name)["Stacks"][0]["Outputs"]}

    def check_version(self, version):
        if self.versions() != {version}:
            raise Failed(f"functions are of the versions {self.versions()}, want {version}")

    def check_types(self):
        pages = self.formation.get_paginator("list_stack_resources").paginate(StackName=self.name)
        # LocalStack lists resources whose condition is false, too, but without a name.
        made = {resource["ResourceType"] for page in pages for resource in page["StackResourceSummaries"] if "PhysicalResourceId" in resource}
        unmade = {resource["Type"] for resource in self.template["Resources"].values()} - made
        if wrong := (unmade - UNMADE.keys()) | (made & UNMADE.keys()):
            raise Failed(f"the stack has no resources of the types {sorted(unmade)}: correct {sorted(wrong)} in UNMADE")

    def functions(self):
        return [f["FunctionName"] for page in self.clients("lambda").get_paginator("list_functions").paginate() for f in page["Functions"]]

    def versions(self):
        """Returns what the functions say that their version is, as their callers reach them: by the
        alias."""
        functions, found = self.clients("lambda"), set()
        for name in self.functions():
            live = functions.get_alias(FunctionName=name, Name="live")["FunctionVersion"]  # LocalStack knows no function by the name of an alias
            found.add(functions.get_function_configuration(FunctionName=name, Qualifier=live)["Environment"]["Variables"].get("SLIPWAY_VERSION"))
        return found


def gateway(clients, outputs):
    """Returns the API of the stack with these outputs, at its address in LocalStack."""
    api = outputs["ApiUrl"].removeprefix("https://").split(".")[0]
    return Api(f"http://{clients.address}/_aws/execute-api/{api}/v", make_key(outputs, clients.environment))


def records(clients, table):
    """Returns all items of a table, in an order that does not change."""
    pages = clients("dynamodb").get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return sorted((item for page in pages for item in page["Items"]), key=lambda item: json.dumps(item, sort_keys=True, default=str))


def restore(clients, table):
    """Makes a copy of a table as a restore of AWS does, which DynamoDB Local does not have. Returns
    the name of the copy."""
    tables, name = clients("dynamodb"), f"{table}-then"
    described = tables.describe_table(TableName=table)["Table"]
    tables.create_table(
        TableName=name, BillingMode="PAY_PER_REQUEST", KeySchema=described["KeySchema"], AttributeDefinitions=described["AttributeDefinitions"],
        GlobalSecondaryIndexes=[{member: index[member] for member in ("IndexName", "KeySchema", "Projection")} for index in described["GlobalSecondaryIndexes"]])
    for item in records(clients, table):
        tables.put_item(TableName=name, Item=item)
    return name


def use(api):
    """Makes a deployment, follows its rollout to where a stack without a network for agents ends
    it, and deletes the deployment."""
    check_callers(api)
    made = api.call(201, "POST", "/v2/deployments", {
        "name": "rehearsal", "source": "external_docker", "source_config": {}, "source_revision_config": {"image_uri": "registry.example/agent:1"}, "secrets": []})
    revision = f"/v2/deployments/{made['id']}/revisions/{made['latest_revision_id']}"
    await_answer(lambda: api.call(200, "GET", revision), lambda r: r["status"] == "DEPLOY_FAILED" and "VpcId" in r["status_message"], PATIENCE)
    listed = api.call(200, "GET", "/v2/deployments")["resources"]
    if [d["id"] for d in listed] != [made["id"]]:
        raise Failed(f"the list of deployments is {listed}")
    clear(api, PATIENCE)


def without(template):
    """Returns the template without the resources that LocalStack lacks; references to them become
    ARNs."""
    left_out = {name for name, resource in template["Resources"].items() if resource["Type"] in LACKS}

    def named(reference):
        return (reference[0] if isinstance(reference, list) else reference).split(".")[0]

    def arn(name):
        return f"arn:aws:lacking:us-east-1:000000000000:{name}"

    def replace(value):
        if isinstance(value, list):
            return [replace(item) for item in value]
        if isinstance(value, str):
            return re.sub(r"\$\{(\w+)(\.\w+)?\}", lambda m: arn(m[1]) if m[1] in left_out else m[0], value)
        if not isinstance(value, dict):
            return value
        for function in ("Ref", "Fn::GetAtt"):
            if function in value and named(value[function]) in left_out:
                return arn(named(value[function]))
        return {name: replace(item) for name, item in value.items()}

    kept = {name: replace(resource) for name, resource in template["Resources"].items() if name not in left_out}
    for resource in kept.values():
        needs = resource.pop("DependsOn", [])
        resource["DependsOn"] = [name for name in ([needs] if isinstance(needs, str) else needs) if name not in left_out]
    return {**template, "Resources": kept, "Outputs": replace(template["Outputs"])}


def planted(template):
    """Returns the template with a reference to nothing."""
    template = copy.deepcopy(template)
    template["Resources"]["Runs"]["Properties"]["Environment"]["Variables"]["PLANTED"] = {"Fn::GetAtt": ["NoSuch", "Arn"]}
    return template


def rehearse_network(clients, template):
    """Creates and deletes the network of the environment `trial`, and looks whether its outputs are
    parameters of the stack's template."""
    network = Rehearsal(clients, template, "slipwaytrial-network")
    network.create(NamePrefix="slipwaytrial")
    environment = clients.environment | {"PATH": f"{ROOT}/.tools/sam/bin:{os.environ['PATH']}", "SAM_CLI_TELEMETRY": "0"}
    command = [sys.executable, ROOT / "infra/sam/environment.py", "trial", "outputs"]
    told = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.split()
    parameters = dict(parameter.split("=", 1) for parameter in told)
    if parameters != network.outputs() or len(parameters["FunctionSubnets"].split(",")) != 2:
        raise Failed(f"the parameters are {parameters}, the outputs {network.outputs()}")
    network.delete()


def rehearse_account(clients):
    """Runs the parts of account.py that need no account: its proof on a server of this machine, and
    the deletion of what a stack leaves."""
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen([ROOT / "bin" / "slipway", "serve", "--listen", "127.0.0.1:0", "--data", home], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            credentials = Path(home) / "credentials.json"
            await_answer(credentials.exists, bool, PATIENCE)
            made = json.loads(credentials.read_text(encoding="utf-8"))
            server = Api(made["base_url"], made["api_key"])
            prove(server, lambda _: None)
            clear(server, PATIENCE)
        finally:
            process.terminate()
            process.wait()
    s3, functions, tables, keys = (clients(service) for service in ("s3", "lambda", "dynamodb", "kms"))
    s3.create_bucket(Bucket="left")
    s3.put_object(Bucket="left", Key="sources/a", Body=b"a")
    tables.create_table(
        TableName="left", BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}])
    layers = [functions.publish_layer_version(LayerName="left", Content={"ZipFile": archive("layer")})["LayerVersionArn"] for _ in range(2)]
    key = keys.create_key()["KeyMetadata"]["KeyId"]
    missing = ("AWS::S3::Bucket", "missing")
    remaining = account.erase(clients, [
        missing, ("AWS::S3::Bucket", "left"), ("AWS::DynamoDB::Table", "left"), ("AWS::Lambda::LayerVersion", layers[1]), ("AWS::KMS::Key", key)])
    if [resource for resource, _ in remaining] != [missing]:
        raise Failed(f"these could not be deleted: {remaining}, want {missing}")
    left = {
        "buckets": [b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"] == "left"], "tables": tables.list_tables()["TableNames"],
        "layers": functions.list_layer_versions(LayerName="left")["LayerVersions"]}
    if any(left.values()) or keys.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion":
        raise Failed(f"these are left: {left}")


def rehearse(template, network, tell):
    """Creates, uses, updates and deletes the stack, and raises Failed if something is not as it
    should be."""
    with localstack() as clients:
        tell("LocalStack is ready")
        upload(clients("s3"), template)
        rehearse_network(clients, network)
        tell("a network was made and deleted")
        rehearse_account(clients)
        tell("an agent was deployed here, and leavings were deleted")
        try:
            Rehearsal(clients, planted(template), STACK + "-planted").create()
        except (Failed, ClientError) as error:
            if "NoSuch" not in str(error):
                raise
        else:
            raise Failed("a reference to nothing was taken for a reference to something")
        tell("a template with a reference to nothing is refused")
        stack = Rehearsal(clients, template, STACK)
        stack.create(Version="first")
        tell("the stack is there in its first version")
        stack.check_types()
        stack.check_version("first")
        api = gateway(clients, stack.outputs())
        use(api)
        tell("a deployment was made, rolled out and deleted")
        original = stack.outputs()["TableName"]
        copy_of_table = restore(clients, original)
        stack.update(Version="second", TableNameOverride=copy_of_table)
        tell("the stack is there in its second version, with a copy of its table")
        stack.check_version("second")
        if stack.outputs()["TableName"] != copy_of_table:
            raise Failed(f"the outputs are {stack.outputs()}, and the table is {copy_of_table}")
        before = records(clients, original)
        gateway(clients, stack.outputs())  # the workspace is there already
        use(api)  # keys outlive updates, and are in the copy
        if records(clients, original) != before:
            raise Failed(f"something was written to {original}, which {copy_of_table} has replaced")
        tell("a deployment was made, rolled out and deleted in the copy, and the original is as it was")
        stack.delete()
        tell("the stack is deleted")
        if stack.functions():
            raise Failed("functions are left")
        if unlisted := clients.lacking():
            raise Failed(f"LocalStack lacks {sorted(unlisted)}, too")


def main(*paths):
    began = time.monotonic()
    templates = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    if unused := LACKS.keys() - {resource["Type"] for template in templates for resource in template["Resources"].values()}:
        raise Failed(f"the templates have no {sorted(unused)}")
    rehearse(*map(without, templates), lambda what: print(f"{time.monotonic() - began:4.0f} s  {what}", flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
