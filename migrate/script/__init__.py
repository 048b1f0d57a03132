"""Reading a PyTorch training script without running it: what it uses, what becomes of that, and a recipe for it."""

from __future__ import annotations

from .analysis import Api, ScriptAnalysis, Use, analyze_script
from .recipe_draft import draft_recipe

__all__ = ["Api", "ScriptAnalysis", "Use", "analyze_script", "draft_recipe"]
