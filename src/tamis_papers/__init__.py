"""Engines that reproduce a paper, for comparison; each has a README.md.

Tamis finds them by entry points: ``pma``, ``twigstacks`` and ``twigstacks-cuda`` for documents;
``sff``, ``ocm`` and ``ccm`` for events; the strategies ``path-sharing-f``, ``path-sharing-fw``,
``path-sharing-fwr`` and ``plan-sharing``.
"""
