"""chatfold: a chat engine whose chats are state machines over an event log."""
