"""Plants permissions for what need not be of the stack, and looks whether elsewhere.py tells of
them.

Usage: python -m unittest discover -s infra/sam -p '*_test.py'
"""

import unittest

import elsewhere


def roles(**planted):
    """Returns roles that allow what SHARED lists, and what is planted: actions and a resource by
    the name of a role."""
    allowed = {name: [(actions, "*")] for name, actions in elsewhere.SHARED.items()}
    for name, more in planted.items():
        allowed[name] = allowed.get(name, []) + [more]
    return {
        name: {"policies": [{"Statement": [{"Action": actions.split(), "Resource": resource} for actions, resource in rows]}]}
        for name, rows in allowed.items()}


class Shared(unittest.TestCase):
    def test_what_is_listed_is_right(self):
        self.assertEqual(list(elsewhere.shared(roles())), [])

    def test_a_new_permission_for_other_stacks_is_told(self):
        for resource, told in (("*", 1), (["arn:aws:ecs:us-east-1:000000000000:service/slipway-Cluster/*", "*"], 1), (elsewhere.SERVICE, 0), (elsewhere.KEY, 0)):
            with self.subTest(resource):
                self.assertEqual(len(list(elsewhere.shared(roles(Runs=("ecs:DeleteService", resource))))), told)

    def test_reading_is_no_change(self):
        self.assertEqual(list(elsewhere.shared(roles(Runs=("ecs:DescribeServices ecs:ListTasks", "*")))), [])

    def test_a_permission_that_is_gone_is_told(self):
        without = roles()
        del without["RunMachineRole"]
        self.assertEqual(len(list(elsewhere.shared(without))), len(elsewhere.DELIVERED.split()))


if __name__ == "__main__":
    unittest.main()
