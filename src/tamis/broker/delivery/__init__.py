"""How messages leave a broker as webhooks.

:mod:`.addresses` decides which URLs and IP addresses may be called. :mod:`.signing` makes the
signature headers and the payload. :mod:`.connections` opens connections to permitted addresses.
:mod:`.webhooks` sends one attempt. :mod:`.breaker` says when an endpoint that fails may be tried
again. The queue of a subscription stores, orders and repeats; nothing here does.
"""
