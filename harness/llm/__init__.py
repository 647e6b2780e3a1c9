"""Chat completions of all backbones: request, client, call log, servers, prices."""
