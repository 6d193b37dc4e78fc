"""Commands, events and messages: their schemas, types and codec."""
