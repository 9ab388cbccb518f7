"""Plants reservations of concurrency that no account allows, and looks whether concurrency.py tells
of them.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import re
import unittest
from pathlib import Path

import concurrency
from transform import transform


def either(condition, value):
    return {"Fn::If": [condition, value, {"Ref": "AWS::NoValue"}]}


STACK = {
    "Parameters": {"ConcurrencyQuota": {"Default": 1000}, "WorkConcurrency": {"Default": 0}, "Ready": {"Default": 0}},
    "Conditions": {
        "Limits": {"Fn::Not": [{"Fn::Equals": [{"Ref": "WorkConcurrency"}, "0"]}]}, "Provisions": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Ready"}, "0"]}]}},
    "Resources": {
        "Work": {"Type": "AWS::Lambda::Function", "Properties": {"ReservedConcurrentExecutions": either("Limits", {"Ref": "WorkConcurrency"})}},
        "Live": {"Type": "AWS::Lambda::Alias", "Properties": {
            "FunctionName": {"Ref": "Work"}, "ProvisionedConcurrencyConfig": either("Provisions", {"ProvisionedConcurrentExecutions": {"Ref": "Ready"}})}},
        "Other": {"Type": "AWS::Lambda::Function", "Properties": {}},
    },
}


class Concurrency(unittest.TestCase):
    def test_an_account_keeps_a_hundred(self):
        for parameters, problems in (
                ({}, 0), ({"ConcurrencyQuota": "10"}, 0), ({"WorkConcurrency": "900"}, 0), ({"WorkConcurrency": "901"}, 1), ({"ConcurrencyQuota": "10", "WorkConcurrency": "1"}, 1),
                ({"Ready": "900"}, 0), ({"Ready": "901"}, 1), ({"WorkConcurrency": "900", "Ready": "900"}, 0)):
            with self.subTest(parameters):
                self.assertEqual(len(concurrency.check(STACK, parameters)), problems)

    def test_what_samconfig_recommends_fits_into_the_default_quota(self):
        recommended = dict(re.findall(r"(\w+Concurrency)=(\d+)", Path("samconfig.toml").read_text(encoding="utf-8")))
        translated = transform("template.yaml", recommended)
        reserving = {name for name in translated["Parameters"] if name.endswith("Concurrency")} - {"ProvisionedConcurrency"}
        self.assertEqual(recommended.keys(), reserving)
        self.assertEqual(concurrency.check(translated, recommended), [])
        self.assertEqual(len(concurrency.check(translated, recommended | {"RunnerConcurrency": "329"})), 1)


if __name__ == "__main__":
    unittest.main()
