"""What looks like a secret, and the values of known ones, found in text and masked."""
