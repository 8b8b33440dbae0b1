"""Reads documents: one pass over the bytes, 64 of them at a time.

``scan`` records where structure is (``<``, ``&``, ``]]``), a window at a time. It checks all bytes
on the way, and then goes from one place to the next. What it does not know it leaves to its caller:
a name or a scope that it meets for the first time, a full buffer. It then goes on where it was.
What it does not do ends the document as declined: libexpat then reads the document from its start,
and says what is wrong if something is.

A *place* counts the bytes of what is read; ``at`` gives its address. What reads returns the place
behind what it read, or minus one of the statuses in ``layout``.

Memory is read in whole blocks, beyond the end of a document: behind each are ``PADDING`` bytes
of NUL, which no document has, so that every search ends there. A document of its own buffer is
read in place, but for its last bytes, of which there is a padded copy (``Text.tail``).
"""
