"""Compares network.yaml with the parameters of template.yaml that it is for.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import unittest
from pathlib import Path

from samcli.yamlhelper import yaml_parse

TOP = Path(__file__).parent.parent.parent


def load(path):
    return yaml_parse((TOP / path).read_text(encoding="utf-8"))


NETWORK, TEMPLATE = load("infra/network.yaml"), load("template.yaml")
RESOURCES = NETWORK["Resources"]


def of_type(kind):
    return {name: r["Properties"] for name, r in RESOURCES.items() if r["Type"] == "AWS::" + kind}


def subnets_of(output):
    """Returns the logical ids of the subnets that an output joins."""
    return [reference["Ref"] for reference in NETWORK["Outputs"][output]["Value"]["Fn::Join"][1]]


def way_out(subnet):
    """Returns the properties of the route by which a subnet reaches the internet."""
    table = next(p["RouteTableId"] for p in of_type("EC2::SubnetRouteTableAssociation").values() if p["SubnetId"] == {"Ref": subnet})
    return next(p for p in of_type("EC2::Route").values() if p["RouteTableId"] == table)


class Network(unittest.TestCase):
    def test_its_outputs_are_what_the_rules_of_the_stack_ask_for(self):
        wanted = set()
        for name in ("AgentsNeedANetwork", "ServicesNeedALoadBalancer"):
            for assertion in TEMPLATE["Rules"][name]["Assertions"]:
                wanted.add(assertion["AssertDescription"].split("needs ")[1].rstrip("."))
        self.assertEqual(wanted | {"VpcId"}, set(NETWORK["Outputs"]))
        self.assertEqual(NETWORK["Parameters"]["NamePrefix"]["AllowedPattern"], TEMPLATE["Parameters"]["NamePrefix"]["AllowedPattern"])

    def test_functions_and_agents_are_apart(self):
        functions = [r["Properties"]["VpcConfig"] for r in TEMPLATE["Resources"].values() if "VpcConfig" in r["Properties"]]
        self.assertTrue(functions)
        for config in functions:
            self.assertEqual(config.get("Fn::If", [None, config])[1], {"SubnetIds": {"Ref": "FunctionSubnets"}, "SecurityGroupIds": {"Ref": "FunctionSecurityGroups"}})
        self.assertFalse(set(subnets_of("Subnets")) & set(subnets_of("FunctionSubnets")))
        self.assertNotEqual(NETWORK["Outputs"]["SecurityGroups"]["Value"], NETWORK["Outputs"]["FunctionSecurityGroups"]["Value"])

    def test_everything_has_a_way_out_that_is_no_internet_gateway(self):
        for subnet in subnets_of("Subnets") + subnets_of("FunctionSubnets"):
            self.assertIn("NatGatewayId", way_out(subnet), subnet)

    def test_agents_admit_the_load_balancer_only_and_it_admits_functions_only(self):
        agents, balancer, functions = ({"Ref": name} for name in ("AgentGroup", "LoadBalancerGroup", "FunctionGroup"))
        rules = [(p["GroupId"], p["SourceSecurityGroupId"], p["FromPort"], p["ToPort"]) for p in of_type("EC2::SecurityGroupIngress").values()]
        for name, group in of_type("EC2::SecurityGroup").items():
            rules += [({"Ref": name}, rule["SourceSecurityGroupId"], rule["FromPort"], rule["ToPort"]) for rule in group.get("SecurityGroupIngress", [])]
        self.assertCountEqual(rules, [(agents, balancer, 8080, 8080), (balancer, functions, 80, 80)])

    def test_the_load_balancer_is_as_agents_need_it(self):
        balancer, listener = RESOURCES["LoadBalancer"]["Properties"], RESOURCES["Listener"]["Properties"]
        self.assertEqual(balancer["Scheme"], "internal")
        self.assertIn({"Key": "idle_timeout.timeout_seconds", "Value": "4000"}, balancer["LoadBalancerAttributes"])
        self.assertEqual(listener["DefaultActions"], [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "503"}}])


if __name__ == "__main__":
    unittest.main()
