"""Stand-ins for vendors' tools: they take every command of a script, and refuse what does not fit.

They know the blocks, pins, parameters and address segments that the scripts may name, from the
vendors' documents; nothing here imports the product.
"""
