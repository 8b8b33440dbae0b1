"""The algorithms that find what messages are made of; see ``tamis.transform.planner``."""
