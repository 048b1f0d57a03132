"""`python servable_mindspore_worker.py SERVABLE RECIPE IMAGE`: whether the servable prepares an image as the recipe
says, and names the class that its own model finds likeliest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from msmigrate.workers.worker import leave, prepare_mindspore

prepare_mindspore()

import numpy as np  # noqa: E402
from msmigrate.deploy.serving.mindspore_servable_worker import load_config  # noqa: E402
from msmigrate.training.data.mindspore_pipeline import Prepare  # noqa: E402
from msmigrate.training.mindspore_inference_worker import NO_KEY  # noqa: E402
from msmigrate.training.recipe import reader as recipes  # noqa: E402

servable, recipe, image = Path(sys.argv[1]), recipes.load(Path(sys.argv[2])), Path(sys.argv[3])
register = load_config(servable, 2)
data = np.frombuffer(image.read_bytes(), dtype=np.uint8)
expected = Prepare(recipe.data.transforms, "L")(data, NO_KEY)
names = json.loads((servable / "classes.json").read_text())
likeliest = names[int(np.argmax(register.methods["predict"][1](expected)))]
top1 = register.methods["classify_top1"][1](data)
given = register.methods["classify_top1"][1].__globals__["preprocess"](data)
print(json.dumps({"agrees": bool(np.allclose(given, expected, atol=1e-6)) and top1 == likeliest}))
leave()
