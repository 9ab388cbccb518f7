"""Plants callers that skip an alias in a small translated template, and looks whether aliases.py
tells of them.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import collections
import copy
import os
import sys
import unittest
from pathlib import Path

import aliases
from transform import transform

URI = "arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/%s/invocations"
STACK = {
    "Work": {"Type": "AWS::Lambda::Function", "Properties": {}},
    "WorkVersion1": {"Type": "AWS::Lambda::Version", "Properties": {"FunctionName": {"Ref": "Work"}}},
    "WorkAliaslive": {"Type": "AWS::Lambda::Alias", "Properties": {"Name": "live", "FunctionName": {"Ref": "Work"}, "FunctionVersion": {"Fn::GetAtt": ["WorkVersion1", "Version"]}}},
    "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Body": {"uri": {"Fn::Sub": URI % "${WorkAliaslive}"}}}},
    "Permission": {"Type": "AWS::Lambda::Permission", "Properties": {"FunctionName": {"Ref": "WorkAliaslive"}, "Principal": "apigateway.amazonaws.com"}},
    "Rule": {"Type": "AWS::Events::Rule", "Properties": {"Targets": [{"Arn": {"Ref": "WorkAliaslive"}}]}},
    "RulePermission": {"Type": "AWS::Lambda::Permission", "Properties": {"FunctionName": {"Ref": "WorkAliaslive"}, "Principal": "events.amazonaws.com"}},
    "Config": {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": {"FunctionName": {"Ref": "Work"}, "Qualifier": "live"}},
    "Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"DefinitionSubstitutions": {"Work": {"Ref": "WorkAliaslive"}}}},
    "MachineRole": {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": {"Statement": [{"Resource": {"Ref": "WorkAliaslive"}}]}}]}},
    "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Dimensions": [{"Name": "FunctionName", "Value": {"Ref": "Work"}}]}},
}
FUNCTION = {"Fn::GetAtt": ["Work", "Arn"]}


def shifted(stack, watched="WorkVersion1", alarms=("Errors",), may="Work", action="lambda:UpdateAlias"):
    """Adds to a stack what shifts the calls of its function."""
    stack["WorkAliaslive"]["UpdatePolicy"] = {"CodeDeployLambdaAliasUpdate": {"DeploymentGroupName": {"Ref": "Group"}}}
    stack["Group"] = {"Type": "AWS::CodeDeploy::DeploymentGroup", "Properties": {
        "AlarmConfiguration": {"Alarms": [{"Name": {"Ref": name}} for name in alarms]}, "ServiceRoleArn": {"Fn::GetAtt": ["ShiftRole", "Arn"]}}}
    pattern = "arn:aws:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-%s-*:live" % may
    stack["ShiftRole"] = {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyDocument": {"Statement": [{"Action": [action], "Resource": [{"Fn::Sub": pattern}]}]}}]}}
    dimensions = [{"Name": "ExecutedVersion", "Value": {"Fn::GetAtt": [watched, "Version"]}}]
    stack["Errors"] = {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": [{"MetricStat": {"Metric": {"Dimensions": dimensions}}}]}}


class Aliases(unittest.TestCase):
    def problems(self, change=lambda stack: None):
        stack = copy.deepcopy(STACK)
        change(stack)
        return aliases.check(stack)

    def test_callers_of_aliases_are_right(self):
        self.assertEqual(self.problems(), [])

    def test_each_caller_of_a_function_is_told(self):
        changes = {
            "Api": lambda s: s["Api"]["Properties"]["Body"].update(uri={"Fn::Sub": URI % "${Work.Arn}"}),
            "Permission": lambda s: s["Permission"]["Properties"].update(FunctionName=FUNCTION),
            "Rule": lambda s: s["Rule"]["Properties"].update(Targets=[{"Arn": FUNCTION}]),
            "Machine": lambda s: s["Machine"]["Properties"].update(DefinitionSubstitutions={"Work": FUNCTION}),
            "MachineRole": lambda s: s["MachineRole"]["Properties"].update(Policies=[{"PolicyDocument": {"Statement": [{"Resource": FUNCTION}]}}]),
            "Config": lambda s: s["Config"]["Properties"].pop("Qualifier"),
        }
        for caller, change in changes.items():
            with self.subTest(caller):
                self.assertIn(caller, " ".join(self.problems(change)))

    def test_a_function_without_an_alias_is_told(self):
        self.assertIn("Work has no alias live", self.problems(lambda s: s["WorkAliaslive"]["Properties"].update(Name="other")))

    def test_a_new_version_that_no_alarm_of_its_deployment_watches_is_told(self):
        self.assertEqual(self.problems(shifted), [])
        for change in (lambda s: shifted(s, watched="OtherVersion1"), lambda s: shifted(s, alarms=())):
            self.assertEqual(self.problems(change), ["no alarm of the deployment watches the new version of Work"])

    def test_a_function_whose_calls_codedeploy_may_not_shift_is_told(self):
        for change in (lambda s: shifted(s, may="Other"), lambda s: shifted(s, action="lambda:GetAlias")):
            self.assertEqual(self.problems(change), ["the role of CodeDeploy may not shift the calls of Work"])

    def test_an_alias_that_does_not_admit_its_caller_is_told(self):
        self.assertEqual(len(self.problems(lambda s: s.pop("Permission"))), 1)
        self.assertEqual(len(self.problems(lambda s: s["RulePermission"]["Properties"].update(Principal="apigateway.amazonaws.com"))), 1)


class Versions(unittest.TestCase):
    """What SAM publishes, which is why `make deploy` writes a checksum of the parameters beside the
    code."""

    def versions(self, code="", **parameters):
        translated = transform("template.yaml", parameters, code)
        return {name for name, resource in translated["Resources"].items() if resource["Type"] == "AWS::Lambda::Version"}

    def test_new_code_is_published_and_a_new_parameter_alone_is_not(self):
        before = self.versions()
        self.assertEqual(len(before), 19)
        self.assertEqual(before & self.versions(code="other-"), set())
        self.assertEqual(before, self.versions(Quotas="threads=1"))

    def test_traffic_is_shifted_only_if_a_parameter_says_so(self):
        def groups(shift):
            return [r for r in transform("template.yaml", {"TrafficShift": shift})["Resources"].values() if r["Type"].startswith("AWS::CodeDeploy::")]
        self.assertEqual(len(groups("none")), 0)
        shifting = groups("AllAtOnce")
        self.assertEqual(len(shifting), 18)
        # No alarm that a broken agent sets off takes a deployment back.
        alarms = {name for r in shifting for name in aliases.references(r["Properties"].get("AlarmConfiguration", {})) if name.endswith("Alarm")}
        self.assertEqual(alarms, {"NewApiAlarm", "NewControlPlaneAlarm", "NewAgentServerAlarm", "NewWorkersAlarm"})


class SamLocal(unittest.TestCase):
    def test_it_finds_the_authorizer_of_each_route_that_has_one(self):
        sys.path.insert(0, str(Path(__file__).parents[2] / "internal/test/emulator/sam"))
        os.environ["SAM_CLI_TELEMETRY"] = "0"
        import sam
        from samcli.lib.providers.api_provider import ApiProvider
        from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
        sam.change()
        stacks, _ = SamLocalStackProvider.get_stacks("template.yaml")
        routes = ApiProvider(stacks).api.routes
        found = collections.Counter(route.authorizer_object.lambda_name for route in routes if route.authorizer_object)
        open_to_all = [route for route in routes if route.authorizer_object is None]
        self.assertEqual(set(found), {"Authorizer"})
        self.assertLess(len(open_to_all), found["Authorizer"] / 3)


if __name__ == "__main__":
    unittest.main()
