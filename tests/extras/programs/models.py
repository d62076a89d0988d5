"""docs/models.md, docs/agents.md: an agent whose model is asked over the network."""

import os

from here import project, told

project()
model = f"openai-compatible:{os.environ['MODEL_URL']}/v1#served-1"
assert told("run", "agent", "--task", "How are you?", "--model", model)["result"]["answer"] == "Fine, thank you."
