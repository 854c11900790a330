"""Tests that kill processes at chosen instants and check the data afterwards."""
