"""Recordings that people send, such as voice messages.

- `recordings`: which files are recordings, by their content
- `durations`: their length
- `transcription`: the client of an OpenAI-compatible service
- `reader`: `TranscribingAudioReader`, which implements the port with them
"""
