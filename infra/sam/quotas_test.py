"""Plants a fault of each kind in a small translated template, and looks whether quotas.py tells of
it.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import quotas


def permission():
    return {"Type": "AWS::Lambda::Permission", "Properties": {
        "FunctionName": {"Ref": "Work"}, "Action": "lambda:InvokeFunction", "Principal": "apigateway.amazonaws.com",
        "SourceArn": {"Fn::Sub": "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Api}/*/GET/v2/deployments"}}}


def policy(statements):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": f"arn:aws:s3:::{n}/*"} for n in range(statements)]}


def role(**properties):
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": policy(1), **properties}}


def machine(**properties):
    return {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}


def stack(**resources):
    return {"Resources": resources}


class Quotas(unittest.TestCase):
    def problems(self, translated, nodes=(), **overrides):
        with contextlib.redirect_stdout(io.StringIO()):
            return quotas.check(translated, set(nodes), "slipway-dev", "us-east-1", overrides)

    def test_a_small_stack_is_within_all_quotas(self):
        self.assertEqual(self.problems(stack(Role=role(Policies=[{"PolicyDocument": policy(3)}]), P=permission())), [])

    def test_each_fault_is_told(self):
        faults = {
            "resource policy of Work": stack(**{f"P{n}": permission() for n in range(60)}),
            "resources of the stack": stack(**{f"T{n}": {"Type": "AWS::SNS::Topic"} for n in range(401)}),
            "inline policies of Role": stack(Role=role(Policies=[{"PolicyDocument": policy(150)}])),
            "trust policy of Role": stack(Role=role(AssumeRolePolicyDocument=policy(40))),
            "managed policies of Role": stack(Role=role(ManagedPolicyArns=["arn"] * 9)),
            "managed policy Policy": stack(Policy={"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": policy(100)}}),
            "policy of Key": stack(Key={"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": policy(450)}}),
            "policy of Bucket": stack(Bucket={"Type": "AWS::S3::BucketPolicy", "Properties": {"PolicyDocument": policy(250)}}),
            "policy of Queue": stack(Queue={"Type": "AWS::SQS::QueuePolicy", "Properties": {"PolicyDocument": policy(100)}}),
            "environment of Work": stack(Work={"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"V": "x" * 3300}}}}),
            "metrics of the alarm Alarm": stack(Alarm={"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": [{"MetricStat": {}}] * 9}}),
            "alarms of Group": stack(Group={"Type": "AWS::CodeDeploy::DeploymentGroup", "Properties": {"AlarmConfiguration": {"Alarms": [{}] * 9}}}),
            "definition of Machine": stack(Machine={"Type": "AWS::StepFunctions::StateMachine", "Properties": {"DefinitionString": "x" * 900_000}}),
            "StateMachineName of Machine": stack(Machine=machine(StateMachineName={"Fn::Sub": "${NamePrefix}-" + "x" * 60})),
            "FunctionName of Work": stack(Work={"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": {"Fn::Sub": "${AWS::StackName}-" + "x" * 29}}}),
            "Budget.BudgetName of Budget": stack(Budget={"Type": "AWS::Budgets::Budget", "Properties": {"Budget": {"BudgetName": {
                "Fn::Sub": ["${NamePrefix}-${AWS::Region}-xxxxxxxxx-${Topic}", {"Topic": {"Fn::Select": [5, {"Fn::Split": [":", {"Ref": "AlarmTopic"}]}]}}]}}}}),
            "Name of Stream, for which NAMES has no bound": stack(Stream={"Type": "AWS::Kinesis::Stream", "Properties": {"Name": "a"}}),
            "KeyPairName of Pair, for which NAMES has no bound": stack(Pair={"Type": "AWS::EC2::KeyPair", "Properties": {"KeyPairName": "a"}}),
            "characters of NamePrefix": {"Parameters": {"NamePrefix": {"AllowedPattern": "^[a-z]{1,22}$"}}, "Resources": {}},
            "name of AVeryLongRolexxxx that a policy names": stack(Role=role(Policies=[{"PolicyDocument": {
                "Statement": [{"Resource": {"Fn::Sub": "arn:aws:iam::1:role/${AWS::StackName}-AVeryLongRole" + "x" * 4 + "-*"}}]}}])),
            "bytes of the template": stack(Big={"Type": "AWS::SNS::Topic", "Metadata": "x" * 900_000}),
        }
        for what, translated in faults.items():
            with self.subTest(what):
                self.assertIn(what, " ".join(self.problems(translated)))

    def test_an_environment_has_room_for_the_longest_names_and_values(self):
        def told(value, parameter, **overrides):
            translated = stack(Work={"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": {"V": value}}}}, Role=role())
            problems = self.problems({"Parameters": {"Quotas": {"Type": "String"}, "P": {"Type": "String"} | parameter}, **translated}, **overrides)
            return "more than 80 %" in " ".join(problems), "environment of Work with the longest names" in " ".join(problems), "P in environments" in " ".join(problems)

        p, x = {"Ref": "P"}, "x" * 3000
        for value, parameter, wanted in (
            (x, {}, (False, False, False)),
            ({"Fn::Sub": x + "${P}"}, {"AllowedValues": ["a", "b" * 1100]}, (False, True, False)),
            ({"Fn::Sub": x + "${P}"}, {"AllowedValues": ["a", "b" * 1000]}, (False, False, False)),
            ({"Fn::Sub": "x" * 3280 + "${P}"}, {"Type": "Number", "Default": 1}, (True, False, False)),
            ([p], {}, (False, False, True)),
            ({"Fn::Sub": x + "${P}"}, {}, (False, False, True)),
            ({"Fn::Join": ["", ["x" * 3920, {"Ref": "Quotas"}]]}, {}, (True, False, False)),
            ({"Fn::Join": ["", ["x" * 3940, {"Ref": "Quotas"}]]}, {}, (True, True, False)),
            ({"Fn::Join": ["", ["x" * 3990, {"Fn::GetAtt": ["Role", "Arn"]}]]}, {}, (True, False, False)),
            ({"Fn::Join": ["", ["x" * 4030, {"Fn::GetAtt": ["Role", "Arn"]}]]}, {}, (True, True, False)),
        ):
            with self.subTest(str(value)[-60:], parameter=parameter):
                self.assertEqual(told(value, parameter), wanted)
        self.assertEqual(told(p, {"AllowedValues": [""]}, P="x" * 3300), (True, False, False))

    def test_an_alias_has_a_policy_of_its_own(self):
        permissions = {f"P{n}": permission() for n in range(50)}
        for n, p in enumerate(permissions.values()):
            p["Properties"]["FunctionName"] = {"Ref": "WorkAliaslive" if n % 2 else "Work"}
        alias = {"Type": "AWS::Lambda::Alias", "Properties": {"Name": "live", "FunctionName": {"Ref": "Work"}}}
        self.assertEqual(self.problems(stack(WorkAliaslive=alias, **permissions)), [])

    def test_too_many_paths_of_the_api_are_told(self):
        self.assertEqual(self.problems(stack(), range(150)), [])
        self.assertIn("resources of the API: 151, more than 150", " ".join(self.problems(stack(), range(151))))

    def test_names_of_the_longest_prefix_fit(self):
        self.assertEqual(self.problems({"Parameters": {"NamePrefix": {"AllowedPattern": "^[a-z][a-z0-9]{0,20}$"}}, "Resources": {
            "Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": {
                "DefinitionString": "", "StateMachineName": {"Fn::Sub": "${NamePrefix}" + "x" * 59}}},
            "Role": role(Policies=[{"PolicyDocument": {"Statement": [{"Resource": {"Fn::Sub": "role/${AWS::StackName}-DeploymentsRole-*"}}]}}])}}), [])

    def test_half_of_a_resource_policy_is_the_bound(self):
        self.assertEqual(self.problems(stack(**{f"P{n}": permission() for n in range(25)})), [])
        self.assertIn("resource policy of Work", " ".join(self.problems(stack(**{f"P{n}": permission() for n in range(30)}))))

    def test_definitions_are_read_from_their_files(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "run.asl.json").write_text("x" * 800_000 + "${Function}", encoding="utf-8")
            with mock.patch.object(quotas, "MACHINES", Path(folder)):
                for arn, wanted in (("a" * 10_000, False), ("a" * 50_000, True)):
                    problems = self.problems(stack(Machine=machine(DefinitionS3Location={"Bucket": "b", "Key": "run.asl.json"}, DefinitionSubstitutions={"Function": arn})))
                    self.assertEqual(bool(problems), wanted, problems)


if __name__ == "__main__":
    unittest.main()
