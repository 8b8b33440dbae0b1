"""The strategies of Diao and Franklin's message broker, and plan sharing; see README.md."""
