"""The page in Chromium, against a real gateway and a scripted model."""
