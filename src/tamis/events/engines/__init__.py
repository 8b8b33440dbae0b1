"""The algorithms that match filters; ``tamis.events.planner`` chooses among them."""
