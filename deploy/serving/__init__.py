"""Answer requests: msmigrate's own server, and a servable for MindSpore Serving."""
