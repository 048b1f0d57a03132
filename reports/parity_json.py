"""The report as JSON, and its schema.

`python -m msmigrate.reports.parity_json docs/report.schema.json` rewrites the file.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ..atomic_files import write_whole
from ..parity.options import STAGES, Narrowing
from ..parity.result import NARROWED as PART
from ..parity.result import Cause, CellChange, Finding, MadeWith, ModuleVerdict, Outcome, Report, StageSummary
from ..parity.tensor_verdict import BY_NATURE, RATIO, Unjudged
from ..parity.trace import Device


def write_json(report: Report, path: Path) -> None:
    """Write the whole report as JSON; the file appears complete or not at all. Raises BadDestination."""
    write_whole(json.dumps(report.as_json(), indent=1, ensure_ascii=False) + "\n", path)


DIALECT = "https://json-schema.org/draft/2020-12/schema"
STAGE = "one of data, init, forward, loss, gradients, update"
VERDICT = "pass, fail, or no verdict, where it could not be judged"
UNJUDGED = (
    "why there is no verdict, null where there is one. By nature, and so no obstacle to parity: "
    + ", ".join(sorted(kind.value for kind in BY_NATURE))
    + "; unproven: "
    + ", ".join(sorted(kind.value for kind in Unjudged if kind not in BY_NATURE))
)
MEASURE = "null where it was not measured or is not finite"

FINDING = {
    "stage": STAGE,
    "part": "which of the stage's recordings: eval, train, step1, given gradients, alone, …",
    "name": "the tensor: torch's dotted name, with #n for the module's n-th call after the first",
    "order": "position in the order of execution; unique in a report",
    "verdict": VERDICT,
    "why": "the reason of every verdict that is not a pass",
    "module": "torch class of the module that made the tensor; null where none did",
    "shape": "shape of the whole tensor",
    "error": f"L2 distance of MindSpore from torch float64, over the tensor's L2 norm; for initial distributions the "
    f"Kolmogorov-Smirnov distance; {MEASURE}",
    "noise": f"the same distance of torch float32, the larger of its runs; {MEASURE}",
    "allowed": f"the largest error that passes; {MEASURE}",
    "ratio": f"error over noise, or over the rounding to be expected where that is larger; above {RATIO:g} the tensor "
    f"fails; {MEASURE}",
    "unjudged": UNJUDGED,
    "unlike": "why the tensor fails before anything runs: missing (MindSpore lacks it), constant (in MindSpore it is "
    "no Parameter), shared (in MindSpore it is one with another), extra (torch lacks it), unshared (in torch it is one "
    "with another), frozen (only torch trains it), trains (only MindSpore does), shape (another one); else null",
}
CAUSE = {
    "stage": STAGE,
    "place": "a module's dotted name (empty for the whole model), a parameter group or a stage",
    "fault": "id of the known fault (`msmigrate explain ID`); null where nothing known reproduces MindSpore's tensor",
    "text": "what is wrong",
    "fix": "what to write in MindSpore; may be empty",
    "evidence": "how the hypothesis was tested, with its numbers",
    "ratio": f"MindSpore's distance from torch under this fault, over the noise; {MEASURE}",
    "before": f"MindSpore's distance from torch as it is, over the noise; {MEASURE}",
    "change": "the fix for a program, where it is arguments of Cells; null for any other",
    "kind": "torch class of the module at fault; empty where it is no module's",
    "hypothesis": "what was tried on the module, in the same words wherever it was the same; empty where nothing was",
}
CHANGE = {
    "cells": "attribute paths of the Cells in MindSpore's net; empty for the net itself",
    "target": "dotted name of the class that these Cells should have; empty where the class stays",
    "arguments": "argument -> its value as Python code, with the names of mindspore and its initializers",
    "whole": "whether these are all arguments of the class, or those at fault",
    "now": "the present values of these arguments, inferred from what MindSpore computes; empty where it does not show "
    "them",
}
MODULE = {
    "name": "torch's dotted name; empty for the whole model",
    "kind": "torch class",
    "mindspore": "path and class of the Cell it was matched with",
    "verdict": VERDICT + "; of this module's own tensors, when it ran on torch's inputs",
    "own": "whether the fault is in this module itself rather than in a module inside it",
    "depth": "0 for the whole model, one more for each level below",
    "order": "position in the order of execution",
    "ratio": f"the largest ratio over the module's tensors; {MEASURE}",
    "why": "the reason of every verdict that is not a pass",
    "note": "what was made deterministic, or why the module could not run alone",
    "by_parts": "whether it is a container that did not run alone, but was judged by every module that it calls and by "
    "what it computes between them, forward and backward",
}
SUMMARY = {
    "stage": STAGE,
    "verdict": VERDICT + "; one failed tensor fails the stage, and so does a stage in which nothing was compared",
    "passed": "how many tensors passed",
    "failed": "how many tensors failed",
    "undecided": "how many tensors have no verdict",
    "unproven": "how many of these should have one",
    "median_ratio": f"median ratio of the tensors that were judged by noise; {MEASURE}",
    "max_ratio": f"their largest ratio; {MEASURE}",
    "max_error": f"the largest error, except of tensors that pass and are nothing but rounding; {MEASURE}",
    "max_error_name": "part and name of the tensor with the largest error",
}
DEVICE = {
    "device": "cpu, cuda:0, npu:0, ascend:0 or gpu:0",
    "device_model": "the name that it reports",
    "driver": "version of its driver; empty where there is none",
    "runtime": "versions of CUDA and cuDNN, or of CANN; empty where there are none",
    "switches": "what changes the numbers that it computes, by name: TF32, HF32, cudnn.benchmark and so on",
}
MADE_WITH = {
    "code_digest": "digest of msmigrate's code; `train --parity-report` takes a report of the same code only",
    "checkpoint_digest": "SHA-256 of the starting checkpoint's file; null where the recipe names none",
    "steps": "how many training steps were compared",
    "batch": "how many images a compared step had",
}
TOP = {
    "parity": "whether every stage passed; in a narrowed run false where one did not, and null where all judged stages "
    "did: a part of the step is no proof of it",
    "outcome": "parity, mismatch, or unproven: nothing failed, but something that should have been judged was not; "
    "narrowed, where all judged stages passed in a narrowed run",
    "narrowed": "what a run with --stages or --modules was narrowed to; null for the whole step",
    "sides": "the reference, and what is judged against it: torch and MindSpore, or two recordings of one framework",
    "recipe": "the recipe's file",
    "recipe_digest": "digest of what the recipe says",
    "versions": "version by package: mindspore, torch, torchvision, numpy",
    "devices": "what each of the two sides was computed on",
    "seconds": "wall-clock time of the run; null for a comparison of existing traces",
    "stages": "one summary for each stage that is judged, in their order",
    "first_divergence": "the failed tensor that is computed first; null where none failed",
    "causes": "what explains the failed tensors, most certain first",
    "hints": "what people usually got wrong at the first divergence, from the mapping table",
    "notes": "what to know about how the reference was taken",
    "modules": "verdict of every module that ran alone, or was judged by its parts; empty without replay",
    "findings": "every compared tensor, in the order of execution",
}
NARROWED = {
    "stages": "the stages that were judged, in their order",
    "modules": "globs over the dotted names of the modules whose tensors were judged; empty for all",
    "parity": "whether every stage that was judged passed; no proof of the step",
}
CLASSES: dict[str, tuple[type, dict[str, str]]] = {
    "finding": (Finding, FINDING),
    "cause": (Cause, CAUSE),
    "change": (CellChange, CHANGE),
    "module": (ModuleVerdict, MODULE),
    "stage": (StageSummary, SUMMARY),
    "device": (Device, DEVICE),
}


def schema() -> dict[str, Any]:
    """The schema of Report.as_json(), JSON Schema draft 2020-12; KeyError for a field that nobody has described."""
    own = _properties(Report)
    lists = {"stages": "stage", "causes": "cause", "modules": "module", "findings": "finding", "devices": "device"}
    shapes: dict[str, dict[str, Any]] = {
        "parity": {"type": ["boolean", "null"]},
        "outcome": {"type": "string", "enum": [*(outcome.value for outcome in Outcome), PART]},
        "narrowed": {"anyOf": [_narrowed(), {"type": "null"}]},
        "first_divergence": {"anyOf": [{"$ref": "#/$defs/finding"}, {"type": "null"}]},
        **{name: {"type": "array", "items": {"$ref": f"#/$defs/{item}"}} for name, item in lists.items()},
        "sides": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        **{name: own[name] for name in ("recipe", "recipe_digest", "versions", "seconds", "hints", "notes")},
    }
    shapes["stages"] |= {"minItems": 1, "maxItems": len(STAGES)}
    made = {name: {**shape, "description": MADE_WITH[name]} for name, shape in _properties(MadeWith).items()}
    return {
        "$schema": DIALECT,
        "title": "msmigrate parity report",
        "description": "The verdict of `msmigrate parity-step`, as `--json FILE` writes it.",
        "type": "object",
        "properties": {**{name: {**shapes[name], "description": text} for name, text in TOP.items()}, **made},
        "required": list(TOP),
        "dependentRequired": {"code_digest": [name for name in MADE_WITH if name != "code_digest"]},
        "additionalProperties": False,
        "$defs": {name: _object(cls, texts) for name, (cls, texts) in CLASSES.items()},
    }


def _object(cls: type, texts: dict[str, str]) -> dict[str, Any]:
    """One class of the report; every field is always there."""
    properties = {name: {**shape, "description": texts[name]} for name, shape in _properties(cls).items()}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _narrowed() -> dict[str, Any]:
    """The schema of `narrowed` in a report."""
    shapes: dict[str, dict[str, Any]] = {**_properties(Narrowing), "parity": {"type": "boolean"}}
    properties = {name: {**shapes[name], "description": text} for name, text in NARROWED.items()}
    return {"type": "object", "properties": properties, "required": list(NARROWED), "additionalProperties": False}


def _properties(cls: Any) -> dict[str, dict[str, Any]]:
    """Field -> its JSON type, by the annotations of a dataclass."""
    whole = TypeAdapter(cls).json_schema(mode="serialization")
    known = whole.get("$defs", {})
    types = {}
    for field in fields(cls):
        shape = {k: v for k, v in whole["properties"][field.name].items() if k not in ("title", "default", "enum")}
        if "items" in shape:  # for a reader of reports a stage is any string, because later versions may have more
            shape["items"] = {k: v for k, v in shape["items"].items() if k != "enum"}
        if "anyOf" in shape:
            shape = {**shape, "anyOf": [_enumerated(each, known) for each in shape["anyOf"]]}
        types[field.name] = _enumerated(shape, known)
    return types


def _enumerated(shape: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """A reference to an enumeration as the enumeration, one to a class of the report by its name here; anything else as
    it is."""
    name = shape.get("$ref", "").rpartition("/")[2]
    ours = {cls.__name__: own for own, (cls, _) in CLASSES.items()}
    if name in ours:
        return {"$ref": f"#/$defs/{ours[name]}"}
    enumeration = known.get(name, {})
    return {key: enumeration[key] for key in ("type", "enum")} if "enum" in enumeration else shape


def main(path: Path) -> None:
    """Write the schema as a file."""
    write_whole(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
