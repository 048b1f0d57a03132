"""Models of a library that has much around them: transformers' classes, configurations, registries and outputs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from written import LIBRARY, Written, builders

MODELS = LIBRARY[0]
NAMES = builders(MODELS)
QUICK = ("bert", "gpt2")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.full] * (n not in QUICK)) for n in NAMES])
def test_it_is_whole_and_computes_the_same(library: dict[str, Written], name: str) -> None:
    found = library[name]
    found.agrees()
    found.lacks("import torch", "PushToHubMixin", "GenerationMixin")


def test_a_configuration_is_a_dataclass_of_what_is_read(library: dict[str, Written]) -> None:
    bert, gpt2 = library["bert"], library["gpt2"]
    bert.holds("@dataclass\nclass BertConfig:", "    hidden_size: int = 768\n")
    bert.holds("if config.hidden_act not in ('gelu',):")  # the register has others
    bert.holds("BertConfig(vocab_size=50, max_position_embeddings=20, hidden_size=16")
    bert.lacks("PreTrainedConfig", "architectures", "id2label")
    gpt2.holds("def hidden_size(self) -> Any:", "return self.n_embd")


def test_what_a_registry_gave_stands_in_its_place(library: dict[str, Written]) -> None:
    library["bert"].holds(
        "self.intermediate_act_fn = GELUActivation()", "attention_interface: Callable = eager_attention"
    )


@pytest.mark.full
def test_what_another_registry_gave_stands_in_its_place(library: dict[str, Written]) -> None:
    library["llama_for_causal_lm"].holds("self.act_fn = SiLUActivation()")


def test_weights_are_drawn_and_tied_as_the_library_does(library: dict[str, Written]) -> None:
    bert, gpt2 = library["bert"], library["gpt2"]
    bert.holds("class PreTrainedModel(nn.Cell):", "self.initialize_weights(child)", "Normal(sigma=std)")
    gpt2.holds("net.lm_head.weight = net.transformer.wte.embedding_table")


def test_outputs_are_dictionaries_of_what_is_there(library: dict[str, Written]) -> None:
    bert = library["bert"]
    bert.holds("return {'logits': logits}", "outputs['pooler_output']")
    bert.lacks("'hidden_states': None", "_can_record_outputs", "base_model_prefix")


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_the_proof_runs_against_the_library_itself(tmp_path: Path, name: str) -> None:
    file = shutil.copy(MODELS, tmp_path)
    command = [sys.executable, "-m", "msmigrate", "convert-model", f"{file}:{name}", "-o", "net.py"]
    command += ["--json", "--mode", "graph"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["sound"]
