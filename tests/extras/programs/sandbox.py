"""docs/sandbox.md: code runs in the sandbox, also where the system has no bubblewrap."""

from here import project, remit, told

RULE = """
[[policy.rules]]
id = "the-sandbox-may-be-used"
effect = "allow"
tools = ["sandbox.*"]
"""

project(RULE)
remit("sandbox", "probe")
ran = told("run", "run_code_snippet", "--language", "python", "--code", "print(20 + 22)")
assert ran["result"]["stdout"] == "42\n", ran
