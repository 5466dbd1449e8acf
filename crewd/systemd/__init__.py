"""systemd, where it keeps the daemon: what it hears of us, our units, the user's own manager."""
