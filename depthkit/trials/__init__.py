"""One capped trial through Harbor: environment, agent, model endpoint, scheduler."""
