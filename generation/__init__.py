"""What happens next: decision, prompt, providers, tools, runner, worker."""
