"""Runs programs where they can do no harm (rule 9). Knows no tools and no journal: a floor below the providers.

A *driver* isolates: it says what this machine lets it do (`probe`), runs one command (`exec`) and stops it (`kill`).
Where no driver reaches the isolation that the policy demands, nothing runs: SANDBOX_UNAVAILABLE names the check that
failed and what to do about it. There is no fallback and nothing that a caller could set to get one.

This is not a boundary against a flaw in the kernel: against that, choose the driver `container` with gVisor's
runtime, or a virtual machine around all of Remit.
"""
