"""Tests of the loopback servers, most of them through the official SDKs."""
