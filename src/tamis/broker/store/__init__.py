"""Where a broker keeps what must not be lost: :mod:`.sqlite` and :mod:`.postgres`."""
