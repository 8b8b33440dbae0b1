"""XML bytes → DocumentBatch.

``source`` reads files, streams and archives (``files``) and finds their encoding (``encodings``);
``parser`` makes a ``batch`` of whole documents and ``records`` of the records of a stream: by
``tokenizer`` where it can, by ``expat`` else. Begin with ``batch``.
"""
