"""Evaluates the section Rules of template.yaml as CloudFormation documents it ("Rule-specific
intrinsic functions"), for parameters that belong together and for parameters that do not.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import unittest
from pathlib import Path

from samcli.yamlhelper import yaml_parse

TEMPLATE = yaml_parse((Path(__file__).parent.parent.parent / "template.yaml").read_text(encoding="utf-8"))
NETWORK = {"VpcId": "vpc", "Subnets": "a,b", "SecurityGroups": "sg", "FunctionSubnets": "c,d", "FunctionSecurityGroups": "sg-functions"}
AGENTS = NETWORK | {"AlbListenerArn": "arn", "AlbUrl": "http://alb"}


def value_of(argument, parameters):
    """Returns the value of an argument of a rule's function: a literal, or a parameter."""
    if not isinstance(argument, dict):
        return argument
    declared = TEMPLATE["Parameters"][argument["Ref"]]
    value = str(parameters.get(argument["Ref"], declared.get("Default", "")))
    return value.split(",") if declared["Type"] == "CommaDelimitedList" else value


def holds(condition, parameters):
    (function, arguments), = condition.items()
    if function in ("Fn::And", "Fn::Or", "Fn::Not"):
        results = [holds(argument, parameters) for argument in arguments]
        return {"Fn::And": all(results), "Fn::Or": any(results), "Fn::Not": not results[0]}[function]
    left, right = (value_of(argument, parameters) for argument in arguments)
    return {
        "Fn::Equals": lambda: left == right,
        "Fn::EachMemberEquals": lambda: all(member == right for member in left),
        "Fn::Contains": lambda: right in left,
    }[function]()


def refusals(parameters):
    """Returns why CloudFormation refuses a stack with these parameters; the others have their
    defaults."""
    rules = TEMPLATE["Rules"].values()
    return [a["AssertDescription"] for rule in rules if holds(rule["RuleCondition"], parameters) for a in rule["Assertions"] if not holds(a["Assert"], parameters)]


class Rules(unittest.TestCase):
    def test_parameters_that_belong_together(self):
        for parameters in (
            {}, AGENTS, NETWORK | {"ComputeKind": "express"}, AGENTS | {"RunnerCompute": "managed"},
            {"FunctionSubnets": "c,d", "FunctionSecurityGroups": "sg-functions"},
            {"DomainName": "api.test", "CertificateArn": "arn"}, {"CdnNetworks": "192.0.2.0/24", "ClientAddressHeader": "CF-Connecting-IP"},
            {"MonthlyBudget": "100", "AlarmTopic": "arn"},
        ):
            with self.subTest(parameters):
                self.assertEqual(refusals(parameters), [])

    def test_each_assertion_refuses_what_it_says(self):
        broken = {
            "VpcId needs Subnets.": AGENTS | {"Subnets": ""},
            "VpcId needs SecurityGroups.": AGENTS | {"SecurityGroups": ""},
            "VpcId needs FunctionSubnets.": AGENTS | {"FunctionSubnets": ""},
            "VpcId needs FunctionSecurityGroups.": AGENTS | {"FunctionSecurityGroups": ""},
            "FunctionSubnets needs FunctionSecurityGroups.": {"FunctionSubnets": "c,d"},
            "ComputeKind=ecs with VpcId needs AlbListenerArn.": AGENTS | {"AlbListenerArn": ""},
            "ComputeKind=ecs with VpcId needs AlbUrl.": AGENTS | {"AlbUrl": ""},
            "RunnerCompute=managed needs FunctionSubnets.": {"RunnerCompute": "managed", **NETWORK, "VpcId": "", "FunctionSubnets": ""},
            "RunnerCompute=managed needs FunctionSecurityGroups.": {"RunnerCompute": "managed", **NETWORK, "VpcId": "", "FunctionSecurityGroups": ""},
            "RunnerCompute=managed needs VpcId.": {"RunnerCompute": "managed", **NETWORK, "VpcId": ""},
            "DomainName needs CertificateArn.": {"DomainName": "api.test"},
            "ClientAddressHeader needs CdnNetworks.": {"ClientAddressHeader": "CF-Connecting-IP"},
            "CdnNetworks needs ClientAddressHeader.": {"CdnNetworks": "192.0.2.0/24"},
            "MonthlyBudget needs AlarmTopic.": {"MonthlyBudget": "100"},
        }
        forged = next(a["AssertDescription"] for a in TEMPLATE["Rules"]["ClientsBehindACdn"]["Assertions"] if "X-Forwarded-For" in a["AssertDescription"])
        broken[forged] = {"CdnNetworks": "192.0.2.0/24", "ClientAddressHeader": "X-Forwarded-For"}
        for description, parameters in broken.items():
            with self.subTest(description):
                self.assertIn(description, refusals(parameters))
        self.assertEqual(set(broken), {a["AssertDescription"] for rule in TEMPLATE["Rules"].values() for a in rule["Assertions"]})


if __name__ == "__main__":
    unittest.main()
