"""One capped trial through Harbor: environment, agent, model endpoint, scheduler."""

import os

# Harbor and LiteLLM would otherwise ask the network when they are imported.
os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
