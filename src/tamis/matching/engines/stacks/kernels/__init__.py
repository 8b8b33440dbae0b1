"""The kernels: a segment of a batch at a time.

``compress`` lists the distinct subtrees of the segment. ``evaluate`` asks, for one group of twigs
after the other, what each of them tells the element around it, and lists what is true of documents.
``evaluate.run`` is what Python calls.
"""
