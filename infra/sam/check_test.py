"""Plants a fault of each kind in the API of the translated template, and looks whether check.py
tells of it.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import copy
import unittest
from pathlib import Path

import check
from transform import transform

TRANSLATED = transform(Path(__file__).parent.parent.parent / "template.yaml")


class Api(unittest.TestCase):
    def setUp(self):
        self.api = copy.deepcopy(check.api_of(TRANSLATED, "lambda"))

    def problems(self):
        return " ".join(check.check_api(self.api)[0])

    def operation(self, **wanted):
        """Returns the (route, operation) of some operation that streams, or asks nobody."""
        for route, operations in self.api["paths"].items():
            for operation in (o for m, o in operations.items() if m in check.METHODS):
                streams = operation["x-amazon-apigateway-integration"].get("responseTransferMode") == "STREAM"
                if wanted == {"streams": streams} and operation.get("security"):
                    return route, operation
        self.fail(f"there is no operation with {wanted}")

    def test_the_template_has_no_fault(self):
        self.assertEqual(self.problems(), "")

    def test_a_route_without_its_authorizer(self):
        route, operation = self.operation(streams=False)
        operation["security"] = [{"NONE": []}]
        self.assertIn(f"{route}: authorizer ['NONE'], wanted ['Credentials']", self.problems())

    def test_a_stream_that_is_held_back(self):
        route, operation = self.operation(streams=True)
        del operation["x-amazon-apigateway-integration"]["responseTransferMode"]
        self.assertIn(f"{route}: streams: True, wanted: True", self.problems())

    def test_a_route_that_streams_and_should_not(self):
        route, operation = self.operation(streams=False)
        operation["x-amazon-apigateway-integration"]["responseTransferMode"] = "STREAM"
        self.assertIn(f"{route}: streams: False, wanted: False", self.problems())

    def test_a_stream_that_is_cut_early(self):
        route, operation = self.operation(streams=True)
        operation["x-amazon-apigateway-integration"]["timeoutInMillis"] = 29000
        self.assertIn(f"{route}: timeout 29000", self.problems())

    def test_an_authorizer_that_remembers(self):
        next(iter(self.api["components"]["securitySchemes"].values()))["x-amazon-apigateway-authorizer"]["authorizerResultTtlInSeconds"] = 300
        self.assertIn("for 300 s, wanted Credentials without sources", self.problems())

    def test_a_stream_that_no_function_serves(self):
        route, _ = self.operation(streams=True)
        del self.api["paths"][route]
        self.assertIn(f"{route}: no function serves it", self.problems())


class Stages(unittest.TestCase):
    def test_the_template_has_one_stage(self):
        self.assertEqual(check.check_stages(TRANSLATED["Resources"]), [])

    def test_a_stage_that_sam_adds(self):
        resources = copy.deepcopy(TRANSLATED["Resources"])
        deployment = next(r for r in resources.values() if r["Type"] == "AWS::ApiGateway::Deployment")
        deployment["Properties"]["StageName"] = "Stage"
        self.assertRegex(" ".join(check.check_stages(resources)), "makes a stage of its own, Stage")

    def test_a_parameter_that_decides_about_methods_reaches_the_stage(self):
        def deployments(compute):
            return {name for name, r in transform("template.yaml", {"RunnerCompute": compute})["Resources"].items() if r["Type"] == "AWS::ApiGateway::Deployment"}

        self.assertEqual(deployments("lambda") & deployments("managed"), set())


if __name__ == "__main__":
    unittest.main()
