"""What every chat channel shares: inbox, commands, outbox and run display."""
