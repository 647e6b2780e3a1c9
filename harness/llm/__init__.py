"""Chat completions: backbones, client, call log, recordings, servers, sentence encoder."""
