"""Plants a role without a bound in a small translated template, and looks whether roles.py tells of
it.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import unittest

import roles


def either(own):
    """Returns the boundary that a role has by itself, or by the parameter."""
    return {"PermissionsBoundary": {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundary"}, own]}}


def stack(boundary, not_resource="arn:${AWS::Partition}:logs:*:*:log-group:/aws/lambda/${NamePrefix}-*", more=(), policy="AWSLambdaBasicExecutionRole"):
    role = {"ManagedPolicyArns": [{"Fn::Sub": f"arn:${{AWS::Partition}}:iam::aws:policy/service-role/{name}"} for name in {"AWSLambdaBasicExecutionRole", policy}], **boundary}
    deny = {"Effect": "Deny", "Action": sorted(roles.WRITES), "NotResource": [{"Fn::Sub": not_resource}]}
    return {
        "Work": {"Type": "AWS::Lambda::Function", "Properties": {"Role": {"Fn::GetAtt": ["WorkRole", "Arn"]}}},
        "WorkRole": {"Type": "AWS::IAM::Role", "Properties": role},
        "Denials": {"Type": "AWS::IAM::Policy", "Condition": "HasBoundary", "Properties": {
            "PolicyDocument": {"Statement": [deny, *more]}, "Roles": [{"Ref": "WorkRole"}]}},
        "Bound": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}, deny, *more]}}},
    }


class Roles(unittest.TestCase):
    def test_a_bounded_role_is_right(self):
        self.assertEqual(roles.check(stack(either({"Ref": "Bound"}))), [])

    def test_a_role_without_a_bound_is_told(self):
        self.assertIn("Work: its role WorkRole may write to all log groups of the account", roles.check(stack(either({"Ref": "AWS::NoValue"}))))

    def test_a_role_that_cannot_have_the_boundary_of_an_organization_is_told(self):
        for boundary in ({"PermissionsBoundary": {"Ref": "Bound"}}, {"PermissionsBoundary": {"Fn::If": ["Other", {"Ref": "PermissionsBoundary"}, {"Ref": "Bound"}]}}):
            self.assertEqual(len(roles.check(stack(boundary))), 1)
        self.assertEqual(len(roles.check(stack(either({"Ref": "Bound"})) | {"Other": {"Type": "AWS::IAM::Role", "Properties": {}}})), 1)

    def test_denials_that_an_organization_s_boundary_would_replace_are_told(self):
        def without(**properties):
            resources = stack(either({"Ref": "Bound"}))
            resources["Denials"]["Properties"] |= properties
            return resources

        for resources in (without(Roles=[{"Ref": "OtherRole"}]), without(PolicyDocument={"Statement": []}), without() | {"Denials": {"Type": "AWS::SNS::Topic"}}):
            self.assertEqual(len(roles.check(resources)), 1)

    def test_a_bound_that_spares_all_groups_is_told(self):
        self.assertEqual(len(roles.check(stack(either({"Ref": "Bound"}), "arn:${AWS::Partition}:logs:*:*:log-group:*"))), 1)

    def test_a_function_in_a_network_must_not_change_its_interfaces(self):
        bound, functions = either({"Ref": "Bound"}), {"Fn::Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*"}
        deny = {"Effect": "Deny", "Action": sorted(roles.INTERFACES), "Resource": "*", "Condition": {"ArnLike": {"lambda:SourceFunctionArn": functions}}}
        for more, problems in (([], 1), ([deny], 0), ([deny | {"Action": ["ec2:CreateNetworkInterface"]}], 1), ([{**deny, "Condition": {}}], 1)):
            with self.subTest(more):
                self.assertEqual(len(roles.check(stack(bound, more=more, policy="AWSLambdaVPCAccessExecutionRole"))), problems)


if __name__ == "__main__":
    unittest.main()
