"""Looks whether policies.py finds what a role allows in a small translated template.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import unittest

import policies


def document(resource):
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["a:B"], "Resource": resource}]}


def resource(kind, **properties):
    return {"Type": kind, "Properties": properties}


TRANSLATED = {
    "Parameters": {"App": {"Default": ""}, "Subnets": {}},
    "Conditions": {
        "HasApp": {"Fn::Not": [{"Fn::Equals": [{"Ref": "App"}, ""]}]},
        "HasBoth": {"Fn::And": [{"Condition": "HasApp"}, {"Fn::Equals": [{"Fn::Join": ["", {"Ref": "Subnets"}]}, ""]}]},
    },
    "Resources": {
        "Key": resource("AWS::KMS::Key", KeyPolicy=document("*")),
        "Table": resource("AWS::DynamoDB::Table"),
        "Bound": resource("AWS::IAM::ManagedPolicy", PolicyDocument=document("*")),
        "Shared": resource("AWS::IAM::ManagedPolicy", PolicyDocument=document([{"Fn::Sub": "${Table.Arn}/index/*"}])),
        "Work": resource("AWS::Lambda::Function", Role={"Fn::GetAtt": ["WorkRole", "Arn"]}),
        "WorkRole": resource(
            "AWS::IAM::Role", ManagedPolicyArns=["arn:aws:iam::aws:policy/Logs", {"Ref": "Shared"}], PermissionsBoundary={"Ref": "Bound"},
            Policies=[{"Fn::If": ["HasBoth", {"PolicyDocument": document({"Ref": "App"})}, {"Ref": "AWS::NoValue"}]}]),
    },
}


class Policies(unittest.TestCase):
    def test_a_role_has_its_own_policies_and_those_that_it_shares(self):
        found = policies.policies(TRANSLATED, {"App": "arn:app"})
        table = "arn:aws:dynamodb:us-east-1:000000000000:table/slipway/index/*"
        self.assertEqual(found["roles"], {"Work": {"policies": [document("arn:app"), document([table])], "boundary": document("*")}})
        self.assertEqual(found["resources"], {"arn:aws:kms:us-east-1:000000000000:key/Key": document("*")})

    def test_a_policy_is_not_there_whose_condition_is_false(self):
        self.assertEqual(len(policies.policies(TRANSLATED, {})["roles"]["Work"]["policies"]), 1)


if __name__ == "__main__":
    unittest.main()
