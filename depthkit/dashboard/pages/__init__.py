"""The pages, each a function from a corpus and the query of its address to escaped HTML."""
