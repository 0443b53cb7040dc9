"""Scripted policies for models: programs behind a real HTTP endpoint, for tests and the demo."""
