"""Tests of running recorded chats again."""
