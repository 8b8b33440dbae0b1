"""The algorithms that answer queries; ``tamis.matching.planner`` chooses among them."""
