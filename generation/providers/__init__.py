"""Providers of models: the contract, the registry of names, and one module per wire protocol."""
