"""A stored model on its task's sequences: what it answers, and where its gates look for the answer."""

from mclab.predict.answers import Head, Predicted, Query, Sample, predicted
from mclab.predict.chosen import chosen
from mclab.predict.stored import find
from mclab.store.find import Stored
from mclab.train.weights import load_model

__all__ = ["Head", "Predicted", "Query", "Sample", "Stored", "chosen", "find", "load_model", "predicted"]
