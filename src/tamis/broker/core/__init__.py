"""What a broker decides: no clock, no network, no disk. See :mod:`.broker` and :mod:`.queue`."""
