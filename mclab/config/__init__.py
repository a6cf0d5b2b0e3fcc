"""Define the config of a run as frozen, strict models: keys, defaults, rules between keys, run id.

Never imports torch.
"""
