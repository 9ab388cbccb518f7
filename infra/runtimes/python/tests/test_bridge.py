"""Needs nothing but Python, so that Go's tests can run it, too."""

import asyncio
import importlib.util
import unittest
from pathlib import Path

# The package itself imports the framework.
_spec = importlib.util.spec_from_file_location("bridge", Path(__file__).parents[1] / "slipway_runtime" / "bridge.py")
bridge = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bridge)


class TestOutlet(unittest.IsolatedAsyncioTestCase):
    async def test_silence_is_filled_and_takes_nothing_from_what_is_said(self) -> None:
        self.assertEqual(bridge.HEARTBEAT, 15)
        outlet = bridge.Outlet(asyncio.get_running_loop())
        for _ in range(3):
            self.assertEqual(await outlet.read_or_beat(0.001), b": heartbeat\n\n")
        outlet.emit("values", b"{}")
        self.assertEqual(await outlet.read_or_beat(3600), b"event: values\ndata: {}\n\n")
        outlet.close()
        self.assertIsNone(await outlet.read_or_beat(3600))


if __name__ == "__main__":
    unittest.main()
