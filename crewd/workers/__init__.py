"""The worker layer: the host client, adapters and what they share."""
