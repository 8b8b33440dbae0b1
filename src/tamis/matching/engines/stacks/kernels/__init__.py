"""The kernels: a segment of a batch at a time.

``compress`` lists the distinct subtrees of the segment. ``evaluate`` computes, for one group of
twigs after the other, what each subtree latches into the element around it. ``collect`` lists the
answers of documents. ``evaluate.run`` is what Python calls.
"""
