"""Models: what a model is asked and answers, in a form of our own, and one small reducer for each wire format."""
