"""Effects of a job: what a recipe does that is not deterministic.

A call of `run.call` takes this way:

    run.py        Run.call        finds the place of the call in the run
    matching.py   Matching        checks the place against what is recorded there
    recorded.py   Effects.call    returns the recorded outcome, or hands the call on
    live.py       LiveEffects     the handler of a worker; a replay has one that refuses (replay.py)
    calls.py      Calls.make      calls the gateway until the outcome is final: approvals, retries, doubt
    gateway/pipeline.py

The other kinds of effect go the same way: values (values.py), waits (waits.py) and children (live.py).
"""
