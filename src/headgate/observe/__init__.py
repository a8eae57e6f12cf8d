"""How people watch a flow: events, listeners, status, and plans in words."""
