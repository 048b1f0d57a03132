"""Mutations: ways in which a layer, a forward or an optimizer is computed otherwise. Hypotheses are made of them."""
