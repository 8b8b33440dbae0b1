"""What the world sees of a broker: HTTP, with problem details (RFC 9457) for errors.

:mod:`.app` joins the routes. Messages come in through :mod:`.ingest`, and go out in streams through
:mod:`.streams`: these are bare ASGI, since there are thousands of requests a second, and of
connections. All other routes are FastAPI's. :mod:`.access` knows who may do what.
"""
