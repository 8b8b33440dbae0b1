"""The engines that reproduce papers."""
