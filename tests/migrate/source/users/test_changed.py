"""What a function of the user's changed in the model that it made is done in MindSpore, too, or told."""

from __future__ import annotations

import numpy as np
import pytest
from written import Written

Users = dict[str, Written]


def test_layers_put_in_place(users: Users) -> None:
    found = users["other_head"]
    found.agrees()
    found.holds("net = Features(7)", "net.head = nn.SequentialCell(nn.Dropout(p=0.0), nn.Dense(4, 2))")
    found.holds("net.body[2] = nn.Conv2d(", "net.body.append(nn.Tanh())", "net.parts['gate'] = nn.Conv2d(")
    found.holds("def build() -> Features:", "return net")


def test_frozen_parts(users: Users) -> None:
    found = users["frozen"]
    found.agrees()
    found.holds("for parameter in backbone.stem.get_parameters():", "backbone.norm.beta.requires_grad = False")
    found.holds("backbone.head = nn.Identity()", "net = Wrapped(backbone)", "net.fc.bias.requires_grad = False")
    found.lacks("backbone.body.get_parameters()", "norm.gamma")


@pytest.mark.full
def test_numbers_that_were_set(users: Users) -> None:
    found = users["numbers"]
    found.agrees()
    found.holds("net.rate = 0.25")


@pytest.mark.full
def test_a_sequential_that_grew(users: Users) -> None:
    found = users["extended"]
    found.agrees()
    found.holds("add_cell(net, 'fc', nn.Dense(64, 2))", "add_cell(net, 'act', nn.Tanh())")


@pytest.mark.full
def test_layers_that_were_set_otherwise(users: Users) -> None:
    found = users["set_otherwise"]
    found.agrees()
    found.holds(
        "net.norm = nn.BatchNorm2d(4, eps=0.01)", "net.body[0] = nn.Conv2d(4, 4, 1, stride=(2, 2), pad_mode='pad',"
    )


def test_what_cannot_be_told_is_a_problem(users: Users) -> None:
    said = [problem.text for problem in users["set_and_frozen"].source.problems]
    assert said == ["norm.eps was set to 0.01 after the layer was made with 1e-05; make it with 0.01"]
    users["set_and_frozen"].holds("not_converted('norm.eps was set")
    users["removed"].agrees()
    users["removed"].holds("take_cell(net, 1)")
    said = [problem.text for problem in users["called_otherwise"].source.problems]
    assert said == ["the model got another forward after it was made: write a class with that"]


@pytest.mark.full
def test_modes_that_are_set_on_the_way(users: Users) -> None:
    found = users["measured_modes"]
    found.agrees()
    found.holds("self.backbone.set_train(False)", "self.backbone.set_train(training)")


def test_weights_that_became_one(users: Users) -> None:
    found = users["tied_later"]
    found.agrees()
    found.holds("net.head.weight = net.embed.embedding_table")


@pytest.mark.full
def test_weights_that_were_drawn_anew(users: Users) -> None:
    found = users["drawn_by_a_function"]
    found.agrees()
    found.holds("draw_convolutions(net, 0.3)\n    net.head = linear", "linear.apply(init_head)", "sigma=std")
    found.lacks("net.head.apply")
    said = [problem.text for problem in users["drawn_by_a_lambda"].source.problems]
    assert said == ["weights were drawn by drawn_by_a_lambda.<locals>.<lambda>: write that as a function of its own"]


def test_layers_out_of_a_model_that_drew_them(users: Users) -> None:
    found = users["taken_out"]
    found.agrees()
    found.holds("features = layers(5)", "classifier = Classifier(features)", "classifier.features[0], ")
    found.holds("class Classifier(nn.Cell):", "sigma=0.3", "nn.MaxPool2d(kernel_size=2), classifier.features[2]")
    found.lacks("mean((2, 3))")  # what it would do with them, had it kept them


def test_objects_that_a_function_changes_before_a_class_gets_them(users: Users) -> None:
    """They were written as they were made: another rate, and a vocabulary of one word."""
    found = users["filled_later"]
    found.agrees()
    found.holds("args = Namespace(rate=1.0, width=4)", "words.words = ['<pad>', 'a', 'b', 'c', 'd', 'e']")
    found.holds("def __len__(self):", "self.counts[self.places[word]] += n", "defaults(args)")
    found.holds("MADE = defaultdict(lambda: 0)", "MADE[type(self).__name__] += 1")


def test_an_object_that_changes_between_two_classes_is_told(users: Users) -> None:
    (problem,) = users["changed_between"].source.problems
    assert "argparse.Namespace that is changed between the calls" in problem.text
    assert problem.text.endswith("make one for each of them")


def test_functions_lists_and_dictionaries_that_were_set(users: Users) -> None:
    """Only numbers were: the others were as the class sets them, or not there."""
    found = users["hooked"]
    found.agrees()
    found.holds("net.act = ops.tanh", "net.after = cut", "net.probe = partial(cut, share=0.1)")
    found.holds("net.factors = [2.0, 3.0]", "net.rates = [1.5, 2.0]", "net.by_name = {'a': 0.5}")
    found.lacks("trained_by")


def test_a_lambda_that_was_set_is_a_problem(users: Users) -> None:
    (problem,) = users["hooked_by_lambda"].source.problems
    assert problem.text.startswith("probe was set to this lambda after the model was made: hand over a function")


def test_an_object_that_hands_itself_on_while_it_is_made(users: Users) -> None:
    """It was written as it was then, without anything in it."""
    found = users["by_options"]
    found.agrees()
    found.holds("options = Options({'width': 4})", "options.sizes = [4, 3]")
    found.lacks("options.held = {}")


def test_what_is_set_is_known_of_a_model_that_cannot_be_made_again(users: Users) -> None:
    """Nothing was compared then, so that all of it was lost."""
    found = users["hooked_once"]
    found.holds("net.probe = partial(cut, share=0.1)", "net.share = 0.25")


def test_weights_that_a_function_draws_in_its_own_body(users: Users) -> None:
    found = users["drawn_by_statements"]
    found.agrees()
    found.holds("net = Drawn(width)", "p.set_data(initializer(Orthogonal(gain=gain)", "return with_drawn_weights(8)")
    fresh = found.mindspore["fresh/last.weight"]
    assert np.allclose(fresh @ fresh.T, 0.25 * np.eye(3), atol=1e-5)
    said = [problem.text for problem in users["drawn_here"].source.problems]
    assert said == [
        "weights were drawn after the model was made: write that as a function of its own, which gets the model"
    ]
