"""Transforming subscriptions: which nodes of a message they ask for, and what is made of them."""
