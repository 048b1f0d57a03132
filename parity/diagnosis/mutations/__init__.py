"""Mutations: ways to compute a layer, a forward or an optimizer otherwise. Hypotheses consist of them."""
