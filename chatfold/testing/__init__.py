"""The test kit that ships with chatfold."""
