"""Language models of replicas: embedding, blocks of mixer and MLP, tied head."""
